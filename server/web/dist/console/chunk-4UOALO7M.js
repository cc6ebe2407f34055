import{i as e}from"./chunk-3ERGHWHT.js";var n=6e3,i=0,l=e(null);function s(t,o){clearTimeout(i),l.value=o?{text:t,undo:o}:{text:t},i=setTimeout(()=>l.value=null,n)}export{l as a,s as b};
