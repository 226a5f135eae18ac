// One sub-layer, unfolded in the place of the picture: how its rows are drawn and read.

import { brightness, cssOf } from "../../toolkit/colour.js";
import { decimals, exactly, threeDigits } from "../../toolkit/numbers.js";
import { quoted } from "../../toolkit/sentences.js";
import { colourOf } from "../../toolkit/theme.js";
import { say } from "../../toolkit/words.js";
import { bump } from "./picture.js";
import { rowsOf } from "./unfolded_rows.js";

const HEIGHTS = { strip: 0.95, cell: 1.35, gap: 0.42, lines: 1.5 };
const LETTERS = [0.74, 0.66, 0.6]; // heights of a number in its cell, the best first

export class Unfolded {
  constructor(run) {
    this.run = run;
    this.rows = rowsOf(run);
  }

  get query() {
    return this.run.queryIn(this.run.model.stack(this.run.unfolded.stack));
  }

  // Where the colours of vectors end, if not where those of the whole stack do.
  get limit() {
    const { unfolded, model } = this.run;
    return unfolded.part === "embedding" ? model.stack(unfolded.stack).inputLimit : null;
  }

  // What lines and bars stand for, if there are any.
  legend() {
    const { unfolded, model } = this.run;
    if (unfolded.part === "embedding") return [];
    const { shown: count, units } = model.stack(unfolded.stack);
    if (unfolded.part === "feed_forward")
      return [say("Bars: the {count} strongest of {units} units.", { count, units })];
    return [say("Lines: attention weights."), say("Lines: attention")];
  }

  // How much a word is looked at by the followed one.
  lightOf(stack, position) {
    const weights = this.rows.find(({ name }) => name === "weight")?.cells ?? [];
    return weights.find((cell) => cell.stack === stack.name && cell.position === position)?.value ?? 0;
  }

