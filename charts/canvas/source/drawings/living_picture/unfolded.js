// One sub-layer, unfolded in the place of the picture: how its rows are painted and read.

import { curveBumpY, link } from "d3-shape";
import { brightness, cssOf } from "../../toolkit/colour.js";
import { hatch } from "../../toolkit/hatch.js";
import { decimals, exactly, threeDigits } from "../../toolkit/numbers.js";
import { quoted } from "../../toolkit/sentences.js";
import { drawText, fontOf, shorten } from "../../toolkit/text.js";
import { colourOf } from "../../toolkit/theme.js";
import { say } from "../../toolkit/words.js";
import { rowsOf } from "./unfolded_rows.js";

const HEIGHTS = { strip: 0.95, cell: 1.35, gap: 0.42, lines: 1.5 };
const LETTERS = [0.74, 0.66, 0.6]; // heights of a number in its cell, the best first

export class Unfolded {
  constructor(drawing) {
    this.drawing = drawing;
    this.rows = rowsOf(drawing);
  }

  // Where the colours of vectors end, if not where those of the whole stack do.
  get limit() {
    const { unfolded, model } = this.drawing;
    return unfolded.part === "embedding" ? model.stack(unfolded.stack).inputLimit : null;
  }

  // From the chips up; what is too much for the height is made lower.
  layOut() {
    const { lay, now } = this.drawing;
    const { size } = lay;
    const tall = (row) => (row.tall ?? (row.cells[0]?.values ? HEIGHTS.strip : HEIGHTS.cell)) * size;
    const gap = (row) => (HEIGHTS.gap + (row.lines ? HEIGHTS.lines : 0)) * size;
    const bottom = now[this.drawing.unfolded.stack].chips.top - 0.3 * size;
    const whole = this.rows.reduce((sum, row) => sum + tall(row) + gap(row), 0);
    const above = this.rows.some(({ name }) => name === "units") ? 6.2 : 1.2;
    const shrink = Math.min(1.35, (bottom - above * size) / whole);
    let y = bottom;
    for (const row of this.rows) {
      y -= gap(row) * shrink;
      Object.assign(row, { bottom: y, top: y - tall(row) * shrink });
      y = row.top;
    }
  }

  box(row, cell) {
    const { lay } = this.drawing;
    const lane = lay.places[cell.stack].lanes[cell.position];
    const width = cell.values || cell.units ? lay.ribbon : lane.width - Math.min(3, lane.width * 0.06);
    return [lane.x - width / 2, row.top, width, row.bottom - row.top];
  }

  paint(pen, theme) {
    this.layOut();
    const { drawing } = this;
    const { unfolded } = drawing;
    const place = drawing.lay.places[unfolded.stack];
    const query = drawing.queryIn(drawing.model.stack(unfolded.stack));
    this.paintUnitNumbers(pen, theme, query);
    for (const row of this.rows) {
      if (row.lines) this.paintLines(pen, theme, row);
      const written = row.scale ? this.numbersOf(pen, theme, row) : null;
      row.written = [];
      for (const cell of row.cells) this.paintCell(pen, theme, row, cell, query, written);
      if (!written) this.paintNumberOfStrongest(pen, theme, row);
      pen.font = fontOf(theme, 0.8, row.name === "weight" ? 600 : 400);
      const [left, room] = this.labelRoom(row, place);
      row.shown = shorten(pen, row.label, room);
      drawText(pen, row.shown, left, (row.top + row.bottom) / 2, {
        colour: cssOf(row.name === "weight" ? theme.primary : theme.muted),
      });
    }
  }

  // Where the name of a row begins, and how long it may be: beside the stack or, on a phone, behind its last cell.
  labelRoom(row, place) {
    const { lay, unfolded } = this.drawing;
    if (lay.narrow) {
      const end = Math.max(...row.cells.map((cell) => this.box(row, cell)).map(([x, , width]) => x + width));
      return [end + 0.4 * lay.size, lay.width - end - 0.4 * lay.size];
    }
    const atKeys = row.cells.length && row.cells[0].stack !== unfolded.stack && row.name !== "x";
    const { right, gutter } = atKeys ? lay.places[row.cells[0].stack] : place;
    return [right + 0.5 * lay.size, gutter - 0.3 * lay.size];
  }

  // How the numbers of a row are written, all alike: { letters, text(value) }; null if its lanes are too narrow for all of them.
  numbersOf(pen, theme, row) {
    const fits = ({ letters, text }) => {
      pen.font = fontOf(theme, letters);
      return row.cells.every(
        (cell) => cell.hatched || pen.measureText(text(cell.value)).width <= this.box(row, cell)[2] - 1,
      );
    };
    const forms = WRITINGS.flatMap((write) =>
      LETTERS.map((letters) => ({ letters, text: (value) => write(row, value) })),
    );
    return forms.find(fits) ?? null;
  }

