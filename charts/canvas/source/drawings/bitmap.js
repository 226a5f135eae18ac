// Maps with cells of few pixels: one pixel a cell, and what is hatched on top.

import { hatch } from "../toolkit/hatch.js";

export function matrixBitmap(matrix, theme, colour) {
  const canvas = new OffscreenCanvas(matrix.columns, matrix.rows);
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(matrix.columns, matrix.rows);
  for (let row = 0, i = 0; row < matrix.rows; row++)
    for (let column = 0; column < matrix.columns; column++, i += 4) {
      const value = matrix.at(row, column);
      const known = matrix.allowed(row, column) && !Number.isNaN(value);
      image.data.set(known ? colour(value) : theme.hatchGround, i);
      image.data[i + 3] = 255;
    }
  pen.putImageData(image, 0, 0);
  return canvas;
}

// Hatches the masked cells, whole runs of a row at once. `place(row, from, to)` says where a run lies.
export function paintMask(context, theme, matrix, ratio, place) {
  context.beginPath();
  for (let row = 0; row < matrix.rows; row++)
    for (let column = 0; column < matrix.columns; column++) {
      if (matrix.allowed(row, column)) continue;
      const from = column;
      while (column < matrix.columns && !matrix.allowed(row, column)) column++;
      context.rect(...place(row, from, column));
    }
  context.fillStyle = hatch(context, theme, ratio);
  context.fill();
}
