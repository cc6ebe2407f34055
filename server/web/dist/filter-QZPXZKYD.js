import{a as T}from"./chunk-ZDDSFF4S.js";import{C as O,a as w,c as h,d as F,f as _,i as u,m as n,r as M}from"./chunk-ULKMKYLI.js";var C=864e5,I=200,k="\0dates";function V({context:t,at:i,dates:y,onClose:d}){let{offered:s,allows_dates:a}=t.state.boot,[l,o]=h(y?k:s.dimensions[0]??s.numbers[0]??k),$=l===k?x:s.numbers.includes(l)?N:E;return w(T,{label:n.filter,at:i,onClose:d,inside:c=>u`
    <label class="field"><span>${n.property}</span>
      <select value=${l} onChange=${r=>o(r.currentTarget.value)}>
        ${[...s.dimensions,...s.numbers].map(r=>u`<option key=${r} value=${r}>${M(r)}</option>`)}
        ${a&&u`<option value=${k}>${n.dates}</option>`}
      </select>
    </label>
    ${w($,{key:l,name:l,context:t,onClose:c,apply:r=>{t.changeFilters(r),c()}})}`})}function A({fault:t,onClose:i}){return u`${t&&u`<p class="fault" role="alert">${t}</p>`}
    <div class="foot">
      <button type="button" class="button" onClick=${i}>${n.cancel}</button>
      <button type="submit" class="button strong">${n.apply}</button>
    </div>`}function E({name:t,context:i,apply:y,onClose:d}){let s=i.state.filters.value,[a,l]=h(O(s,t)),[o,$]=h(""),[c,r]=h(null),[D,f]=h("");F(()=>{let e=new AbortController,p=setTimeout(()=>{i.ask("values",{dimension:t,search:o,filters:s},e.signal).then(g=>(f(""),r(g)),g=>e.signal.aborted||f(g.message))},o?I:0);return()=>{clearTimeout(p),e.abort()}},[o]);let b=e=>l(p=>p.includes(e)?p.filter(g=>g!==e):[...p,e]),S=e=>{e.preventDefault();let{[t]:p,...g}=s.dimensions;y({dimensions:a.length?{...g,[t]:a.length===1?a[0]:a}:g})},m=c?.values??[],v=o?[]:a.filter(e=>!m.some(p=>p.value===e)).map(e=>({value:e,count:null}));return u`<form onSubmit=${S}>
    <input type="search" class="input" aria-label=${n.search} placeholder=${n.search} value=${o}
      onInput=${e=>$(e.currentTarget.value)}
      onKeyDown=${e=>e.key==="Enter"&&e.preventDefault()} />
    <ul class="values" aria-busy=${String(!c&&!D)}>
      ${[...v,...m].map(({value:e,count:p})=>u`<li key=${e}><label>
        <input type="checkbox" checked=${a.includes(e)} onChange=${()=>b(e)} />
        <span class="name" title=${e}><bdi>${e||"“”"}</bdi></span>
        <small>${p==null?"":i.format.short(p)}</small>
      </label></li>`)}
      ${c&&!m.length&&!v.length&&u`<li class="none">${n.noValues}</li>`}
    </ul>
    ${c?.has_more&&u`<p class="more">${n.searchMore}</p>`}
    ${w(A,{fault:D,onClose:d})}
  </form>`}function N({name:t,context:i,apply:y,onClose:d}){let s=i.state.filters.value,a=Object.hasOwn(s.numericRanges,t)?s.numericRanges[t]:{},l=_(null),o=_(null),[$,c]=h("");return u`<form onSubmit=${D=>{D.preventDefault();let[f,b]=[l,o].map(v=>v.current?.value===""?void 0:v.current?.valueAsNumber);if(f!==void 0&&b!==void 0&&f>b)return c(n.rangeWrong);let{[t]:S,...m}=s.numericRanges;y({numericRanges:f===void 0&&b===void 0?m:{...m,[t]:{min:f,max:b}}})}}>
    <div class="pair">
      <label class="field"><span>${n.least}</span><input type="number" step="any" class="input" ref=${l} defaultValue=${a.min??""} /></label>
      <label class="field"><span>${n.most}</span><input type="number" step="any" class="input" ref=${o} defaultValue=${a.max??""} /></label>
    </div>
    ${w(A,{fault:$,onClose:d})}
  </form>`}var R=t=>new Date(t).toISOString().slice(0,10);function x({context:t,apply:i,onClose:y}){let{boot:d}=t.state,{max_date_range_days:s}=d.permissions,a=t.state.filters.value.dateRanges.timestamp,l=Date.parse(d.now),o=_(null),$=_(null),[c,r]=h(""),D=b=>{b.preventDefault();let[S,m]=[o,$].map(e=>e.current?.valueAsNumber??NaN);if(!(S<=m))return r(n.datesWrong);let v=Math.round((m-S)/C)+1;if(s!=null&&v>s)return r(n.daysMax(t.format.period(`${s}d`)));i({dateRanges:{timestamp:{from:new Date(S).toISOString(),to:new Date(m+C).toISOString()}}})},f=Math.min(s??7,7);return u`<form onSubmit=${D}>
    <div class="pair">
      <label class="field"><span>${n.from}</span><input type="date" class="input" required ref=${o}
        max=${R(l)} defaultValue=${R(a?Date.parse(a.from):l-(f-1)*C)} /></label>
      <label class="field"><span>${n.to}</span><input type="date" class="input" required ref=${$}
        max=${R(l)} defaultValue=${R(a?Date.parse(a.to)-1:l)} /></label>
    </div>
    <p class="more">${n.timesIn("UTC")}</p>
    ${w(A,{fault:c,onClose:y})}
  </form>`}export{V as default};
