// A head's attention weights with a mask that is painted on: press a cell and draw; all cells under the way become the
// opposite of what the first one was. The picture changes at once; Python hears of it when the stroke ends.

import { say } from "../toolkit/words.js";
import { Matrix } from "../toolkit/matrix.js";
import * as map from "./map.js";
import { outline } from "../scene/parts.js";

export * from "./map.js";

export function read(payload) {
  const data = map.read(payload);
  data.matrix.bits = data.matrix.bits.slice(); // strokes change it before Python answers
  return { ...data, own: payload.arrays.own.values };
}

export const help = () => say("mask editor");
export const labelOf = (data) =>
  map.labelOf(
    data,
    `${data.metadata.title}, ${say("mask editor")}`,
    say("Move with the arrow keys, allow or block with the space bar."),
  );

// Cells that differ from the model's own mask are framed.
export function scene(data, theme, width, view) {
  const drawn = map.scene(data, theme, width, view);
  const { rows, columns } = data.matrix;
  const marks = [];
  for (let row = 0, at = 0; row < rows; row++)
    for (let column = 0; column < columns; column++, at++)
      if (data.matrix.allowed(row, column) !== (((data.own[at >> 3] >> (at & 7)) & 1) === 1))
        marks.push(...outline(theme, drawn.cellBox(row, column), theme.chosen, 2));
  if (Math.min(...drawn.cell) * drawn.view.zoom >= 7) drawn.marks.push({ marks, clip: drawn.window });
  return drawn;
}

// --- a stroke: what every cell under it becomes ---------------------------------------------------------------------

export const isOn = ({ matrix }, { row, column }) => matrix.allowed(row, column);

export function set(data, { row, column }, on) {
  const matrix = (data.matrix = new Matrix(data.matrix)); // another one: its image is another, too
  const at = row * matrix.columns + column;
  if (on) matrix.bits[at >> 3] |= 1 << (at & 7);
  else matrix.bits[at >> 3] &= ~(1 << (at & 7));
}

export const strokeEvent = (cells, allowed) => ({
  event: "edit",
  value: { cells: cells.flatMap(({ row, column }) => [row, column]), allowed },
});

export function click(data, { row, column }) {
  return row === undefined || column === undefined
    ? null
    : strokeEvent([{ row, column }], !isOn(data, { row, column }));
}

// In a page of its own nobody answers a stroke: it has changed the mask already.
export function choose() {}
