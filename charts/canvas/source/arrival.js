// The script of all drawings comes to a tab of the browser once (carrier.js); every picture finds it here (picture.js), and
// says when it is painted (painted.js). Whichever of them is there first makes the place.
export const canvas = (globalThis.glassformerCanvas ??= {});
canvas.arrived ??= new Promise((resolve) => {
  canvas.arrive = resolve;
});
canvas.painted ??= new Promise((resolve) => {
  canvas.paint = resolve;
});
