import{a as L,b as g,c as N}from"./chunk-4VIOK4RS.js";import{b as h}from"./chunk-VYJREMOV.js";import{a as E,b as $,f as j}from"./chunk-VNPCXZ2I.js";import{A as e,a as c,c as b,e as v,o as f,t as _,v as y,y as w,z as S}from"./chunk-PB3UDLLA.js";var R=s=>JSON.stringify(s).replaceAll(/"(?:[^"\\]|\\.)*"|true|false|null/g,o=>({true:"True",false:"False",null:"None"})[o]??o);function P({dashboard:s,tenant:o,permissions:n}){let i=`${f.base_url}/v1/embed-sessions`,r=JSON.stringify(n),d=JSON.stringify({tenant_id:o,dashboard_id:s,permissions:n});return{curl:`curl ${i} \\
  -H "Authorization: Bearer $INLAY_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${y(d)}`,Node:`// customer: whoever is logged in to your product
const response = await fetch("${i}", {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.INLAY_KEY}\`, "content-type": "application/json" },
  body: JSON.stringify({ tenant_id: customer.id, dashboard_id: "${s}", permissions: ${r} }),
});
if (!response.ok) throw new Error(\`Inlay answered \${response.status}\`);
const { embed_url } = await response.json();`,Python:`# customer: whoever is logged in to your product
import os, requests

response = requests.post(
    "${i}",
    headers={"Authorization": f"Bearer {os.environ['INLAY_KEY']}"},
    json={"tenant_id": customer.id, "dashboard_id": "${s}", "permissions": ${R(n)}},
)
response.raise_for_status()
embed_url = response.json()["embed_url"]`,Rust:`// customer: whoever is logged in to your product
let session: serde_json::Value = reqwest::Client::new()
    .post("${i}")
    .bearer_auth(std::env::var("INLAY_KEY")?)
    .json(&serde_json::json!({"tenant_id": customer.id, "dashboard_id": "${s}", "permissions": ${r}}))
    .send().await?.error_for_status()?.json().await?;
let embed_url = &session["embed_url"];`}}function A(){let s=`${f.base_url}/sdk/v1/embed.js`;return{HTML:`<!-- EMBED_URL: what your server got -->
<script type="module" src="${s}"><\/script>
<inlay-dashboard src="EMBED_URL" label="Usage"></inlay-dashboard>`,JavaScript:`import { mountDashboard } from "${s}";

// /api/usage-embed: the call of your server; it answers { "embed_url": … }
mountDashboard("#usage", {
  fetchEmbedUrl: async ({ signal }) =>
    (await fetch("/api/usage-embed", { method: "POST", signal })).json(),
});`,React:`import { useEffect, useRef } from "react";
import "${s}";

// /api/usage-embed: the call of your server; it answers { "embed_url": … }
const fetchEmbedUrl = async ({ signal }) =>
  (await fetch("/api/usage-embed", { method: "POST", signal })).json();

export function Usage() {
  const ref = useRef(null);
  useEffect(() => { ref.current.fetchEmbedUrl = fetchEmbedUrl; }, []);
  return <inlay-dashboard ref={ref} label="Usage" />;
}`}}var t=_.embedPanel;function F({dashboard:s,widgets:o,tenant:n,onMinted:i}){let[r,d]=c(null),[m,p]=c({allow_drill_down:!0}),a=E(async(l,u)=>{let O={tenant_id:l("tenant_id"),dashboard_id:s,permissions:g(u)};d(await S(w.POST("/v1/embed-sessions",{body:O}))),i?.()});return e("div",{class:"embed-panel",children:[e("div",{children:[e("h3",{children:t.server}),e("p",{class:"lead",children:t.serverLead}),e(h,{snippets:P({dashboard:s,tenant:n||"acme",permissions:m}),label:t.server}),e("p",{class:"note",children:t.session(N(m).join("; "))}),e("h3",{children:t.page}),e("p",{class:"lead",children:t.pageLead}),e(h,{snippets:A(),label:t.page})]}),e("div",{children:[e("h3",{children:t.live}),e("p",{class:"lead",children:t.liveLead}),e("form",{...a.props,onInput:l=>p(g(new FormData(l.currentTarget))),children:[e($,{in:a,name:"tenant_id",label:t.tenant,defaultValue:n,required:!0,maxLength:256,autocomplete:"off"}),e(L,{in:a,...o?{widgets:o}:{}}),e(j,{form:a,children:r?t.again:t.show})]}),r&&e(U,{url:r.embed_url})]})]})}function U({url:s}){let o=v(null),[n,i]=c([]);return b(()=>{let r=document.createElement("inlay-dashboard");import("/sdk/v1/embed.js");for(let a of["ready","filter","period-change","drill","error"])r.addEventListener(a,l=>i(u=>[`${a} ${JSON.stringify(l.detail??{})}`,...u].slice(0,5)));let{pathname:m,search:p}=new URL(s);return r.setAttribute("src",location.origin+m+p),r.setAttribute("label",t.live),o.current?.replaceChildren(r),()=>r.remove()},[s]),e("div",{class:"host-page",children:[e("p",{class:"host-bar","aria-hidden":"true",children:[e("i",{}),e("i",{}),e("i",{}),t.yourProduct]}),e("div",{ref:o,class:"host-content"}),n.length>0&&e("ul",{class:"messages","aria-label":t.messages,children:n.map((r,d)=>e("li",{children:e("code",{children:r})},d))})]})}export{F as a};
