// All heads of some layers as small maps: layers down, heads across, or one after the other.

import { cssOf } from "../toolkit/colour.js";
import { Matrix } from "../toolkit/matrix.js";
import { drawText, fontOf, shorten, widest, wrap } from "../toolkit/text.js";
import { roughly } from "../toolkit/numbers.js";
import { colourOf } from "../toolkit/theme.js";
import { say } from "../toolkit/words.js";
import { matrixBitmap, paintMask } from "./bitmap.js";
import { paintInk } from "../toolkit/patch.js";

export const legendOf = ({ stretched, faded, groups }) => ({
  faded,
  groups,
  text: stretched
    ? say("attention weight, each map scaled to its own maximum")
    : say("attention weight, fixed scale 0…1"),
  ends: stretched && ["0", say("largest")],
});

// What the legend says of bands, where there are some.
export const bandOf = ({ apart }) => (apart ? say("one band: the same keys and values") : "");

const DIMMED = 0.4; // how much is left of a map that is there but not the point
const NARROW = 24; // px: below a narrower tile a word would be nothing but dots
const CLEAR_TILE = 1.7; // letters: where the tiles are as wide in a single block, there is no second one

export class GridTiles {
  constructor({ metadata, arrays }) {
    this.metadata = metadata;
    this.tiles = metadata.tiles;
    const [rows, columns] = [metadata.rows.length, metadata.columns.length];
    const { values, shape } = arrays.masks;
    const bits = Array.from({ length: shape[0] }, (_, i) => values.subarray(i * shape[1], (i + 1) * shape[1]));
    this.matrices = this.tiles.map(({ mask }, i) => {
      const part = arrays.weights.values.subarray(i * rows * columns, (i + 1) * rows * columns);
      return new Matrix({ values: part, rows, columns, bits: bits[mask], divisor: 255 / this.limit(i) });
    });
    this.layers = [...new Set(this.tiles.map((tile) => tile.layer))];
    this.heads = Math.max(...this.tiles.map((tile) => tile.head)) + 1;
    // A table of layers × heads, or tiles one after the other, each of which then says which head it is.
    this.listed = metadata.sorted || Boolean(metadata.per_line);
    this.across = metadata.per_line ?? this.heads;
    this.blocks = 1; // beside each other, each with some of the layers
    // As many heads in a row share their keys and values: they lie on one band.
    this.shared = this.listed ? 1 : (metadata.heads_a_key ?? 1);
    this.apart = this.shared > 1 ? 5 : 0; // px between two bands
  }

  // What stands between the tiles of a line for the bands alone.
  get aparts() {
    return this.apart * (Math.ceil(this.heads / this.shared) - 1);
  }

  columnOffset(column) {
    return column * (this.tileWidth + this.gap) + Math.floor(column / this.shared) * this.apart;
  }

  // Where the scale of a map ends.
  limit(tile) {
    return this.tiles[tile].limit ?? 1;
  }

  name(tile) {
    const { layer, head } = this.tiles[tile];
    return say("layer {layer}, head {head}", { layer, head });
  }

  anyMasked() {
    return this.matrices.some((matrix) => matrix.anyMasked());
  }

  // Where a tile stands in the table of tiles.
  slot(tile) {
    if (this.listed) return { line: Math.floor(tile / this.across), column: tile % this.across };
    return { line: this.layers.indexOf(this.tiles[tile].layer), column: this.tiles[tile].head };
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
    return found < 0 ? tile : found;
  }

