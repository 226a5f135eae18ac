// A patch of an image, as small as a name: dark ink on white in every theme.

import { cssOf, inkOn } from "./colour.js";

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

// What a patch holds, over the colour of its cell: a dot for each pixel, as large as it has ink.
export function paintInk(pen, pixels, colour, [x, y, width, height]) {
  const across = Math.round(Math.sqrt(pixels.length));
  const [stepX, stepY] = [width / across, height / across];
  pen.fillStyle = cssOf(inkOn(colour));
  pen.beginPath();
  pixels.forEach((ink, at) => {
    const [middleX, middleY] = [x + ((at % across) + 0.5) * stepX, y + (Math.floor(at / across) + 0.5) * stepY];
    const radius = 0.42 * Math.min(stepX, stepY) * ink;
    pen.moveTo(middleX + radius, middleY);
    if (radius > 0) pen.arc(middleX, middleY, radius, 0, 2 * Math.PI);
  });
  pen.fill();
}
