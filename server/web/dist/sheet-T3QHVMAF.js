import{a as D}from"./chunk-ZDDSFF4S.js";import{B as q,H as z,a as i,c as f,d as v,i as s,m as o,r as m,t as y,u as b,x as k}from"./chunk-ULKMKYLI.js";var L=380;function S({context:a,widget:r,dimension:c,value:h,at:T,onClose:g}){let[l,C]=f(null),[p,E]=f("");v(()=>{let e=new AbortController,t={widget:r.id,dimension:c,value:h,filters:a.state.filters.value};return a.ask("detail",t,e.signal).then(C,d=>e.signal.aborted||E(d.message)),()=>e.abort()},[]);let u=r.query.measures?.[0],F={...r.viz,format:u?.format??r.viz.format},$=u?{...r.query,...u}:r.query,n=(e,t,d)=>({widget:{kind:"area",title:e,viz:F,query:{...$,limit:null,...d}},answer:t,format:a.formatFor(t),width:L});return i(D,{label:h,at:T,side:!0,onClose:g,inside:()=>s`
    <p class="lead">${m(c)} · ${r.title}</p>
    ${p?s`<p class="fault" role="alert">${p}</p>`:l?s`
      ${i(q,{...n(r.title,l.total),period:z(a.state.filters.value)?null:a.state.filters.value.period})}
      ${!y(l.course,$.metric)&&s`<h3>${o.overTime}</h3><div class="fixed">${i(k,n(o.overTime,l.course))}</div>`}
      ${l.breakdowns.filter(({answer:e})=>e.data.some(t=>t.group!=null)).map(({dimension:e,answer:t})=>s`
        <h3 key=${e}>${o.by(m(e))}</h3>
        <div class="fixed" style=${{height:`${t.data.length*35+4}px`}}>${i(b,n(e,t))}</div>`)}`:s`<div class="skeleton is-bar_list wait" aria-hidden="true"><i></i></div>`}
  `})}export{S as default};
