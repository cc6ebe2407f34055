import{e as $,f as l,h as b,i as y,m as v}from"./chunk-ULKMKYLI.js";var o=12;function C({label:w,at:n,side:s=!1,onClose:M,inside:x}){let e=l(null),i=b(),a=l(!1),r=()=>e.current?.close();return $(()=>{let t=e.current;if(!t)return;let c=document.getElementById("app");t.showModal();let d=()=>{let{offsetWidth:u,offsetHeight:f}=t,m=document.documentElement.clientWidth,E=s?document.dir==="rtl"?0:m:document.dir==="rtl"?n.left:n.right-u,g=(s?n.top-40:n.bottom+8)+scrollY;t.style.left=`${Math.max(o,Math.min(E,m-u-o))}px`;let p=s?Math.max(o,Math.min(g,c.offsetHeight-f-o)):g;t.style.top=`${p}px`,c.style.minHeight=`${p+f+o}px`};d();let h=new ResizeObserver(d);return h.observe(t),()=>{h.disconnect(),c.style.minHeight=""}},[]),y`<dialog ref=${e} class=${s?"sheet":"pop"} aria-labelledby=${i} onClose=${M}
    onPointerDown=${t=>{a.current=t.target===e.current}}
    onClick=${t=>a.current&&t.target===e.current&&r()}>
    <div class="inside">
      <header><h2 id=${i}>${w}</h2>
        <button type="button" class="close" aria-label=${v.close} onClick=${r}>
          <svg width="14" height="14" aria-hidden="true"><path d="M2 2l10 10M12 2L2 12" /></svg>
        </button>
      </header>
      ${x(r)}
    </div>
  </dialog>`}export{C as a};
