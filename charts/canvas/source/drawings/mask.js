// A head's attention weights with a mask that is painted on: press a cell and draw; all cells under the way become the
// opposite of what the first one was. The picture changes at once; Python hears of it when the stroke ends.

import { say } from "../toolkit/words.js";
import { labelOf } from "./describe.js";
import { MapDrawing } from "./map.js";

export class MaskDrawing extends MapDrawing {
  constructor(payload, previous) {
    super(payload, previous);
    // A copy: strokes change it before Python answers.
    this.matrix.bits = this.matrix.bits.slice();
    this.own = payload.arrays.own?.values;
    this.label = labelOf(
      `${this.metadata.title}, ${say("mask editor")}`,
      this.metadata,
      say("Move with the arrow keys, allow or block with the space bar."),
    );
    this.help = say("mask editor");
  }

  index(row, column) {
    return row * this.matrix.columns + column;
  }

  isOn(row, column) {
    return this.matrix.allowed(row, column);
  }

  set(row, column, on) {
    this.setBit(this.matrix.bits, row, column, on);
  }

  setBit(bits, row, column, on) {
    const index = this.index(row, column);
    if (on) bits[index >> 3] |= 1 << (index & 7);
    else bits[index >> 3] &= ~(1 << (index & 7));
  }

  changed(row, column) {
    const index = this.index(row, column);
    return this.matrix.allowed(row, column) !== (((this.own[index >> 3] >> (index & 7)) & 1) === 1);
  }

  paintBase(context, theme, ratio) {
    super.paintBase(context, theme, ratio);
    this.paintOver(context, theme, ratio);
  }

  paintOver(context, theme, ratio) {
    if (Math.min(this.map.stepX, this.map.stepY) < 7) return;
    const { top, bottom, left, right } = this.map.visible();
    this.map.clipped(context, () => {
      for (let row = top; row <= bottom; row++)
        for (let column = left; column <= right; column++)
          if (this.changed(row, column))
            this.map.outline(context, theme, this.map.cellBox(row, column, ratio), theme.chosen, 2);
    });
  }

  // --- a stroke: { allowed, cells: Map of "row,column" -> [row, column, what it was], last } -----------------------

  begin(target) {
    if (target?.row === undefined || target.column === undefined) return null;
    const stroke = { allowed: !this.isOn(target.row, target.column), cells: new Map(), last: target };
    this.paintCell(stroke, target.row, target.column);
    return stroke;
  }

  paintCell(stroke, row, column) {
    const key = `${row},${column}`;
    if (stroke.cells.has(key)) return;
    stroke.cells.set(key, [row, column, this.isOn(row, column)]);
    this.set(row, column, stroke.allowed);
  }

  // A fast mouse skips cells: all on the straight line from the last one are painted.
  goOn(stroke, target) {
    if (target?.row === undefined || target.column === undefined) return stroke;
    const [rows, columns] = [target.row - stroke.last.row, target.column - stroke.last.column];
    const steps = Math.max(Math.abs(rows), Math.abs(columns));
    for (let step = 1; step <= steps; step++)
      this.paintCell(
        stroke,
        stroke.last.row + Math.round((rows * step) / steps),
        stroke.last.column + Math.round((columns * step) / steps),
      );
    return { ...stroke, last: target };
  }

  takeBack(stroke) {
    for (const [row, column, was] of stroke.cells.values()) this.set(row, column, was);
  }

  strokeValue(stroke) {
    return { cells: [...stroke.cells.values()].flatMap(([row, column]) => [row, column]), allowed: stroke.allowed };
  }

  // In a page of its own nobody answers a stroke: it has changed the mask already.
  choose() {}

  click({ row, column }) {
    if (row === undefined || column === undefined) return null;
    return { event: "edit", value: { cells: [row, column], allowed: !this.isOn(row, column) } };
  }
}
