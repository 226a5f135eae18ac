// A component that shows nothing: its data are the writer of PDF, deflated (charts/canvas/module.py).

import { inflate } from "../toolkit/inflate.js";

export default async function ({ data }) {
  const place = globalThis.glassformerPdf;
  if (place.brought) return;
  place.brought = true;
  const code = new Blob([await inflate(data)], { type: "text/javascript" });
  place.arrive(await import(URL.createObjectURL(code)));
}
