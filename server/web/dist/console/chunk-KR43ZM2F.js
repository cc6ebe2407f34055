import{a as U,b as F,c as O,d as M}from"./chunk-CBGPDBXG.js";import{b as T}from"./chunk-JBSB6DCV.js";import{a as N,b as P,c as A,f as C}from"./chunk-4NY5ITDY.js";import{c as E,i as L,l as R,m as x}from"./chunk-GKDBRLOO.js";import{a as c,c as w,e as $,m as f,n as e}from"./chunk-Y237NMGV.js";import{e as j}from"./chunk-SJLHYPKW.js";var g=f.theme,k=[["primaryColor","#315ed9"],["backgroundColor","#f7f7f5"],["cardBackground","#ffffff"],["cardBorder","#e6e5e1"],["textColor","#17181c"],["mutedColor","#6b6e78"]],q=["","light","dark"],G=({theme:t})=>t??{},I=({mode:t})=>t===void 0||t==="auto"?"":t;function Q(t,r){let s={...r};for(let[n,i]of k)t(n)&&t(n)!==i?s[n]=t(n):delete s[n];return t("mode")?s.mode=t("mode"):delete s.mode,s}function J(t,r){let s={};for(let[n,i]of k)t(n)&&t(n)!==(r[n]??i)&&(s[n]=t(n));return t("mode")!==I(r)&&(s.mode=t("mode")||"auto"),s}function H({name:t,color:r}){return/^#[0-9a-f]{6}$/i.test(r)?e("input",{type:"color",name:t,defaultValue:r}):e("input",{type:"text",class:"input small",name:t,defaultValue:r})}function Y({in:t,theme:r}){return e(j,{children:[e("fieldset",{class:"checks",children:[e("legend",{children:g.title}),k.map(([s,n])=>e("label",{class:"color",children:[e(H,{name:s,color:r[s]??n}),e("span",{children:g.colors[s]})]},s))]}),e(A,{in:t,name:"mode",label:g.mode,defaultValue:I(r),options:q.map(s=>[s,g.modes[s]])})]})}var V=t=>JSON.stringify(t).replaceAll(/"(?:[^"\\]|\\.)*"|true|false|null/g,r=>({true:"True",false:"False",null:"None"})[r]??r);function B({dashboard:t,tenant:r,permissions:s}){let n=`${E.base_url}/v1/embed-sessions`,i=JSON.stringify(s),m=JSON.stringify({tenant_id:r,dashboard_id:t,permissions:s});return{curl:`curl ${n} \\
  -H "Authorization: Bearer $INLAY_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${L(m)}`,Node:`// customer: the customer that is logged in to your product
const response = await fetch("${n}", {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.INLAY_KEY}\`, "content-type": "application/json" },
  body: JSON.stringify({ tenant_id: customer.id, dashboard_id: "${t}", permissions: ${i} }),
});
if (!response.ok) throw new Error(\`Inlay answered \${response.status}\`);
const { embed_url } = await response.json();`,Python:`# customer: the customer that is logged in to your product
import os, requests

response = requests.post(
    "${n}",
    headers={"Authorization": f"Bearer {os.environ['INLAY_KEY']}"},
    json={"tenant_id": customer.id, "dashboard_id": "${t}", "permissions": ${V(s)}},
)
response.raise_for_status()
embed_url = response.json()["embed_url"]`,Rust:`// customer: the customer that is logged in to your product
let session: serde_json::Value = reqwest::Client::new()
    .post("${n}")
    .bearer_auth(std::env::var("INLAY_KEY")?)
    .json(&serde_json::json!({"tenant_id": customer.id, "dashboard_id": "${t}", "permissions": ${i}}))
    .send().await?.error_for_status()?.json().await?;
let embed_url = &session["embed_url"];`}}function D(t){let r=`${E.base_url}/sdk/v1/embed.js`,s=Object.keys(t).length?JSON.stringify(t):"";return{HTML:`<!-- EMBED_URL: what your server got -->
<inlay-dashboard src="EMBED_URL" label="Usage"></inlay-dashboard>${s&&`
<script>
  document.querySelector("inlay-dashboard").theme = ${s};
<\/script>`}
<script type="module" src="${r}"><\/script>`,JavaScript:`import { mountDashboard } from "${r}";

// /api/usage-embed: the call of your server; it answers { "embed_url": … }
mountDashboard("#usage", {${s&&`
  theme: ${s},`}
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
};${s&&`
const theme = ${s};`}

export function Usage() {
  const ref = useRef(null);
  useEffect(() => { ${s&&"ref.current.theme = theme; "}ref.current.fetchEmbedUrl = fetchEmbedUrl; }, []);
  return <inlay-dashboard ref={ref} label="Usage" />;
}`}}var o=f.embedPanel;function le({dashboard:t,widgets:r,theme:s,tenant:n,onMinted:i}){let[m,a]=c(null),[l,b]=c({allow_drill_down:!0}),[p,h]=c({}),[y,_]=c(n||"acme"),u=N(async(S,d)=>{F(d);let v={tenant_id:S("tenant_id"),dashboard_id:t,permissions:O(d)};a(await x(R.POST("/v1/embed-sessions",{body:v}))),i?.()});return e("div",{class:"embed-panel",children:[e("div",{children:[e("h3",{children:o.server}),e("p",{class:"lead",children:o.serverLead}),e(T,{snippets:B({dashboard:t,tenant:y,permissions:l}),label:o.server}),e("p",{class:"note",children:o.session(M(l).join("; "))}),e("h3",{children:o.page}),e("p",{class:"lead",children:o.pageLead}),e(T,{snippets:D(p),label:o.page})]}),e("div",{children:[e("h3",{children:o.live}),e("p",{class:"lead",children:o.liveLead}),e("form",{...u.props,onInput:S=>{let d=new FormData(S.currentTarget);b(O(d)),h(J(v=>String(d.get(v)??""),s)),_(String(d.get("tenant_id")??"")||"acme")},children:[e(P,{in:u,name:"tenant_id",label:o.tenant,defaultValue:n,required:!0,maxLength:256,autocomplete:"off"}),e(U,{in:u,...r?{widgets:r}:{}}),e("details",{children:[e("summary",{children:o.colors}),e(Y,{in:u,theme:s})]}),e(C,{form:u,children:m?o.again:o.show})]}),m&&e(K,{url:m.embed_url,theme:p},Object.keys(p).join())]})]})}function K({url:t,theme:r}){let s=$(null),n=$(null),[i,m]=c([]);return w(()=>{let a=document.createElement("inlay-dashboard");import("/sdk/v1/embed.js");for(let h of["ready","filter","period-change","drill","error"])a.addEventListener(h,y=>m(_=>[`${h} ${JSON.stringify(y.detail??{})}`,..._].slice(0,5)));let{pathname:b,search:p}=new URL(t);return a.setAttribute("src",location.origin+b+p),a.setAttribute("label",o.live),n.current=a,s.current?.replaceChildren(a),()=>a.remove()},[t]),w(()=>{n.current&&(n.current.theme=r)},[t,JSON.stringify(r)]),e("div",{class:"host-page",children:[e("p",{class:"host-bar","aria-hidden":"true",children:[e("i",{}),e("i",{}),e("i",{}),o.yourProduct]}),e("div",{ref:s,class:"host-content"}),i.length>0&&e("ul",{class:"messages","aria-label":o.messages,children:i.map((a,l)=>e("li",{children:e("code",{children:a})},l))})]})}export{G as a,Q as b,Y as c,le as d};
