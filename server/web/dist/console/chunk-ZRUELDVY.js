import{a as e,c as r}from"./chunk-ELEJU46P.js";var i=300;function u(t){let[s,n]=e(t);return r(()=>{let o=setTimeout(()=>n(t),i);return()=>clearTimeout(o)},[t]),s}export{u as a};
