var t=new Map;addEventListener("beforeunload",e=>{t.size&&e.preventDefault()});var n=(e,s)=>t.set(e,s),r=e=>t.get(e),a=e=>t.delete(e),o=()=>t.clear();export{n as a,r as b,a as c,o as d};
