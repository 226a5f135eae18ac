// All heads of all layers at once: what is under the pointer, and what is said about it.

import { roughly } from "../toolkit/numbers.js";
import { say } from "../toolkit/words.js";
import { describeCell, matrixTable, stepCell } from "./describe.js";
import { MATRIX_COLUMNS, matrixRecords } from "./records.js";
import { GridPicture } from "./grid_picture.js";

export class GridDrawing extends GridPicture {
  hit(x, y) {
    const { panel } = this;
    if (x >= panel.x && y >= panel.y && y < panel.y + panel.height) {
      const cell = this.map.hit(x, y);
      return cell && { tile: this.shown(), ...cell, large: true };
    }
    for (let tile = 0; tile < this.tiles.length; tile++) {
      const [left, top, width, height] = this.tileBox(tile);
      if (x < left || y < top || x >= left + width || y >= top + height) continue;
      const [rows, columns] = [this.metadata.rows.length, this.metadata.columns.length];
      return { tile, row: Math.floor(((y - top) / height) * rows), column: Math.floor(((x - left) / width) * columns) };
    }
    return null;
  }

  shown() {
    return this.selected >= 0 ? this.selected : this.last;
  }

  // The tooltip of a tile must not hide the large map.
  tipEdge({ large }) {
    return large || this.below ? undefined : this.panel.x;
  }

  first() {
    return { tile: this.shown() };
  }

  holds({ tile }) {
    return tile < this.tiles.length;
  }

  // With the shift key within the head that is shown large.
  step({ tile, row, column }, key, within) {
    if (within && row === undefined) return { tile, row: 0, column: 0 };
    if (within)
      return { tile, ...stepCell({ row, column }, key, this.metadata.rows.length, this.metadata.columns.length) };
    return this.stepTile(tile, key);
  }

  stepTile(tile, key) {
    const { line, column } = this.slot(tile);
    const at = (wantedLine, wantedColumn) =>
      this.tiles.findIndex((_, i) => this.slot(i).line === wantedLine && this.slot(i).column === wantedColumn);
    const moves = {
      ArrowUp: [line - 1, column],
      ArrowDown: [line + 1, column],
      ArrowLeft: [line, column - 1],
      ArrowRight: [line, column + 1],
      Home: [line, 0],
      End: [line, this.across - 1],
      PageUp: [0, column],
    };
    const found = moves[key] ? at(...moves[key]) : -1;
    return { tile: found < 0 ? tile : found };
  }

  anchor({ tile, row, column }) {
    if (row !== undefined) {
      this.placePanel(tile);
      return [this.map.columnX(column) + this.map.stepX / 2, this.map.rowY(row) + this.map.stepY / 2];
    }
    const [x, y, width, height] = this.tileBox(tile);
    return [x + width / 2, y + height / 2];
  }

  describe(target) {
    const { tile, row, column } = target;
    const { caption } = this.tiles[tile];
    const title = { parts: [`${this.name(tile)}${caption ? ` · ${caption}` : ""}`] };
    if (row !== undefined || column !== undefined)
      return [title, ...describeCell(this.metadata, this.matrices[tile], target, roughly, null)];
    const best = this.matrices[tile].strongest();
    return [
      title,
      ...(best
        ? describeCell(this.metadata, this.matrices[tile], best, roughly, null)
        : [{ parts: [say("everything is masked")] }]),
    ];
  }

  click({ tile }) {
    const { layer, head } = this.tiles[tile];
    return { event: "click", value: { layer, head } };
  }

  tileOf({ layer, head }) {
    return this.tiles.findIndex((entry) => entry.layer === layer && entry.head === head);
  }

  choose(value) {
    const tile = this.tileOf(value);
    this.selected = tile === this.selected ? -1 : tile;
  }

  // In the app, a head that was clicked is chosen; -> whether that changes the picture.
  outline(value) {
    const before = this.selected;
    this.selected = this.tileOf(value);
    return this.selected !== before;
  }

  records() {
    const rows = this.tiles.flatMap(({ layer, head }, tile) => [
      ...matrixRecords(this.metadata, this.matrices[tile], (value) => value.toFixed(4), layer, head),
    ]);
    return [["layer", "head", ...MATRIX_COLUMNS], ...rows];
  }

  tables() {
    const heads = Array.from({ length: this.heads }, (_, head) => say("head {head}", { head }));
    const summary = (layer, head) => {
      const tile = this.tiles.findIndex((entry) => entry.layer === layer && entry.head === head);
      if (tile < 0) return "";
      const best = this.matrices[tile].strongest();
      const edge = best
        ? `${this.metadata.rows[best.row]} → ${this.metadata.columns[best.column]} ${roughly(this.matrices[tile].at(best.row, best.column))}`
        : say("all masked");
      return [this.tiles[tile].caption, edge].filter(Boolean).join(": ");
    };
    const rows = [...this.layers]
      .sort((a, b) => a - b)
      .map((layer) => ({
        label: say("layer {layer}", { layer }),
        cells: heads.map((_, head) => summary(layer, head)),
      }));
    const shown = this.shown();
    return [
      { caption: `${this.metadata.title}: ${say("the strongest edge of every head")}`, columns: heads, rows },
      matrixTable(`${this.name(shown)} (${say("rounded to 1/255")})`, this.metadata, this.matrices[shown], roughly),
    ];
  }
}