  // Fits the tiles, with their words, into a width; `widestTile(shape, gap)` says how wide one may be where height is scarce.
  // `whole`: rather no words than cut ones. -> { width, height } that they take
  layoutTiles(context, theme, { x = 0, y = 0, width, widestTile, smallest = 8, whole = false }) {
    const small = theme.size * 0.8;
    this.blocks = 1;
    this.across = this.metadata.per_line ?? this.heads;
    this.header = this.listed ? 0 : this.layerRoom(context, theme);
    this.gap = width / this.across > 90 ? 10 : Math.max(2, Math.min(6, width / this.across / 6));
    const shape = Math.min(1.5, Math.max(0.6, this.metadata.rows.length / this.metadata.columns.length));
    const share = (width - this.header - this.aparts) / this.across - this.gap;
    this.tileWidth = Math.max(smallest, Math.min(8 * theme.size, share, widestTile(shape, this.gap)));
    this.tileHeight = this.tileWidth * shape;
    this.captionScale = !whole && this.tileWidth < NARROW ? 0 : this.scaleOfCaptions(context, theme, whole);
    context.font = fontOf(theme, this.captionScale, 500);
    const silent = whole ? "–" : null; // no clear role
    const nameOf = ({ layer, head }) => (this.layers.length > 1 ? `${layer}.${head}` : say("head {head}", { head }));
    const wordsOf = (tile) => [
      ...(this.listed ? [nameOf(tile)] : []),
      ...wrap(context, tile.caption !== silent ? tile.caption : "", this.tileWidth + this.gap - 2),
    ];
    this.words = this.tiles.map((tile) => (this.captionScale ? wordsOf(tile) : []));
    const mostWords = Math.max(...this.words.map((words) => words.length));
    this.lineHeight = this.tileHeight + mostWords * small * 1.2 + this.gap + (mostWords ? 4 : 0);
    const lines = Math.max(...this.tiles.map((_, i) => this.slot(i).line)) + 1;
    Object.assign(this, { x, y, top: this.listed ? 2 : small * 1.9 });
    return {
      width: this.header + this.across * (this.tileWidth + this.gap) + this.aparts,
      height: this.top + lines * this.lineHeight,
    };
  }

  layerRoom(context, theme) {
    context.font = fontOf(theme, 0.8);
    const names = this.layers.map((layer) => say("layer {layer}", { layer }));
    return widest(context, [...names, say("head")]) + 12;
  }

  // All of them in a given room, without words: the layers stand in as many blocks beside each other, or the tiles of a list
  // in as many lines, as make them largest. -> { width, height } that they take
  layoutCompact(context, theme, { x = 0, y = 0, width, height, smallest = 5 }) {
    const shape = Math.min(1.5, Math.max(0.6, this.metadata.rows.length / this.metadata.columns.length));
    const top = this.listed ? 2 : theme.size * 1.4;
    let best = null;
    const most = this.listed ? this.tiles.length : this.layers.length;
    for (let count = 1; count <= most; count++) {
      this.blocks = this.listed ? 1 : count;
      const lines = Math.ceil(most / count);
      if (!this.listed && Math.ceil(most / lines) < count) continue; // a block would be empty
      const header = this.listed ? 0 : this.layerRoom(context, theme);
      const across = this.listed ? count : this.heads;
      const blockWidth = (width - (this.blocks - 1) * theme.size) / this.blocks;
      const share = Math.min((blockWidth - header - this.aparts) / across, (height - top) / lines / shape);
      const gap = share > 24 ? 5 : share > 10 ? 3 : 1;
      const tile = Math.min(5 * theme.size, share - gap);
      // One block reads best: another one must be needed and worth it.
      if (!this.listed && best?.blocks === 1 && best.tile >= CLEAR_TILE * theme.size) break;
      if (best === null || tile > best.tile * (best.blocks === 1 && !this.listed ? 1.3 : 1.02))
        best = { tile, gap, header, across, lines, blocks: this.blocks };
    }
    const { blocks, lines, header, gap, across } = best;
    const tileWidth = Math.max(smallest, best.tile);
    Object.assign(this, { x, y, top, blocks, lines, header, gap, across, tileWidth, headRoom: top });
    this.tileHeight = tileWidth * shape;
    this.lineHeight = this.tileHeight + gap;
    this.blockWidth = header + this.heads * (tileWidth + gap) + this.aparts + theme.size;
    this.captionScale = 0;
    this.words = this.tiles.map(() => []);
    return {
      width: blocks > 1 ? blocks * this.blockWidth - theme.size : header + across * (tileWidth + gap) + this.aparts,
      height: top + lines * this.lineHeight,
    };
  }

