// The one script of all components of figures. The script of the drawings is large: it comes to a tab of the browser once, as
// the data of a component that shows nothing, and so does what writes PDF; every figure waits for it here.

import { inflate } from "./toolkit/inflate.js";

const PATIENCE = 3000; // milliseconds
const promised = () => Promise.withResolvers?.() ?? deferred();
const place = (globalThis.glassformerCanvas ??= { arrived: promised(), painted: promised() });

function deferred() {
  let resolve = null;
  return { promise: new Promise((done) => (resolve = done)), resolve };
}

const isFigure = (bytes) => String.fromCharCode(...bytes.subarray(0, 4)) === "GLAS"; // toolkit/payload.js

export default async function (component) {
  const { data, setTriggerValue } = component;
  if (!data) return tellWhenPainted(setTriggerValue);
  if (!isFigure(data)) return load(data);
  const { draw, script } = await place.arrived.promise;
  try {
    return await draw({ ...component, script });
  } finally {
    place.painted.resolve();
  }
}

// Modules, deflated (charts/canvas/module.py): that of the drawings, or what writes PDF (scene/pdf.js waits for it).
async function load(script) {
  const key = `${script.length} ${script.subarray(-4)}`; // deflate ends in a checksum of what was packed
  if (place[key]) return; // the page ran again
  place[key] = true;
  const code = new Blob([await inflate(script)], { type: "text/javascript" });
  const module = await import(URL.createObjectURL(code));
  if (module.pdf) globalThis.glassformerPdf.arrive(module);
  else place.arrived.resolve({ draw: module.default, script });
}

// Python hears when the first figure of the page has been painted, or is long in coming.
async function tellWhenPainted(setTriggerValue) {
  await Promise.race([place.painted.promise, new Promise((late) => setTimeout(late, PATIENCE))]);
  setTriggerValue("painted", true);
}
