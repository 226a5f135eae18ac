// A text while it is written: at every step the candidates with their probabilities, and where the model looked meanwhile.
// How it is laid out and painted.

import { cssOf, mix } from "../toolkit/colour.js";
import { hatch } from "../toolkit/hatch.js";
import { Matrix } from "../toolkit/matrix.js";
import { exactly, threeDigits } from "../toolkit/numbers.js";
import { drawText, drawToken, fontOf, shorten, widest, wrap } from "../toolkit/text.js";
import { roomOf } from "../toolkit/theme.js";
import { say } from "../toolkit/words.js";
import { Walk } from "./walk.js";

const SLOPE = 0.9; // of long names below the columns, in radians
const TICKS = [0, 0.25, 0.5, 0.75, 1];
const PRESENTED = 21; // px: the letters of a presented page on the smallest projector
const ABOVE = 23; // heights of letters above the bars: its buttons, the tokens and the sentence are there, too

export class StepsPicture {
  constructor({ metadata, arrays }, previous, stage) {
    Object.assign(this, { metadata, stage, probabilities: arrays.probabilities, rest: arrays.rest.values });
    const [rows, columns] = arrays.weights.shape;
    this.weights = new Matrix({
      values: arrays.weights.values,
      rows,
      columns,
      bits: arrays.allowed.values,
      divisor: 65535,
    });
    this.walk = new Walk(metadata, stage, () => this.afterMove());
    this.name();
    this.label = `${metadata.title}: ${say("candidates and their probabilities, then attention weights.")} ${say("Move with the arrow keys.")}`;
    this.help = say("bar charts");
  }

  controls() {
    return this.walk.controls();
  }

  // Files are called after the step that they show.
  name() {
    this.metadata.title = `${this.walk.place} · ${this.metadata.tokens[this.walk.step].text}`;
  }

  afterMove() {
    const { stage } = this;
    this.name();
    if (stage.cursor && !this.holds(stage.cursor)) stage.cursor = null;
    if (stage.hover && !this.holds(stage.hover)) stage.hover = null;
    if (stage.showsTable) stage.fillTable();
    else stage.repaint();
    stage.tip.dataset.target = "";
    stage.showTip(stage.hover, stage.hoverAt);
  }

  // --- what is shown at a step --------------------------------------------------------------------------------

  // Of the bar of the token that follows: a given token was not chosen.
  nameOfChosen(step = this.walk.step) {
    return this.isGiven(step) ? say("given") : say("chosen");
  }

  isGiven(step = this.walk.step) {
    return this.metadata.tokens[step].given;
  }

  rows(step = this.walk.step) {
    const names = this.metadata.candidates[step];
    const at = step * this.probabilities.shape[1];
    const rows = names.map((name, k) => ({
      name,
      value: this.probabilities.values[at + k],
      chosen: k === this.metadata.chosen[step],
      rank: k === this.metadata.chosen[step] ? this.metadata.ranks[step] : 0, // 0: no candidate before it is missing
    }));
    return [...rows, { name: say("all others"), value: this.rest[step], others: true }];
  }

  keys(step = this.walk.step) {
    const names = this.metadata.columns.slice(0, this.metadata.counts[step]);
    return names.map((name, column) => ({
      name,
      value: this.weights.at(step, column),
      masked: !this.weights.allowed(step, column),
    }));
  }

  // --- layout: the same at every step, so that nothing jumps --------------------------------------------------

  layout(context, theme, width) {
    const { size } = theme;
    const beside = width >= 36 * size;
    const gap = 2 * size;
    const left = beside ? Math.floor((width - gap) * 0.5) : width;
    this.top = 1.9 * size;
    // The room is in pixels: on a screen with more of them, presented letters are larger as well (presenter.css).
    const room = roomOf(context, theme, { above: ABOVE, least: 0.64 }) / Math.max(1, size / PRESENTED);
    this.row = 1.5 * size * Math.min(1, room);
    const tall = this.row * (this.probabilities.shape[1] + 1);
    context.font = fontOf(theme, 0.875);
    const names = [...this.metadata.candidates.flat(), say("all others")];
    const ranks = this.metadata.ranks.map((rank) => (rank ? `${rank}. ` : ""));
    const ranked = this.metadata.candidates.map((row, step) => ranks[step] + row[this.metadata.chosen[step]]);
    this.nameRoom = Math.min(widest(context, [...names, ...ranked]) + 10, left * 0.36);
    context.font = fontOf(theme, 0.8);
    const numberRoom = context.measureText("0.00888").width + 12;
    this.bars = { x: this.nameRoom, y: this.top, width: left - this.nameRoom - numberRoom, height: tall };
    const below = 3 * size;
    const first = this.top + tall + below;
    this.layOutColumns(
      context,
      theme,
      beside
        ? { x: left + gap, y: 0, width: width - left - gap, height: first }
        : { x: 0, y: first + size, width, height: 19 * size },
    );
    return beside ? first : first + 20 * size;
  }

