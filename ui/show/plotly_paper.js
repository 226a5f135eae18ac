// A figure of Plotly for a printed column: on white, with black letters, laid out anew until no label is cut off and none lies
// on another.

import { PAPER_FONT, PER_POINT } from "../../charts/canvas/source/toolkit/paper.js";
import { picture } from "./plotly_picture.js";
import { turned } from "./plotly_turned.js";

const GREY = /^#7a7d85$/i; // style.NEUTRAL in charts: letters that must be readable on white and on black
const LENGTHS = ["yshift", "xshift", "ypad", "xpad", "ax", "ay", "standoff", "thickness"];
const SMALLEST = 6; // points: what a printed page can carry
const USUAL = 14; // style.TEXT_SIZE

// -> { svg, height, clashes }: the first way without labels on each other, with smaller letters or turned where that helps
export async function paperPicture(graph, { title, width, points, scales }) {
  const shown = figureOf(graph, scales);
  const sizes = [points, points - 1, points - 2, SMALLEST].filter(
    (size, i, all) => size >= SMALLEST && all.indexOf(size) === i,
  );
  let best = null;
  for (const size of sizes)
    for (const figure of shown.layout.meta?.turns ? [shown, turned(shown)] : [shown]) {
      const made = await fitted(graph, figure, { title, width, size: size * PER_POINT });
      if (!best || made.clashes < best.clashes) best = made;
      if (!best.clashes) return best;
    }
  return best;
}

// What the reader is at is no part of a figure; nor are the page's own buttons.
export function withoutMarks(layout) {
  const others = (parts) => parts?.filter(({ name }) => name !== "focus");
  return { ...layout, shapes: others(layout.shapes), annotations: others(layout.annotations) };
}

function figureOf(graph, scales) {
  const all = graph.data.map((trace, i) => withNumbers(trace, graph._fullData[i]));
  return {
    layout: { ...withoutMarks(graph.layout), height: graph._fullLayout.height ?? 400 },
    data: all.map((trace) => inPrintColours(trace, all, scales)),
  };
}

// Python sends numbers as bytes, which Plotly has unpacked.
function withNumbers(trace, { x, y, z, marker }) {
  if (trace.type === "heatmap") return { ...trace, z };
  if (trace.mode === "text") return { ...trace, x, y };
  return trace.marker?.colorscale ? { ...trace, marker: { ...trace.marker, color: marker.color } } : trace;
}

// A first picture says what is cut off; the second has room for it.
async function fitted(graph, figure, { title, width, size }) {
  const factor = size / (graph.layout.font?.size ?? USUAL);
  const data = figure.data.map((trace) => paperTrace(trace, factor));
  let room = { top: 0, right: 0, bottom: 0 };
  let titles = {};
  let made;
  for (let again = 0; again < 3; again++) {
    const { height, layout } = paperLayout(figure.layout, { title, width, size, factor, room, titles });
    const blob = await picture(graph, { format: "svg", width, height }, { data, layout });
    const svg = await blob.text();
    const found = measured(svg, width, height, size);
    const { more, clashes } = found;
    made = { svg, height, clashes };
    if (!Object.values(more).some((pixels) => pixels > 1) && !Object.keys(found.titles).length) break;
    titles = { ...titles, ...found.titles };
    room = Object.fromEntries(Object.entries(room).map(([side, pixels]) => [side, pixels + Math.max(0, more[side])]));
  }
  return made;
}

// The title of an axis that is too wide for the figure gets lines that fit around its middle.
function fits({ left, right }, width, name, titles) {
  const middle = (left + right) / 2;
  const room = 2 * Math.min(middle, width - middle) - 4;
  if (right - left > room) titles[name] = room;
  return right - left <= room;
}

