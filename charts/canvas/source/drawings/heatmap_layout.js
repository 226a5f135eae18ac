// One labelled matrix inside a box: where its cells and labels are, zoomed and panned.

import { fontOf } from "../toolkit/text.js";

const [SLANT, STEEP] = [Math.PI / 4, (Math.PI * 65) / 180]; // of the columns' labels; steep where columns are narrow
const LINE = 1.12; // the least height of a row, in heights of its letters
const PROJECTED = 20; // px; letters as large as presenter.css makes them are read from the back of a room
// Sizes of labels, as shares of the theme's: as large as there is room, but at least 11 px, and 16 on a projector.
const [LARGEST, SMALLEST, SMALLEST_PROJECTED, SMALLER_BY] = [0.875, 0.65, 0.77, 0.035];
const PICTURE = 1.7; // in letters: the side of an image patch that stands for a label
export const NAME = 0.72; // of the letters: those of its name beside or above it, where there is room
const FULL_ROWS = 0.38; // of the width: the most that labels of rows take to be shown in full
const TALLEST = 30; // in letters: so tall a map becomes for the sake of its labels

// Then a map fills the width, whatever its height.
export const isProjected = (theme) => theme.size >= PROJECTED;

export class HeatmapLayout {
  // spec: { rows, columns, rowTitle, columnTitle, specialRows, specialColumns, scale, limit, titles, rounded }, and
  // rowPictures, columnPictures: of labels that are image patches, the ink of their pixels, else null; and `inks`: where the
  // cells are the patches of an image, the ink of their pixels
  constructor(spec) {
    Object.assign(
      this,
      { titles: true, rounded: false, specialRows: [], specialColumns: [], zoom: 1, panX: 0, panY: 0 },
      spec,
    );
    this.specialRows = new Set(this.specialRows);
    this.specialColumns = new Set(this.specialColumns);
  }

  // Fits the map into `width` × `room`, but no lower than `least`; returns the height it takes.
  layout(context, theme, options) {
    this.titleLines = 1;
    options = { ...options, widths: this.measure(context, theme) };
    const height = this.fit(context, theme, options);
    context.font = fontOf(theme, 0.8);
    // Few rows: the title beside them needs a second line.
    if (!this.titles || context.measureText(`← ${this.rowTitle}`).width <= this.plot.height) return height;
    this.titleLines = 2;
    return this.fit(context, theme, options);
  }

  // Widths of the labels, per pixel of their letters: measured once, although several sizes are tried.
  measure(context, theme) {
    const letter = Math.round(theme.size * LARGEST * 10) / 10; // as `fontOf` rounds it
    context.font = fontOf(theme, LARGEST, 600); // a marked label is bold
    const rowWidths = this.rows.map((label, row) =>
      this.rowPictures?.[row]
        ? PICTURE + (NAME * context.measureText(label).width) / letter
        : context.measureText(label).width / letter,
    );
    context.font = fontOf(theme, LARGEST);
    // A patch is as small as its column.
    const columns = this.columns.map((label, column) =>
      this.columnPictures?.[column] ? 0 : context.measureText(label).width / letter,
    );
    const rows = Math.max(...rowWidths);
    const widest = rowWidths.indexOf(rows);
    return { rows, columns, widestRow: this.rowPictures?.[widest] ? "" : this.rows[widest] };
  }

  // Before a label is left out, all become smaller, and then the rows taller.
  fit(context, theme, options) {
    const fixed = (options.least ?? null) !== null;
    const smallest = isProjected(theme) ? SMALLEST_PROJECTED : SMALLEST;
    for (let scale = LARGEST; scale > smallest && !fixed; scale -= SMALLER_BY) {
      const height = this.place(context, theme, { ...options, scale });
      if (this.showsAllLabels(theme)) return height;
    }
    const lowest = LINE * smallest * theme.size * this.rows.length;
    for (const slant of fixed || lowest > TALLEST * theme.size ? [] : [SLANT, STEEP]) {
      const height = this.place(context, theme, { ...options, scale: smallest, lowest, slant });
      if (this.showsAllLabels(theme)) return height;
    }
    return this.place(context, theme, options);
  }