  // The numbers of the strongest units of the followed token, above the picture.
  paintUnitNumbers(pen, theme, query) {
    const row = this.rows.find(({ name }) => name === "units");
    const cell = row?.cells.find(({ position }) => position === query);
    if (!cell) return;
    const { size } = theme;
    const column = 12.5 * size;
    const across = Math.max(1, Math.min(4, Math.floor(this.drawing.lay.width / column)));
    const down = Math.ceil(cell.units.length / across);
    const kept = cell.units.every(({ before, after }) => before === after); // ReLU keeps what is above 0
    const token = this.drawing.model.stack(cell.stack).tokens[cell.position].label;
    const title = kept
      ? say("The strongest units for {token}", { token })
      : say("The strongest units for {token}: before → after the activation function", { token });
    pen.font = fontOf(theme, 0.8);
    drawText(pen, shorten(pen, title, this.drawing.lay.width - 8), 4, 0.6 * size, { colour: cssOf(theme.muted) });
    cell.units.forEach(({ unit, before, after }, k) => {
      const [x, y] = [4 + Math.floor(k / down) * column, (1.8 + (k % down) * 1.2) * size];
      if (y > this.rows[this.rows.length - 1].top - size) return;
      const number = say("unit {unit}", { unit });
      drawText(pen, number, x, y, { colour: cssOf(theme.muted) });
      const value = kept ? threeDigits(after) : `${threeDigits(before)} → ${threeDigits(after)}`;
      drawText(pen, value, x + 4.6 * size, y, { colour: cssOf(theme.ink) });
    });
  }

  paintCell(pen, theme, row, cell, query, written) {
    const [x, y, width, height] = this.box(row, cell);
    const faded =
      cell.stack === this.drawing.unfolded.stack &&
      cell.position !== query &&
      row.cells.length > 1 &&
      (row.name === "after" || row.name === "update" || row.name === "units");
    pen.globalAlpha = faded ? 0.45 : 1;
    if (cell.units) this.paintUnits(pen, theme, row, cell, [x, y, width, height]);
    else if (cell.values) {
      const colour = colourOf(theme, "stripes", row.limit);
      const each = width / cell.values.length;
      cell.values.forEach((value, k) => {
        pen.fillStyle = cssOf(Number.isFinite(value) ? colour(value) : theme.muted);
        pen.fillRect(x + k * each, y, each + 0.3, height);
      });
    } else if (cell.hatched) {
      pen.fillStyle = hatch(pen, theme, 1);
      pen.fillRect(x, y, width, height);
    } else {
      const colour = Number.isFinite(cell.value) ? colourOf(theme, row.scale, row.limit)(cell.value) : theme.muted;
      pen.fillStyle = cssOf(colour);
      pen.fillRect(x, y, width, height);
      if (written && height > 0.8 * theme.size) {
        pen.font = fontOf(theme, written.letters);
        const text = written.text(cell.value);
        row.written.push(text);
        drawText(pen, text, x + width / 2, y + height / 2 + 0.5, {
          align: "center",
          colour: brightness(colour) > 0.35 ? "rgb(20,20,20)" : "rgb(255,255,255)",
        });
      }
    }
    pen.globalAlpha = 1;
  }

  // Where lanes are too narrow for numbers: that of the key with the largest weight, on a label of its own.
  paintNumberOfStrongest(pen, theme, row) {
    const weights = this.rows.find(({ name }) => name === "weight")?.cells;
    if (!weights || !row.scale || row.cells.length !== weights.length) return;
    const best = weights.reduce((one, { value }, k) => (value > weights[one].value ? k : one), 0);
    const cell = row.cells[best];
    const [x, y, width, height] = this.box(row, cell);
    if (height <= 0.8 * theme.size) return;
    pen.font = fontOf(theme, 0.74, 600);
    const text = threeDigits(cell.value);
    const wide = pen.measureText(text).width + 8;
    const left = Math.max(0, Math.min(this.drawing.lay.width - wide, x + width / 2 - wide / 2));
    pen.fillStyle = cssOf(theme.ground);
    pen.strokeStyle = cssOf(theme.primary);
    pen.lineWidth = 1;
    pen.beginPath();
    pen.roundRect(left, y, wide, height, 3);
    pen.fill();
    pen.stroke();
    drawText(pen, text, left + wide / 2, y + height / 2 + 0.5, { align: "center", colour: cssOf(theme.ink) });
  }

  paintUnits(pen, theme, row, { units }, [x, y, width, height]) {
    const each = width / units.length;
    units.forEach(({ after }, k) => {
      const tall = Math.min(1, Math.abs(after) / row.limit) * height;
      pen.fillStyle = after < 0 ? "rgba(86,180,233,0.45)" : "rgb(86,180,233)";
      pen.fillRect(x + k * each, y + height - tall, Math.max(0.5, each - 0.5), tall);
    });
  }

