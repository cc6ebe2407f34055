import{a as N,b as A,c as _,d as T}from"./chunk-HQOD4YNT.js";import{b}from"./chunk-5IOEIJKM.js";import{a as j,b as L,f as P}from"./chunk-YWOLCKFX.js";import{A as e,a as c,c as v,e as y,o as g,t as S,v as w,y as E,z as $}from"./chunk-5HYJZTFN.js";var k=s=>JSON.stringify(s).replaceAll(/"(?:[^"\\]|\\.)*"|true|false|null/g,n=>({true:"True",false:"False",null:"None"})[n]??n);function O({dashboard:s,tenant:n,permissions:o}){let a=`${g.base_url}/v1/embed-sessions`,r=JSON.stringify(o),i=JSON.stringify({tenant_id:n,dashboard_id:s,permissions:o});return{curl:`curl ${a} \\
  -H "Authorization: Bearer $INLAY_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${w(i)}`,Node:`// customer: the customer that is logged in to your product
const response = await fetch("${a}", {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.INLAY_KEY}\`, "content-type": "application/json" },
  body: JSON.stringify({ tenant_id: customer.id, dashboard_id: "${s}", permissions: ${r} }),
});
if (!response.ok) throw new Error(\`Inlay answered \${response.status}\`);
const { embed_url } = await response.json();`,Python:`# customer: the customer that is logged in to your product
import os, requests

response = requests.post(
    "${a}",
    headers={"Authorization": f"Bearer {os.environ['INLAY_KEY']}"},
    json={"tenant_id": customer.id, "dashboard_id": "${s}", "permissions": ${k(o)}},
)
response.raise_for_status()
embed_url = response.json()["embed_url"]`,Rust:`// customer: the customer that is logged in to your product
let session: serde_json::Value = reqwest::Client::new()
    .post("${a}")
    .bearer_auth(std::env::var("INLAY_KEY")?)
    .json(&serde_json::json!({"tenant_id": customer.id, "dashboard_id": "${s}", "permissions": ${r}}))
    .send().await?.error_for_status()?.json().await?;
let embed_url = &session["embed_url"];`}}function R(){let s=`${g.base_url}/sdk/v1/embed.js`;return{HTML:`<!-- EMBED_URL: what your server got -->
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
}`}}var t=S.embedPanel;function K({dashboard:s,widgets:n,tenant:o,onMinted:a}){let[r,i]=c(null),[m,p]=c({allow_drill_down:!0}),[u,h]=c(o||"acme"),d=j(async(f,l)=>{A(l);let U={tenant_id:f("tenant_id"),dashboard_id:s,permissions:_(l)};i(await $(E.POST("/v1/embed-sessions",{body:U}))),a?.()});return e("div",{class:"embed-panel",children:[e("div",{children:[e("h3",{children:t.server}),e("p",{class:"lead",children:t.serverLead}),e(b,{snippets:O({dashboard:s,tenant:u,permissions:m}),label:t.server}),e("p",{class:"note",children:t.session(T(m).join("; "))}),e("h3",{children:t.page}),e("p",{class:"lead",children:t.pageLead}),e(b,{snippets:R(),label:t.page})]}),e("div",{children:[e("h3",{children:t.live}),e("p",{class:"lead",children:t.liveLead}),e("form",{...d.props,onInput:f=>{let l=new FormData(f.currentTarget);p(_(l)),h(String(l.get("tenant_id")??"")||"acme")},children:[e(L,{in:d,name:"tenant_id",label:t.tenant,defaultValue:o,required:!0,maxLength:256,autocomplete:"off"}),e(N,{in:d,...n?{widgets:n}:{}}),e(P,{form:d,children:r?t.again:t.show})]}),r&&e(Y,{url:r.embed_url})]})]})}function Y({url:s}){let n=y(null),[o,a]=c([]);return v(()=>{let r=document.createElement("inlay-dashboard");import("/sdk/v1/embed.js");for(let u of["ready","filter","period-change","drill","error"])r.addEventListener(u,h=>a(d=>[`${u} ${JSON.stringify(h.detail??{})}`,...d].slice(0,5)));let{pathname:m,search:p}=new URL(s);return r.setAttribute("src",location.origin+m+p),r.setAttribute("label",t.live),n.current?.replaceChildren(r),()=>r.remove()},[s]),e("div",{class:"host-page",children:[e("p",{class:"host-bar","aria-hidden":"true",children:[e("i",{}),e("i",{}),e("i",{}),t.yourProduct]}),e("div",{ref:n,class:"host-content"}),o.length>0&&e("ul",{class:"messages","aria-label":t.messages,children:o.map((r,i)=>e("li",{children:e("code",{children:r})},i))})]})}export{K as a};
