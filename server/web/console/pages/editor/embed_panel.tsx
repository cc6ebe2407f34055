// How to show a published dashboard in one's own product: the call of the server, the element of the page, and the
// embed itself running beside them.

import { useEffect, useRef, useState } from "preact/hooks";
import { answer, api, type Schemas } from "../../api/client";
import { texts } from "../../texts/en";
import { Snippets } from "../../ui/code";
import { Field, Submit, useForm } from "../../ui/form";
import { checkPermissions, inWords, permissionsOf, PermissionFields } from "../permissions";
import { ThemeFields, themeOver } from "../theme_fields";
import { pageSnippets, serverSnippets } from "./snippets";

const text = texts.embedPanel;

/** `tenant` is whose events are shown first. */
export function EmbedPanel({
  dashboard,
  widgets,
  theme: base,
  tenant,
  onMinted,
}: {
  dashboard: string;
  widgets?: readonly Schemas["Widget"][];
  /** The dashboard's own. */
  theme: Record<string, string>;
  tenant: string;
  onMinted?: () => void;
}) {
  const [made, setMade] = useState<Schemas["NewEmbedSession"] | null>(null);
  const [permissions, setPermissions] = useState<Schemas["Permissions"]>({ allow_drill_down: true });
  const [theme, setTheme] = useState<Record<string, string>>({});
  const [shownTenant, setShownTenant] = useState(tenant || "acme");
  const form = useForm(async (value, data) => {
    checkPermissions(data);
    const body = { tenant_id: value("tenant_id"), dashboard_id: dashboard, permissions: permissionsOf(data) };
    setMade(await answer(api.POST("/v1/embed-sessions", { body })));
    onMinted?.();
  });
  return (
    <div class="embed-panel">
      <div>
        <h3>{text.server}</h3>
        <p class="lead">{text.serverLead}</p>
        <Snippets snippets={serverSnippets({ dashboard, tenant: shownTenant, permissions })} label={text.server} />
        <p class="note">{text.session(inWords(permissions).join("; "))}</p>
        <h3>{text.page}</h3>
        <p class="lead">{text.pageLead}</p>
        <Snippets snippets={pageSnippets(theme)} label={text.page} />
      </div>
      <div>
        <h3>{text.live}</h3>
        <p class="lead">{text.liveLead}</p>
        <form
          {...form.props}
          onInput={(event) => {
            const data = new FormData(event.currentTarget);
            setPermissions(permissionsOf(data));
            setTheme(themeOver((name) => String(data.get(name) ?? ""), base));
            setShownTenant(String(data.get("tenant_id") ?? "") || "acme");
          }}
        >
          <Field
            in={form}
            name="tenant_id"
            label={text.tenant}
            defaultValue={tenant}
            required
            maxLength={256}
            autocomplete="off"
          />
          <PermissionFields in={form} {...(widgets ? { widgets } : {})} />
          <details>
            <summary>{text.colors}</summary>
            <ThemeFields in={form} theme={base} />
          </details>
          <Submit form={form}>{made ? text.again : text.show}</Submit>
        </form>
        {/* `setTheme` only adds colours; a theme without one of them needs a new frame. */}
        {made && <Live key={Object.keys(theme).join()} url={made.embed_url} theme={theme} />}
      </div>
    </div>
  );
}

/** The helper's own element in a page that stands for a customer's, with the messages that it sends. */
export function Live({ url, theme }: { url: string; theme: Record<string, string> }) {
  const place = useRef<HTMLDivElement>(null);
  const shown = useRef<(HTMLElement & { theme?: unknown }) | null>(null);
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
    shown.current = element;
    place.current?.replaceChildren(element);
    return () => element.remove();
  }, [url]);
  // Set before the helper is loaded, too: it reads properties when it takes the element over.
  useEffect(() => {
    if (shown.current) shown.current.theme = theme;
  }, [url, JSON.stringify(theme)]);
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
