// Code to copy into one's own product: the call of the server that opens an embed session, and the element of the page.

import type { Schemas } from "../../api/client";
import { quoted } from "../../api/requests";
import { boot } from "../../boot";

interface Asked {
  dashboard: string;
  tenant: string;
  permissions: Schemas["Permissions"];
}

/** JSON as Python writes it. */
const python = (value: unknown): string =>
  JSON.stringify(value).replaceAll(
    /"(?:[^"\\]|\\.)*"|true|false|null/g,
    (part) => ({ true: "True", false: "False", null: "None" })[part] ?? part,
  );

/** The call of one's server, in several languages. */
export function serverSnippets({ dashboard, tenant, permissions }: Asked): Record<string, string> {
  const url = `${boot.base_url}/v1/embed-sessions`;
  const json = JSON.stringify(permissions);
  const body = JSON.stringify({ tenant_id: tenant, dashboard_id: dashboard, permissions });
  return {
    curl: `curl ${url} \\
  -H "Authorization: Bearer $INLAY_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${quoted(body)}`,
    Node: `// customer: the customer that is logged in to your product
const response = await fetch("${url}", {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.INLAY_KEY}\`, "content-type": "application/json" },
  body: JSON.stringify({ tenant_id: customer.id, dashboard_id: "${dashboard}", permissions: ${json} }),
});
if (!response.ok) throw new Error(\`Inlay answered \${response.status}\`);
const { embed_url } = await response.json();`,
    Python: `# customer: the customer that is logged in to your product
import os, requests

response = requests.post(
    "${url}",
    headers={"Authorization": f"Bearer {os.environ['INLAY_KEY']}"},
    json={"tenant_id": customer.id, "dashboard_id": "${dashboard}", "permissions": ${python(permissions)}},
)
response.raise_for_status()
embed_url = response.json()["embed_url"]`,
    Rust: `// customer: the customer that is logged in to your product
let session: serde_json::Value = reqwest::Client::new()
    .post("${url}")
    .bearer_auth(std::env::var("INLAY_KEY")?)
    .json(&serde_json::json!({"tenant_id": customer.id, "dashboard_id": "${dashboard}", "permissions": ${json}}))
    .send().await?.error_for_status()?.json().await?;
let embed_url = &session["embed_url"];`,
  };
}

/** The element of one's page, in the colours of a theme where there is one. */
export function pageSnippets(theme: Record<string, string>): Record<string, string> {
  const script = `${boot.base_url}/sdk/v1/embed.js`;
  const colors = Object.keys(theme).length ? JSON.stringify(theme) : "";
  return {
    HTML: `<!-- EMBED_URL: what your server got -->
<inlay-dashboard src="EMBED_URL" label="Usage"></inlay-dashboard>${
      colors &&
      `
<script>
  document.querySelector("inlay-dashboard").theme = ${colors};
</script>`
    }
<script type="module" src="${script}"></script>`,
    JavaScript: `import { mountDashboard } from "${script}";

// /api/usage-embed: the call of your server; it answers { "embed_url": … }
mountDashboard("#usage", {${
      colors &&
      `
  theme: ${colors},`
    }
  fetchEmbedUrl: async ({ signal }) => {
    const response = await fetch("/api/usage-embed", { method: "POST", signal });
    if (!response.ok) throw response;
    return response.json();
  },
});`,
    React: `import { useEffect, useRef } from "react";
import "${script}";

// /api/usage-embed: the call of your server; it answers { "embed_url": … }
const fetchEmbedUrl = async ({ signal }) => {
  const response = await fetch("/api/usage-embed", { method: "POST", signal });
  if (!response.ok) throw response;
  return response.json();
};${
      colors &&
      `
const theme = ${colors};`
    }

export function Usage() {
  const ref = useRef(null);
  useEffect(() => { ${colors && "ref.current.theme = theme; "}ref.current.fetchEmbedUrl = fetchEmbedUrl; }, []);
  return <inlay-dashboard ref={ref} label="Usage" />;
}`,
  };
}
