import{b as m}from"./chunk-2LKSY6GJ.js";import{a as _,b as y,f as S}from"./chunk-Y6ONZPGY.js";import{A as e,a as l,c as u,e as b,j as c,l as f,w as h,y as g,z as v}from"./chunk-3ERGHWHT.js";var s=h.embedPanel;function L(n,a){let t=`${c.base_url}/v1/embed-sessions`;return{curl:`curl ${t} \\
  -H "Authorization: Bearer $INLAY_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${f(JSON.stringify({tenant_id:a,dashboard_id:n}))}`,Node:`const response = await fetch("${t}", {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.INLAY_KEY}\`, "content-type": "application/json" },
  body: JSON.stringify({ tenant_id: customer.id, dashboard_id: "${n}" }),
});
const { embed_url } = await response.json();`,Python:`import os, requests

response = requests.post(
    "${t}",
    headers={"Authorization": f"Bearer {os.environ['INLAY_KEY']}"},
    json={"tenant_id": customer.id, "dashboard_id": "${n}"},
)
embed_url = response.json()["embed_url"]`,Rust:`let session: serde_json::Value = reqwest::Client::new()
    .post("${t}")
    .bearer_auth(std::env::var("INLAY_KEY")?)
    .json(&serde_json::json!({"tenant_id": customer.id, "dashboard_id": "${n}"}))
    .send().await?.json().await?;
let embed_url = &session["embed_url"];`}}function j(){let n=`${c.base_url}/sdk/v1/embed.js`;return{HTML:`<script type="module" src="${n}"><\/script>
<inlay-dashboard src="{embed_url}" label="Usage"></inlay-dashboard>`,JavaScript:`import { mountDashboard } from "${n}";

mountDashboard("#usage", {
  fetchEmbedUrl: async ({ signal }) =>
    (await fetch("/api/usage-embed", { method: "POST", signal })).json(),
});`,React:`export function Usage() {
  const ref = useRef(null);
  useEffect(() => { ref.current.fetchEmbedUrl = fetchUsageEmbedUrl; }, []);
  return <inlay-dashboard ref={ref} label="Usage" />;
}`}}function T({dashboard:n,tenant:a,onMinted:t}){let[o,r]=l(null),i=_(async d=>{r(await v(g.POST("/v1/embed-sessions",{body:{tenant_id:d("tenant_id"),dashboard_id:n,permissions:{allow_drill_down:!0}}}))),t?.()});return e("div",{class:"embed-panel",children:[e("div",{children:[e("h3",{children:s.server}),e("p",{class:"lead",children:s.serverLead}),e(m,{snippets:L(n,a||"acme"),label:s.server}),e("h3",{children:s.page}),e("p",{class:"lead",children:s.pageLead}),e(m,{snippets:j(),label:s.page})]}),e("div",{children:[e("h3",{children:s.live}),e("p",{class:"lead",children:s.liveLead}),e("form",{...i.props,class:"inline",children:[e(y,{in:i,name:"tenant_id",label:s.tenant,defaultValue:a,required:!0,maxLength:256,autocomplete:"off"}),e(S,{form:i,children:o?s.again:s.show})]}),o&&e(N,{url:o.embed_url})]})]})}function N({url:n}){let a=b(null),[t,o]=l([]);return u(()=>{let r=document.createElement("inlay-dashboard");import("/sdk/v1/embed.js");for(let p of["ready","filter","period-change","drill","error"])r.addEventListener(p,E=>o(w=>[`${p} ${JSON.stringify(E.detail??{})}`,...w].slice(0,5)));let{pathname:d,search:$}=new URL(n);return r.setAttribute("src",location.origin+d+$),r.setAttribute("label",s.live),a.current?.replaceChildren(r),()=>r.remove()},[n]),e("div",{class:"host-page",children:[e("p",{class:"host-bar","aria-hidden":"true",children:[e("i",{}),e("i",{}),e("i",{}),s.yourProduct]}),e("div",{ref:a,class:"host-content"}),t.length>0&&e("ul",{class:"messages","aria-label":s.messages,children:t.map((r,i)=>e("li",{children:e("code",{children:r})},i))})]})}export{T as a};
