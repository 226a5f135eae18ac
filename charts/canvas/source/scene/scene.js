// A drawing is a list of marks, made anew at every layout; picture, file, pointer and keyboard all follow from them.
//
// A mark: { rect: [x, y, width, height], round } | { path: as SVG writes it } | { curve: the eight numbers of a Bézier curve } |
// { text, at: [x, y], size, weight, align, room, paler: of the dot before a word } | { image: a canvas, rect, from: its part } |
// { marks, shift: [x, y], turn, clip: [x, y, width, height] }. Shapes have fill and stroke, thick, cap, dash, alpha; a fill
// is a colour, "hatch" or { across: [colours] }.
//
// A place is what can be pointed at: { rect, target } | { rect, at(x, y) -> target or null } | { rect, grid: { x, y, stepX,
// stepY, rows, columns }, lean, of: what all its targets hold }: of a grid without rows or columns only one of both counts;
// `lean` is the angle of labels that lean to the right.

import { fontOf, penOf, runsOf } from "./letters.js";
import { hatch } from "../toolkit/hatch.js";

// Without the signs that XML cannot hold.
export const escapeXml = (text) =>
  String(text.toWellFormed?.() ?? text)
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

export const sameTarget = (a, b) => JSON.stringify(a) === JSON.stringify(b);
export const moved = (marks, shift) => ({ marks, shift });

const short = (number) => String(Math.round(number * 100) / 100);

export class Scene {
  // focus(target) -> the marks above all others while something is pointed at
  constructor({ size, marks, places = [], focus = () => [], ...others }) {
    Object.assign(this, { size, marks, places, focus, ...others });
  }

  // --- on a canvas ------------------------------------------------------------------------------------------------

  paint(pen, theme, marks = this.marks) {
    let font = null; // that of the pen; to set it takes longer than to write a number
    for (const mark of marks) {
      pen.globalAlpha = mark.alpha ?? 1;
      if (mark.marks) this.paintGroup(pen, theme, mark);
      else if (mark.image) this.paintImage(pen, mark);
      else if (mark.text === undefined) this.paintShape(pen, theme, mark);
      else {
        const wanted = fontOf(theme, mark.size, mark.weight);
        if (wanted !== font) pen.font = font = wanted;
        this.paintText(pen, theme, mark);
      }
    }
  }

  paintGroup(pen, theme, { marks, shift, turn, clip }) {
    pen.save();
    if (shift) pen.translate(...shift);
    if (turn) pen.rotate(turn);
    if (clip) {
      pen.beginPath();
      pen.rect(...clip);
      pen.clip();
    }
    this.paint(pen, theme, marks);
    pen.restore();
  }

  // Without blur, or averaged where it has more pixels than there is room for.
  paintImage(pen, { image, rect, from }) {
    const { a, d } = pen.getTransform();
    pen.imageSmoothingEnabled = !from && (rect[2] * a < image.width || rect[3] * d < image.height);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(image, ...(from ?? []), ...rect);
  }

  paintText(pen, theme, mark) {
    pen.textBaseline = "middle";
    for (const { text, x, align, fill } of runsOf(theme, mark)) {
      Object.assign(pen, { fillStyle: fill, textAlign: align });
      pen.fillText(text, x, mark.at[1]);
    }
  }

  paintShape(pen, theme, { rect, path, curve, round, fill, stroke, thick = 1, cap = "butt", dash = [] }) {
    if (fill) pen.fillStyle = this.paintOf(pen, theme, fill, rect);
    if (rect && !round && !stroke) return pen.fillRect(...rect);
    const shape = path && [new Path2D(path)];
    if (!path) pen.beginPath();
    if (rect) pen.roundRect(...rect, round ?? 0);
    if (curve) {
      pen.moveTo(curve[0], curve[1]);
      pen.bezierCurveTo(...curve.slice(2));
    }
    if (fill) pen.fill(...(shape ?? []));
    if (!stroke) return;
    Object.assign(pen, { strokeStyle: stroke, lineWidth: thick, lineCap: cap });
    pen.setLineDash(dash);
    pen.stroke(...(shape ?? []));
  }

  paintOf(pen, theme, fill, rect) {
    if (fill === "hatch") return (this.hatched ??= hatch(pen, theme, theme.ratio));
    if (!fill.across) return fill;
    const gradient = pen.createLinearGradient(rect[0], 0, rect[0] + rect[2], 0);
    fill.across.forEach((colour, k, all) => gradient.addColorStop(k / (all.length - 1), colour));
    return gradient;
  }

  // The same at another place, as a part of another scene.
  at([dx, dy]) {
    const inner = (marks) => (marks.length ? [moved(marks, [dx, dy])] : []);
    const shifted = ([x, y, width, height]) => [x + dx, y + dy, width, height];
    return new Scene({
      ...this,
      marks: inner(this.marks),
      focus: (target) => inner(this.focus(target)),
      places: this.places.map((place) => ({
        ...place,
        rect: shifted(place.rect),
        grid: { ...place.grid, x: place.grid.x + dx, y: place.grid.y + dy },
      })),
    });
  }

  // --- in a file --------------------------------------------------------------------------------------------------