  // Where a tile is painted: its block, and in it line and column.
  spot(tile) {
    const { line, column } = this.slot(tile);
    if (this.blocks === 1) return { block: 0, line, column };
    return { block: Math.floor(line / this.lines), line: line % this.lines, column };
  }

  // Words that are too long get smaller letters. Still too long, they are cut, or, where no word may be, left out.
  scaleOfCaptions(context, theme, whole) {
    const [usual, least] = [0.75, 0.6];
    context.font = fontOf(theme, usual, 500);
    const longest = widest(
      context,
      this.tiles.flatMap(({ caption }) => caption.split(" ")),
    );
    const scale = Math.min(usual, (usual * (this.tileWidth + this.gap - 4)) / longest);
    return whole && scale < least ? 0 : Math.max(scale, least);
  }

  tileBox(tile) {
    const { block, line, column } = this.spot(tile);
    const left = this.x + (block && block * this.blockWidth);
    return [
      Math.round(left + this.header + this.columnOffset(column)),
      Math.round(this.y + this.top + line * this.lineHeight),
      Math.round(this.tileWidth),
      Math.round(this.tileHeight),
    ];
  }

  // -> { tile, row, column } or null
  tileAt(x, y) {
    for (let tile = 0; tile < this.tiles.length; tile++) {
      const [left, top, width, height] = this.tileBox(tile);
      if (x < left || y < top || x >= left + width || y >= top + height) continue;
      const [rows, columns] = [this.metadata.rows.length, this.metadata.columns.length];
      return { tile, row: Math.floor(((y - top) / height) * rows), column: Math.floor(((x - left) / width) * columns) };
    }
    return null;
  }

  paintTiles(context, theme, ratio) {
    const muted = cssOf(theme.muted);
    const small = theme.size * 0.8;
    if (!this.listed) this.paintNames(context, theme);
    if (this.apart) this.paintBands(context, theme);
    this.tiles.forEach((tile, i) => {
      const [x, y, width, height] = this.tileBox(i);
      context.fillStyle = cssOf(theme.ground);
      if (this.apart) context.fillRect(x, y, width, height); // a pale map has no tint of its band
      if (this.dimmed && !tile.clear) context.globalAlpha = DIMMED;
      this.paintTile(
        context,
        theme,
        this.matrices[i],
        colourOf(theme, "sequential", this.limit(i)),
        [x, y, width, height],
        ratio,
      );
      if (this.metadata.inks) this.paintTileInk(context, i);
      context.globalAlpha = 1;
      if (tile.colour >= 0) this.frame(context, i, theme.heads[tile.colour], 2, -1);
      context.font = fontOf(theme, this.captionScale, 500);
      this.words[i].forEach((word, k) => {
        const shade = tile.clear || (k === 0 && this.listed) ? cssOf(theme.ink) : muted;
        drawText(
          context,
          shorten(context, word, width + this.gap - 2),
          x + width / 2,
          y + height + 5 + small * (0.6 + 1.2 * k),
          { align: "center", colour: shade },
        );
      });
    });
  }

  // Of the layers and of the heads, in every block.
  paintNames(context, theme) {
    const [muted, small] = [cssOf(theme.muted), theme.size * 0.8];
    context.font = fontOf(theme, 0.8);
    const every = Math.ceil((small * 1.1) / this.lineHeight); // of many thin lines some are named
    const step = this.tileWidth + this.gap;
    const wide = this.tileWidth >= context.measureText("head 10").width;
    // Narrow tiles: the word once, before the numbers, of which all that fit are there.
    const stride = Math.max(1, Math.ceil((widest(context, [String(this.heads - 1)]) + 4) / step));
    const above = this.y + this.top - small * 1.1;
    this.layers.forEach((layer, index) => {
      const block = this.blocks > 1 ? Math.floor(index / this.lines) : 0;
      const line = this.blocks > 1 ? index % this.lines : index;
      const left = this.x + this.header + (block && block * this.blockWidth);
      if (line % every === 0) {
        const y = this.y + this.top + line * this.lineHeight + this.tileHeight / 2;
        drawText(context, say("layer {layer}", { layer }), left - 10, y, { align: "right", colour: muted });
      }
      if (line > 0) return;
      if (!wide) drawText(context, say("head"), left - 10, above, { align: "right", colour: muted });
      for (let head = 0; head < this.heads; head += wide ? 1 : stride)
        drawText(
          context,
          wide ? say("head {head}", { head }) : String(head),
          left + this.columnOffset(head) + this.tileWidth / 2,
          above,
          { align: "center", colour: muted },
        );
    });
  }

