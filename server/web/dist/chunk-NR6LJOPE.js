import{e as f,f as p,g,h as $,l as b}from"./chunk-PWHKN2PE.js";var o=12;function E({label:y,at:n,side:s=!1,onClose:v,children:M}){let e=p(null),r=g();return f(()=>{let t=e.current;if(!t)return;let l=document.getElementById("app");t.showModal();let c=()=>{let{offsetWidth:a,offsetHeight:d}=t,h=document.documentElement.clientWidth,w=s?document.dir==="rtl"?0:h:document.dir==="rtl"?n.left:n.right-a,u=(s?n.top-40:n.bottom+8)+scrollY;t.style.left=`${Math.max(o,Math.min(w,h-a-o))}px`;let m=s?Math.max(o,Math.min(u,l.offsetHeight-d-o)):u;t.style.top=`${m}px`,l.style.minHeight=`${m+d+o}px`};c();let i=new ResizeObserver(c);return i.observe(t),()=>{i.disconnect(),l.style.minHeight=""}},[]),$`<dialog ref=${e} class=${s?"sheet":"pop"} aria-labelledby=${r} onClose=${v}
    onClick=${t=>t.target===e.current&&e.current?.close()}>
    <div class="inside">
      <header><h2 id=${r}>${y}</h2>
        <button type="button" class="close" aria-label=${b.close} onClick=${()=>e.current?.close()}>
          <svg width="14" height="14" aria-hidden="true"><path d="M2 2l10 10M12 2L2 12" /></svg>
        </button>
      </header>
      ${M}
    </div>
  </dialog>`}export{E as a};
