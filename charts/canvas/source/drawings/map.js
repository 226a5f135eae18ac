// One matrix as a heatmap: a head's attention weights, its scores, or any other labelled values.

import { cssOf } from "../toolkit/colour.js";
import { Matrix } from "../toolkit/matrix.js";
import { contrastAt } from "../toolkit/contrast.js";
import { exactly, shortest, threeDigits } from "../toolkit/numbers.js";
import { roomOf } from "../toolkit/theme.js";
import { say } from "../toolkit/words.js";
import { describeCell, labelOf, matrixTable, stepCell } from "./describe.js";
import { Heatmap } from "./heatmap.js";
import { Legend } from "./legend.js";
import { MATRIX_COLUMNS, matrixRecords } from "./records.js";

const MOST_FOLLOWED = 300_000; // cells that are painted anew for every one that is pointed at

export class MapDrawing {
  constructor({ metadata, arrays }, previous) {
    this.metadata = metadata;
    const { rows, columns, scale, limit } = metadata;
    this.matrix = new Matrix({
      values: arrays.values.values,
      rows: rows.length,
      columns: columns.length,
      bits: arrays.allowed.values,
    });
    this.outlined = arrays.outlined ? new Matrix({ ...this.matrix, bits: arrays.outlined.values }) : null;
    this.map = new Heatmap({
      rows,
      columns,
      scale,
      limit,
      rowTitle: metadata.row_title,
      columnTitle: metadata.column_title,
      specialRows: metadata.special_rows,
      specialColumns: metadata.special_columns,
      rowPictures: metadata.row_pictures,
      columnPictures: metadata.column_pictures,
      numbered: metadata.numbered,
      whole: metadata.whole,
    });
    // Another head of the same sentence: keep what the reader has zoomed to.
    if (previous && previous.matrix.rows === rows.length && previous.matrix.columns === columns.length) {
      const { zoom, panX, panY } = previous.map;
      Object.assign(this.map, { zoom, panX, panY });
    }
    this.legend = new Legend({
      text: metadata.legend ?? metadata.value_name,
      scale,
      limit,
      masked: this.matrix.anyMasked(),
      maskedText: metadata.masked_text ?? undefined,
    });
    this.follows = metadata.follows && rows.length * columns.length <= MOST_FOLLOWED;
    this.label = labelOf(metadata.title, metadata, say("Move with the arrow keys, choose with Enter."));
    this.help = say("heat map");
  }

  layout(context, theme, width) {
    const wished = this.metadata.height ? this.metadata.height * roomOf(context, theme) : 45 * theme.size;
    const tallest = context.vector ? wished : Math.min(wished, theme.room ?? wished);
    const room = context.vector ? Math.min(tallest, 1.2 * width) : tallest; // on paper, wide or not, no taller than a column
    // Twice: only a map that is laid out says where its legend begins, and so how many lines that takes.
    let [x, tall] = [0, 0];
    for (let again = 0; again < 2; again++) {
      const legendRoom = this.legend.layout(context, theme, { x, y: 0, width: width - x }) + 16;
      tall = this.map.layout(context, theme, { width, room: Math.max(120, room - legendRoom) });
      x = this.map.plot.x;
    }
    this.legendPlace = { x, y: tall + 12, width: width - x };
    const legendTall = this.legend.layout(context, theme, this.legendPlace);
    const other = this.follows ? this.legendAt(0.0123).layout(context, theme, this.legendPlace) : 0;
    this.legendTall = Math.max(legendTall, other);
    return tall + 12 + this.legendTall + 4;
  }

  // While the contrast follows a value.
  legendAt(value) {
    const text = say("contrast follows the pointer: the middle is {value}", { value: threeDigits(value) });
    return new Legend({ ...this.legend, text });
  }

  geometry() {
    const { plot, stepX, stepY, panX, panY } = this.map;
    return { x: plot.x - panX, y: plot.y - panY, stepX, stepY };
  }

  paintBase(context, theme, ratio) {
    this.map.paint(context, theme, this.matrix, ratio);
    this.paintBreaks(context, theme);
    for (const cell of this.metadata.crossed ?? []) this.paintCross(context, theme, cell, ratio);
    this.paintOutlined(context, theme, ratio);
    this.legend.paint(context, theme, ratio);
    if (theme.unmarked) return;
    const row = this.metadata.chosen_row ?? null;
    if (row !== null) this.map.paintRowLabel(context, theme, row, theme.chosen);
    if (this.metadata.selected) this.map.paintSelected(context, theme, this.metadata.selected, ratio);
  }

  // The value that the contrast follows while Shift is held: that of the cell, or the smallest there is where that is 0;
  // null where it stays fixed.
  followed({ row, column }) {
    if (!this.held || row === undefined || column === undefined || !this.matrix.allowed(row, column)) return null;
    const value = this.matrix.at(row, column);
    return value > 0 ? value : value === 0 ? this.smallest() : null;
  }

  smallest() {
    this.least ??= this.matrix.values.reduce(
      (least, value) => (value > 0 && value < least ? value : least),
      this.map.limit,
    );
    return this.least;
  }

  paintFollowed(context, theme, focus, ratio) {
    const value = this.followed(focus);
    const share = value === null ? null : contrastAt(value, this.map.limit);
    if (!share) return;
    this.map.paintShares(context, theme, this.matrix, share, ratio);
    this.paintBreaks(context, theme);
    for (const cell of this.metadata.crossed ?? []) this.paintCross(context, theme, cell, ratio);
    this.paintOutlined(context, theme, ratio);
    if (this.metadata.selected) this.map.paintSelected(context, theme, this.metadata.selected, ratio);
    const { x, y, width } = this.legendPlace;
    context.clearRect(x - 1, y - 2, width + 2, this.legendTall + 4);
    const legend = this.legendAt(value);
    legend.layout(context, theme, this.legendPlace);
    legend.paint(context, theme, ratio);
  }

