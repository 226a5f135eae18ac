// Saves a picture that the server has just made (data: id, name, title, format, and its bytes in base64: of an SVG
// where the format is "pdf"), once.
// charts/canvas/build.js bundles this file with what it imports.

import { pngWith, provenance } from "../../charts/canvas/source/frame/provenance.js";
import { saveVector } from "../../charts/canvas/source/frame/vector_file.js";
import { fromBase64 } from "../../charts/canvas/source/toolkit/base64.js";
import { saveAs } from "../../charts/canvas/source/toolkit/elements.js";

const saved = (globalThis.glassformerSaved ??= new Set());

export default async function ({ data }) {
  if (saved.has(data.id)) return;
  saved.add(data.id);
  const blob = new Blob([fromBase64(data.bytes)]);
  const said = provenance(data.title);
  if (data.format === "png") saveAs(await pngWith(blob, said), "image/png", data.name);
  else await saveVector(await blob.text(), data.format, said, data.name);
}
