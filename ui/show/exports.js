// Saves a figure of Plotly or Altair as a picture, or as a vector picture for a printed column. Altair's pictures are made
// on the server: data.kind says which it is. charts/canvas/build.js bundles this file with what it imports.

import { paperForm } from "../../charts/canvas/source/frame/paper_form.js";
import { fileName, make, saveAs } from "../../charts/canvas/source/toolkit/elements.js";
import { PAPER_FONT, PER_MILLIMETRE, PER_POINT } from "../../charts/canvas/source/toolkit/paper.js";
import { say, useWords } from "../../charts/canvas/source/toolkit/words.js";

const CAMERA = '.modebar-btn[data-title^="Download plot"]';
const built = new WeakMap();

export default function ({ parentElement, data, setTriggerValue }) {
  useWords(data.words);
  const wanted = JSON.stringify([data.title, data.words]);
  if (built.get(parentElement) === wanted) return; // keeps what is being typed
  built.set(parentElement, wanted);
  const button = (text, explanation, action) => {
    const made = make("button", {
      type: "button",
      textContent: say(text),
      title: say(explanation),
      "aria-label": say(explanation),
    });
    made.addEventListener("click", action);
    return made;
  };
  const graph = () => document.querySelector(`.${CSS.escape(data.container)} .js-plotly-plot`);
  const save = (format) =>
    data.kind === "plotly" ? take(graph(), { format, filename: data.name }) : setTriggerValue("wish", { format });
  const print = (paper) =>
    data.kind === "plotly"
      ? savePaper(graph(), data.name, paper)
      : setTriggerValue("wish", { format: "paper", ...paper });
  const pictures = make(
    "div",
    { className: "pictures" },
    button("PNG", "Download this picture as PNG", () => save("png")),
    button("SVG", "Download this picture as SVG", () => save("svg")),
  );
  const stage = make("div", { className: "export" }, pictures, paperForm(data.title, button, print));
  // Letters typed here are not for the app's own keys.
  stage.addEventListener("keydown", (event) => event.stopPropagation());
  parentElement.querySelector(".export")?.remove();
  parentElement.append(stage);
}

// Plotly's own camera button does the work: it reads its options, the data and the layout at the moment of the click.
function take(graph, options) {
  const camera = graph?.querySelector(CAMERA);
  if (!camera) return;
  const known = graph._context.toImageButtonOptions;
  const before = { ...known };
  Object.assign(known, options);
  camera.click();
  for (const name of Object.keys(known)) delete known[name];
  Object.assign(known, before);
}

// The same figure on white, with black letters, laid out anew for a column; its size is then written in millimetres.
function savePaper(graph, name, { title, millimetres, points }) {
  if (!graph) return;
  const { layout, data } = graph;
  const width = millimetres * PER_MILLIMETRE;
  const paper = paperLayout(graph, title, width, points * PER_POINT);
  const mark = `paper ${Math.random()}`;
  catchFile(mark, (svg) => {
    const size = `width="${millimetres}mm" height="${((millimetres * paper.height) / width).toFixed(2)}mm"`;
    const sized = svg.replace(/<svg\b[^>]*>/, (head) =>
      head
        .replace(/ width="[^"]*"/, "")
        .replace(/ height="[^"]*"/, "")
        .replace("<svg", `<svg ${size}`),
    );
    saveAs(sized, "image/svg+xml", fileName(`${name} ${millimetres} mm`, "svg"));
  });
  try {
    graph.layout = paper.layout;
    graph.data = data.map((trace) => paperTrace(trace, paper.factor));
    take(graph, { format: "svg", filename: mark, width, height: paper.height, scale: 1 });
  } finally {
    Object.assign(graph, { layout, data });
  }
}

// Plotly gives its picture to a link and clicks it. The link that carries our mark is read instead, once.
function catchFile(mark, read) {
  const click = HTMLAnchorElement.prototype.click;
  const over = setTimeout(() => (HTMLAnchorElement.prototype.click = click), 30_000);
  HTMLAnchorElement.prototype.click = function () {
    if (!this.download.startsWith(mark)) return click.call(this);
    clearTimeout(over);
    HTMLAnchorElement.prototype.click = click;
    // At once: Plotly takes the address back right after the click.
    const request = new XMLHttpRequest();
    request.open("GET", this.href, false);
    request.send();
    read(request.responseText);
  };
}

function paperLayout(graph, title, width, size) {
  const factor = size / (graph.layout.font?.size ?? 14);
  const layout = inPrint(graph.layout, factor);
  const lines = wrapped(title, width - 4, `bold ${size}px ${PAPER_FONT}, sans-serif`);
  const above = lines.length * size * 1.3 + (lines.length ? size * 0.7 : 0);
  const margin = Object.fromEntries(
    Object.entries(graph.layout.margin ?? {}).map(([side, room]) => [side, room * factor]),
  );
  const height = Math.round((graph._fullLayout.height ?? 400) * factor + above);
  const escaped = lines.map((line) => line.replace(/[&<>$%]/g, (sign) => `&#${sign.charCodeAt(0)};`));
  const font = { family: `${PAPER_FONT}, sans-serif`, size, color: "#000" };
  return {
    factor,
    height,
    layout: {
      ...layout,
      paper_bgcolor: "#fff",
      plot_bgcolor: "#fff",
      font,
      updatemenus: [],
      sliders: [],
      autosize: false,
      margin: { ...margin, l: 2, r: Math.max(2, margin.r ?? 0), t: (margin.t ?? 0) + above },
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

const GREY = /^#7a7d85$/i; // style.NEUTRAL in charts: letters that must be readable on white and on black
const LENGTHS = ["yshift", "xshift", "ypad", "xpad", "ax", "ay", "standoff", "thickness"];

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
      node.size ? { size: node.size * factor } : {},
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
  const scale = (part, key) => part && typeof part[key] === "number" && { ...part, [key]: part[key] * factor };
  if (trace.textfont) {
    const { size, color } = trace.textfont;
    copy.textfont = {
      ...trace.textfont,
      ...(typeof size === "number" ? { size: size * factor } : {}),
      ...(typeof color === "string" && GREY.test(color) ? { color: "#000" } : {}),
    };
  }
  if (trace.line) copy.line = scale(trace.line, "width") || trace.line;
  if (trace.marker) {
    copy.marker = scale(trace.marker, "size") || { ...trace.marker };
    if (trace.marker.colorbar) copy.marker.colorbar = inPrint(trace.marker.colorbar, factor);
  }
  if (trace.colorbar) copy.colorbar = inPrint(trace.colorbar, factor);
  return copy;
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
