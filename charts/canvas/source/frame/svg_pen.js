// Writes what a drawing paints as SVG: that part of a 2D context which the drawings use, so that there is one drawing code.
// Shapes and texts stay shapes and texts; neighbouring cells of one colour become one path.

import { make } from "../toolkit/elements.js";

const BLUR_FREE = 512; // pixels: an enlarged bitmap survives programs that blur what they scale
const KEPT = [
  "fillStyle",
  "strokeStyle",
  "lineWidth",
  "lineCap",
  "globalAlpha",
  "font",
  "textAlign",
  "textBaseline",
  "dash",
  "groups",
];

export const short = (number) => String(Math.round(number * 100) / 100);
// Without the signs that XML cannot hold.
export const escapeXml = (text) =>
  String(text.toWellFormed?.() ?? text)
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

export class SvgPen {
  // ruler: a real 2D context, which knows how wide a text is
  constructor(ruler) {
    Object.assign(this, {
      ruler,
      vector: true,
      parts: [],
      definitions: [],
      stack: [],
      path: "",
      pending: null,
      middles: {},
      clips: 0,
    });
    Object.assign(this, {
      fillStyle: "#000",
      strokeStyle: "#000",
      lineWidth: 1,
      lineCap: "butt",
      globalAlpha: 1,
      font: "10px sans-serif",
      textAlign: "left",
      textBaseline: "alphabetic",
      dash: [],
      groups: 0,
    });
    // Several pictures may end up in one document.
    this.name = `g${Math.random().toString(36).slice(2, 8)}`;
  }

  // --- state ------------------------------------------------------------------------------------------------

  save() {
    this.stack.push(Object.fromEntries(KEPT.map((name) => [name, this[name]])));
    this.groups = 0;
  }

  restore() {
    this.put("</g>".repeat(this.groups));
    Object.assign(this, this.stack.pop());
  }

  group(attributes) {
    this.put(`<g ${attributes}>`);
    this.groups++;
  }

  translate(x, y) {
    this.group(`transform="translate(${short(x)} ${short(y)})"`);
  }
  rotate(angle) {
    this.group(`transform="rotate(${short((angle * 180) / Math.PI)})"`);
  }
  setLineDash(dash) {
    this.dash = dash;
  }

  clip() {
    const id = `${this.name}-clip${this.clips++}`;
    this.definitions.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
    this.group(`clip-path="url(#${id})"`);
  }

  // --- shapes -----------------------------------------------------------------------------------------------