  paintBreaks(context, theme) {
    for (const row of this.metadata.breaks ?? []) this.paintBreak(context, theme, row);
    for (const column of this.metadata.column_breaks ?? []) this.paintColumnBreak(context, theme, column);
  }

  // A gap before a column: another block begins here.
  paintColumnBreak(context, theme, column) {
    const { map } = this;
    const { plot } = map;
    const thick = Math.min(8, map.stepX * 0.2);
    const x = map.columnX(column);
    context.fillStyle = cssOf(theme.ground);
    context.fillRect(x - thick / 2, plot.y, thick, plot.height);
    context.fillStyle = cssOf(theme.faint);
    context.fillRect(x - 0.5, plot.y - 8, 1, plot.height + 8);
  }

  // A gap above a row: another block begins here.
  paintBreak(context, theme, row) {
    const { map } = this;
    const { plot } = map;
    const thick = Math.min(8, map.stepY * 0.2);
    context.fillStyle = cssOf(theme.ground);
    context.fillRect(plot.x, map.rowY(row) - thick / 2, plot.width, thick);
    context.fillStyle = cssOf(theme.faint);
    // Between names of rows that stand closer than letters are high, it would cross one.
    const left = map.stepY < theme.size * 1.1 ? 8 : map.rowRoom + 8;
    context.fillRect(plot.x - left, map.rowY(row) - 0.5, plot.width + left, 1);
  }

  // The border of the outlined cells, a line in the page's own colour below it, so that it shows on every cell.
  paintOutlined(context, theme, ratio) {
    const { outlined, map } = this;
    if (!outlined) return;
    const { rows, columns } = outlined;
    const inside = (row, column) =>
      row >= 0 && row < rows && column >= 0 && column < columns && outlined.allowed(row, column);
    const lines = [];
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        if (!inside(row, column)) continue;
        const [x, y, width, height] = map.cellBox(row, column, ratio);
        if (!inside(row - 1, column)) lines.push([x, y, x + width, y]);
        if (!inside(row + 1, column)) lines.push([x, y + height, x + width, y + height]);
        if (!inside(row, column - 1)) lines.push([x, y, x, y + height]);
        if (!inside(row, column + 1)) lines.push([x + width, y, x + width, y + height]);
      }
    map.clipped(context, () => {
      for (const [paint, thick] of [
        [cssOf(theme.ground), 5],
        [cssOf(theme.ink), 2.5],
      ]) {
        context.strokeStyle = paint;
        context.lineWidth = thick;
        context.lineCap = "square";
        context.beginPath();
        for (const [x, y, toX, toY] of lines) {
          context.moveTo(x, y);
          context.lineTo(toX, toY);
        }
        context.stroke();
      }
    });
  }

  // What was taken away.
  paintCross(context, theme, [row, column], ratio) {
    const [x, y, width, height] = this.map.cellBox(row, column, ratio);
    for (const [paint, line] of [
      [cssOf(theme.ground, 0.85), 5],
      [cssOf(theme.ink), 2.5],
    ]) {
      context.strokeStyle = paint;
      context.lineWidth = line;
      context.lineCap = "round";
      context.beginPath();
      context.moveTo(x + 5, y + 5);
      context.lineTo(x + width - 5, y + height - 5);
      context.moveTo(x + width - 5, y + 5);
      context.lineTo(x + 5, y + height - 5);
      context.stroke();
    }
  }

  paintFocus(context, theme, focus, ratio) {
    if (!focus) return;
    this.paintFollowed(context, theme, focus, ratio);
    this.map.paintFocus(context, theme, focus, ratio);
  }

  hit(x, y) {
    return this.map.hit(x, y);
  }

  first() {
    const [row, column] = this.metadata.selected ?? [0, 0];
    return { row, column };
  }

  holds({ row = 0, column = 0 }) {
    return row < this.matrix.rows && column < this.matrix.columns;
  }

  step(target, key) {
    return stepCell(target, key, this.matrix.rows, this.matrix.columns);
  }

  anchor({ row = 0, column = 0 }) {
    return [this.map.columnX(column) + this.map.stepX / 2, this.map.rowY(row) + this.map.stepY / 2];
  }

  describe(target) {
    return describeCell(this.metadata, this.matrix, target, threeDigits, exactly);
  }

  click({ row, column }) {
    if (this.metadata.still || row === undefined || column === undefined) return null;
    return { event: "click", value: { query: row, key: column } };
  }

  // A second click on the chosen cell lets go of it.
  choose({ query, key }) {
    const { selected } = this.metadata;
    this.metadata.selected = selected?.[0] === query && selected[1] === key ? null : [query, key];
  }

  records() {
    return [MATRIX_COLUMNS, ...matrixRecords(this.metadata, this.matrix, shortest)];
  }

  tables() {
    return [matrixTable(this.metadata.title, this.metadata, this.matrix, threeDigits)];
  }

  reveal(target) {
    this.map.reveal(target);
  }
  // With large cells the zoom buttons would be clutter.
  worthZooming() {
    return this.zoomed() || Math.min(this.map.cellWidth, this.map.cellHeight) < 24;
  }
  zoomed() {
    return this.map.zoom > 1.001;
  }
  zoomBy(factor, x, y) {
    this.map.zoomBy(factor, x, y);
  }
  panBy(dx, dy) {
    this.map.panX -= dx;
    this.map.panY -= dy;
    this.map.keepInside();
  }
  resetZoom() {
    Object.assign(this.map, { zoom: 1, panX: 0, panY: 0 });
  }
}
