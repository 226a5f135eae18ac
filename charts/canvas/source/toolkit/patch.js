// A patch of an image, as small as a name: in its colours, or as dark ink on white in every theme.

import { cssOf } from "./colour.js";

// pixels: of each the ink, 0 to 1, or the colour, in reading order; (x, y): the middle
export function drawPatch(pen, theme, pixels, x, y, side) {
  const across = Math.round(Math.sqrt(pixels.length));
  const cell = side / across;
  pen.fillStyle = "rgb(255,255,255)";
  pen.fillRect(x - side / 2, y - side / 2, side, side);
  pixels.forEach((pixel, at) => {
    const grey = Math.round(255 * (1 - pixel));
    pen.fillStyle = typeof pixel === "string" ? pixel : `rgb(${grey},${grey},${grey})`;
    const [column, row] = [at % across, Math.floor(at / across)];
    // A cell reaches a little under the next one, so that no seam shows between them.
    const [right, below] = [column < across - 1 ? 0.6 : 0, row < across - 1 ? 0.6 : 0];
    pen.fillRect(x - side / 2 + column * cell, y - side / 2 + row * cell, cell + right, cell + below);
  });
  pen.strokeStyle = cssOf(theme.faint);
  pen.lineWidth = 1;
  pen.strokeRect(x - side / 2, y - side / 2, side, side);
}

const SHEER = 0.5; // how much of the colour of a cell the image on it hides
const SEEN = 3; // the least side of a pixel that is painted by itself

// What a patch holds, over the colour of its cell: its own colours, or its ink, white as chalk.
export function paintInk(pen, pixels, box) {
  if (typeof pixels[0] === "string") return paintColours(pen, pixels, box);
  paintPixels(
    pen,
    pixels.map((ink) => cssOf([255, 255, 255], ink && 0.15 + 0.75 * ink)),
    box,
  );
}

function paintColours(pen, pixels, [x, y, width, height]) {
  const colours = pixels.map((pixel) => [1, 3, 5].map((at) => parseInt(pixel.slice(at, at + 2), 16)));
  const whole = Math.round(Math.sqrt(pixels.length));
  const across = width / whole < SEEN ? 1 : whole;
  const mean = [0, 1, 2].map((channel) => colours.reduce((sum, one) => sum + one[channel], 0) / colours.length);
  const shown = (across === 1 ? [mean] : colours).map((one) => cssOf(one.map(Math.round), SHEER));
  paintPixels(pen, shown, [x, y, width, height]);
}

function paintPixels(pen, fills, [x, y, width, height]) {
  const across = Math.round(Math.sqrt(fills.length));
  fills.forEach((fill, at) => {
    pen.fillStyle = fill;
    const [column, row] = [at % across, Math.floor(at / across)];
    pen.fillRect(x + (column * width) / across, y + (row * height) / across, width / across, height / across);
  });
}
