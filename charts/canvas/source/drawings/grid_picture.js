// All heads of all layers at once: a tile each, and one of them large beside them. How they are laid out and painted.

import { cssOf } from "../toolkit/colour.js";
import { Matrix } from "../toolkit/matrix.js";
import { drawText, fontOf, shorten, wrap } from "../toolkit/text.js";
import { colourOf, roomOf } from "../toolkit/theme.js";
import { say } from "../toolkit/words.js";
import { matrixBitmap, paintMask } from "./bitmap.js";
import { Heatmap } from "./heatmap.js";
import { Legend } from "./legend.js";

const GRID_HEIGHT = 427; // px on a projector: tiles, large map and legend end on its first screen
const WIDE_FROM = 640; // px: from here on the large map stands beside the tiles, on narrower screens under them

export class GridPicture {
  constructor({ metadata, arrays }, previous) {
    this.metadata = metadata;
    this.tiles = metadata.tiles;
    const [rows, columns] = [metadata.rows.length, metadata.columns.length];
    const { values, shape } = arrays.masks;
    const bits = Array.from({ length: shape[0] }, (_, i) => values.subarray(i * shape[1], (i + 1) * shape[1]));
    this.matrices = this.tiles.map(({ mask }, i) => {
      const part = arrays.weights.values.subarray(i * rows * columns, (i + 1) * rows * columns);
      return new Matrix({ values: part, rows, columns, bits: bits[mask], divisor: 255 / this.limit(i) });
    });
    this.map = new Heatmap({
      rows: metadata.rows,
      columns: metadata.columns,
      scale: "sequential",
      limit: 1,
      titles: false,
      rounded: true,
      specialRows: metadata.special_rows,
      specialColumns: metadata.special_columns,
    });
    const [text, ends] = metadata.stretched
      ? [say("attention weight, every map stretched to its own largest"), ["0", say("largest")]]
      : [say("attention weight, fixed scale 0…1")];
    this.legend = new Legend({
      text,
      ends,
      scale: "sequential",
      limit: 1,
      masked: this.matrices.some((matrix) => matrix.anyMasked()),
    });
    this.layers = [...new Set(this.tiles.map((tile) => tile.layer))];
    this.heads = Math.max(...this.tiles.map((tile) => tile.head)) + 1;
    // A table of layers × heads, or tiles one after the other, each of which then says which head it is.
    this.listed = metadata.sorted || Boolean(metadata.per_line);
    this.across = metadata.per_line ?? this.heads;
    this.selected = metadata.selected
      ? this.tiles.findIndex(({ layer, head }) => layer === metadata.selected[0] && head === metadata.selected[1])
      : -1;
    const kept =
      previous && previous.tiles.length === this.tiles.length && !metadata.sorted && !previous.metadata.sorted;
    this.last = kept ? previous.last : Math.max(0, this.selected);
    this.label = `${metadata.title}: ${say("{layers} layers, up to {heads} heads each.", { layers: this.layers.length, heads: this.heads })} ${say("Move with the arrow keys, choose with Enter.")} ${say("Shift and an arrow key move within a head.")}`;
    this.help = say("small heat maps");
  }

  // Where the scale of a map ends.
  limit(tile) {
    return this.tiles[tile].limit ?? 1;
  }

  name(tile) {
    const { layer, head } = this.tiles[tile];
    return `${say("layer {layer}", { layer })} · ${say("head {head}", { head })}`;
  }

  // Where a tile stands in the table of tiles.
  slot(tile) {
    if (this.listed) return { line: Math.floor(tile / this.across), column: tile % this.across };
    return { line: this.layers.indexOf(this.tiles[tile].layer), column: this.tiles[tile].head };
  }

