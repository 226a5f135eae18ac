// A patch of an image, as small as a name: dark ink on white in every theme.

import { cssOf } from "./colour.js";

// pixels: the ink of each, 0 to 1, in reading order; (x, y): the middle
export function drawPatch(pen, theme, pixels, x, y, side) {
  const across = Math.round(Math.sqrt(pixels.length));
  const cell = side / across;
  pen.fillStyle = "rgb(255,255,255)";
  pen.fillRect(x - side / 2, y - side / 2, side, side);
  pixels.forEach((ink, at) => {
    const grey = Math.round(255 * (1 - ink));
    pen.fillStyle = `rgb(${grey},${grey},${grey})`;
    pen.fillRect(x - side / 2 + (at % across) * cell, y - side / 2 + Math.floor(at / across) * cell, cell, cell);
  });
  pen.strokeStyle = cssOf(theme.faint);
  pen.lineWidth = 1;
  pen.strokeRect(x - side / 2, y - side / 2, side, side);
}
