// Every head of a model at once: a grid of small maps for each kind of attention, beside or below each other.

import { cssOf } from "../toolkit/colour.js";
import { drawText, fontOf, shorten } from "../toolkit/text.js";
import { roomOf } from "../toolkit/theme.js";
import { roughly } from "../toolkit/numbers.js";
import { say } from "../toolkit/words.js";
import { describeCell } from "./describe.js";
import { GridTiles, bandOf, legendOf } from "./grid_tiles.js";
import { Legend } from "./legend.js";
import { MATRIX_COLUMNS, matrixRecords } from "./records.js";

const HEIGHT = 427; // px on a projector, as that of one grid
const APART = 1.4; // letters between two grids

export class OverviewDrawing {
  constructor({ metadata, arrays }) {
    this.metadata = metadata;
    this.parts = metadata.parts.map(
      (part, i) =>
        new GridTiles({ metadata: part, arrays: { weights: arrays[`weights${i}`], masks: arrays[`masks${i}`] } }),
    );
    for (const part of this.parts) part.dimmed = metadata.dimmed;
    const masked = this.parts.some((part) => part.anyMasked());
    const band = bandOf(this.parts[0]);
    this.legend = new Legend({ ...legendOf(metadata), scale: "sequential", limit: 1, masked, band });
    this.selected = metadata.selected && this.targetOf(metadata.selected);
    this.label = `${metadata.title}. ${say("Move with the arrow keys, choose with Enter.")}`;
    this.help = say("small heat maps");
  }

  // place: [stack, attention, layer, head]
  targetOf([stack, attention, layer, head]) {
    const part = this.parts.findIndex(({ metadata }) => metadata.stack === stack && metadata.attention === attention);
    const tile = this.parts[part]?.tiles.findIndex((entry) => entry.layer === layer && entry.head === head) ?? -1;
    return tile < 0 ? null : { part, tile };
  }

  // As many grids side by side as give the largest maps that end on the first screen; without words, where those do not fit.
  layout(context, theme, width) {
    const legendRoom = 8 + this.legend.layout(context, theme, { x: 0, y: 0, width }) + 4;
    const tallest = Math.min(HEIGHT * roomOf(context, theme), theme.room ?? Infinity);
    const room = tallest - legendRoom;
    const arranged = (how) =>
      this.parts.map((_, i) => ({ how, across: i + 1, ...how.call(this, context, theme, width, i + 1, room) }));
    const best = (ways, worth) => ways.reduce((one, other) => (worth(other) > worth(one) ? other : one));
    const ways = arranged(this.place);
    const fitting = ways.filter(({ height }) => height <= room);
    let chosen;
    if (fitting.length) chosen = best(fitting, ({ smallest }) => smallest);
    else chosen = best(arranged(this.pack), ({ smallest }) => smallest);
    const { height } = chosen.how.call(this, context, theme, width, chosen.across, room);
    return height + 8 + this.legend.layout(context, theme, { x: 0, y: height + 8, width }) + 4;
  }

  place(context, theme, width, across, room) {
    const apart = APART * theme.size;
    const share = (width - (across - 1) * apart) / across;
    const lines = Math.ceil(this.parts.length / across);
    this.head = theme.size * 1.9;
    let y = 0;
    let smallest = Infinity;
    for (let line = 0; line < lines; line++) {
      let tallest = 0;
      this.parts.slice(line * across, (line + 1) * across).forEach((part, column) => {
        const lineRoom = room / lines - this.head - 2 * theme.size; // without the words on top
        const words = 1.3 * theme.size; // one below a tile
        const taken = part.layoutTiles(context, theme, {
          x: column * (share + apart),
          y: y + this.head,
          width: share,
          widestTile: (shape, gap) => Math.max(1.5 * theme.size, (lineRoom / part.layers.length - gap - words) / shape),
          smallest: 12,
          whole: true,
        });
        part.width = share;
        tallest = Math.max(tallest, this.head + taken.height);
        smallest = Math.min(smallest, part.tileWidth);
      });
      y += tallest + (line < lines - 1 ? apart : 0);
    }
    return { height: y, smallest };
  }

