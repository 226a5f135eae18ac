// A figure as shapes and letters in a file that says where it comes from.

import { saveAs } from "../toolkit/elements.js";
import { pdfOf } from "./pdf.js";
import { svgWith } from "./provenance.js";

// format: "svg" or "pdf"; said: provenance(title)
export async function saveVector(svg, format, said, name) {
  if (format === "pdf") saveAs(await pdfOf(svg, said), "application/pdf", name);
  else saveAs(svgWith(svg, said), "image/svg+xml", name);
}