  showsAllLabels(theme) {
    const { cellWidth, cellHeight } = this; // without zoom: a map that is zoomed in keeps its letters when it is laid out again
    return this.every("row", theme, cellHeight) === 1 && (this.counted || this.every("column", theme, cellWidth) === 1);
  }

  // Labels that have no room are left out at regular steps.
  every(kind, theme, step = kind === "row" ? this.stepY : this.stepX) {
    if (kind === "row" ? this.rowPictures : this.columnPictures) return 1;
    const letter = this.labelScale * theme.size;
    const across = this.slanted ? (letter * 0.95) / Math.sin(this.slant) : this.longest + 8;
    const needed = kind === "row" ? letter * LINE : across;
    if (kind === "column" && !this.slanted && this.longest <= step - 6) return 1;
    return [1, 2, 5, 10, 20, 50, 100].find((count) => count * step >= needed - 0.01) ?? 200;
  }

  // `scale`, `slant`: of the labels; `lowest`: the least height of all rows.
  place(context, theme, options) {
    const { x = 0, y = 0, width, room, least = null, tallestCell = 44 } = options;
    const { scale = LARGEST, slant = SLANT, lowest = 0, widths = this.measure(context, theme) } = options;
    const unit = theme.size / 16;
    const projected = isProjected(theme);
    const widestCell = options.widestCell ?? (projected ? 160 : 76);
    const [nRows, nColumns] = [this.rows.length, this.columns.length];
    Object.assign(this, { labelScale: scale, slant });
    const letter = theme.size * scale;
    // Small letters are a little wider than their share of large ones.
    context.font = fontOf(theme, scale, 600);
    const wanted = Math.max(widths.rows * letter, context.measureText(widths.widestRow).width) + 2;
    // A little more than its share, if that shows every label in full.
    this.rowRoom = Math.min(wanted, wanted <= width * FULL_ROWS ? wanted : width * 0.3, 190 * unit);
    const labels = widths.columns.map((wide) => Math.min(wide * letter, 130 * unit));
    const longest = Math.max(...labels);
    const titleRoom = this.titles ? Math.round((10 + 16 * this.titleLines) * unit) : 0;
    const left = titleRoom + this.rowRoom + 10;
    // A cell may be as wide as its label needs, within reason.
    const widestWanted = Math.max(widestCell * unit, longest + 12);
    const cellFor = (overhang) => Math.max(1, Math.min(widestWanted, (width - left - 6 - overhang) / nColumns));
    this.cellWidth = cellFor(0);
    // Short numbers (of channels) of which not all have room stay horizontal, too: every second, every fifth. A word that
    // is left out cannot be counted off.
    this.counted = this.columns.every((label) => /^\d+$/.test(label));
    const everySome = this.counted && this.cellWidth < 1.5 * LARGEST * theme.size && longest < 3 * letter;
    this.slanted = longest > this.cellWidth - 6 && !everySome;
    this.longest = longest;
    let labelRoom = letter * 1.7;
    if (this.slanted) {
      // The last slanted labels lean out over the right edge: leave them room.
      for (let again = 0; again < 3; again++)
        this.cellWidth = cellFor(
          Math.max(
            0,
            ...labels.map((label, c) => label * Math.cos(slant) + letter * 0.5 - (nColumns - c - 0.5) * this.cellWidth),
          ),
        );
      this.cellWidth = Math.min(this.cellWidth, widestCell * unit);
      labelRoom = longest * Math.sin(slant) + letter * 1.1;
    }
    if (this.columnPictures) labelRoom = Math.max(labelRoom, (PICTURE + NAME) * letter + 6);
    this.labelRoom = labelRoom;
    const top = (this.titles ? Math.round(24 * unit) : 0) + labelRoom;
    // Few tokens: wide cells, room for words and numbers. Many: squares, as long as the height allows.
    // Up to twelve rows each keeps its label in full size; of more, some are left out, and rows may be lower.
    const tall = least ?? Math.max(lowest, (nRows > 12 ? 10 : 12) * theme.size);
    const fitting = Math.max((room - top) / nRows, Math.min(18 * unit, tall / nRows));
    this.cellHeight = Math.max(1, Math.min(tallestCell * unit, Math.max(this.cellWidth, 1.2 * letter), fitting));
    this.cellWidth = Math.min(
      this.cellWidth,
      Math.max(this.cellHeight / (projected ? 0.2 : 0.55), this.slanted ? letter / Math.sin(slant) : longest + 12),
    );
    if (this.inks) this.cellWidth = this.cellHeight = Math.min(this.cellWidth, this.cellHeight);
    this.box = { x, y, width };
    this.plot = { x: x + left, y: y + top, width: this.cellWidth * nColumns, height: this.cellHeight * nRows };
    this.keepInside();
    return top + this.plot.height;
  }

