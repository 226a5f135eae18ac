// A head's attention weights with a pattern that is painted on: cells outside of it step back, those inside are framed.

import { cssOf } from "../toolkit/colour.js";
import { say } from "../toolkit/words.js";
import { labelOf } from "./describe.js";
import { MaskDrawing } from "./mask.js";

export class PatternDrawing extends MaskDrawing {
  constructor(payload, previous) {
    super(payload, previous);
    this.painted = payload.arrays.painted.values.slice();
    this.label = labelOf(
      `${this.metadata.title}, ${say("pattern editor")}`,
      this.metadata,
      say("Move with the arrow keys, paint or erase with the space bar."),
    );
    this.help = say("pattern editor");
  }

  isOn(row, column) {
    const index = this.index(row, column);
    return ((this.painted[index >> 3] >> (index & 7)) & 1) === 1;
  }

  // What the model's mask forbids cannot be painted.
  set(row, column, on) {
    if (this.matrix.allowed(row, column)) this.setBit(this.painted, row, column, on);
  }

  changed(row, column) {
    return this.isOn(row, column);
  }

  paintOver(context, theme, ratio) {
    const { top, bottom, left, right } = this.map.visible();
    this.map.clipped(context, () => {
      context.fillStyle = cssOf(theme.ground, 0.6);
      for (let row = top; row <= bottom; row++)
        for (let column = left; column <= right; column++)
          if (!this.isOn(row, column)) context.fillRect(...this.map.cellBox(row, column, ratio));
    });
    super.paintOver(context, theme, ratio);
  }

  describe(target) {
    const lines = super.describe(target);
    if (target.row === undefined || target.column === undefined || !this.isOn(target.row, target.column)) return lines;
    return [...lines, { parts: [say("in the pattern")], muted: true }];
  }
}
