// Saves a file that the server has just made (data: id, name, type, and its bytes in base64), once.
// charts/canvas/build.js bundles this file with what it imports.

import { fromBase64 } from "../../charts/canvas/source/toolkit/base64.js";
import { saveAs } from "../../charts/canvas/source/toolkit/elements.js";

const saved = (globalThis.glassformerSaved ??= new Set());

export default function ({ data }) {
  if (saved.has(data.id)) return;
  saved.add(data.id);
  saveAs(fromBase64(data.bytes), data.type, data.name);
}
