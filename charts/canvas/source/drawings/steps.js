// A text being written: what is under the pointer, and what is said about it.

import { exactly, shortest, shortNumber, threeDigits } from "../toolkit/numbers.js";
import { quoted } from "../toolkit/sentences.js";
import { say } from "../toolkit/words.js";
import { StepsPicture } from "./steps_picture.js";

export class StepsDrawing extends StepsPicture {
  box({ row, column }) {
    if (row !== undefined)
      return [
        this.bars.x - this.nameRoom + 1,
        this.bars.y + row * this.row,
        this.bars.width + this.nameRoom - 1,
        this.row,
      ];
    const { x, y, stepX, height } = this.columns;
    return [x + column * stepX, y, stepX, height];
  }

  hit(x, y) {
    const row = Math.floor((y - this.bars.y) / this.row);
    if (x < this.bars.x + this.bars.width + 4 && row >= 0 && row < this.rows().length) return { row };
    const { columns } = this;
    const column = Math.floor((x - columns.x) / columns.stepX);
    return column >= 0 && this.holds({ column }) && y >= columns.y && y < columns.all.y + columns.all.height
      ? { column }
      : null;
  }

  first() {
    return { row: 0 };
  }

  holds({ row, column }) {
    return row !== undefined ? row < this.rows().length : column < this.metadata.counts[this.walk.step];
  }

  // Candidates and columns one after the other.
  step({ row, column }, key) {
    const rows = this.rows().length;
    const end = rows + this.metadata.counts[this.walk.step] - 1;
    const at = row ?? rows + column;
    const moves = {
      ArrowUp: at - 1,
      ArrowLeft: at - 1,
      ArrowDown: at + 1,
      ArrowRight: at + 1,
      Home: 0,
      End: end,
      PageUp: 0,
      PageDown: rows,
    };
    const to = Math.min(end, Math.max(0, moves[key]));
    return to < rows ? { row: to } : { column: to - rows };
  }

  anchor(target) {
    const [x, y, width, height] = this.box(target);
    return target.row !== undefined ? [x + width * 0.7, y + height / 2] : [x + width / 2, y + height / 2];
  }

  describe({ row, column }) {
    if (row !== undefined) {
      const { name, value, chosen, others } = this.rows()[row];
      const state = chosen ? ` · ${this.nameOfChosen()}` : "";
      return [
        { parts: [...(others ? [name] : quoted(name)), `${say(": ")}${threeDigits(value)}`] },
        { parts: [`${say("exactly")} ${exactly(value)}${state}`], muted: true },
      ];
    }
    const { name, value, masked } = this.keys()[column];
    const pair = [
      say("predicting "),
      ...quoted(this.metadata.tokens[this.walk.step].text),
      say(" looks at "),
      ...quoted(name),
    ];
    if (masked)
      return [
        { parts: [...pair, `${say(": ")}${say("masked")}`] },
        { parts: [say("cannot be attended to")], muted: true },
      ];
    return [
      { parts: [...pair, `${say(": ")}${threeDigits(value)}`] },
      { parts: [`${shortNumber(value, 6, false)} · ${say("rounded to 1/65535")}`], muted: true },
    ];
  }

  click() {
    return null;
  }

  state() {
    return { begin: [this.metadata.begin[0], this.walk.step] };
  }

  tables() {
    const table = (caption, column, rows) => ({
      caption,
      columns: [column],
      rows: rows.map(({ name, value, masked }) => ({
        label: name,
        cells: [masked ? say("masked") : threeDigits(value)],
      })),
    });
    return [
      table(this.metadata.title, say("next-token probability"), this.rows()),
      table(this.metadata.of, say("attention weight"), this.keys()),
    ];
  }

  // Of all steps.
  records() {
    const rows = this.metadata.tokens.flatMap(({ text }, step) => [
      ...this.rows(step).map(({ name, value, chosen }, k) => [
        step,
        text,
        "probability",
        k,
        name,
        shortest(value),
        chosen ? "chosen" : "",
      ]),
      ...this.keys(step).map(({ name, value, masked }, k) => [
        step,
        text,
        "attention weight",
        k,
        name,
        masked ? "" : value.toFixed(6),
        masked ? "masked" : "",
      ]),
    ]);
    return [["step", "token", "what", "place", "label", "value", "note"], ...rows];
  }
}