// How much is cut off on each side, how many labels lie on another one, and how wide the titles of axes may be.
function measured(svg, width, height, size) {
  const place = document.createElement("div");
  Object.assign(place.style, { position: "fixed", left: "0", top: "0", visibility: "hidden", pointerEvents: "none" });
  place.append(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement);
  document.body.append(place);
  try {
    const origin = place.querySelector("svg").getBoundingClientRect();
    const boxOf = (node) => {
      const { left, right, top, bottom } = node.getBoundingClientRect();
      return {
        left: left - origin.left,
        right: right - origin.left,
        top: top - origin.top,
        bottom: bottom - origin.top,
      };
    };
    const head = [...place.querySelectorAll(".g-gtitle")].map(boxOf);
    const letters = [...place.querySelectorAll("text")].filter(
      (node) => node.textContent.trim() && !node.closest(".g-gtitle"),
    );
    const boxes = letters.map(boxOf);
    const [all, titles] = [letters.map((node) => node.classList[0] ?? ""), {}];
    const kept = boxes.filter((box, i) => !/^x\d*title$/.test(all[i]) || fits(box, width, all[i], titles));
    const lowest = Math.max(0, ...head.filter(({ bottom }) => bottom > 0).map(({ bottom }) => bottom + 0.5 * size));
    const upper = [...boxes, ...[...place.querySelectorAll(".legend, .colorbar")].map(boxOf)].map(({ top }) => top);
    const more = {
      top: lowest - Math.min(...upper),
      right: Math.min(0.3 * width, Math.max(...kept.map(({ right }) => right)) - width + 1),
      bottom: Math.max(...boxes.map(({ bottom }) => bottom)) - height + 1,
    };
    // The box around a slanted label says nothing about its letters.
    const upright = boxes.filter((_, i) => !slanted(letters[i]));
    const over = (a, b) =>
      Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
      Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.3 * size;
    const clashes = upright.filter((box, i) => upright.some((other, k) => k > i && over(box, other))).length;
    return { more, clashes, titles };
  } finally {
    place.remove();
  }
}

function slanted(node) {
  const { a, b } = node.getScreenCTM();
  return Math.abs(a * b) > 0.01 * (a * a + b * b);
}

function paperLayout(shown, { title, width, size, factor, room, titles }) {
  const layout = inPrint(shown, factor);
  const bold = `bold ${size}px ${PAPER_FONT}, sans-serif`;
  const lines = wrapped(title, width - 4, bold);
  const above = (lines.length ? lines.length * size * 1.3 + size * 0.7 : 0) + room.top;
  const { t = 0, r = 0, b = 0, ...margin } = scaled(shown.margin ?? {}, factor);
  const escaped = lines.map((line) => line.replace(/[&<>$%]/g, (sign) => `&#${sign.charCodeAt(0)};`));
  const font = { family: `${PAPER_FONT}, sans-serif`, size, color: "#000" };
  const height = Math.round(shown.height * factor + above + room.bottom);
  for (const axis of Object.keys(layout).filter((name) => name.startsWith("xaxis")))
    layout[axis] = withWrappedTitle(layout[axis], width, titles[axis.replace("axis", "") + "title"], size);
  return {
    height,
    layout: {
      ...layout,
      height,
      paper_bgcolor: "#fff",
      plot_bgcolor: "#fff",
      font,
      updatemenus: [],
      sliders: [],
      autosize: false,
      margin: { ...margin, l: 2, r: Math.max(2, r) + room.right, t: t + above, b: b + room.bottom },
      title: {
        text: escaped.map((line) => `<b>${line}</b>`).join("<br>"),
        font,
        x: 0,
        xref: "container",
        xanchor: "left",
        y: 1,
        yref: "container",
        yanchor: "top",
        pad: { t: 0.9 * size, l: 2 },
        automargin: false,
      },
    },
  };
}

// Plotly does not wrap the title of an axis, which may be wider than its panel.
function withWrappedTitle(axis, width, most = Infinity, size = 0) {
  const text = axis.title?.text;
  if (!text || text.includes("<br>")) return axis;
  const [from, to] = axis.domain ?? [0, 1];
  const lines = wrapped(text, Math.min(most, 0.9 * width * (to - from)), `${size}px ${PAPER_FONT}, sans-serif`);
  return { ...axis, title: { ...axis.title, text: lines.join("<br>") } };
}

const scaled = (lengths, factor) =>
  Object.fromEntries(Object.entries(lengths).map(([side, length]) => [side, length * factor]));

const letters = (size, factor) => Math.max(SMALLEST * PER_POINT, size * factor);

