// The heads of one kind of attention: up to three large and named, under them every head as a small map.

import { cssOf } from "../toolkit/colour.js";
import { drawText, fontOf, shorten, wrap } from "../toolkit/text.js";
import { roomOf } from "../toolkit/theme.js";
import { say } from "../toolkit/words.js";
import { GridDrawing } from "./grid.js";
import { isProjected } from "./heatmap_layout.js";

const HEIGHT = 480; // px on a projector: large maps, all small ones and the legend end on its first screen
const PROJECTED = 648; // while somebody presents, less stands above them
const SMALL_SHARE = 0.31; // of that height, at most, for the small maps …
const LEAST_SMALL = 1.9; // letters: so high are all small maps at least, where the labels of the large ones need the room
const MANY = 100; // … and more where there are so many of them
const SHARE_OF_MANY = 0.46;
const MOST_LARGE = 3;
const MOST_LINES = 3; // of the sentence above a large map
const NARROWEST = 17; // letters: a large map is at least as wide
const SMALL_TILE = 1.5; // letters: rather than narrower small maps, a column of them takes the place of a large map
const WORTH_IT = 1.3; // … if that makes them so much larger
const PINNED = 0.32; // of the height for the large maps that stay while the small ones are scrolled

export class HeadsDrawing extends GridDrawing {
  constructor(payload, previous) {
    super(payload, previous);
    const { metadata } = payload;
    this.dimmed = true;
    this.named = metadata.named.map(([layer, head]) => this.tileOf({ layer, head }));
    // One map more than are named: for the head that is pointed at.
    this.maps = Array.from({ length: Math.min(MOST_LARGE, this.named.length + 1) }, () => this.largeMap());
  }

  layout(context, theme, width) {
    const legendRoom = 8 + this.legend.layout(context, theme, { x: 0, y: 0, width }) + 4;
    const room = (isProjected(theme) ? PROJECTED : HEIGHT) * roomOf(context, theme) - legendRoom;
    const share = this.tiles.length > MANY ? SHARE_OF_MANY : SMALL_SHARE;
    const { scrolls } = this.metadata;
    let bottom = { width, height: room * share };
    let small = scrolls
      ? this.layoutTiles(context, theme, { width, widestTile: () => 8 * theme.size })
      : this.layoutCompact(context, theme, bottom);
    if (scrolls) this.headRoom = this.top;
    const below = this.layoutLarge(context, theme, width, room - (scrolls ? (1 - PINNED) * room : small.height));
    if (!scrolls && below + small.height > room) {
      // The labels of the large maps made them taller.
      bottom = { width, height: Math.max(LEAST_SMALL * theme.size, room - below) };
      small = this.layoutCompact(context, theme, bottom);
    }
    this.kept = null;
    if (!scrolls && this.tileWidth < SMALL_TILE * theme.size) {
      const aside = this.layoutAside(context, theme, width, room);
      if (aside) return aside + 8 + this.legend.layout(context, theme, { x: 0, y: aside + 8, width }) + 4;
      small = this.layoutCompact(context, theme, bottom);
    }
    if (scrolls) {
      // What the small maps are read with stays in sight above them.
      this.pinned = below + this.legend.layout(context, theme, { x: 0, y: below, width }) + 0.4 * theme.size;
      this.top += this.pinned;
      return this.pinned + small.height;
    }
    this.top += below;
    const tall = this.top - this.headRoom + small.height;
    return tall + 8 + this.legend.layout(context, theme, { x: 0, y: tall + 8, width }) + 4;
  }

  // The small maps in a column of their own, as wide as a large map, where they are too small below the large ones.
  // -> the height of both; null where they stay below
  layoutAside(context, theme, width, room) {
    const count = Math.min(this.maps.length, Math.floor(width / (NARROWEST * theme.size))) - 1;
    if (count < 1) return null;
    const apart = 1.5 * theme.size;
    const [before, y] = [this.tileWidth, this.slotHead];
    const column = (width - count * apart) / (count + 1);
    const small = this.layoutCompact(context, theme, { x: width - column, y, width: column, height: room - y });
    if (this.tileWidth < WORTH_IT * before) return null;
    return Math.max(this.layoutLarge(context, theme, width - column - apart, room, count), y + small.height);
  }

  // The large maps side by side: as many as leave every row and column its label, and no narrower than `NARROWEST`.
  // -> the height that they take
  layoutLarge(context, theme, width, room, most = this.maps.length) {
    const apart = 1.5 * theme.size;
    const fitting = Math.min(most, Math.max(1, Math.floor(width / (NARROWEST * theme.size))));
    const fewer = Array.from({ length: fitting }, (_, less) => fitting - less);
    for (const count of [...fewer, fitting]) {
      this.slotWidth = (width - (count - 1) * apart) / count;
      context.font = fontOf(theme, 0.875);
      this.said = MOST_LINES;
      this.said = Math.max(...this.named.map((tile) => this.sentenceLines(context, tile).length));
      this.slotHead = (1.3 + 1.15 * this.said) * theme.size; // a name, and what it says
      const large = Math.max(9 * theme.size, room - this.slotHead - 0.8 * theme.size);
      this.slots = this.maps.slice(0, count).map((map, i) => {
        const x = i * (this.slotWidth + apart);
        const box = { x, y: this.slotHead, width: this.slotWidth, room: large, ...this.cells(theme) };
        return { map, x, height: this.slotHead + map.layout(context, theme, box) };
      });
      if (this.slots[0].map.showsAllLabels(theme)) break;
    }
    return Math.max(...this.slots.map(({ height }) => height)) + 0.8 * theme.size;
  }

