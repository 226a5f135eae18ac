// A figure's SVG as PDF: shapes stay shapes, letters stay letters of an embedded font. It comes to the browser only when
// somebody asks for a PDF (../frame/pdf.js).

import { jsPDF } from "jspdf";
import { svg2pdf } from "svg2pdf.js";
import regular from "./Arimo_400Regular.ttf";
import bold from "./Arimo_700Bold.ttf";
import { drawnTexts } from "./drawn_texts.js";

const FONT = "Arimo"; // as wide as Helvetica and Arial, letter by letter
const PIXEL = 72 / 96; // points

// svg: text, its width and height in pixels. -> Promise of a Blob
export async function pdf(svg, title) {
  const picture = document.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true);
  const [width, height] = ["width", "height"].map((side) => points(picture.getAttribute(side)));
  const file = new jsPDF({
    unit: "pt",
    format: [width, height],
    orientation: width > height ? "landscape" : "portrait",
    compress: true,
    putOnlyUsedFonts: true,
  });
  for (const [style, letters] of Object.entries({ normal: regular, bold })) {
    file.addFileToVFS(`${FONT}-${style}.ttf`, letters);
    file.addFont(`${FONT}-${style}.ttf`, FONT, style);
  }
  const place = document.createElement("div");
  Object.assign(place.style, { position: "fixed", left: "0", top: "0", visibility: "hidden", pointerEvents: "none" });
  place.append(picture);
  document.body.append(place);
  try {
    drawnTexts(picture, (letter) => hasLetter(file, letter));
    for (const node of picture.querySelectorAll("text, tspan")) inFont(node);
    await svg2pdf(picture, file, { x: 0, y: 0, width, height });
  } finally {
    place.remove();
  }
  file.setDocumentProperties({ title, creator: "Glassformer" });
  return file.output("blob");
}

const points = (length) => parseFloat(length) * PIXEL;

function hasLetter(file, letter) {
  const { metadata } = file.internal.getFont(FONT, "normal");
  return [...letter].length === 1 && metadata.characterToGlyph(letter.codePointAt(0)) > 0;
}

// Two weights are there.
function inFont(node) {
  const { fontWeight } = getComputedStyle(node);
  node.style.fontFamily = FONT;
  node.style.fontWeight = Number(fontWeight) >= 600 ? "bold" : "normal";
}