  beginPath() {
    this.path = "";
  }
  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }
  lineTo(x, y) {
    this.path += `L${short(x)} ${short(y)}`;
  }
  bezierCurveTo(...places) {
    this.path += `C${places.map(short).join(" ")}`;
  }
  rect(x, y, width, height) {
    this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }

  roundRect(x, y, width, height, radius) {
    const r = Math.min(radius, width / 2, height / 2);
    if (!(r > 0)) return this.rect(x, y, width, height);
    const corner = (dx, dy) => `a${short(r)} ${short(r)} 0 0 1 ${short(dx)} ${short(dy)}`;
    const [across, down] = [short(width - 2 * r), short(height - 2 * r)];
    this.path += `M${short(x + r)} ${short(y)}h${across}${corner(r, r)}v${down}${corner(-r, r)}h${-across}${corner(-r, -r)}v${-down}${corner(r, -r)}z`;
  }

  // Whole circles only.
  arc(x, y, radius) {
    const half = (dx) => `a${short(radius)} ${short(radius)} 0 1 1 ${short(dx)} 0`;
    this.path += `M${short(x - radius)} ${short(y)}${half(2 * radius)}${half(-2 * radius)}z`;
  }

  fill() {
    this.shape(this.path, this.paint("fill", this.fillStyle));
  }
  fillRect(...box) {
    this.apart(() => (this.rect(...box), this.fill()));
  }
  strokeRect(...box) {
    this.apart(() => (this.rect(...box), this.stroke()));
  }
  clearRect() {}

  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    const cap = this.lineCap === "butt" ? "" : ` stroke-linecap="${this.lineCap}"`;
    this.shape(
      this.path,
      `fill="none" ${this.paint("stroke", this.strokeStyle)} stroke-width="${short(this.lineWidth)}"${cap}${dash}`,
    );
  }

  // As a canvas does, leave the path that is being made alone.
  apart(draw) {
    const kept = this.path;
    this.path = "";
    draw();
    this.path = kept;
  }

  // Shapes that look the same and follow each other are one path, as long as they hide what is below.
  shape(path, attributes) {
    if (!path) return;
    if (this.pending?.attributes === attributes && !attributes.includes("opacity")) this.pending.paths.push(path);
    else {
      this.flush();
      this.pending = { attributes, paths: [path] };
    }
  }

  // --- colours ------------------------------------------------------------------------------------------------

  paint(kind, style) {
    if (typeof style !== "string") return `${kind}="url(#${this.defined(style)})"`;
    const [, red, green, blue, alpha = 1] = style.match(/^rgba?\((\d+), ?(\d+), ?(\d+)(?:, ?([\d.]+))?\)$/) ?? [];
    const colour =
      red === undefined
        ? style
        : `#${[red, green, blue].map((channel) => Number(channel).toString(16).padStart(2, "0")).join("")}`;
    const opacity = alpha * this.globalAlpha;
    return `${kind}="${colour}"${opacity < 1 ? ` ${kind}-opacity="${Math.round(opacity * 1000) / 1000}"` : ""}`;
  }

  defined(style) {
    if (!style.id) {
      style.id = `${this.name}-${this.definitions.length}`;
      this.definitions.push(style.markup(style.id));
    }
    return style.id;
  }

  createLinearGradient(x1, y1, x2, y2) {
    const stops = [];
    const ends = Object.entries({ x1, y1, x2, y2 })
      .map(([name, value]) => `${name}="${short(value)}"`)
      .join(" ");
    return {
      addColorStop: (offset, colour) => stops.push(`<stop offset="${offset}" stop-color="${colour}"/>`),
      markup: (id) =>
        `<linearGradient id="${id}" gradientUnits="userSpaceOnUse" ${ends}>${stops.join("")}</linearGradient>`,
    };
  }

  hatching(ground, line, size) {
    const d = [-size, 0, size].map((shift) => `M${shift - 1} ${size + 1}L${shift + size + 1} -1`).join("");
    const markup = (id) =>
      `<pattern id="${id}" width="${size}" height="${size}" patternUnits="userSpaceOnUse"><rect width="${size}" height="${size}" fill="${ground}"/><path d="${d}" stroke="${line}"/></pattern>`;
    return (this.hatched ??= { markup });
  }

  // --- texts ------------------------------------------------------------------------------------------------

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  // How far the line on which letters stand lies below their middle; many programs know nothing of another baseline.
  middle() {
    const rise = (baseline) => {
      this.ruler.textBaseline = baseline;
      return this.measureText("x").actualBoundingBoxAscent;
    };
    this.middles[this.font] ??= rise("alphabetic") - rise("middle");
    return this.middles[this.font];
  }

  fillText(text, x, y) {
    const [, weight, size, family] = this.font.match(/^(\d+) ([\d.]+)px (.+)$/);
    const anchor = { center: ' text-anchor="middle"', right: ' text-anchor="end"' }[this.textAlign] ?? "";
    const bold = weight === "400" ? "" : ` font-weight="${weight}"`;
    this.family ??= family;
    const below = this.textBaseline === "middle" ? this.middle() : 0;
    this.put(
      `<text x="${short(x)}" y="${short(y + below)}" font-size="${short(Number(size))}"${bold}${anchor} ${this.paint("fill", this.fillStyle)}>${escapeXml(text)}</text>`,
    );
  }

  // --- bitmaps ------------------------------------------------------------------------------------------------

  // Small cells come as a bitmap, one pixel a cell. Runs of one colour become shapes all the same, unless that takes more than
  // four times the bytes of the picture, or leaves less than two pixels to a cell: then it stays a picture, without blur.
  drawImage(bitmap, x, y, width, height) {
    const [stepX, stepY] = [width / bitmap.width, height / bitmap.height];
    const picture = this.picture(bitmap, x, y, width, height);
    const shapes = Math.min(stepX, stepY) >= 2 ? this.runs(bitmap, x, y, stepX, stepY) : null;
    this.put(shapes && shapes.length <= 4 * picture.length ? `<g shape-rendering="crispEdges">${shapes}</g>` : picture);
  }

  runs(bitmap, x, y, stepX, stepY) {
    const { data } = bitmap.getContext("2d").getImageData(0, 0, bitmap.width, bitmap.height);
    const colours = new Uint32Array(data.buffer);
    const paths = new Map();
    for (let row = 0; row < bitmap.height; row++)
      for (let column = 0; column < bitmap.width;) {
        const from = column;
        const colour = colours[row * bitmap.width + from];
        while (column < bitmap.width && colours[row * bitmap.width + column] === colour) column++;
        // Absolute places, so that what is rounded leaves no seam.
        const [left, right, top, bottom] = [
          x + from * stepX,
          x + column * stepX,
          y + row * stepY,
          y + (row + 1) * stepY,
        ].map(short);
        const path = `M${left} ${top}H${right}V${bottom}H${left}z`;
        paths.set(colour, (paths.get(colour) ?? "") + path);
      }
    const hex = (colour) =>
      [0, 8, 16].map((shift) => ((colour >>> shift) & 255).toString(16).padStart(2, "0")).join("");
    return [...paths].map(([colour, path]) => `<path fill="#${hex(colour)}" d="${path}"/>`).join("");
  }

  picture(bitmap, x, y, width, height) {
    const times = Math.max(1, Math.min(8, Math.floor(BLUR_FREE / Math.max(bitmap.width, bitmap.height))));
    const paper = make("canvas", { width: bitmap.width * times, height: bitmap.height * times });
    const pen = paper.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(bitmap, 0, 0, paper.width, paper.height);
    return `<image x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${paper.toDataURL()}"/>`;
  }

  // --- the file -----------------------------------------------------------------------------------------------

  put(markup) {
    this.flush();
    this.parts.push(markup);
  }

  flush() {
    const { pending } = this;
    this.pending = null;
    if (pending) this.parts.push(`<path ${pending.attributes} d="${pending.paths.join("")}"/>`);
  }

  // size: { width, height } in CSS pixels
  document(title, { width, height }) {
    this.put("</g>".repeat(this.groups));
    this.groups = 0;
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${short(width)}" height="${short(height)}" viewBox="0 0 ${short(width)} ${short(height)}" role="img" font-family="${escapeXml(this.family ?? "sans-serif")}" style="white-space:pre">`;
    return `${head}\n<title>${escapeXml(title)}</title>\n<defs>${this.definitions.join("")}</defs>\n${this.parts.join("\n")}\n</svg>\n`;
  }
}
