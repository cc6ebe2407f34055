import{a as U,b as F,c as O,d as M}from"./chunk-6CFKRDFS.js";import{b as E}from"./chunk-DNCVGSAU.js";import{a as x,b as P,c as A,f as C}from"./chunk-MPGP7D45.js";import{c as k,i as L,l as T,m as N}from"./chunk-AVYCJZRE.js";import{a as c,c as v,e as $,m as h,n as e}from"./chunk-MDYZ2XPI.js";import{e as j}from"./chunk-SJLHYPKW.js";var g=h.theme,R=[["primaryColor","#315ed9"],["backgroundColor","#f7f7f5"],["cardBackground","#ffffff"],["cardBorder","#e6e5e1"],["textColor","#17181c"],["mutedColor","#6b6e78"]],I=["","light","dark"];function W(s,r={}){let t={...r};for(let[n,i]of R)s(n)&&s(n)!==i?t[n]=s(n):delete t[n];return s("mode")?t.mode=s("mode"):delete t.mode,t}function J(s,r={}){let t={};for(let[n,i]of R)s(n)&&s(n)!==(r[n]??i)&&(t[n]=s(n));return s("mode")!==(r.mode??"")&&(t.mode=s("mode")||"auto"),t}function q({name:s,color:r}){return/^#[0-9a-f]{6}$/i.test(r)?e("input",{type:"color",name:s,defaultValue:r}):e("input",{type:"text",class:"input small",name:s,defaultValue:r})}function Y({in:s,theme:r={}}){return e(j,{children:[e("fieldset",{class:"checks",children:[e("legend",{children:g.title}),R.map(([t,n])=>e("label",{class:"color",children:[e(q,{name:t,color:r[t]??n}),e("span",{children:g.colors[t]})]},t))]}),e(A,{in:s,name:"mode",label:g.mode,defaultValue:r.mode??"",options:I.map(t=>[t,g.modes[t]])})]})}var H=s=>JSON.stringify(s).replaceAll(/"(?:[^"\\]|\\.)*"|true|false|null/g,r=>({true:"True",false:"False",null:"None"})[r]??r);function B({dashboard:s,tenant:r,permissions:t}){let n=`${k.base_url}/v1/embed-sessions`,i=JSON.stringify(t),d=JSON.stringify({tenant_id:r,dashboard_id:s,permissions:t});return{curl:`curl ${n} \\
  -H "Authorization: Bearer $INLAY_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${L(d)}`,Node:`// customer: the customer that is logged in to your product
const response = await fetch("${n}", {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.INLAY_KEY}\`, "content-type": "application/json" },
  body: JSON.stringify({ tenant_id: customer.id, dashboard_id: "${s}", permissions: ${i} }),
});
if (!response.ok) throw new Error(\`Inlay answered \${response.status}\`);
const { embed_url } = await response.json();`,Python:`# customer: the customer that is logged in to your product
import os, requests

response = requests.post(
    "${n}",
    headers={"Authorization": f"Bearer {os.environ['INLAY_KEY']}"},
    json={"tenant_id": customer.id, "dashboard_id": "${s}", "permissions": ${H(t)}},
)
response.raise_for_status()
embed_url = response.json()["embed_url"]`,Rust:`// customer: the customer that is logged in to your product
let session: serde_json::Value = reqwest::Client::new()
    .post("${n}")
    .bearer_auth(std::env::var("INLAY_KEY")?)
    .json(&serde_json::json!({"tenant_id": customer.id, "dashboard_id": "${s}", "permissions": ${i}}))
    .send().await?.error_for_status()?.json().await?;
let embed_url = &session["embed_url"];`}}function D(s={}){let r=`${k.base_url}/sdk/v1/embed.js`,t=Object.keys(s).length?JSON.stringify(s):"";return{HTML:`<!-- EMBED_URL: what your server got -->
<inlay-dashboard src="EMBED_URL" label="Usage"></inlay-dashboard>${t&&`
<script>
  document.querySelector("inlay-dashboard").theme = ${t};
<\/script>`}
<script type="module" src="${r}"><\/script>`,JavaScript:`import { mountDashboard } from "${r}";

// /api/usage-embed: the call of your server; it answers { "embed_url": … }
mountDashboard("#usage", {${t&&`
  theme: ${t},`}
  fetchEmbedUrl: async ({ signal }) => {
    const response = await fetch("/api/usage-embed", { method: "POST", signal });
    if (!response.ok) throw response;
    return response.json();
  },
});`,React:`import { useEffect, useRef } from "react";
import "${r}";

// /api/usage-embed: the call of your server; it answers { "embed_url": … }
const fetchEmbedUrl = async ({ signal }) => {
  const response = await fetch("/api/usage-embed", { method: "POST", signal });
  if (!response.ok) throw response;
  return response.json();
};${t&&`
const theme = ${t};`}

export function Usage() {
  const ref = useRef(null);
  useEffect(() => { ${t&&"ref.current.theme = theme; "}ref.current.fetchEmbedUrl = fetchEmbedUrl; }, []);
  return <inlay-dashboard ref={ref} label="Usage" />;
}`}}var o=h.embedPanel;function le({dashboard:s,widgets:r,theme:t={},tenant:n,onMinted:i}){let[d,a]=c(null),[m,b]=c({allow_drill_down:!0}),[u,f]=c({}),[y,_]=c(n||"acme"),p=x(async(w,l)=>{F(l);let S={tenant_id:w("tenant_id"),dashboard_id:s,permissions:O(l)};a(await N(T.POST("/v1/embed-sessions",{body:S}))),i?.()});return e("div",{class:"embed-panel",children:[e("div",{children:[e("h3",{children:o.server}),e("p",{class:"lead",children:o.serverLead}),e(E,{snippets:B({dashboard:s,tenant:y,permissions:m}),label:o.server}),e("p",{class:"note",children:o.session(M(m).join("; "))}),e("h3",{children:o.page}),e("p",{class:"lead",children:o.pageLead}),e(E,{snippets:D(u),label:o.page})]}),e("div",{children:[e("h3",{children:o.live}),e("p",{class:"lead",children:o.liveLead}),e("form",{...p.props,onInput:w=>{let l=new FormData(w.currentTarget);b(O(l)),f(J(S=>String(l.get(S)??""),t)),_(String(l.get("tenant_id")??"")||"acme")},children:[e(P,{in:p,name:"tenant_id",label:o.tenant,defaultValue:n,required:!0,maxLength:256,autocomplete:"off"}),e(U,{in:p,...r?{widgets:r}:{}}),e("details",{children:[e("summary",{children:o.colors}),e(Y,{in:p,theme:t})]}),e(C,{form:p,children:d?o.again:o.show})]}),d&&e(V,{url:d.embed_url,theme:u},Object.keys(u).join())]})]})}function V({url:s,theme:r}){let t=$(null),n=$(null),[i,d]=c([]);return v(()=>{let a=document.createElement("inlay-dashboard");import("/sdk/v1/embed.js");for(let f of["ready","filter","period-change","drill","error"])a.addEventListener(f,y=>d(_=>[`${f} ${JSON.stringify(y.detail??{})}`,..._].slice(0,5)));let{pathname:b,search:u}=new URL(s);return a.setAttribute("src",location.origin+b+u),a.setAttribute("label",o.live),n.current=a,t.current?.replaceChildren(a),()=>a.remove()},[s]),v(()=>{n.current&&(n.current.theme=r)},[s,JSON.stringify(r)]),e("div",{class:"host-page",children:[e("p",{class:"host-bar","aria-hidden":"true",children:[e("i",{}),e("i",{}),e("i",{}),o.yourProduct]}),e("div",{ref:t,class:"host-content"}),i.length>0&&e("ul",{class:"messages","aria-label":o.messages,children:i.map((a,m)=>e("li",{children:e("code",{children:a})},m))})]})}export{W as a,Y as b,le as c};
