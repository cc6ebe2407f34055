// How to show a published dashboard in one's own product: the call of the server, the element of the page, and the
// embed itself running beside them.

import { useEffect, useRef, useState } from "preact/hooks";
import { answer, api, type Schemas } from "../../api/client";
import { quoted } from "../../api/requests";
import { boot } from "../../boot";
import { texts } from "../../texts/en";
import { Snippets } from "../../ui/code";
import { Field, Submit, useForm } from "../../ui/form";

const text = texts.embedPanel;

/** The call of one's server that opens a session, in several languages. */
export function serverSnippets(dashboard: string, tenant: string): Record<string, string> {
  const url = `${boot.base_url}/v1/embed-sessions`;
  const body = { tenant_id: tenant, dashboard_id: dashboard };
  return {
    curl: `curl ${url} \\\n  -H "Authorization: Bearer $INLAY_KEY" \\\n  -H "Content-Type: application/json" \\\n  -d ${quoted(JSON.stringify(body))}`,
    Node: `const response = await fetch("${url}", {\n  method: "POST",\n  headers: { authorization: \`Bearer \${process.env.INLAY_KEY}\`, "content-type": "application/json" },\n  body: JSON.stringify({ tenant_id: customer.id, dashboard_id: "${dashboard}" }),\n});\nconst { embed_url } = await response.json();`,
    Python: `import os, requests\n\nresponse = requests.post(\n    "${url}",\n    headers={"Authorization": f"Bearer {os.environ['INLAY_KEY']}"},\n    json={"tenant_id": customer.id, "dashboard_id": "${dashboard}"},\n)\nembed_url = response.json()["embed_url"]`,
    Rust: `let session: serde_json::Value = reqwest::Client::new()\n    .post("${url}")\n    .bearer_auth(std::env::var("INLAY_KEY")?)\n    .json(&serde_json::json!({"tenant_id": customer.id, "dashboard_id": "${dashboard}"}))\n    .send().await?.json().await?;\nlet embed_url = &session["embed_url"];`,
  };
}

/** The element of one's page. */
export function pageSnippets(): Record<string, string> {
  const script = `${boot.base_url}/sdk/v1/embed.js`;
  return {
    HTML: `<script type="module" src="${script}"></script>\n<inlay-dashboard src="{embed_url}" label="Usage"></inlay-dashboard>`,
    JavaScript: `import { mountDashboard } from "${script}";\n\nmountDashboard("#usage", {\n  fetchEmbedUrl: async ({ signal }) =>\n    (await fetch("/api/usage-embed", { method: "POST", signal })).json(),\n});`,
    React: `export function Usage() {\n  const ref = useRef(null);\n  useEffect(() => { ref.current.fetchEmbedUrl = fetchUsageEmbedUrl; }, []);\n  return <inlay-dashboard ref={ref} label="Usage" />;\n}`,
  };
}

/** `tenant` is whose events are shown first. */
export function EmbedPanel({
  dashboard,
  tenant,
  onMinted,
}: {
  dashboard: string;
  tenant: string;
  onMinted?: () => void;
}) {
  const [made, setMade] = useState<Schemas["NewEmbedSession"] | null>(null);
  const form = useForm(async (value) => {
    setMade(
      await answer(
        api.POST("/v1/embed-sessions", {
          body: { tenant_id: value("tenant_id"), dashboard_id: dashboard, permissions: { allow_drill_down: true } },
        }),
      ),
    );
    onMinted?.();
  });
  return (
    <div class="embed-panel">
      <div>
        <h3>{text.server}</h3>
        <p class="lead">{text.serverLead}</p>
        <Snippets snippets={serverSnippets(dashboard, tenant || "acme")} label={text.server} />
        <h3>{text.page}</h3>
        <p class="lead">{text.pageLead}</p>
        <Snippets snippets={pageSnippets()} label={text.page} />
      </div>
      <div>
        <h3>{text.live}</h3>
        <p class="lead">{text.liveLead}</p>
        <form {...form.props} class="inline">
          <Field
            in={form}
            name="tenant_id"
            label={text.tenant}
            defaultValue={tenant}
            required
            maxLength={256}
            autocomplete="off"
          />
          <Submit form={form}>{made ? text.again : text.show}</Submit>
        </form>
        {made && <Live url={made.embed_url} />}
      </div>
    </div>
  );
}

/** The helper's own element in a page that stands for a customer's, with the messages that it sends. */
export function Live({ url }: { url: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [messages, setMessages] = useState<string[]>([]);
  useEffect(() => {
    const element = document.createElement("inlay-dashboard");
    const path = "/sdk/v1/embed.js";
    void import(path);
    for (const name of ["ready", "filter", "period-change", "drill", "error"]) {
      element.addEventListener(name, (event) =>
        setMessages((before) =>
          [`${name} ${JSON.stringify((event as CustomEvent).detail ?? {})}`, ...before].slice(0, 5),
        ),
      );
    }
    // The server may be reached by another name than the one in its settings.
    const { pathname, search } = new URL(url);
    element.setAttribute("src", location.origin + pathname + search);
    element.setAttribute("label", text.live);
    place.current?.replaceChildren(element);
    return () => element.remove();
  }, [url]);
  return (
    <div class="host-page">
      <p class="host-bar" aria-hidden="true">
        <i />
        <i />
        <i />
        {text.yourProduct}
      </p>
      <div ref={place} class="host-content" />
      {messages.length > 0 && (
        <ul class="messages" aria-label={text.messages}>
          {messages.map((message, at) => (
            <li key={at}>
              <code>{message}</code>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