  // From the query to every key, or from every weighted value to their sum.
  paintLines(pen, theme, row) {
    const below = this.rows.find(({ name }) => name === row.lines);
    const draw = link(curveBumpY).context(pen);
    const { drawing } = this;
    const { lay } = drawing;
    const many = row.cells.length > 1 ? row.cells : below.cells;
    const one = row.cells.length > 1 ? below.cells[0] : row.cells[0];
    const at = ({ stack, position }) => lay.places[stack].lanes[position].x;
    many.forEach((cell, k) => {
      if (cell.masked) return;
      const [from, to] = row.cells.length > 1 ? [at(one), at(cell)] : [at(cell), at(one)];
      const weight = row.weights ? row.weights[k] : 0.08;
      if (row.weights && weight < 0.01) return;
      pen.strokeStyle = row.weights ? theme.heads[drawing.headNow % theme.heads.length] : cssOf(theme.muted);
      pen.globalAlpha = row.weights ? 0.35 + 0.65 * weight : 0.5;
      pen.lineWidth = Math.max(0.8, weight * lay.ribbon * 0.5);
      pen.beginPath();
      draw({ source: [from, below.top], target: [to, row.bottom] });
      pen.stroke();
    });
    pen.globalAlpha = 1;
  }

  hit(x, y) {
    for (const [index, row] of this.rows.entries()) {
      if (y < row.top - 2 || y > row.bottom + 2) continue;
      for (const [cell, one] of row.cells.entries()) {
        const [left, , width] = this.box(row, one);
        if (x < left || x > left + width) continue;
        const count = (one.values ?? one.units)?.length;
        return {
          what: "cell",
          row: index,
          cell,
          ...(count ? { thread: Math.min(count - 1, Math.floor(((x - left) / width) * count)) } : {}),
        };
      }
    }
    return null;
  }

  describe({ row: index, cell: number, thread }) {
    const row = this.rows[index];
    const cell = row?.cells[number];
    if (!cell) return [];
    const { model } = this.drawing;
    const stack = model.stack(cell.stack);
    const lines = [{ parts: [...quoted(stack.tokens[cell.position].label), `${say(": ")}${row.label}`] }];
    if (cell.hatched) lines.push({ parts: [say("cannot be attended to")] });
    else if (cell.units) {
      const { unit, before, after } = cell.units[thread];
      lines.push({
        parts: [
          say("unit {unit}: input {before}, output {after}", {
            unit,
            before: threeDigits(before),
            after: threeDigits(after),
          }),
        ],
      });
    } else {
      const value = cell.values ? cell.values[thread] : cell.value;
      lines.push({ parts: [`${cell.values ? `${this.channel(row, cell, thread)}: ` : ""}${threeDigits(value)}`] });
      lines.push({ parts: [`${say("exactly")} ${exactly(value)}`], muted: true });
    }
    lines.push({ parts: [row.about], muted: true });
    return lines;
  }

  // Which channels of the model, or of the head, a piece of a strip stands for.
  channel(row, cell, thread) {
    const stack = this.drawing.model.stack(cell.stack);
    if (["key", "query", "value", "weighted", "context"].includes(row.name))
      return say("channel {from}", { from: thread });
    const [from, to] = [0, 1].map((one) => Math.floor(((thread + one) * stack.channels) / cell.values.length));
    return to - from > 1
      ? say("mean of channels {from} to {to}", { from, to: to - 1 })
      : say("channel {from}", { from });
  }

  // Row by row, for the table and for tests.
  tables() {
    const { model } = this.drawing;
    return this.rows.map((row) => ({
      caption: `${row.label}. ${row.about}`,
      columns: row.cells.map((cell) => model.stack(cell.stack).tokens[cell.position].label),
      rows: this.lines(row),
    }));
  }

  lines(row) {
    const number = ({ value, hatched }) => (hatched ? say("masked") : threeDigits(value));
    const [first] = row.cells;
    if (first.units)
      return first.units.map((_, k) => ({
        label: String(k + 1),
        cells: row.cells.map(
          ({ units }) => `${units[k].unit}: ${threeDigits(units[k].before)} → ${threeDigits(units[k].after)}`,
        ),
      }));
    if (!first.values) return [{ label: row.label, cells: row.cells.map(number) }];
    return Array.from({ length: first.values.length }, (_, k) => ({
      label: String(k),
      cells: row.cells.map(({ values }) => threeDigits(values[k])),
    }));
  }
}

// How the numbers of a row may be written, the fullest first. Weights have the same decimals, so that they visibly add up.
const WRITINGS = [
  (row, value) => (row.name === "weight" ? decimals(value, 3) : threeDigits(value)),
  (row, value) => decimals(value, row.name === "weight" ? 2 : 1),
  (row, value) => decimals(value, row.name === "weight" ? 1 : 0),
];
