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
    return this.tileAt(x, y);
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
    return { tile: this.stepTile(tile, key) };
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
    const { caption, title: said = caption } = this.tiles[tile];
    const title = { parts: [`${this.name(tile)}${said ? ` · ${said}` : ""}`] };
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
    const shown = this.shown();
    return [
      this.edgesTable(),
      matrixTable(`${this.name(shown)} (${say("rounded to 1/255")})`, this.metadata, this.matrices[shown], roughly),
    ];
  }
}
