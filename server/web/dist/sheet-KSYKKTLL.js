import{a as z}from"./chunk-NR6LJOPE.js";import{A as q,a as i,c as m,d as v,h as a,l as o,q as f,s as y,t as b,w as k}from"./chunk-PWHKN2PE.js";var F=380;function L({context:l,widget:r,dimension:c,value:h,at:T,onClose:D}){let[s,g]=m(null),[p,C]=m("");v(()=>{let t=new AbortController,e={widget:r.id,dimension:c,value:h,filters:l.state.filters.value};return l.ask("detail",e,t.signal).then(g,d=>t.signal.aborted||C(d.message)),()=>t.abort()},[]);let u=r.query.measures?.[0],E={...r.viz,format:u?.format??r.viz.format},$=u?{...r.query,...u}:r.query,n=(t,e,d)=>({widget:{kind:"area",title:t,viz:E,query:{...$,limit:null,...d}},answer:e,format:l.formatFor(e),width:F});return i(z,{label:h,at:T,side:!0,onClose:D},a`
    <p class="lead">${f(c)} · ${r.title}</p>
    ${p?a`<p class="fault" role="alert">${p}</p>`:s?a`
      ${i(q,{...n(r.title,s.total),period:l.state.filters.value.period})}
      ${!y(s.course,$.metric)&&a`<h3>${o.overTime}</h3><div class="fixed">${i(k,n(o.overTime,s.course))}</div>`}
      ${s.breakdowns.filter(({answer:t})=>t.data.some(e=>e.group!=null)).map(({dimension:t,answer:e})=>a`
        <h3 key=${t}>${o.by(f(t))}</h3>
        <div class="fixed" style=${{height:`${e.data.length*35+4}px`}}>${i(b,n(t,e))}</div>`)}`:a`<div class="skeleton is-bar_list wait" aria-hidden="true"><i></i></div>`}
  `)}export{L as default};