// Letters as large and black as the column's, room and shifts in proportion. Notes keep a colour that they have of their own:
// they may stand on something dark.
function inPrint(node, factor, name = "", note = false) {
  if (Array.isArray(node)) return node.map((child) => inPrint(child, factor, name, name === "annotations"));
  if (node === null || typeof node !== "object" || ArrayBuffer.isView(node)) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, child]) => [key, inPrint(child, factor, key, note)]));
  if (/font$/.test(name)) {
    const own = note && node.color && !GREY.test(node.color);
    Object.assign(
      copy,
      { family: `${PAPER_FONT}, sans-serif`, color: own ? node.color : "#000" },
      node.size ? { size: letters(node.size, factor) } : {},
    );
  }
  const lengths = [...LENGTHS, ...(node.lenmode === "pixels" ? ["len"] : []), ...(name === "line" ? ["width"] : [])];
  for (const key of lengths) if (typeof copy[key] === "number") copy[key] *= factor;
  // Only what is there: a colour for a line that was not drawn would draw it.
  for (const [key, colour] of Object.entries({ linecolor: "#000", gridcolor: "#ddd", zerolinecolor: "#999" }))
    if (key in copy) copy[key] = colour;
  return copy;
}

// Colours that stand for something stay; grey letters become black.
function paperTrace(trace, factor) {
  const copy = { ...trace };
  const times = (part, key) => part && typeof part[key] === "number" && { ...part, [key]: part[key] * factor };
  if (trace.textfont) {
    const { size, color } = trace.textfont;
    copy.textfont = {
      ...trace.textfont,
      ...(typeof size === "number" ? { size: letters(size, factor) } : {}),
      ...(typeof color === "string" && GREY.test(color) ? { color: "#000" } : {}),
    };
  }
  if (trace.line) copy.line = times(trace.line, "width") || trace.line;
  if (trace.marker) {
    copy.marker = times(trace.marker, "size") || { ...trace.marker };
    if (trace.marker.colorbar) copy.marker.colorbar = inPrint(trace.marker.colorbar, factor);
  }
  if (trace.colorbar) copy.colorbar = inPrint(trace.colorbar, factor);
  return copy;
}

// --- the light scale of a printed page ----------------------------------------------------------------------------

const hexes = (scale) =>
  scale
    ?.map?.(([, colour]) => colour)
    .join()
    .toLowerCase();

// scales: { sequential, print }, lists of colours
function inPrintScale(scale, { sequential, print }) {
  const said = hexes(scale);
  const steps = (colours) => colours.map((colour, i) => [i / (colours.length - 1), colour]);
  if (said === sequential.join().toLowerCase()) return steps(print);
  return said === [...sequential].reverse().join().toLowerCase() ? steps([...print].reverse()) : null;
}

// Words in cells are black or white, as the colour below them asks.
function inPrintColours(trace, all, scales) {
  const scale = inPrintScale(trace.colorscale, scales);
  if (scale) return { ...trace, colorscale: scale };
  const bars = inPrintScale(trace.marker?.colorscale, scales);
  if (bars) {
    const { cmin, cmax, color } = trace.marker;
    const inks = Array.from(color, (value) => inkOn((value - cmin) / (cmax - cmin), bars));
    return {
      ...trace,
      marker: { ...trace.marker, colorscale: bars },
      insidetextfont: { ...trace.insidetextfont, color: inks },
    };
  }
  if (trace.mode !== "text" || !Array.isArray(trace.textfont?.color)) return trace;
  const below = all.find(
    ({ type, xaxis, yaxis }) => type === "heatmap" && xaxis === trace.xaxis && yaxis === trace.yaxis,
  );
  const lighter = below && inPrintScale(below.colorscale, scales);
  if (!lighter) return trace;
  const share = (i) => (below.z[trace.y[i]]?.[trace.x[i]] - below.zmin) / (below.zmax - below.zmin);
  return {
    ...trace,
    textfont: { ...trace.textfont, color: trace.textfont.color.map((_, i) => inkOn(share(i), lighter)) },
  };
}

// As style.ink does: black where it has the greater contrast (WCAG 2).
function inkOn(share, scale) {
  const [, colour] = scale[Math.round(Math.min(1, Math.max(0, share || 0)) * (scale.length - 1))];
  const linear = [1, 3, 5].map((at) => {
    const channel = parseInt(colour.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179 ? "#000000" : "#FFFFFF";
}

// Plotly does not wrap a title by itself.
function wrapped(text, width, font) {
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = font;
  const lines = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length && ruler.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
