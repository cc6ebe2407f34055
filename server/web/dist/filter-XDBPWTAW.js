import{a as I}from"./chunk-NR6LJOPE.js";import{B as V,a as _,c as h,d as M,f as w,h as u,l as s,q as T}from"./chunk-PWHKN2PE.js";var A=864e5,O=200,k="\0dates";function C({context:t,at:i,dates:y,onClose:p}){let{offered:n,allows_dates:a}=t.state.boot,[l,o]=h(y?k:n.dimensions[0]??n.numbers[0]??k),$=r=>{t.changeFilters(r),p()},m=l===k?E:n.numbers.includes(l)?x:N;return _(I,{label:s.filter,at:i,onClose:p},u`
    <label class="field"><span>${s.property}</span>
      <select value=${l} onChange=${r=>o(r.currentTarget.value)}>
        ${[...n.dimensions,...n.numbers].map(r=>u`<option key=${r} value=${r}>${T(r)}</option>`)}
        ${a&&u`<option value=${k}>${s.dates}</option>`}
      </select>
    </label>
    ${_(m,{key:l,name:l,context:t,apply:$,onClose:p})}`)}function F({fault:t,onClose:i}){return u`${t&&u`<p class="fault" role="alert">${t}</p>`}
    <div class="foot">
      <button type="button" class="button" onClick=${i}>${s.cancel}</button>
      <button type="submit" class="button strong">${s.apply}</button>
    </div>`}function N({name:t,context:i,apply:y,onClose:p}){let n=i.state.filters.value,[a,l]=h(V(n.dimensions[t])),[o,$]=h(""),[m,r]=h(null),[S,d]=h("");M(()=>{let e=new AbortController,c=setTimeout(()=>{i.ask("values",{dimension:t,search:o,filters:n},e.signal).then(g=>(d(""),r(g)),g=>e.signal.aborted||d(g.message))},o?O:0);return()=>{clearTimeout(c),e.abort()}},[o]);let b=e=>l(c=>c.includes(e)?c.filter(g=>g!==e):[...c,e]),D=e=>{e.preventDefault();let{[t]:c,...g}=n.dimensions;y({dimensions:a.length?{...g,[t]:a.length===1?a[0]:a}:g})},f=m?.values??[],v=o?[]:a.filter(e=>!f.some(c=>c.value===e)).map(e=>({value:e,count:null}));return u`<form onSubmit=${D}>
    <input type="search" class="input" aria-label=${s.search} placeholder=${s.search} value=${o}
      onInput=${e=>$(e.currentTarget.value)} />
    <ul class="values" aria-busy=${String(!m&&!S)}>
      ${[...v,...f].map(({value:e,count:c})=>u`<li key=${e}><label>
        <input type="checkbox" checked=${a.includes(e)} onChange=${()=>b(e)} />
        <span class="name" title=${e}><bdi>${e||"“”"}</bdi></span>
        <small>${c==null?"":i.format.short(c)}</small>
      </label></li>`)}
      ${m&&!f.length&&!v.length&&u`<li class="none">${s.noValues}</li>`}
    </ul>
    ${m?.has_more&&u`<p class="more">${s.searchMore}</p>`}
    ${_(F,{fault:S,onClose:p})}
  </form>`}function x({name:t,context:i,apply:y,onClose:p}){let n=i.state.filters.value,a=n.numericRanges[t]??{},l=w(null),o=w(null),[$,m]=h("");return u`<form onSubmit=${S=>{S.preventDefault();let[d,b]=[l,o].map(v=>v.current?.value===""?void 0:v.current?.valueAsNumber);if(d!==void 0&&b!==void 0&&d>b)return m(s.rangeWrong);let{[t]:D,...f}=n.numericRanges;y({numericRanges:d===void 0&&b===void 0?f:{...f,[t]:{min:d,max:b}}})}}>
    <div class="pair">
      <label class="field"><span>${s.least}</span><input type="number" step="any" class="input" ref=${l} defaultValue=${a.min??""} /></label>
      <label class="field"><span>${s.most}</span><input type="number" step="any" class="input" ref=${o} defaultValue=${a.max??""} /></label>
    </div>
    ${_(F,{fault:$,onClose:p})}
  </form>`}var R=t=>new Date(t).toISOString().slice(0,10);function E({context:t,apply:i,onClose:y}){let{boot:p}=t.state,{max_date_range_days:n}=p.permissions,a=t.state.filters.value.dateRanges.timestamp,l=Date.parse(p.now),o=w(null),$=w(null),[m,r]=h(""),S=b=>{b.preventDefault();let[D,f]=[o,$].map(e=>e.current?.valueAsNumber??NaN);if(!(D<=f))return r(s.datesWrong);let v=Math.round((f-D)/A)+1;if(n!=null&&v>n)return r(s.daysMax(t.format.period(`${n}d`)));i({dateRanges:{timestamp:{from:new Date(D).toISOString(),to:new Date(f+A).toISOString()}}})},d=Math.min(n??7,7);return u`<form onSubmit=${S}>
    <div class="pair">
      <label class="field"><span>${s.from}</span><input type="date" class="input" required ref=${o}
        max=${R(l)} defaultValue=${R(a?Date.parse(a.from):l-(d-1)*A)} /></label>
      <label class="field"><span>${s.to}</span><input type="date" class="input" required ref=${$}
        max=${R(l)} defaultValue=${R(a?Date.parse(a.to)-1:l)} /></label>
    </div>
    <p class="more">${s.utc}</p>
    ${_(F,{fault:m,onClose:y})}
  </form>`}export{C as default};
