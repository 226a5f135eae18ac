// One labelled matrix: how its cells, labels and highlights are painted.

import { cssOf, inkOn, mix } from "../toolkit/colour.js";
import { hatch } from "../toolkit/hatch.js";
import { exactly, shortNumber, smallDecimals } from "../toolkit/numbers.js";
import { drawPatch, paintInk } from "../toolkit/patch.js";
import { drawText, drawToken, fontOf, shorten } from "../toolkit/text.js";
import { colourOf } from "../toolkit/theme.js";
import { matrixBitmap, paintMask } from "./bitmap.js";
import { HeatmapLayout, isProjected, NAME } from "./heatmap_layout.js";

const READ_FROM_AFAR = 13; // px: smaller digits are left out on a projector
const NUMBERS_FROM = 34; // px: narrower cells carry no number

export class Heatmap extends HeatmapLayout {
  clipped(context, paint) {
    const { plot } = this;
    context.save();
    context.beginPath();
    context.rect(plot.x - 0.5, plot.y - 0.5, plot.width + 1, plot.height + 1);
    context.clip();
    paint();
    context.restore();
  }

  paint(context, theme, matrix, ratio) {
    const colour = colourOf(theme, this.scale, this.limit);
    this.clipped(context, () => {
      if (Math.min(this.stepX, this.stepY) >= 5) this.paintCells(context, theme, matrix, colour, ratio);
      else this.paintBitmap(context, theme, matrix, colour, ratio);
    });
    this.paintLabels(context, theme);
    if (this.titles) this.paintTitles(context, theme);
  }

  // The cells alone, each with the colour at its `share` of the scale.
  paintShares(context, theme, matrix, share, ratio) {
    const paint = colourOf(theme, this.scale, 1);
    const colour = (value) => paint(share(value));
    this.clipped(context, () => {
      if (Math.min(this.stepX, this.stepY) >= 5) this.paintCells(context, theme, matrix, colour, ratio);
      else this.paintBitmap(context, theme, matrix, colour, ratio);
    });
  }

  // Pale cells on white: where the map ends.
  // Edges on whole device pixels, so that equal cells look equal.
  cellBox(row, column, ratio) {
    const snap = (value) => Math.round(value * ratio) / ratio;
    const [x, y] = [snap(this.columnX(column)), snap(this.rowY(row))];
    return [x, y, snap(this.columnX(column + 1)) - x, snap(this.rowY(row + 1)) - y];
  }

  paintCells(context, theme, matrix, colour, ratio) {
    const { top, bottom, left, right } = this.visible();
    const small = Math.min(this.stepX, this.stepY);
    const gap = small >= 9 ? Math.max(1, Math.round(small / 26)) : 0;
    const round = small >= 22 ? 3 : 0;
    const stripes = hatch(context, theme, ratio);
    const digits = this.stepX >= 46 * (theme.size / 16) && !this.rounded ? 3 : 2;
    const signed = this.scale === "diverging" || this.limit > 1;
    const more = signed ? smallDecimals(this.limit) - 2 : 0;
    const wide = digits + more + 2; // letters
    const projected = isProjected(theme);
    const letters = Math.min(theme.size * 0.84, this.stepY * (projected ? 0.72 : 0.5), this.stepX / wide / 0.54);
    const withNumbers = this.stepX >= NUMBERS_FROM && this.stepY >= 17 && (!projected || letters >= READ_FROM_AFAR);
    for (let row = top; row <= bottom; row++)
      for (let column = left; column <= right; column++) {
        const [x, y, width, height] = this.cellBox(row, column, ratio);
        const allowed = matrix.allowed(row, column);
        const value = matrix.at(row, column);
        const lost = allowed && Number.isNaN(value);
        const paint = allowed && !lost ? colour(value) : theme.hatchGround;
        context.fillStyle = allowed ? cssOf(paint) : stripes;
        if (round) {
          context.beginPath();
          context.roundRect(x + gap / 2, y + gap / 2, width - gap, height - gap, round);
          context.fill();
        } else context.fillRect(x + gap / 2, y + gap / 2, width - gap, height - gap);
        if (this.inks) paintInk(context, this.inks[row * matrix.columns + column], [x, y, width, height]);
        if (this.inks || !withNumbers || !allowed || !this.hasNumber(row, column)) continue;
        const ink = inkOn(paint);
        context.font = `500 ${letters}px ${theme.font}, sans-serif`;
        const number = this.whole ? exactly(Math.round(value) + 0) : shortNumber(value, digits, signed, this.limit);
        const isZero = !/[1-9N]/.test(number);
        const isSmall = Math.abs(value) < 0.05 * this.limit;
        if (projected && (isZero || isSmall)) continue;
        // A number that rounds to zero is a dot, so that the eye finds those that do not.
        drawText(context, isZero ? "·" : number, x + width / 2, y + height / 2 + 0.5, {
          align: "center",
          colour: cssOf(ink, isSmall ? 0.5 : 1),
        });
      }
  }

