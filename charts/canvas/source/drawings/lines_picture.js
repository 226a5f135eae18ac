// Tokens that look on the left, tokens that are looked at on the right, and a line for every weight between them. How they
// are laid out and painted.

import { cssOf, mix } from "../toolkit/colour.js";
import { Matrix } from "../toolkit/matrix.js";
import { shortNumber } from "../toolkit/numbers.js";
import { drawText, drawToken, fontOf, widest, wrap } from "../toolkit/text.js";
import { say } from "../toolkit/words.js";
import { HeadChips } from "./head_chips.js";

export class LinesPicture {
  constructor({ metadata, arrays }, previous, stage) {
    this.metadata = metadata;
    this.stage = stage;
    const [heads, rows, columns] = arrays.weights.shape;
    this.matrices = Array.from({ length: heads }, (_, head) => {
      const values = arrays.weights.values.subarray(head * rows * columns, (head + 1) * rows * columns);
      return new Matrix({ values, rows, columns, bits: arrays.allowed.values, divisor: 65535 });
    });
    const asked = JSON.stringify(metadata.heads);
    // What the reader switched on stays on, unless the page now asks for other heads.
    const keep = previous && previous.matrices.length === heads && JSON.stringify(previous.metadata.heads) === asked;
    this.chips = new HeadChips(heads, keep ? previous.chips.on : new Set(metadata.heads), () => this.afterSwitch());
    this.label = `${metadata.title}: ${say("lines from {rows} query tokens to {columns} key tokens.", { rows, columns })} ${say("Up and down change the token, left and right the side; choose with Enter.")} ${say("The number keys switch the first ten heads on and off.")}`;
    this.help = say("token graph");
  }

  controls() {
    return [this.chips.element(this.stage)];
  }

  afterSwitch() {
    if (this.stage.showsTable) this.stage.fillTable();
    else this.stage.repaint();
  }

  // Eight colours; further heads repeat them with broken lines.
  headColour(theme, head) {
    return theme.heads[head % theme.heads.length];
  }
  dash(theme, head) {
    return head < theme.heads.length ? [] : [6, 4];
  }
  shownHeads() {
    return this.matrices.map((_, head) => head).filter((head) => this.chips.on.has(head));
  }

  // --- layout and painting --------------------------------------------------------------------------------

  layout(context, theme, width) {
    this.chips.mark((head) => this.headColour(theme, head));
    const { rows, columns } = this.metadata;
    const unit = theme.size / 16;
    context.font = fontOf(theme, 0.95);
    const wish = (labels) => Math.min(widest(context, labels) + 18, 180 * unit, width * 0.24);
    [this.leftRoom, this.rightRoom] = [wish(rows), wish(columns)];
    // Where nothing is under the pointer and never will be, there are no bars.
    this.barRoom = context.vector && this.metadata.selected === null ? 0 : Math.min(76 * unit, width * 0.1);
    const most = Math.max(rows.length, columns.length);
    this.line = Math.max(17 * unit, Math.min(32 * unit, (56 * theme.size) / most));
    this.between = Math.max(60, Math.min(560 * unit, width - this.leftRoom - this.rightRoom - 2 * this.barRoom - 4));
    this.leftX = this.barRoom + this.leftRoom;
    this.rightX = this.leftX + this.between;
    this.top = 30 * unit;
    context.font = fontOf(theme, 0.8);
    const legend = say("the wider and stronger a line, the larger its weight; masked pairs have no line");
    this.legend = wrap(context, legend, this.rightX + this.rightRoom + this.barRoom);
    this.legendY = this.top + most * this.line + theme.size;
    return this.legendY + this.legend.length * theme.size * 1.15;
  }

  tokenY(index) {
    return this.top + (index + 0.5) * this.line;
  }

  geometry() {
    return { leftX: this.leftX, rightX: this.rightX, top: this.top, line: this.line };
  }

  paintBase(context, theme) {
    this.paintHeadings(context, theme);
    if (this.metadata.selected === null) {
      this.paintTokens(context, theme, {});
      this.paintEdges(context, theme, {});
    } else this.paintEdgesOf(context, theme, { side: "query", index: this.metadata.selected });
  }

  paintHeadings(context, theme) {
    context.font = fontOf(theme, 0.8);
    const colour = cssOf(theme.muted);
    const y = theme.size * 0.6;
    const end = this.rightX + this.rightRoom + this.barRoom;
    // Each title ends or begins where its tokens do, if it fits there; else at the picture's edge, or cut to one word.
    const title = (text, align, inner, edge) => {
      const shown = context.measureText(text).width > end / 2 - 8 ? text.split(":")[0] : text;
      const fits = context.measureText(shown).width <= Math.abs(inner - edge);
      drawText(context, shown, fits ? inner : edge, y, {
        align: fits === (align === "right") ? "right" : "left",
        colour,
      });
    };
    title(this.metadata.row_title, "right", this.leftX - 8, 0);
    title(this.metadata.column_title, "left", this.rightX + 8, end);
    this.legend.forEach((line, i) =>
      drawText(context, line, 0, this.legendY + (0.2 + 1.15 * i) * theme.size, { colour }),
    );
  }

  // On an exported picture, where the chips above are missing: which colour is which head.
  layoutKey(context, theme, width) {
    context.font = fontOf(theme, 0.8);
    const line = theme.size * 1.4;
    let [x, y] = [0, 0];
    this.keyPlaces = this.shownHeads().map((head) => {
      const label = say("head {head}", { head });
      const long = context.measureText(label).width + theme.size * 1.6;
      if (x > 0 && x + long > width) [x, y] = [0, y + line];
      x += long;
      return { head, label, x: x - long, y: y + line / 2 };
    });
    return this.keyPlaces.length ? y + line : 0;
  }