  // How large the cells of a large map may become: the patches of an image are square.
  cells(theme) {
    if (this.metadata.inks) return { widestCell: 60, tallestCell: 60 };
    return { widestCell: 64, tallestCell: isProjected(theme) ? 14.6 : 44 };
  }

  sentenceLines(context, tile) {
    return wrap(context, `${this.name(tile)}. ${this.tiles[tile].sentence}`, this.slotWidth, this.said);
  }

  // Which head every large map shows, -1 for none: those with a job, and the last one also what is chosen or pointed at.
  shownIn(focus) {
    const last = this.slots.length - 1;
    const shown = this.slots.map((_, i) => this.named[i] ?? -1);
    for (const tile of [focus?.tile ?? -1, this.selected]) {
      if (tile < 0 || shown.slice(0, last).includes(tile)) continue;
      shown[last] = tile;
      break;
    }
    return shown;
  }

  slotOf(tile, focus) {
    return this.shownIn(focus ?? { tile }).indexOf(tile);
  }

  geometry() {
    const places = this.slots.map(({ map: { plot, stepX, stepY } }, i) => ({
      x: plot.x,
      y: plot.y,
      stepX,
      stepY,
      tile: this.shownIn(this.focus)[i],
    }));
    return { tiles: this.tiles.map((_, i) => this.tileBox(i)), large: places };
  }

  hit(x, y) {
    const shown = this.shownIn(this.focus);
    for (const [i, { map }] of this.slots.entries()) {
      const cell = shown[i] < 0 ? null : map.hit(x, y);
      if (cell) return { tile: shown[i], ...cell, large: true };
    }
    return this.tileAt(x, y);
  }

  first() {
    return { tile: this.selected >= 0 ? this.selected : this.named[0] };
  }

  tipEdge() {
    return undefined;
  }

  anchor({ tile, row, column }) {
    const slot = row === undefined && column === undefined ? -1 : this.slotOf(tile);
    if (slot >= 0) {
      const { map } = this.slots[slot];
      return [map.columnX(column ?? 0) + map.stepX / 2, map.rowY(row ?? 0) + map.stepY / 2];
    }
    const [x, y, width, height] = this.tileBox(tile);
    return [x + width / 2, y + height / 2];
  }

  paintBase(context, theme, ratio) {
    super.paintBase(context, theme, ratio);
    const shown = this.shownIn(null);
    for (let i = 0; i < this.slots.length - 1; i++) this.paintSlot(context, theme, i, shown[i], ratio);
  }

  paintFocus(context, theme, focus, ratio) {
    this.focus = focus;
    const shown = this.shownIn(focus);
    const last = this.slots.length - 1;
    this.paintKept(context, theme, last, shown[last], ratio);
    if (!focus) return;
    this.frame(context, focus.tile, cssOf(theme.ink), 2);
    const slot = shown.indexOf(focus.tile);
    if (slot < 0 || (focus.row === undefined && focus.column === undefined)) return;
    this.slots[slot].map.paintFocus(context, theme, focus, ratio);
  }

  // The last of the large maps is kept until it shows another head.
  paintKept(context, theme, slot, tile, ratio) {
    if (context.vector) return this.paintSlot(context, theme, slot, tile, ratio);
    const [x, width, height] = [Math.floor(this.slots[slot].x), this.slotWidth + 10, this.slots[slot].height + 10];
    if (this.kept?.tile !== tile || this.kept.theme !== theme || this.kept.ratio !== ratio) {
      const picture = new OffscreenCanvas(Math.ceil(width * ratio), Math.ceil(height * ratio));
      const pen = picture.getContext("2d");
      pen.scale(ratio, ratio);
      pen.translate(-x, 0);
      this.paintSlot(pen, theme, slot, tile, ratio);
      this.kept = { tile, theme, ratio, picture };
    }
    const { picture } = this.kept;
    context.drawImage(picture, x, 0, picture.width / ratio, picture.height / ratio);
  }

  paintSlot(context, theme, slot, tile, ratio) {
    const { map, x } = this.slots[slot];
    const [muted, line] = [cssOf(theme.muted), 1.15 * theme.size];
    if (tile < 0) {
      if (theme.unmarked) return; // nobody points at anything in a file
      context.font = fontOf(theme, 0.875);
      wrap(context, say("Point at a small map to enlarge it. A click selects it."), this.slotWidth).forEach((text, i) =>
        drawText(context, text, x, theme.size * 0.7 + i * line, { colour: muted }),
      );
      return;
    }
    context.font = fontOf(theme, 1, 600);
    const { title, clear, colour, edge } = this.tiles[tile];
    const box = colour >= 0 ? theme.size : 0;
    context.fillStyle = theme.heads[colour]; // that of its frame below
    context.fillRect(x, theme.size * 0.3, box * 0.7, box * 0.7);
    drawText(context, shorten(context, title, this.slotWidth - box), x + box, theme.size * 0.7, {
      colour: cssOf(clear ? theme.ink : theme.muted),
    });
    context.font = fontOf(theme, 0.875);
    this.sentenceLines(context, tile).forEach((text, i) =>
      drawText(context, text, x, theme.size * 1.75 + i * line, { colour: muted }),
    );
    map.limit = this.limit(tile);
    map.paint(context, theme, this.matrices[tile], ratio);
    if (edge) map.paintSelected(context, theme, edge, ratio); // of the row −1 only the top of its column shows
  }
}