  // Of a map whose reader needs only a few numbers, the others are found by pointing and in the table.
  hasNumber(row, column) {
    return !this.numbered || this.numbered.some(([atRow, atColumn]) => atRow === row && atColumn === column);
  }

  // Cells of a few pixels: one pixel each in a bitmap, enlarged without blur, or averaged when there are more cells than pixels.
  paintBitmap(context, theme, matrix, colour, ratio) {
    const [rows, columns] = [matrix.rows, matrix.columns];
    const bitmap = matrixBitmap(matrix, theme, colour);
    context.imageSmoothingEnabled = this.stepX * ratio < 1 || this.stepY * ratio < 1;
    context.imageSmoothingQuality = "high";
    context.drawImage(bitmap, this.columnX(0), this.rowY(0), columns * this.stepX, rows * this.stepY);
    paintMask(context, theme, matrix, ratio, (row, from, to) => [
      this.columnX(from),
      this.rowY(row),
      (to - from) * this.stepX,
      this.stepY,
    ]);
  }

  paintLabels(context, theme) {
    const { top, bottom, left, right } = this.visible();
    const [rowStep, columnStep] = [this.every("row", theme), this.every("column", theme)];
    for (let row = Math.ceil(top / rowStep) * rowStep; row <= bottom; row += rowStep)
      if (this.hasRoom(theme, this.rowPictures, row, this.stepY)) this.paintRowLabel(context, theme, row);
    for (let column = Math.ceil(left / columnStep) * columnStep; column <= right; column += columnStep)
      if (this.hasRoom(theme, this.columnPictures, column, this.stepX)) this.paintColumnLabel(context, theme, column);
  }

  // Of the names before many patches, those that would lie upon each other are left out.
  hasRoom(theme, pictures, index, step) {
    return !pictures || pictures[index] || index % Math.ceil((this.labelScale * theme.size) / step) === 0;
  }

  labelStyle(theme, special, strong) {
    const colour = strong ? theme.ink : special ? theme.muted : mix(theme.ink, theme.ground, 0.1);
    return { colour: cssOf(colour), paler: cssOf(mix(colour, theme.ground, 0.4)) };
  }

  // A highlighted label (it has a tint) stands on a pill, which also hides the neighbours that were there.
  pill(context, theme, tint, x, y, width, height) {
    context.fillStyle = cssOf(theme.ground);
    context.fillRect(x, y, width, height);
    context.fillStyle = cssOf(tint, theme.dark ? 0.34 : 0.17);
    context.beginPath();
    context.roundRect(x, y, width, height, 5);
    context.fill();
  }

  paintRowLabel(context, theme, row, tint = null) {
    const y = this.rowY(row) + this.stepY / 2;
    if (y < this.plot.y || y > this.plot.y + this.plot.height) return;
    const x = this.plot.x - 8;
    if (this.rowPictures?.[row]) {
      const side = this.pictureSide(theme, this.stepY);
      this.paintPicture(context, theme, tint, this.rowPictures[row], [x - side / 2, y], side);
      if (this.stepY > this.labelScale * NAME * theme.size)
        this.paintPictureName(context, theme, this.rows[row], { x: x - side - 4, y, align: "right" }, tint);
      return;
    }
    context.font = fontOf(theme, this.labelScale, tint ? 600 : 400);
    const half = Math.min(theme.size * 0.66, Math.max(this.stepY, this.labelScale * theme.size) / 2);
    if (tint) {
      const width = Math.min(this.rowRoom, context.measureText(this.rows[row]).width);
      this.hideNeighbours(context, theme, row, x);
      this.pill(context, theme, tint, x - width - 5, y - half, width + 10, 2 * half);
    }
    drawToken(context, this.rows[row], x, y, {
      align: "right",
      room: this.rowRoom,
      ...this.labelStyle(theme, this.specialRows.has(row), tint),
    });
  }