  layout(context, theme, width) {
    const small = theme.size * 0.8;
    context.font = fontOf(theme, 0.8);
    this.header = this.listed
      ? 0
      : context.measureText(say("layer {layer}", { layer: Math.max(...this.layers) })).width + 12;
    this.below = width < WIDE_FROM;
    const panelWidth = Math.min(34 * theme.size, this.below ? width : width * 0.42);
    const gridWidth = this.below ? width : width - panelWidth - 1.5 * theme.size;
    this.gap = gridWidth / this.across > 90 ? 10 : 6;
    const legendRoom = 8 + this.legend.layout(context, theme, { x: 0, y: 0, width }) + 4;
    const fitting = GRID_HEIGHT * roomOf(context, theme) - legendRoom;
    const shape = Math.min(1.5, Math.max(0.6, this.metadata.rows.length / this.metadata.columns.length));
    const lineRoom = fitting / this.layers.length - this.gap - 4 * small; // two words below a tile
    const widestTile = this.below ? Infinity : Math.max(3 * theme.size, lineRoom / shape);
    const share = (gridWidth - this.header) / this.across - this.gap;
    this.tileWidth = Math.max(18, Math.min(8 * theme.size, share, widestTile));
    this.tileHeight = this.tileWidth * shape;
    context.font = fontOf(theme, 0.75, 500);
    this.words = this.tiles.map(({ layer, head, caption }) => [
      ...(this.listed ? [this.layers.length > 1 ? `L${layer} H${head}` : say("head {head}", { head })] : []),
      ...wrap(context, caption, this.tileWidth + this.gap - 2),
    ]);
    const mostWords = Math.max(...this.words.map((words) => words.length));
    this.lineHeight = this.tileHeight + mostWords * small * 1.2 + this.gap + (mostWords ? 4 : 0);
    this.top = this.listed ? 2 : small * 1.9;
    const lines = Math.max(...this.tiles.map((_, i) => this.slot(i).line)) + 1;
    const gridHeight = this.top + lines * this.lineHeight;
    const taken = this.header + this.across * (this.tileWidth + this.gap);
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
      x: this.below ? 0 : Math.min(taken + 2 * theme.size, width - panelWidth),
    };
    this.gridHeight = gridHeight;
    const tall = this.below ? gridHeight + theme.size + this.panel.height : Math.max(gridHeight, this.panel.height);
    return (
      tall + 8 + this.legend.layout(context, theme, { x: this.header, y: tall + 8, width: width - this.header }) + 4
    );
  }

  tileBox(tile) {
    const { line, column } = this.slot(tile);
    return [
      Math.round(this.header + column * (this.tileWidth + this.gap)),
      Math.round(this.top + line * this.lineHeight),
      Math.round(this.tileWidth),
      Math.round(this.tileHeight),
    ];
  }

  geometry() {
    const { plot, stepX, stepY } = this.map;
    return { tiles: this.tiles.map((_, i) => this.tileBox(i)), panel: { x: plot.x, y: plot.y, stepX, stepY } };
  }

  paintBase(context, theme, ratio) {
    const muted = cssOf(theme.muted);
    const small = theme.size * 0.8;
    context.font = fontOf(theme, 0.8);
    if (!this.listed) {
      for (const layer of this.layers) {
        const y = this.top + this.layers.indexOf(layer) * this.lineHeight + this.tileHeight / 2;
        drawText(context, say("layer {layer}", { layer }), this.header - 10, y, { align: "right", colour: muted });
      }
      for (let head = 0; head < this.heads; head++) {
        const wide = this.tileWidth >= context.measureText("head 10").width;
        drawText(
          context,
          wide || head === 0 ? say("head {head}", { head }) : String(head),
          this.header + head * (this.tileWidth + this.gap) + this.tileWidth / 2,
          small * 0.8,
          { align: "center", colour: muted },
        );
      }
    }
    this.tiles.forEach((tile, i) => {
      const [x, y, width, height] = this.tileBox(i);
      this.paintTile(
        context,
        theme,
        this.matrices[i],
        colourOf(theme, "sequential", this.limit(i)),
        [x, y, width, height],
        ratio,
      );
      context.font = fontOf(theme, 0.75, 500);
      this.words[i].forEach((word, k) => {
        const shade = k === 0 && this.listed ? cssOf(theme.ink) : muted;
        drawText(
          context,
          shorten(context, word, width + this.gap - 2),
          x + width / 2,
          y + height + 5 + small * (0.6 + 1.2 * k),
          { align: "center", colour: shade },
        );
      });
    });
    if (this.selected >= 0) this.frame(context, theme, this.selected, theme.chosen, 3);
    this.legend.paint(context, theme, ratio);
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

  frame(context, theme, tile, colour, thick) {
    const [x, y, width, height] = this.tileBox(tile);
    context.strokeStyle = cssOf(colour);
    context.lineWidth = thick;
    context.beginPath();
    context.roundRect(x - thick / 2 - 1, y - thick / 2 - 1, width + thick + 2, height + thick + 2, 6);
    context.stroke();
  }

  paintFocus(context, theme, focus, ratio) {
    if (focus) this.last = focus.tile;
    const shown = focus ? focus.tile : this.selected >= 0 ? this.selected : this.last;
    if (focus) this.frame(context, theme, focus.tile, theme.ink, 2);
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