  // Where no layout with words ends on the first screen: all maps without words, as large as the room allows.
  pack(context, theme, width, across, room) {
    const apart = APART * theme.size;
    const share = (width - (across - 1) * apart) / across;
    const lines = Math.ceil(this.parts.length / across);
    this.head = theme.size * 1.9;
    let smallest = Infinity;
    const all = this.parts.reduce((sum, { layers }) => sum + layers.length, 0);
    let y = 0;
    for (let line = 0; line < lines; line++) {
      const row = this.parts.slice(line * across, (line + 1) * across);
      const most = Math.max(...row.map(({ layers }) => layers.length));
      const height = ((room - (lines - 1) * apart) * most) / (across === 1 ? all : most * lines) - this.head;
      const heights = row.map((part, column) => {
        part.width = share;
        const place = { x: column * (share + apart), y: y + this.head, width: share, height };
        const taken = part.layoutCompact(context, theme, place);
        smallest = Math.min(smallest, part.tileWidth);
        return taken.height;
      });
      y += this.head + Math.max(...heights) + (line < lines - 1 ? apart : 0);
    }
    return { height: y, smallest };
  }

  geometry() {
    return { parts: this.parts.map((part) => part.tiles.map((_, tile) => part.tileBox(tile))) };
  }

  paintBase(context, theme, ratio) {
    for (const part of this.parts) {
      context.font = fontOf(theme, 0.875, 600);
      const title = shorten(context, part.metadata.title, part.width);
      drawText(context, title, part.x, part.y - this.head + 0.7 * theme.size, { colour: cssOf(theme.ink) });
      part.paintTiles(context, theme, ratio);
    }
    if (this.selected && !theme.unmarked) this.frame(context, this.selected, cssOf(theme.chosen), 3);
    this.legend.paint(context, theme, ratio);
  }

  paintFocus(context, theme, focus) {
    if (focus) this.frame(context, focus, cssOf(theme.ink), 2);
  }

  frame(context, { part, tile }, colour, thick) {
    this.parts[part].frame(context, tile, colour, thick);
  }

  hit(x, y) {
    for (let part = 0; part < this.parts.length; part++) {
      const found = this.parts[part].tileAt(x, y);
      if (found) return { part, ...found };
    }
    return null;
  }

  first() {
    return this.selected ?? { part: 0, tile: 0 };
  }

  holds({ part, tile }) {
    return tile < (this.parts[part]?.tiles.length ?? 0);
  }

  // Beyond the edge of a grid lies the next one.
  step({ part, tile }, key) {
    const next = this.parts[part].stepTile(tile, key);
    if (next !== tile) return { part, tile: next };
    const other = part + ({ ArrowRight: 1, ArrowDown: 1, PageDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key] ?? 0);
    return other !== part && this.parts[other] ? { part: other, tile: 0 } : { part, tile };
  }

  anchor({ part, tile }) {
    const [x, y, width, height] = this.parts[part].tileBox(tile);
    return [x + width / 2, y + height / 2];
  }

  describe({ part, tile, row, column }) {
    const grid = this.parts[part];
    const { caption } = grid.tiles[tile];
    const place = `${grid.metadata.title}, ${grid.name(tile)}`;
    const name = caption ? `${place} · ${caption}` : place;
    const cell = row === undefined ? grid.matrices[tile].strongest() : { row, column };
    const said = cell
      ? describeCell(grid.metadata, grid.matrices[tile], cell, roughly, null)
      : [{ parts: [say("everything is masked")] }];
    return [{ parts: [name] }, ...said];
  }

  click({ part, tile }) {
    const { metadata, tiles } = this.parts[part];
    const { layer, head } = tiles[tile];
    return { event: "click", value: { stack: metadata.stack, attention: metadata.attention, layer, head } };
  }

  choose({ stack, attention, layer, head }) {
    this.selected = this.targetOf([stack, attention, layer, head]);
  }

  // In the app, a head that was clicked is chosen.
  outline(value) {
    this.choose(value);
    return true;
  }

  records() {
    const rows = this.parts.flatMap(({ metadata, tiles, matrices }) =>
      tiles.flatMap(({ layer, head }, tile) => {
        const cells = [...matrixRecords(metadata, matrices[tile], (value) => value.toFixed(4), layer, head)];
        return cells.map((cell) => [metadata.title, ...cell]);
      }),
    );
    return [["attention", "layer", "head", ...MATRIX_COLUMNS], ...rows];
  }

  tables() {
    return this.parts.map((part) => part.edgesTable());
  }
}
