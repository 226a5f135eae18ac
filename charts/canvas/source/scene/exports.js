// The menu behind “Export”: a picture in pixels or shapes, a page that works offline, the numbers.

import PAGE from "../../page.html";
import { ruler, wrap } from "./letters.js";
import { canWritePdf, pdfOf } from "./pdf.js";
import { escapeXml, moved, Scene } from "./scene.js";
import { toBase64 } from "../toolkit/base64.js";
import { cssOf } from "../toolkit/colour.js";
import { fileName, make, saveAs } from "../toolkit/elements.js";
import { withMetadata } from "../toolkit/payload.js";
import { PAPER_FONT, printTheme } from "../toolkit/theme.js";
import { say } from "../toolkit/words.js";

const MARGIN = 16;

export class ExportMenu {
  constructor(panel) {
    this.panel = panel;
    this.element = make("div", { className: "menu", popover: "auto", role: "dialog" });
    this.button = panel.button("Export", "Export this figure or its numbers", () => {});
    this.button.popoverTargetElement = this.element;
    const save = (text, explanation, action) =>
      panel.button(text, explanation, () => {
        this.element.hidePopover();
        action();
      });
    const pdf = save("PDF", "Download this figure as PDF", () => this.pdf());
    const buttons = [
      save("PNG", "Download this figure as PNG", () => this.png()),
      save("SVG", "Download this figure as SVG", () => this.svg()),
      pdf,
      save("HTML", "Download a page that works offline (HTML)", () => this.html()),
      save("CSV", "Download the numbers as CSV", () => this.csv()),
    ];
    this.element.append(make("div", { className: "buttons" }, ...buttons));
    panel.spoken.push(() => this.element.setAttribute("aria-label", say("Export")));
    this.element.addEventListener("beforetoggle", ({ newState }) => {
      pdf.hidden = !canWritePdf();
      this.left = newState === "closed" && this.element.matches(":focus-within");
    });
    this.element.addEventListener("toggle", ({ newState }) => {
      if (newState === "open") this.place();
      else if (this.left) this.button.focus(); // the keyboard goes on where it was
    });
    const scrolled = { capture: true, passive: true, signal: panel.aborter.signal };
    window.addEventListener("scroll", () => this.element.hidePopover(), scrolled);
    // Letters typed here are not for the app's own keys.
    this.element.addEventListener("keydown", (event) => event.stopPropagation());
  }

  // Under its button, inside the window.
  place() {
    const at = this.button.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const left = Math.max(8, Math.min(at.right, document.documentElement.clientWidth - 8) - width);
    const top = Math.max(8, Math.min(at.bottom + 4, window.innerHeight - height - 8));
    Object.assign(this.element.style, { left: `${left}px`, top: `${top}px` });
    this.element.querySelector("button").focus();
  }

  get title() {
    return this.panel.data.metadata.title;
  }

  // What the figure is of: the page says it (ui/shell/frame.js), and of a sentence on its way the figure itself.
  get view() {
    return { ...globalThis.glassformerView, ...this.panel.metadata.read };
  }

  name(extension) {
    return fileName(this.title, extension);
  }

  // The drawing with its title above and its caption below, on the page's own ground, so that it can stand alone.
  sheet(change) {
    const [scene, theme] = this.panel.sceneFor(change);
    const [width, height] = scene.size;
    const lines = (text, size, weight, fill, from) =>
      wrap(ruler(theme, size, weight), text, width).map((line, k) => ({
        text: line,
        at: [MARGIN, from + size * (0.65 + 1.4 * k)],
        ...{ size, weight, fill: cssOf(fill) },
      }));
    const heading = lines(this.title, 0.95 * theme.size, 600, theme.ink, MARGIN);
    const top = MARGIN + heading.length * 1.35 * theme.size + 0.45 * theme.size;
    const below = lines(caption(this.view), 0.8 * theme.size, 400, theme.muted, top + height + 0.6 * theme.size);
    const size = [width + 2 * MARGIN, top + height + (0.6 + 1.2 * below.length) * theme.size + MARGIN];
    const ground = { rect: [0, 0, ...size], fill: cssOf(theme.ground) };
    const marks = [ground, ...heading, moved(scene.marks, [MARGIN, top]), ...below];
    return { sheet: new Scene({ size, marks }), theme };
  }

  async png(ratio = 2) {
    const { sheet, theme } = this.sheet((shown) => ({ ...shown, ratio }));
    const [width, height] = sheet.size.map((side) => Math.ceil(side * ratio));
    const paper = make("canvas", { width, height });
    const pen = paper.getContext("2d");
    pen.scale(ratio, ratio);
    sheet.paint(pen, theme);
    const blob = await new Promise((resolve) => paper.toBlob(resolve));
    saveAs(blob, "image/png", this.name("png"));
  }

  // In letters that every program has.
  shapes(change) {
    const { sheet, theme } = this.sheet((shown) => ({ ...change(shown), ratio: 4, font: PAPER_FONT }));
    return sheet.svg(theme, this.title);
  }

  svg() {
    saveAs(
      this.shapes((shown) => shown),
      "image/svg+xml",
      this.name("svg"),
    );
  }

  // Black on white.
  async pdf() {
    saveAs(await pdfOf(this.shapes(printTheme), this.title), "application/pdf", this.name("pdf"));
  }

  // The same script and the same bytes in one page that asks nobody for anything.
  html() {
    const { bytes, script, data, kind } = this.panel;
    const values = {
      title: escapeXml(this.title),
      language: data.metadata.language ?? "en",
      payload: toBase64(withMetadata(bytes, { ...kind.state?.(data), follows: false, view: this.view })),
      script: toBase64(script),
    };
    saveAs(
      PAGE.replace(/\{\{(\w+)\}\}/g, (_, name) => values[name]),
      "text/html",
      this.name("html"),
    );
  }

  csv() {
    saveAs(csvText(this.panel.kind.records(this.panel.data)), "text/csv", this.name("csv"));
  }
}

const PICTURE = /^[0-9a-g]{64}$/; // the text of an image says nothing to a reader
const SHORT_DIGITS = 12; // of a fingerprint, for the eye
const UPLOADED = /^(received-[0-9a-f]{12})[0-9a-f]{52}$/;

// What stands below an exported figure: the sentence, what was given or predicted, and the model.
function caption({ checkpoint, fingerprint, sentence, target }) {
  const read = [sentence, target].filter((text) => text && !PICTURE.test(text)).join(" → ");
  const model = checkpoint && `${checkpoint.replace(UPLOADED, "$1")} (${fingerprint.slice(0, SHORT_DIGITS)})`;
  return [read, model, "Glassformer"].filter(Boolean).join(" · ");
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
