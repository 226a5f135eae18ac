// All heads of all layers at once: a tile each, and one of them large beside them. How they are laid out and painted.

import { cssOf } from "../toolkit/colour.js";
import { drawText, fontOf, shorten } from "../toolkit/text.js";
import { roomOf } from "../toolkit/theme.js";
import { say } from "../toolkit/words.js";
import { GridTiles, bandOf, legendOf } from "./grid_tiles.js";
import { Heatmap } from "./heatmap.js";
import { Legend } from "./legend.js";

const GRID_HEIGHT = 427; // px on a projector: tiles, large map and legend end on its first screen
const WIDE_FROM = 640; // px: from here on the large map stands beside the tiles, on narrower screens under them

export class GridPicture extends GridTiles {
  constructor(payload, previous) {
    super(payload);
    const { metadata } = payload;
    this.map = this.largeMap();
    const band = bandOf(this);
    this.legend = new Legend({ ...legendOf(metadata), scale: "sequential", limit: 1, masked: this.anyMasked(), band });
    this.selected = metadata.selected
      ? this.tiles.findIndex(({ layer, head }) => layer === metadata.selected[0] && head === metadata.selected[1])
      : -1;
    const kept =
      previous && previous.tiles.length === this.tiles.length && !metadata.sorted && !previous.metadata.sorted;
    this.last = kept ? previous.last : Math.max(0, this.selected);
    this.label = `${metadata.title}: ${say("{layers} layers, up to {heads} heads each.", { layers: this.layers.length, heads: this.heads })} ${say("Move with the arrow keys, choose with Enter.")} ${say("Shift and an arrow key move within a head.")}`;
    this.help = say("small heat maps");
  }

  largeMap() {
    const { rows, columns, special_rows: specialRows, special_columns: specialColumns } = this.metadata;
    const look = { scale: "sequential", limit: 1, titles: false, rounded: true };
    const { row_pictures: rowPictures, column_pictures: columnPictures } = this.metadata;
    const { inks } = this.metadata;
    return new Heatmap({ rows, columns, specialRows, specialColumns, rowPictures, columnPictures, inks, ...look });
  }

  layout(context, theme, width) {
    this.below = width < WIDE_FROM;
    const panelWidth = Math.min(34 * theme.size, this.below ? width : width * 0.42);
    const gridWidth = this.below ? width : width - panelWidth - 1.5 * theme.size;
    const legendRoom = 8 + this.legend.layout(context, theme, { x: 0, y: 0, width }) + 4;
    const fitting = GRID_HEIGHT * roomOf(context, theme) - legendRoom;
    const lineRoom = (gap) => fitting / this.layers.length - gap - 4 * 0.8 * theme.size; // two words below a tile
    const taken = this.layoutTiles(context, theme, {
      width: gridWidth,
      widestTile: (shape, gap) => (this.below ? Infinity : Math.max(3 * theme.size, lineRoom(gap) / shape)),
      smallest: 8,
    });
    this.gridHeight = taken.height;
    this.panelHead = theme.size * 2.1;
    const room = Math.min(panelWidth * 1.15, 38 * theme.size, fitting) - this.panelHead;
    const mapTall = this.map.layout(context, theme, {
      width: panelWidth,
      room: Math.max(14 * theme.size, room),
      widestCell: 64,
    });
    this.panel = {
      width: panelWidth,
      height: this.panelHead + mapTall,
      x: this.below ? 0 : Math.min(taken.width + 2 * theme.size, width - panelWidth),
    };
    const tall = this.below ? taken.height + theme.size + this.panel.height : Math.max(taken.height, this.panel.height);
    return (
      tall + 8 + this.legend.layout(context, theme, { x: this.header, y: tall + 8, width: width - this.header }) + 4
    );
  }

  geometry() {
    const { plot, stepX, stepY } = this.map;
    return { tiles: this.tiles.map((_, i) => this.tileBox(i)), panel: { x: plot.x, y: plot.y, stepX, stepY } };
  }

  paintBase(context, theme, ratio) {
    this.paintTiles(context, theme, ratio);
    if (this.selected >= 0 && !theme.unmarked) this.frame(context, this.selected, cssOf(theme.chosen), 3);
    this.legend.paint(context, theme, ratio);
  }

  paintFocus(context, theme, focus, ratio) {
    if (focus) this.last = focus.tile;
    const shown = focus ? focus.tile : this.selected >= 0 ? this.selected : this.last;
    if (focus) this.frame(context, focus.tile, cssOf(theme.ink), 2);
    this.placePanel(shown);
    this.paintPanel(context, theme, shown, focus, ratio);
  }

  // Beside the tiles: level with the tile, as far as the picture reaches.
  placePanel(tile) {
    const [, tileY, , tileHeight] = this.tileBox(tile);
    const { panel, gridHeight } = this;
    const level = Math.min(
      Math.max(0, gridHeight - panel.height),
      Math.max(0, tileY + tileHeight / 2 - panel.height / 2),
    );
    // Whole pixels, so that the kept picture of the panel stays sharp.
    panel.y = Math.round(this.below ? gridHeight + 10 : level);
    panel.x = Math.round(panel.x);
    const { plot, box } = this.map;
    const [dx, dy] = [panel.x - box.x, panel.y + this.panelHead - box.y];
    box.x += dx;
    box.y += dy;
    plot.x += dx;
    plot.y += dy;
  }

  // The large map is kept until another head is shown: moving within a tile only moves the crosshair.
  paintPanel(context, theme, tile, focus, ratio) {
    const { panel } = this;
    if (context.vector) return this.paintLarge(context, theme, tile, ratio);
    if (this.kept?.tile !== tile || this.kept.theme !== theme || this.kept.ratio !== ratio) {
      const picture = new OffscreenCanvas(Math.ceil((panel.width + 8) * ratio), Math.ceil((panel.height + 8) * ratio));
      const pen = picture.getContext("2d");
      pen.scale(ratio, ratio);
      pen.translate(-panel.x, -panel.y);
      this.paintLarge(pen, theme, tile, ratio);
      this.kept = { tile, theme, ratio, picture };
    }
    const { picture } = this.kept;
    context.drawImage(picture, panel.x, panel.y, picture.width / ratio, picture.height / ratio);
    if (focus && (focus.row !== undefined || focus.column !== undefined))
      this.map.paintFocus(context, theme, focus, ratio);
  }

  paintLarge(context, theme, tile, ratio) {
    const { panel } = this;
    const [x, y] = [panel.x, panel.y + theme.size * 0.7];
    context.font = fontOf(theme, 1, 600);
    drawText(context, this.name(tile), x, y, { colour: cssOf(theme.ink) });
    const used = context.measureText(this.name(tile)).width + 12;
    context.font = fontOf(theme, 0.875);
    const { caption } = this.tiles[tile];
    if (caption)
      drawText(context, shorten(context, caption, panel.width - used), x + used, y, { colour: cssOf(theme.muted) });
    this.map.limit = this.limit(tile);
    this.map.paint(context, theme, this.matrices[tile], ratio);
  }
}