  // From the chips up; what is too much for the height is made lower.
  layOut({ size, now }) {
    const tall = (row) => (row.tall ?? (row.cells[0]?.values ? HEIGHTS.strip : HEIGHTS.cell)) * size;
    const gap = (row) => (HEIGHTS.gap + (row.lines ? HEIGHTS.lines : 0)) * size;
    const bottom = now[this.run.unfolded.stack].chips.top - 0.3 * size;
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

  box(lay, row, cell) {
    const lane = lay.places[cell.stack].lanes[cell.position];
    const width = cell.values || cell.units ? lay.ribbon : lane.width - Math.min(3, lane.width * 0.06);
    return [lane.x - width / 2, row.top, width, row.bottom - row.top];
  }

  draw(picture) {
    const { lay, size, theme } = picture;
    this.layOut(picture);
    this.drawUnitNumbers(picture);
    this.rows.forEach((row, index) => {
      if (row.lines) this.drawLines(picture, row);
      const written = row.scale ? this.numbersOf(picture, row) : null;
      row.written = row.cells.map((cell) => this.drawCell(picture, row, cell, written));
      if (!written) this.drawNumberOfStrongest(picture, row);
      const isWeight = row.name === "weight";
      const look = { size: 0.8 * size, weight: isWeight ? 600 : 400 };
      const [left, room] = this.labelRoom(lay, row);
      const fill = isWeight ? cssOf(theme.primary) : picture.muted;
      picture.text(row.label, left, (row.top + row.bottom) / 2, { ...look, room, fill });
      row.cells.forEach((cell, k) => picture.places.push(this.placeOf(lay, row, cell, { row: index, cell: k })));
    });
  }

  placeOf(lay, row, cell, at) {
    const [x, y, width, height] = this.box(lay, row, cell);
    const count = (cell.values ?? cell.units)?.length;
    const rect = [x, y - 2, width, height + 4];
    if (!count) return { rect, target: { what: "cell", ...at } };
    const thread = (atX) => Math.min(count - 1, Math.floor(((atX - x) / width) * count));
    return { rect, at: (atX) => ({ what: "cell", ...at, thread: thread(atX) }) };
  }

  // Where the name of a row begins, and how long it may be: beside the stack or, in a narrow picture, behind its last cell.
  labelRoom(lay, row) {
    const { unfolded } = this.run;
    if (lay.narrow) {
      const end = Math.max(...row.cells.map((cell) => this.box(lay, row, cell)).map(([x, , width]) => x + width));
      return [end + 0.4 * lay.size, lay.width - end - 0.4 * lay.size];
    }
    const atKeys = row.cells.length && row.cells[0].stack !== unfolded.stack && row.name !== "x";
    const { right, gutter } = lay.places[atKeys ? row.cells[0].stack : unfolded.stack];
    return [right + 0.5 * lay.size, gutter - 0.3 * lay.size];
  }

  // How the numbers of a row are written, all alike: { letters, text(value) }; null if its lanes are too narrow for all of them.
  numbersOf(picture, row) {
    const forms = WRITINGS.flatMap((write) =>
      LETTERS.map((letters) => ({ letters, text: (value) => write(row, value) })),
    );
    const fits = ({ letters, text }) =>
      row.cells.every(
        (cell) => cell.hatched || picture.widthOf(text(cell.value), letters) <= this.box(picture.lay, row, cell)[2] - 1,
      );
    return forms.find(fits) ?? null;
  }

  // The numbers of the strongest units of the followed token, above the picture.
  drawUnitNumbers(picture) {
    const { size, lay, theme } = picture;
    const row = this.rows.find(({ name }) => name === "units");
    const cell = row?.cells.find(({ position }) => position === this.query);
    if (!cell) return;
    const column = 12.5 * size;
    const across = Math.max(1, Math.min(4, Math.floor(lay.width / column)));
    const down = Math.ceil(cell.units.length / across);
    const kept = cell.units.every(({ before, after }) => before === after); // ReLU keeps what is above 0
    const token = this.run.model.stack(cell.stack).tokens[cell.position].label;
    const title = kept
      ? say("The strongest units for {token}", { token })
      : say("The strongest units for {token}: before → after the activation function", { token });
    const look = { size: 0.8 * size };
    picture.text(title, 4, 0.6 * size, { ...look, room: lay.width - 8 });
    cell.units.forEach(({ unit, before, after }, k) => {
      const [x, y] = [4 + Math.floor(k / down) * column, (1.8 + (k % down) * 1.2) * size];
      if (y > this.rows.at(-1).top - size) return;
      picture.text(say("unit {unit}", { unit }), x, y, look);
      const value = kept ? threeDigits(after) : `${threeDigits(before)} → ${threeDigits(after)}`;
      picture.text(value, x + 4.6 * size, y, { ...look, fill: cssOf(theme.ink) });
    });
  }

  // -> the number that is written in it, if there is one
  drawCell(picture, row, cell, written) {
    const { theme, size, lay } = picture;
    const [x, y, width, height] = this.box(lay, row, cell);
    const isOther = cell.stack === this.run.unfolded.stack && cell.position !== this.query && row.cells.length > 1;
    const alpha = isOther && ["after", "update", "units"].includes(row.name) ? 0.45 : 1;
    if (cell.units) return this.drawUnits(picture, row, cell, [x, y, width, height], alpha);
    if (cell.hatched) return picture.add({ rect: [x, y, width, height], fill: "hatch" });
    const colour = colourOf(theme, row.scale ?? "stripes", row.limit);
    const paint = (value) => (Number.isFinite(value) ? colour(value) : theme.muted);
    if (cell.values) {
      const each = width / cell.values.length;
      const strip = Array.from(cell.values, (value, k) => {
        return { rect: [x + k * each, y, each + 0.3, height], fill: cssOf(paint(value)), alpha };
      });
      return picture.add(...strip);
    }
    picture.add({ rect: [x, y, width, height], fill: cssOf(paint(cell.value)) });
    if (!written || height <= 0.8 * size) return null;
    const text = written.text(cell.value);
    const fill = brightness(paint(cell.value)) > 0.35 ? "rgb(20,20,20)" : "rgb(255,255,255)";
    const look = { size: written.letters * size, align: "center", fill };
    picture.text(text, x + width / 2, y + height / 2 + 0.5, look);
    return text;
  }

  // Where lanes are too narrow for numbers: that of the key with the largest weight, on a label of its own.
  drawNumberOfStrongest(picture, row) {
    const { theme, size, lay } = picture;
    const weights = this.rows.find(({ name }) => name === "weight")?.cells;
    if (!weights || !row.scale || row.cells.length !== weights.length) return;
    const best = weights.reduce((one, { value }, k) => (value > weights[one].value ? k : one), 0);
    const [x, y, width, height] = this.box(lay, row, row.cells[best]);
    if (height <= 0.8 * size) return;
    const text = threeDigits(row.cells[best].value);
    const wide = picture.widthOf(text, 0.74, 600) + 8;
    const left = Math.max(0, Math.min(lay.width - wide, x + width / 2 - wide / 2));
    picture.add({ rect: [left, y, wide, height], round: 3, fill: cssOf(theme.ground), stroke: cssOf(theme.primary) });
    const look = { size: 0.74 * size, weight: 600, align: "center", fill: cssOf(theme.ink) };
    picture.text(text, left + wide / 2, y + height / 2 + 0.5, look);
  }

  drawUnits(picture, row, { units }, [x, y, width, height], alpha) {
    const each = width / units.length;
    units.forEach(({ after }, k) => {
      const tall = Math.min(1, Math.abs(after) / row.limit) * height;
      const rect = [x + k * each, y + height - tall, Math.max(0.5, each - 0.5), tall];
      picture.add({ rect, fill: "rgb(86,180,233)", alpha: after < 0 ? 0.45 * alpha : alpha });
    });
  }

  // From the query to every key, or from every weighted value to their sum.
  drawLines(picture, row) {
    const { lay, theme, muted } = picture;
    const below = this.rows.find(({ name }) => name === row.lines);
    const spreads = row.cells.length > 1;
    const many = spreads ? row.cells : below.cells;
    const one = spreads ? below.cells[0] : row.cells[0];
    const at = ({ stack, position }) => lay.places[stack].lanes[position].x;
    many.forEach((cell, k) => {
      const weight = row.weights ? row.weights[k] : 0.08;
      if (cell.masked || (row.weights && weight < 0.01)) return;
      const [from, to] = spreads ? [at(one), at(cell)] : [at(cell), at(one)];
      const stroke = row.weights ? theme.heads[this.run.headNow % theme.heads.length] : muted;
      const alpha = row.weights ? 0.35 + 0.65 * weight : 0.5;
      const curve = bump(from, below.top, to, row.bottom);
      picture.add({ curve, stroke, alpha, thick: Math.max(0.8, weight * lay.ribbon * 0.5) });
    });
  }

  describe({ row: index, cell: number, thread }) {
    const row = this.rows[index];
    const cell = row?.cells[number];
    if (!cell) return [];
    const stack = this.run.model.stack(cell.stack);
    const lines = [{ parts: [...quoted(stack.tokens[cell.position].label), `${say(": ")}${row.label}`] }];
    if (cell.hatched) lines.push({ parts: [say("cannot be attended to")] });
    else if (cell.units) {
      const { unit, ...values } = cell.units[thread];
      const [before, after] = [values.before, values.after].map(threeDigits);
      lines.push({ parts: [say("unit {unit}: input {before}, output {after}", { unit, before, after })] });
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
    const ofHead = ["key", "query", "value", "weighted", "context"].includes(row.name);
    const { channels } = this.run.model.stack(cell.stack);
    return ofHead ? say("channel {from}", { from: thread }) : channelsOf(thread, channels, cell.values.length);
  }

  // Row by row, for the table and for tests.
  tables() {
    const { model } = this.run;
    return this.rows.map((row) => ({
      caption: `${row.label}. ${row.about}`,
      columns: row.cells.map((cell) => model.stack(cell.stack).tokens[cell.position].label),
      rows: this.lines(row),
    }));
  }

  lines({ cells, label }) {
    const number = ({ value, hatched }) => (hatched ? say("masked") : threeDigits(value));
    const [first] = cells;
    const unit = (one) => `${one.unit}: ${threeDigits(one.before)} → ${threeDigits(one.after)}`;
    if (first.units)
      return first.units.map((_, k) => ({ label: String(k + 1), cells: cells.map(({ units }) => unit(units[k])) }));
    if (!first.values) return [{ label, cells: cells.map(number) }];
    return Array.from(first.values, (_, k) => ({
      label: String(k),
      cells: cells.map(({ values }) => threeDigits(values[k])),
    }));
  }
}

// What one of `threads` stripes stands for.
export function channelsOf(thread, channels, threads) {
  const [from, to] = [0, 1].map((one) => Math.floor(((thread + one) * channels) / threads));
  return to - from > 1 ? say("mean of channels {from} to {to}", { from, to: to - 1 }) : say("channel {from}", { from });
}

// How the numbers of a row may be written, the fullest first. Weights have the same decimals, so that they visibly add up.
const WRITINGS = [
  (row, value) => (row.name === "weight" ? decimals(value, 3) : threeDigits(value)),
  (row, value) => decimals(value, row.name === "weight" ? 2 : 1),
  (row, value) => decimals(value, row.name === "weight" ? 1 : 0),
];