  svg(theme, title) {
    const name = `g${Math.random().toString(36).slice(2, 8)}`; // several pictures may end up in one document
    this.file = { name, definitions: [] };
    const [width, height] = this.size.map(short);
    const drawn = this.elements(theme, this.marks).join("\n");
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="${escapeXml(theme.font)}, sans-serif" style="white-space:pre">
<title>${escapeXml(title)}</title>
<defs>${hatchElement(theme, name)}${this.file.definitions.join("")}</defs>
${drawn}
</svg>
`;
  }

  elements(theme, marks) {
    const done = [];
    let last = null;
    for (const mark of marks) {
      const shape = mark.curve ? curvePath(mark) : mark.rect && !mark.image ? rectPath(mark) : mark.path;
      const look = shape && this.look(mark);
      // Shapes that look the same and follow each other are one, as long as they hide what is below.
      if (shape && look === last?.look && !look.includes("opacity")) last.paths.push(shape);
      else if (shape) done.push((last = { look, paths: [shape] }));
      else done.push((last = { markup: this.element(theme, mark) }));
    }
    return done.map(({ markup, look, paths }) => markup ?? `<path ${look} d="${paths.join("")}"/>`);
  }

  element(theme, mark) {
    if (mark.image) return imageElement(mark);
    if (mark.text !== undefined) return textElement(theme, mark);
    const { shift, turn, clip } = mark;
    const moves = [
      shift && `translate(${shift.map(short).join(" ")})`,
      turn && `rotate(${short((turn * 180) / Math.PI)})`,
    ];
    const inner = this.elements(theme, mark.marks).join("\n");
    const [x, y, width, height] = clip?.map(short) ?? [];
    const place = clip && `x="${x}" y="${y}" width="${width}" height="${height}"`;
    const shown = clip ? `<svg ${place} viewBox="${x} ${y} ${width} ${height}">${inner}</svg>` : inner;
    return `<g transform="${moves.filter(Boolean).join(" ")}">${shown}</g>`;
  }

  look({ rect, fill, stroke, thick = 1, cap, dash, alpha }) {
    const line = stroke && ` ${inked("stroke", stroke)} stroke-width="${short(thick)}"`;
    const more = [
      line,
      cap && ` stroke-linecap="${cap}"`,
      dash?.length && ` stroke-dasharray="${dash.join(" ")}"`,
      alpha < 1 && ` opacity="${short(alpha)}"`,
    ];
    return `${inked("fill", this.fillOf(fill, rect))}${more.filter(Boolean).join("")}`;
  }

  fillOf(fill = "none", rect) {
    const { name, definitions } = this.file;
    if (fill === "hatch") return `url(#${name}-hatch)`;
    if (!fill.across) return fill;
    const id = `${name}-${definitions.length}`;
    const stops = fill.across.map(
      (css, k, { length }) => `<stop offset="${short(k / (length - 1))}" stop-color="${css}"/>`,
    );
    const ends = `x1="${short(rect[0])}" x2="${short(rect[0] + rect[2])}"`;
    definitions.push(
      `<linearGradient id="${id}" gradientUnits="userSpaceOnUse" ${ends}>${stops.join("")}</linearGradient>`,
    );
    return `url(#${id})`;
  }

  // --- what can be pointed at -------------------------------------------------------------------------------------

  // The topmost place there.
  hit(x, y) {
    return this.places.reduceRight((found, place) => found ?? targetAt(place, x, y), null);
  }

  // Where a target is: [x, y, width, height].
  box(target) {
    const place = this.placeOf(target);
    if (!place?.grid) return place?.box?.(target) ?? place?.rect ?? null;
    const { rect, grid } = place;
    const { row, column } = target;
    return [
      column === undefined ? rect[0] : grid.x + column * grid.stepX,
      row === undefined ? rect[1] : grid.y + row * grid.stepY,
      column === undefined ? rect[2] : grid.stepX,
      row === undefined ? rect[3] : grid.stepY,
    ];
  }

  placeOf(target) {
    const has = (count, index) => (count ?? 0) > (index ?? -1) && (count === undefined) === (index === undefined);
    return this.places.find(({ grid, of, target: own }) => {
      if (!grid) return sameTarget(own, target);
      const same = Object.entries(of ?? {}).every(([name, value]) => target[name] === value);
      return same && has(grid.rows, target.row) && has(grid.columns, target.column);
    });
  }

  // For tests: where things are.
  geometry() {
    const [first] = this.places;
    if (first?.grid) return first.grid;
    return { places: this.places.filter(({ target }) => target).map(({ rect, target }) => ({ ...target, rect })) };
  }

  // By an arrow, Home, End, Page up or Page down: in a grid by its rows and columns, else to what is nearest there.
  step(target, key) {
    const grid = this.places.find((place) => place.grid?.rows && place.grid.columns)?.grid;
    if (grid) return stepInGrid(target, key, grid);
    if (this.sequence) return this.stepInSequence(target, key);
    if (key === "Home") return this.places[0].target;
    if (key === "End") return this.places.at(-1).target;
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [0, 0];
    const middle = ([x, y, width, height]) => [x + width / 2, y + height / 2];
    const [x, y] = middle(this.box(target));
    let best = { far: Infinity, target };
    for (const { rect, target: other } of this.places) {
      const [across, down] = [middle(rect)[0] - x, middle(rect)[1] - y];
      const ahead = across * dx + down * dy;
      const far = ahead + 3 * Math.abs(across * dy + down * dx);
      if (ahead > 0.5 && far < best.far) best = { far, target: other };
    }
    return best.target;
  }

  // One after the other; Page down goes to where the next of its parts begins.
  stepInSequence(target, key) {
    const last = this.places.length - 1;
    const at = this.places.findIndex((place) => sameTarget(place.target, target));
    const part = this.sequence.find((from) => from > at) ?? last;
    const to = { ArrowUp: at - 1, ArrowLeft: at - 1, ArrowDown: at + 1, ArrowRight: at + 1, End: last, PageDown: part };
    return this.places[Math.min(last, Math.max(0, to[key] ?? 0))].target;
  }
}

function targetAt({ rect, grid, target, lean, of, at: find }, x, y) {
  const [left, top, width, height] = rect;
  if (lean) x -= (top + height - y) / Math.tan(lean);
  if (x < left || x >= left + width || y < top || y >= top + height) return null;
  if (find) return find(x, y);
  const at = (count, from, step, value) => (count === undefined ? undefined : Math.floor((value - from) / step));
  const [row, column] = grid ? [at(grid.rows, grid.y, grid.stepY, y), at(grid.columns, grid.x, grid.stepX, x)] : [];
  if (row >= grid?.rows || column >= grid?.columns) return null;
  return grid ? { ...of, ...(row !== undefined && { row }), ...(column !== undefined && { column }) } : target;
}

function stepInGrid({ row = 0, column = 0 }, key, { rows, columns }) {
  const inside = (value, size) => Math.min(size - 1, Math.max(0, value));
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const far = { Home: [0, -columns], End: [0, columns], PageUp: [-rows, 0], PageDown: [rows, 0] };
  const [down, across] = steps[key] ?? far[key];
  return { row: inside(row + down, rows), column: inside(column + across, columns) };
}

// Many programs know no colour with an alpha.
function inked(name, css) {
  const [, solid, alpha] = css.match(/^rgba\((.+),([\d.]+)\)$/) ?? [];
  return alpha === undefined ? `${name}="${css}"` : `${name}="rgb(${solid})" ${name}-opacity="${alpha}"`;
}

const curvePath = ({ curve: [x, y, ...others] }) => `M${short(x)} ${short(y)}C${others.map(short).join(" ")}`;

function rectPath({ rect: [x, y, width, height], round = 0 }) {
  const r = Math.min(round, width / 2, height / 2);
  if (!r) return `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  const corner = (dx, dy) => `a${short(r)} ${short(r)} 0 0 1 ${short(dx)} ${short(dy)}`;
  const [across, down] = [short(width - 2 * r), short(height - 2 * r)];
  return `M${short(x + r)} ${short(y)}h${across}${corner(r, r)}v${down}${corner(-r, r)}h${-across}${corner(-r, -r)}v${-down}${corner(r, -r)}z`;
}

// The line on which letters stand, as many programs know no other.
function textElement(theme, mark) {
  const pen = penOf(theme, mark.size, mark.weight);
  const rise = (baseline) => ((pen.textBaseline = baseline), pen.measureText("x").actualBoundingBoxAscent);
  const y = short(mark.at[1] + rise("alphabetic") - rise("middle"));
  const look = `font-size="${short(mark.size)}"${mark.weight ? ` font-weight="${mark.weight}"` : ""}`;
  return runsOf(theme, mark)
    .map(({ text, x, align, fill }) => {
      const anchor = { left: "", center: ' text-anchor="middle"', right: ' text-anchor="end"' }[align];
      return `<text x="${short(x)}" y="${y}" ${look}${anchor} ${inked("fill", fill)}>${escapeXml(text)}</text>`;
    })
    .join("");
}

// Enlarged, so that it survives programs that blur what they scale.
function imageElement({ image, rect }) {
  const times = Math.max(1, Math.min(8, Math.floor(512 / Math.max(image.width, image.height))));
  const paper = Object.assign(document.createElement("canvas"), {
    width: image.width * times,
    height: image.height * times,
  });
  const pen = paper.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image, 0, 0, paper.width, paper.height);
  const [x, y, width, height] = rect.map(short);
  return `<image x="${x}" y="${y}" width="${width}" height="${height}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${paper.toDataURL()}"/>`;
}

function hatchElement({ size, hatchGround, hatchLine }, name) {
  const step = Math.round(size * 0.36);
  const d = [-step, 0, step].map((shift) => `M${shift - 1} ${step + 1}L${shift + step + 1} -1`).join("");
  return `<pattern id="${name}-hatch" width="${step}" height="${step}" patternUnits="userSpaceOnUse"><rect width="${step}" height="${step}" fill="rgb(${hatchGround})"/><path d="${d}" stroke="rgb(${hatchLine})"/></pattern>`;
}