  layOutColumns(context, theme, { x, y, width, height }) {
    const { size } = theme;
    context.font = fontOf(theme, 0.8);
    const { columns } = this.metadata;
    const left = context.measureText(exactly(0.5)).width + 10;
    const stepX = Math.min((width - left) / columns.length, 5 * size);
    context.font = fontOf(theme, 0.875);
    const longest = widest(context, columns);
    this.sloped = longest + 6 > stepX;
    this.keyRoom = this.sloped ? Math.min(longest, 6.5 * size) : longest;
    const names = this.sloped ? this.keyRoom * Math.sin(SLOPE) + size : 1.5 * size;
    this.every = Math.max(1, Math.ceil((1.05 * size) / stepX));
    this.columns = {
      x: x + left,
      y: y + this.top,
      width: stepX * columns.length,
      height: height - this.top - names - 1.5 * size,
      stepX,
      all: { x, y, width, height },
    };
  }

  geometry() {
    const { x, y, width, height, stepX } = this.columns;
    return { step: this.walk.step, bars: this.bars, row: this.row, columns: { x, y, width, height, stepX } };
  }

  // --- painting -------------------------------------------------------------------------------------------------

  paintBase(context, theme, ratio) {
    this.paintBars(context, theme);
    this.paintColumns(context, theme, ratio);
  }

  paintBars(context, theme) {
    const { x, y, width, height } = this.bars;
    const { size } = theme;
    const muted = cssOf(theme.muted);
    context.font = fontOf(theme, 0.8);
    let at = x;
    for (const [text, paint] of [
      [say("candidate"), this.barColour(theme, {})],
      ...(this.isGiven() ? [[say("predicted"), cssOf(theme.chosen)]] : []),
      [this.nameOfChosen(), this.barColour(theme, { chosen: true })],
    ]) {
      context.fillStyle = paint;
      context.fillRect(at, 0.28 * size, 0.8 * size, 0.8 * size);
      drawText(context, text, at + 1.2 * size, 0.7 * size, { colour: muted });
      at += context.measureText(text).width + 2.6 * size;
    }
    for (const tick of TICKS) {
      context.fillStyle = cssOf(theme.faint);
      context.fillRect(x + tick * width - 0.5, y, 1, height);
      if (tick % 0.5 === 0)
        drawText(context, exactly(tick), x + tick * width, y + height + 0.75 * size, {
          align: "center",
          colour: muted,
        });
    }
    drawText(
      context,
      shorten(context, say("next-token probability"), width + 3 * size),
      x + width / 2,
      y + height + 2.1 * size,
      { align: "center", colour: muted },
    );
    this.rows().forEach((row, k) => {
      const middle = y + (k + 0.5) * this.row;
      const long = row.value * width;
      context.fillStyle = this.barColour(theme, row, k);
      context.fillRect(x, middle - this.row * 0.36, Math.max(long, row.value > 0 ? 1 : 0), this.row * 0.72);
      context.font = fontOf(theme, 0.8, row.chosen ? 600 : 400);
      drawText(context, threeDigits(row.value), x + long + 6, middle, {
        colour: cssOf(row.chosen ? theme.ink : theme.muted),
      });
      context.font = fontOf(theme, 0.875, row.chosen ? 600 : 400);
      const colour = row.others ? theme.muted : theme.ink;
      const rank = row.rank ? `${row.rank}. ` : "";
      const room = this.nameRoom - 10 - context.measureText(rank).width;
      const paler = cssOf(mix(colour, theme.ground, 0.4));
      const wide = drawToken(context, row.name, x - 8, middle, { align: "right", room, colour: cssOf(colour), paler });
      if (rank) drawText(context, rank, x - 8 - wide, middle, { align: "right", colour: cssOf(colour) });
    });
  }