  // A label that is an image patch, with a frame where it is highlighted.
  paintPicture(context, theme, tint, pixels, [x, y], side) {
    drawPatch(context, theme, pixels, x, y, side);
    if (!tint) return;
    context.strokeStyle = cssOf(tint);
    context.lineWidth = 3;
    context.strokeRect(x - side / 2 - 0.5, y - side / 2 - 0.5, side + 1, side + 1);
  }

  // The name of a patch, in small letters, where it fits.
  paintPictureName(context, theme, name, { x, y, align, room = Infinity }, tint) {
    context.font = fontOf(theme, this.labelScale * NAME, tint ? 600 : 400);
    if (context.measureText(name).width < room)
      drawText(context, name, x, y, { align, colour: this.labelStyle(theme, true, tint).colour });
  }

  // A name that a highlighted one would cover in part is left out whole.
  hideNeighbours(context, theme, row, x) {
    const step = this.every("row", theme);
    const before = Math.floor((row - 1) / step) * step;
    context.fillStyle = cssOf(theme.ground);
    for (let near = before; near <= row + step; near += step)
      if (near !== row && !this.rowPictures?.[near] && Math.abs(near - row) * this.stepY < this.labelScale * theme.size)
        context.fillRect(x - this.rowRoom, this.rowY(near) + (this.stepY - theme.size) / 2, this.rowRoom, theme.size);
  }

  paintColumnLabel(context, theme, column, tint = null) {
    const x = this.columnX(column) + this.stepX / 2;
    if (x < this.plot.x || x > this.plot.x + this.plot.width) return;
    if (this.columnPictures?.[column]) {
      const side = this.pictureSide(theme, this.stepX);
      this.paintPicture(context, theme, tint, this.columnPictures[column], [x, this.plot.y - side / 2 - 5], side);
      const y = this.plot.y - side - 7 - (this.labelScale * NAME * theme.size) / 2;
      this.paintPictureName(context, theme, this.columns[column], { x, y, align: "center", room: this.stepX }, tint);
      return;
    }
    context.font = fontOf(theme, this.labelScale, tint ? 600 : 400);
    // A name before a row of image patches would lie on the first of them if it were slanted: it ends above its cell.
    if (column === 0 && this.columnPictures?.[1]) {
      const side = this.pictureSide(theme, this.stepX);
      const [right, y] = [x + this.stepX / 2 - 1, this.plot.y - side / 2 - 5];
      const wide = context.measureText(this.columns[column]).width;
      const tall = this.labelScale * theme.size;
      if (tint) this.pill(context, theme, tint, right - wide - 4, y - tall * 0.7, wide + 8, tall * 1.4);
      const look = this.labelStyle(theme, this.specialColumns.has(column), tint);
      drawToken(context, this.columns[column], right, y, { align: "right", room: right, ...look });
      return;
    }
    const apart = this.slanted ? this.stepX * Math.sin(this.slant) : Infinity;
    const half = Math.min(theme.size * 0.66, Math.max(apart, this.labelScale * theme.size) / 2);
    const style = this.labelStyle(theme, this.specialColumns.has(column), tint);
    const label = this.columns[column];
    const room =
      this.slanted || tint ? 130 * (theme.size / 16) : Math.max(this.stepX * this.every("column", theme) - 4, 8);
    const width = Math.min(room, context.measureText(label).width);
    context.save();
    // The last of the labels that stand alone may be wider than its cell.
    const inside = this.slanted ? x : Math.min(x, this.box.x + this.box.width - width / 2);
    context.translate(inside, this.plot.y - (this.slanted ? theme.size * 0.45 : theme.size * 0.78));
    if (this.slanted) context.rotate(-this.slant);
    if (tint) this.pill(context, theme, tint, this.slanted ? -5 : -width / 2 - 5, -half, width + 10, 2 * half);
    drawToken(context, label, 0, 0, { align: this.slanted ? "left" : "center", room, ...style });
    context.restore();
  }

