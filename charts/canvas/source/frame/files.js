// What a drawing gives away: a picture in pixels or shapes, a page that works offline, numbers.

import PAGE from "../../page.html";
import { toBase64 } from "../toolkit/base64.js";
import { cssOf } from "../toolkit/colour.js";
import { fileName, saveAs } from "../toolkit/elements.js";
import { withMetadata } from "../toolkit/payload.js";
import { drawText, fontOf, wrap } from "../toolkit/text.js";
import { PAPER_FONT, printTheme, readTheme } from "../toolkit/theme.js";
import { caption } from "./caption.js";
import { pdfOf } from "./pdf.js";
import { SvgPen, escapeXml } from "./svg_pen.js";

// What the reader has chosen or is at is left out: in a file nobody points at anything.
const unmarked = (theme) => ({ ...theme, unmarked: true });

export class Files {
  constructor(frame) {
    this.frame = frame;
  }

  get title() {
    return this.frame.drawing.metadata.title;
  }

  name(extension) {
    return fileName(this.title, extension);
  }

  // The drawing as it is laid out now, with a title above it and, where buttons showed it, a key below; then a caption.
  // room: the width that is kept of it.
  sheet(pen, theme, { width, height, title, margin, ratio, below = "", room = width }) {
    const { drawing } = this.frame;
    pen.font = fontOf(theme, 0.95, 600);
    const lines = wrap(pen, title, width);
    const top = margin + lines.length * theme.size * 1.35 + (lines.length ? theme.size * 0.45 : 0);
    const keyHeight = drawing.layoutKey?.(pen, theme, width) ?? 0;
    pen.font = fontOf(theme, 0.8);
    const captions = below ? wrap(pen, below, room) : [];
    const foot = top + height + keyHeight + (captions.length ? theme.size * 0.6 : 0);
    const size = { width: room + 2 * margin, height: foot + captions.length * theme.size * 1.2 + margin };
    const paint = () => {
      pen.fillStyle = cssOf(theme.ground);
      pen.fillRect(0, 0, size.width, size.height);
      pen.font = fontOf(theme, 0.95, 600);
      lines.forEach((line, i) =>
        drawText(pen, line, margin, margin + theme.size * (0.6 + 1.35 * i), { colour: cssOf(theme.ink) }),
      );
      pen.font = fontOf(theme, 0.8);
      captions.forEach((line, i) =>
        drawText(pen, line, margin, foot + theme.size * (0.5 + 1.2 * i), { colour: cssOf(theme.muted) }),
      );
      pen.translate(margin, top);
      drawing.paintBase(pen, theme, ratio);
      drawing.paintFocus(pen, theme, null, ratio, null);
      drawing.paintKey?.(pen, theme, height);
    };
    return { size, paint };
  }

  // The picture at twice the size, with title, caption and the page's background, so that it can stand alone; no wider
  // than what is drawn.
  png() {
    const { frame } = this;
    if (!frame.ready) frame.layOut(frame.width ?? 800);
    const scale = 2;
    const paper = document.createElement("canvas");
    const pen = paper.getContext("2d");
    const margin = 16;
    const { width, height } = frame;
    const draw = (more) => {
      const sheet = { width, height, title: this.title, margin, ratio: scale, ...more };
      const { size, paint } = this.sheet(pen, unmarked(frame.theme), sheet);
      [paper.width, paper.height] = [Math.ceil(size.width * scale), Math.ceil(size.height * scale)];
      pen.scale(scale, scale);
      paint();
    };
    draw({});
    draw({ room: Math.max(240, usedWidth(pen) / scale - margin), below: caption() });
    paper.toBlob((blob) => saveAs(blob, "image/png", this.name("png")));
  }

  // Laid out anew as shapes and letters; then the screen gets its own layout back. A PDF is black on white.
  async drawn(format) {
    const { frame, title } = this;
    const shown = { ...readTheme(frame.root), font: PAPER_FONT };
    const theme = unmarked(format === "pdf" ? printTheme(shown) : shown);
    const pen = new SvgPen(document.createElement("canvas").getContext("2d"));
    const width = frame.width || 800;
    const height = Math.ceil(frame.drawing.layout(pen, theme, width));
    const { size, paint } = this.sheet(pen, theme, { width, height, title, margin: 16, ratio: 4, below: caption() });
    paint();
    frame.refresh();
    const svg = pen.document(title, size);
    if (format === "pdf") saveAs(await pdfOf(svg, title), "application/pdf", this.name("pdf"));
    else saveAs(svg, "image/svg+xml", this.name("svg"));
  }

  // The same script and the same bytes in one page that asks nobody for anything.
  html() {
    const { data, script, drawing } = this.frame;
    const values = {
      title: escapeXml(this.title),
      language: drawing.metadata.language ?? "en",
      payload: toBase64(withMetadata(data, { ...drawing.state?.(), follows: false, view: globalThis.glassformerView })),
      script: toBase64(script),
    };
    saveAs(
      PAGE.replace(/\{\{(\w+)\}\}/g, (_, name) => values[name]),
      "text/html",
      this.name("html"),
    );
  }

  csv() {
    saveAs(csvText(this.frame.drawing.records()), "text/csv", this.name("csv"));
  }
}

function csvText(rows) {
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return rows.map((row) => `${row.map((cell) => quoted(harmlessCell(cell))).join(",")}\n`).join("");
}

// The rule of harmless_cell in transformer/disk/tables.py: an apostrophe before what a spreadsheet would run.
function harmlessCell(cell) {
  const text = String(cell ?? "").replace(/\r\n?/g, "\n");
  const isFormula = /^[=+\-@\t\n]./s.test(text) && Number.isNaN(Number(text));
  return isFormula ? `'${text}` : text;
}

// Up to the last column that is not only ground; the last column and row of the canvas may be covered in part.
function usedWidth(pen) {
  const { width, height } = pen.canvas;
  const pixels = new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer);
  for (let x = width - 2; x > 0; x--) {
    for (let y = 0; y < height - 1; y++) if (pixels[y * width + x] !== pixels[0]) return x + 1;
  }
  return width;
}