  // Under the heads that share their keys and values.
  paintBands(context, theme) {
    context.fillStyle = cssOf(theme.primary, 0.22);
    this.tiles.forEach(({ head }, tile) => {
      if (head % this.shared) return;
      const [x, y, width, height] = this.tileBox(tile);
      const last = Math.min(this.heads - head, this.shared) - 1;
      context.beginPath();
      context.roundRect(x - 3, y - 2, width + last * (this.tileWidth + this.gap) + 6, height + 4, 4);
      context.fill();
    });
  }

  paintTile(context, theme, matrix, colour, [x, y, width, height], ratio) {
    context.save();
    context.beginPath();
    context.roundRect(x, y, width, height, 3);
    context.clip();
    // More cells than points: a point is as bright as the brightest of its cells, which a mean would let vanish.
    const shown = matrix.shrunk(Math.round(height * ratio), Math.round(width * ratio));
    context.imageSmoothingEnabled = false;
    context.drawImage(matrixBitmap(shown, theme, colour), x, y, width, height);
    const [stepX, stepY] = [width / matrix.columns, height / matrix.rows];
    paintMask(context, theme, matrix, ratio, (row, from, to) => [
      x + from * stepX,
      y + row * stepY,
      (to - from) * stepX,
      stepY,
    ]);
    context.restore();
    context.strokeStyle = cssOf(theme.faint);
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(x - 0.5, y - 0.5, width + 1, height + 1, 3);
    context.stroke();
  }

  paintTileInk(context, tile) {
    const [matrix, [x, y, width, height]] = [this.matrices[tile], this.tileBox(tile)];
    const [stepX, stepY] = [width / matrix.columns, height / matrix.rows];
    this.metadata.inks.forEach((pixels, at) => {
      const [row, column] = [Math.floor(at / matrix.columns), at % matrix.columns];
      paintInk(context, pixels, [x + column * stepX, y + row * stepY, stepX, stepY]);
    });
  }

  frame(context, tile, colour, thick, out = thick / 2 + 1) {
    const [x, y, width, height] = this.tileBox(tile);
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.beginPath();
    context.roundRect(x - out, y - out, width + 2 * out, height + 2 * out, 4);
    context.stroke();
  }

  // The strongest edge of every head, for readers of the table.
  edgesTable() {
    const heads = Array.from({ length: this.heads }, (_, head) => say("head {head}", { head }));
    const summary = (layer, head) => {
      const tile = this.tiles.findIndex((entry) => entry.layer === layer && entry.head === head);
      if (tile < 0) return "";
      const best = this.matrices[tile].strongest();
      const edge = best
        ? `${this.metadata.rows[best.row]} → ${this.metadata.columns[best.column]} ${roughly(this.matrices[tile].at(best.row, best.column))}`
        : say("all masked");
      return [this.tiles[tile].title ?? this.tiles[tile].caption, edge].filter(Boolean).join(": ");
    };
    const rows = [...this.layers]
      .sort((a, b) => a - b)
      .map((layer) => ({
        label: say("layer {layer}", { layer }),
        cells: heads.map((_, head) => summary(layer, head)),
      }));
    const caption = `${this.metadata.title}: ${say("the strongest edge of every head")}`;
    return { caption, columns: heads, rows };
  }
}
