// What the drawings need of a browser, for node: letters that are all alike, and images that nobody sees.

import { readFileSync, readdirSync } from "node:fs";

const categorical = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#8a8d93"];
const [sequential, diverging] = [
  ["#000000", "#ffffff"],
  ["#0000ff", "#ffffff", "#ff0000"],
];
globalThis.COLOURS = { sequential, diverging, diverging_on_dark: diverging, print: sequential, categorical };

const pen = () => ({
  font: "400 16px sans-serif",
  measureText(text) {
    const size = Number(this.font.match(/([\d.]+)px/)[1]);
    return {
      width: 0.5 * size * [...text].length,
      actualBoundingBoxAscent: this.textBaseline === "middle" ? 0 : 0.25 * size,
    };
  },
  createImageData: (width, height) => ({ data: new Uint8ClampedArray(4 * width * height) }),
  putImageData() {},
  drawImage() {},
});
globalThis.cancelAnimationFrame = () => {};
globalThis.document = { createElement: () => ({ getContext: pen, toDataURL: () => "data:," }), addEventListener() {} };

const { SCALES } = await import("../../charts/canvas/source/toolkit/colour.js");
const { decodePayload } = await import("../../charts/canvas/source/toolkit/payload.js");
const { KINDS } = await import("../../charts/canvas/source/drawings/kinds.js");

const SHADES = { ground: [255, 255, 255], ink: [0, 0, 0], muted: [90, 90, 90], faint: [220, 220, 220] };
const HIGHLIGHTS = {
  primary: [0, 90, 160],
  chosen: [213, 94, 0],
  hatchGround: [240, 240, 240],
  hatchLine: [200, 200, 200],
};
const LETTERS = { dark: false, size: 16, font: "sans-serif", ratio: 2, loaded: 0, room: null };
export const theme = { ...SHADES, ...HIGHLIGHTS, ...LETTERS, heads: categorical, ...SCALES, stripes: SCALES.diverging };

const FOLDER = new URL("payloads/", import.meta.url);
export const names = readdirSync(FOLDER).map((file) => file.replace(".glas", ""));

// A drawing of a recorded payload, with other metadata where `more` says so; what is told to Python is in `told`.
export async function drawing(name, more = {}) {
  const payload = await decodePayload(new Uint8Array(readFileSync(new URL(`${name}.glas`, FOLDER))));
  Object.assign(payload.metadata, more);
  const told = [];
  const panel = { told, theme, live: {}, aborter: new AbortController(), repaint() {}, changed() {} };
  panel.trigger = (event, value) => told.push([event, value]);
  const kind = KINDS[payload.metadata.kind];
  const data = kind.read(payload, null, panel);
  const scene = (width = 800, look = {}) => kind.scene(data, { ...theme, ...look }, width, { zoom: 1, x: 0, y: 0 });
  return { kind, data, scene, told };
}
