// npm run build: 07a3d4ecec21a738
var canvas=globalThis.glassformerCanvas??={};canvas.arrived??=new Promise(resolve=>{canvas.arrive=resolve});async function picture_default(component){await canvas.arrived;const draw=await canvas.draw;return draw({...component,script:canvas.script})}export{picture_default as default};
