import{a as A,b as U,c as k,d as C}from"./chunk-6WRW5VOW.js";import{b as E}from"./chunk-X5UG6HC2.js";import{a as T,b as N,c as P,f as x}from"./chunk-ERO2OPOS.js";import{c as $,i as j,l as L,m as R}from"./chunk-6X2KPBKU.js";import{a as c,c as v,e as w,m as h,n as e}from"./chunk-ELEJU46P.js";import{e as O}from"./chunk-SJLHYPKW.js";var g=h.theme,F=[["primaryColor","#315ed9"],["backgroundColor","#f7f7f5"],["cardBackground","#ffffff"],["cardBorder","#e6e5e1"],["textColor","#17181c"],["mutedColor","#6b6e78"]],D=["","light","dark"];function M(s,r={}){let t={...r};for(let[o,i]of F)s(o)&&s(o)!==i?t[o]=s(o):delete t[o];return s("mode")?t.mode=s("mode"):delete t.mode,t}function J({in:s,theme:r={}}){return e(O,{children:[e("fieldset",{class:"checks",children:[e("legend",{children:g.title}),F.map(([t,o])=>e("label",{class:"color",children:[e("input",{type:"color",name:t,defaultValue:r[t]??o}),e("span",{children:g.colors[t]})]},t))]}),e(P,{in:s,name:"mode",label:g.mode,defaultValue:r.mode??"",options:D.map(t=>[t,g.modes[t]])})]})}var q=s=>JSON.stringify(s).replaceAll(/"(?:[^"\\]|\\.)*"|true|false|null/g,r=>({true:"True",false:"False",null:"None"})[r]??r);function Y({dashboard:s,tenant:r,permissions:t}){let o=`${$.base_url}/v1/embed-sessions`,i=JSON.stringify(t),m=JSON.stringify({tenant_id:r,dashboard_id:s,permissions:t});return{curl:`curl ${o} \\
  -H "Authorization: Bearer $INLAY_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${j(m)}`,Node:`// customer: the customer that is logged in to your product
const response = await fetch("${o}", {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.INLAY_KEY}\`, "content-type": "application/json" },
  body: JSON.stringify({ tenant_id: customer.id, dashboard_id: "${s}", permissions: ${i} }),
});
if (!response.ok) throw new Error(\`Inlay answered \${response.status}\`);
const { embed_url } = await response.json();`,Python:`# customer: the customer that is logged in to your product
import os, requests

response = requests.post(
    "${o}",
    headers={"Authorization": f"Bearer {os.environ['INLAY_KEY']}"},
    json={"tenant_id": customer.id, "dashboard_id": "${s}", "permissions": ${q(t)}},
)
response.raise_for_status()
embed_url = response.json()["embed_url"]`,Rust:`// customer: the customer that is logged in to your product
let session: serde_json::Value = reqwest::Client::new()
    .post("${o}")
    .bearer_auth(std::env::var("INLAY_KEY")?)
    .json(&serde_json::json!({"tenant_id": customer.id, "dashboard_id": "${s}", "permissions": ${i}}))
    .send().await?.error_for_status()?.json().await?;
let embed_url = &session["embed_url"];`}}function B(s={}){let r=`${$.base_url}/sdk/v1/embed.js`,t=Object.keys(s).length?JSON.stringify(s):"";return{HTML:`<!-- EMBED_URL: what your server got -->
<script type="module" src="${r}"><\/script>
<inlay-dashboard src="EMBED_URL" label="Usage"></inlay-dashboard>${t&&`
<script type="module">
  document.querySelector("inlay-dashboard").theme = ${t};
<\/script>`}`,JavaScript:`import { mountDashboard } from "${r}";

// /api/usage-embed: the call of your server; it answers { "embed_url": … }
mountDashboard("#usage", {${t&&`
  theme: ${t},`}
  fetchEmbedUrl: async ({ signal }) =>
    (await fetch("/api/usage-embed", { method: "POST", signal })).json(),
});`,React:`import { useEffect, useRef } from "react";
import "${r}";

// /api/usage-embed: the call of your server; it answers { "embed_url": … }
const fetchEmbedUrl = async ({ signal }) =>
  (await fetch("/api/usage-embed", { method: "POST", signal })).json();${t&&`
const theme = ${t};`}

export function Usage() {
  const ref = useRef(null);
  useEffect(() => { ${t&&"ref.current.theme = theme; "}ref.current.fetchEmbedUrl = fetchEmbedUrl; }, []);
  return <inlay-dashboard ref={ref} label="Usage" />;
}`}}var n=h.embedPanel;function ie({dashboard:s,widgets:r,tenant:t,onMinted:o}){let[i,m]=c(null),[a,p]=c({allow_drill_down:!0}),[u,b]=c({}),[f,y]=c(t||"acme"),d=T(async(_,l)=>{U(l);let S={tenant_id:_("tenant_id"),dashboard_id:s,permissions:k(l)};m(await R(L.POST("/v1/embed-sessions",{body:S}))),o?.()});return e("div",{class:"embed-panel",children:[e("div",{children:[e("h3",{children:n.server}),e("p",{class:"lead",children:n.serverLead}),e(E,{snippets:Y({dashboard:s,tenant:f,permissions:a}),label:n.server}),e("p",{class:"note",children:n.session(C(a).join("; "))}),e("h3",{children:n.page}),e("p",{class:"lead",children:n.pageLead}),e(E,{snippets:B(u),label:n.page})]}),e("div",{children:[e("h3",{children:n.live}),e("p",{class:"lead",children:n.liveLead}),e("form",{...d.props,onInput:_=>{let l=new FormData(_.currentTarget);p(k(l)),b(M(S=>String(l.get(S)??""))),y(String(l.get("tenant_id")??"")||"acme")},children:[e(N,{in:d,name:"tenant_id",label:n.tenant,defaultValue:t,required:!0,maxLength:256,autocomplete:"off"}),e(A,{in:d,...r?{widgets:r}:{}}),e("details",{children:[e("summary",{children:n.colors}),e(J,{in:d})]}),e(x,{form:d,children:i?n.again:n.show})]}),i&&e(I,{url:i.embed_url,theme:u},Object.keys(u).join())]})]})}function I({url:s,theme:r}){let t=w(null),o=w(null),[i,m]=c([]);return v(()=>{let a=document.createElement("inlay-dashboard");import("/sdk/v1/embed.js");for(let f of["ready","filter","period-change","drill","error"])a.addEventListener(f,y=>m(d=>[`${f} ${JSON.stringify(y.detail??{})}`,...d].slice(0,5)));let{pathname:u,search:b}=new URL(s);return a.setAttribute("src",location.origin+u+b),a.setAttribute("label",n.live),o.current=a,t.current?.replaceChildren(a),()=>a.remove()},[s]),v(()=>{o.current&&(o.current.theme=r)},[s,JSON.stringify(r)]),e("div",{class:"host-page",children:[e("p",{class:"host-bar","aria-hidden":"true",children:[e("i",{}),e("i",{}),e("i",{}),n.yourProduct]}),e("div",{ref:t,class:"host-content"}),i.length>0&&e("ul",{class:"messages","aria-label":n.messages,children:i.map((a,p)=>e("li",{children:e("code",{children:a})},p))})]})}export{M as a,J as b,ie as c};