  // Orange is the model's choice: the first candidate where the text is given.
  barColour(theme, { chosen, others }, k = -1) {
    if (others) return COLOURS.categorical[7];
    if (this.isGiven() && k === 0) return cssOf(theme.chosen);
    if (chosen && this.isGiven()) return cssOf(theme.ink);
    return chosen ? cssOf(theme.chosen) : theme.heads[0];
  }

  paintColumns(context, theme, ratio) {
    const { x, y, width, height, stepX, all } = this.columns;
    const { axis } = this.metadata;
    const { size } = theme;
    const muted = cssOf(theme.muted);
    context.font = fontOf(theme, 0.8);
    const note = this.keys().some((key) => key.masked) ? say("masked") : "";
    const room = all.width - (note ? context.measureText(note).width + 3 * size : 0);
    const heading = shorten(context, `${say("attention weight")}, ${this.metadata.of}`, room);
    drawText(context, heading, all.x, all.y + 0.7 * size, { colour: muted });
    const hatched = hatch(context, theme, ratio);
    if (note) {
      const at = all.x + context.measureText(heading).width + 1.2 * size;
      context.fillStyle = hatched;
      context.fillRect(at, all.y + 0.28 * size, 1.2 * size, 0.8 * size);
      drawText(context, note, at + 1.6 * size, all.y + 0.7 * size, { colour: muted });
    }
    for (const tick of TICKS) {
      const level = y + (1 - tick) * height;
      context.fillStyle = cssOf(theme.faint);
      context.fillRect(x, level - 0.5, width, 1);
      if (tick % 0.5 === 0) drawText(context, exactly(tick), x - 6, level, { align: "right", colour: muted });
    }
    const roomy = stepX > context.measureText("0.00888").width + 2;
    this.keys().forEach(({ name, value, masked }, column) => {
      const middle = x + (column + 0.5) * stepX;
      const wide = Math.max(1, stepX * 0.72);
      context.fillStyle = masked ? hatched : this.barColour(theme, {});
      if (masked) context.fillRect(middle - stepX * 0.48, y, stepX * 0.96, height);
      const long = value * height;
      if (!masked) context.fillRect(middle - wide / 2, y + height - long, wide, long);
      context.font = fontOf(theme, 0.75);
      if (roomy && !masked)
        drawText(context, threeDigits(value), middle, y + height - long - 0.6 * size, {
          align: "center",
          colour: muted,
        });
      if (column % this.every === 0) this.paintName(context, theme, name, middle, y + height);
    });
    context.font = fontOf(theme, 0.8);
    const title = shorten(context, axis, all.width);
    drawText(
      context,
      title,
      Math.max(all.x + context.measureText(title).width / 2, x + width / 2),
      all.y + all.height - 0.9 * size,
      { align: "center", colour: muted },
    );
  }

  paintName(context, theme, name, x, y) {
    context.font = fontOf(theme, 0.875);
    context.save();
    context.translate(x, y + (this.sloped ? 0.55 : 0.8) * theme.size);
    if (this.sloped) context.rotate(-SLOPE);
    drawToken(context, name, this.sloped ? 3 : 0, 0, {
      align: this.sloped ? "right" : "center",
      room: this.keyRoom,
      colour: cssOf(theme.ink),
      paler: cssOf(mix(theme.ink, theme.ground, 0.4)),
    });
    context.restore();
  }

  paintFocus(context, theme, focus) {
    if (!focus) return;
    const [x, y, width, height] = this.box(focus);
    context.strokeStyle = cssOf(theme.primary);
    context.lineWidth = 2;
    context.strokeRect(x, y, width, height);
  }

  // On an exported picture: the sentence that stands above it on the page.
  layoutKey(context, theme, width) {
    context.font = fontOf(theme, 0.875);
    this.exported = wrap(context, this.walk.said, width);
    return (this.exported.length + 0.5) * theme.size * 1.35;
  }

  paintKey(context, theme, top) {
    context.font = fontOf(theme, 0.875);
    this.exported.forEach((line, i) =>
      drawText(context, line, 0, top + theme.size * (1.2 + 1.35 * i), { colour: cssOf(theme.ink) }),
    );
  }
}