  paintTitles(context, theme) {
    const { plot, box } = this;
    const letter = theme.size * 0.8;
    context.font = fontOf(theme, 0.8);
    const colour = cssOf(theme.muted);
    // From the first column on, from before it where a narrow map leaves too little room beside it.
    const above = shorten(context, `${this.columnTitle} →`, box.width);
    const start = Math.min(plot.x, box.x + box.width - context.measureText(above).width);
    drawText(context, above, start, box.y + letter * 0.7, { colour });
    // Turned to read upwards beside the rows; a map with few rows gets it in two lines.
    context.save();
    context.translate(box.x + letter * 0.7, plot.y + plot.height);
    context.rotate(-Math.PI / 2);
    const title = `← ${this.rowTitle}`;
    const width = context.measureText(title).width;
    if (this.titleLines === 1) drawText(context, title, plot.height - width, 0, { colour });
    else {
      const [first, second] = [title.slice(0, title.indexOf(": ") + 1), title.slice(title.indexOf(": ") + 2)];
      const fits = first && context.measureText(second).width <= plot.height + this.labelRoom;
      drawText(context, fits ? first : first.slice(0, -1), 0, 0, { colour });
      if (fits) drawText(context, second, 0, letter * 1.2, { colour });
    }
    context.restore();
  }

  // What the pointer or the cursor is on: a crosshair, or everything else stepping back.
  paintFocus(context, theme, focus, ratio) {
    const { plot } = this;
    const { row, column } = focus;
    const both = row !== undefined && column !== undefined;
    this.clipped(context, () => {
      if (!both) {
        context.fillStyle = cssOf(theme.ground, 0.8);
        const [start, size] = row !== undefined ? [this.rowY(row), this.stepY] : [this.columnX(column), this.stepX];
        if (row !== undefined) {
          context.fillRect(plot.x, plot.y, plot.width, start - plot.y);
          context.fillRect(plot.x, start + size, plot.width, plot.y + plot.height - start - size);
        } else {
          context.fillRect(plot.x, plot.y, start - plot.x, plot.height);
          context.fillRect(start + size, plot.y, plot.x + plot.width - start - size, plot.height);
        }
        return;
      }
      const [x, y, width, height] = this.cellBox(row, column, ratio);
      for (const [paint, line] of [
        [cssOf(theme.ground, 0.8), 3],
        [cssOf(theme.ink, 0.75), 1],
      ]) {
        context.strokeStyle = paint;
        context.lineWidth = line;
        context.strokeRect(plot.x - 4, y, plot.width + 8, height);
        context.strokeRect(x, plot.y - 4, width, plot.height + 8);
      }
      this.outline(context, theme, [x, y, width, height], theme.ink, 2);
    });
    if (row !== undefined) this.paintRowLabel(context, theme, row, theme.primary);
    if (column !== undefined) this.paintColumnLabel(context, theme, column, theme.primary);
  }

  // Two lines, one in the colour and one in the page's own, so that it shows on every cell.
  outline(context, theme, [x, y, width, height], colour, thick) {
    const round = Math.min(width, height) >= 22 ? 4 : 0;
    for (const [inset, paint, line] of [
      [thick, theme.ground, 1.5],
      [0, colour, thick],
    ]) {
      if (Math.min(width, height) < 3 * inset) continue;
      context.strokeStyle = cssOf(paint);
      context.lineWidth = line;
      context.beginPath();
      context.roundRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset, round);
      context.stroke();
    }
  }

  paintSelected(context, theme, [row, column], ratio) {
    const box = this.cellBox(row, column, ratio);
    context.save();
    context.beginPath();
    context.rect(this.plot.x - 3, this.plot.y - 3, this.plot.width + 6, this.plot.height + 6);
    context.clip();
    this.outline(context, theme, box, theme.chosen, 3);
    context.restore();
    this.paintRowLabel(context, theme, row, theme.chosen);
    this.paintColumnLabel(context, theme, column, theme.chosen);
  }
}