  // The side of the patch that stands for a label.
  pictureSide(theme, step) {
    return Math.max(2, Math.min(PICTURE * this.labelScale * theme.size, step - 2));
  }

  get stepX() {
    return this.cellWidth * this.zoom;
  }
  get stepY() {
    return this.cellHeight * this.zoom;
  }

  keepInside() {
    this.panX = Math.min(Math.max(0, this.panX), this.plot.width * (this.zoom - 1));
    this.panY = Math.min(Math.max(0, this.panY), this.plot.height * (this.zoom - 1));
  }

  // Zoom by `factor`, keeping the point (x, y) where it is.
  zoomBy(factor, x = this.plot.x + this.plot.width / 2, y = this.plot.y + this.plot.height / 2) {
    const largest = Math.max(1, 64 / Math.min(this.cellWidth, this.cellHeight));
    const zoom = Math.min(largest, Math.max(1, this.zoom * factor));
    const [dx, dy] = [x - this.plot.x, y - this.plot.y];
    this.panX = ((this.panX + dx) * zoom) / this.zoom - dx;
    this.panY = ((this.panY + dy) * zoom) / this.zoom - dy;
    this.zoom = zoom;
    this.keepInside();
  }

  // Moves the zoomed window so that a cell can be seen (the keyboard cursor may leave it).
  reveal({ row, column }) {
    const pull = (pan, from, size, extent) => Math.max(from + size - extent, Math.min(pan, from));
    this.panX = pull(this.panX, column * this.stepX, this.stepX, this.plot.width);
    this.panY = pull(this.panY, row * this.stepY, this.stepY, this.plot.height);
    this.keepInside();
  }

  columnX(column) {
    return this.plot.x + column * this.stepX - this.panX;
  }
  rowY(row) {
    return this.plot.y + row * this.stepY - this.panY;
  }

  // -> { row, column } over a cell, { row } over a row's label, { column } over a column's, or null
  hit(x, y) {
    const { plot } = this;
    const column = Math.floor((x - plot.x + this.panX) / this.stepX);
    const row = Math.floor((y - plot.y + this.panY) / this.stepY);
    const insideX = x >= plot.x && x < plot.x + plot.width && column < this.columns.length;
    const insideY = y >= plot.y && y < plot.y + plot.height && row < this.rows.length;
    if (insideX && insideY) return { row, column };
    if (insideY && x >= plot.x - this.rowRoom - 10 && x < plot.x) return { row };
    if (y < plot.y && y >= plot.y - this.labelRoom) {
      // Slanted labels lean to the right: follow them down to their column.
      const lean = this.slanted ? x - (plot.y - y) / Math.tan(this.slant) : x;
      const under = Math.floor((lean - plot.x + this.panX) / this.stepX);
      if (lean >= plot.x && lean < plot.x + plot.width && under < this.columns.length) return { column: under };
    }
    return null;
  }

  visible() {
    const first = (pan, step) => Math.max(0, Math.floor(pan / step));
    const last = (pan, step, extent, count) => Math.min(count - 1, Math.ceil((pan + extent) / step) - 1);
    return {
      top: first(this.panY, this.stepY),
      bottom: last(this.panY, this.stepY, this.plot.height, this.rows.length),
      left: first(this.panX, this.stepX),
      right: last(this.panX, this.stepX, this.plot.width, this.columns.length),
    };
  }
}
