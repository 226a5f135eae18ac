// The script of all drawings comes to a tab of the browser once (carrier.js); every picture finds it here (picture.js).
// Whichever of them is there first makes the place.
export const canvas = (globalThis.glassformerCanvas ??= {});
canvas.arrived ??= new Promise((resolve) => {
  canvas.arrive = resolve;
});