  paintKey(context, theme, top) {
    context.font = fontOf(theme, 0.8);
    const radius = theme.size * 0.27;
    for (const { head, label, x, y } of this.keyPlaces) {
      context.fillStyle = this.headColour(theme, head);
      context.beginPath();
      context.arc(x + radius, top + y, radius, 0, 2 * Math.PI);
      context.fill();
      drawText(context, label, x + 3 * radius, top + y, { colour: cssOf(theme.ink) });
    }
  }

  paintTokens(context, theme, { side, index }) {
    const { rows, columns, special_rows: specialRows, special_columns: specialColumns } = this.metadata;
    const sides = [
      ["query", rows, specialRows, this.leftX, this.leftRoom, "right"],
      ["key", columns, specialColumns, this.rightX, this.rightRoom, "left"],
    ];
    for (const [name, labels, special, x, room, align] of sides)
      labels.forEach((label, i) => {
        const strong = name === side && i === index;
        const colour = strong ? theme.ink : special.includes(i) ? theme.muted : theme.ink;
        context.font = fontOf(theme, 0.95, strong ? 600 : 400);
        if (strong && !theme.unmarked) {
          const width = Math.min(room - 10, context.measureText(label).width);
          const chosen = side === "query" && index === this.metadata.selected;
          context.fillStyle = cssOf(chosen ? theme.chosen : theme.primary, theme.dark ? 0.34 : 0.17);
          context.beginPath();
          context.roundRect(
            align === "right" ? x - width - 14 : x + 2,
            this.tokenY(i) - theme.size * 0.7,
            width + 12,
            theme.size * 1.4,
            5,
          );
          context.fill();
        }
        drawToken(context, label, align === "right" ? x - 8 : x + 8, this.tokenY(i), {
          align,
          room: room - 10,
          colour: cssOf(colour),
          paler: cssOf(mix(colour, theme.ground, 0.4)),
        });
      });
  }

  paintEdges(context, theme, { side, index }) {
    const steepness = this.between * 0.45;
    const { rows, columns } = this.metadata;
    const heads = this.shownHeads();
    // Heads run side by side, so that one does not hide another.
    const spread = Math.min(5, (this.line * 0.62) / heads.length);
    context.lineCap = "round";
    heads.forEach((head, k) => {
      const shift = (k - (heads.length - 1) / 2) * spread;
      const matrix = this.matrices[head];
      context.strokeStyle = this.headColour(theme, head);
      context.setLineDash(this.dash(theme, head));
      for (let row = 0; row < rows.length; row++) {
        if (side === "query" && row !== index) continue;
        for (let column = 0; column < columns.length; column++) {
          if (side === "key" && column !== index) continue;
          const weight = matrix.at(row, column);
          const strength = Math.min(1, weight ** 0.7);
          // A screen has 256 steps: a line fainter than one of them cannot be seen.
          if (!matrix.allowed(row, column) || strength < 1 / 256) continue;
          context.globalAlpha = strength;
          context.lineWidth = 0.75 + Math.max(1.5, this.line / (4 + 0.7 * heads.length)) * weight;
          const [from, to] = [this.tokenY(row) + shift, this.tokenY(column) + shift];
          context.beginPath();
          context.moveTo(this.leftX, from);
          context.bezierCurveTo(this.leftX + steepness, from, this.rightX - steepness, to, this.rightX, to);
          context.stroke();
        }
      }
    });
    context.globalAlpha = 1;
    context.setLineDash([]);
  }

  paintEdgesOf(context, theme, token) {
    this.paintTokens(context, theme, token);
    this.paintEdges(context, theme, token);
    this.paintBars(context, theme, token);
  }

  // Beside every token at the other end: a bar for each head, as long as its weight; a number if there is one head only.
  paintBars(context, theme, { side, index }) {
    const heads = this.shownHeads();
    const others = side === "query" ? this.metadata.columns : this.metadata.rows;
    const outward = side === "query" ? 1 : -1;
    const start = side === "query" ? this.rightX + this.rightRoom : this.leftX - this.leftRoom;
    const single = heads.length === 1;
    const tall = Math.min(this.line - 4, single ? this.line * 0.5 : this.line - 4) / Math.max(1, heads.length);
    others.forEach((_, other) => {
      const [row, column] = side === "query" ? [index, other] : [other, index];
      heads.forEach((head, k) => {
        if (!this.matrices[head].allowed(row, column)) return;
        const weight = this.matrices[head].at(row, column);
        const room = single ? this.barRoom * 0.5 : this.barRoom;
        const long = weight * room;
        const y = this.tokenY(other) + (k - heads.length / 2) * tall;
        context.fillStyle = this.headColour(theme, head);
        context.fillRect(outward > 0 ? start : start - long, y, long, Math.max(1, tall - 0.5));
        if (!single) return;
        context.font = fontOf(theme, 0.78);
        if (weight >= 0.01)
          drawText(context, shortNumber(weight, 2, false), start + outward * (long + 4), this.tokenY(other), {
            align: outward > 0 ? "left" : "right",
            colour: cssOf(theme.muted),
          });
      });
    });
  }

  paintFocus(context, theme, focus) {
    if (!focus) return;
    const width = this.rightX + this.rightRoom + this.barRoom + 8;
    const top = this.top - 4;
    context.fillStyle = cssOf(theme.ground);
    context.fillRect(0, top, width, this.top + Math.max(this.count("query"), this.count("key")) * this.line - top);
    this.paintEdgesOf(context, theme, focus);
  }
}
