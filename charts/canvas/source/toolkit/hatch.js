import { cssOf } from "./colour.js";

// Diagonal lines on grey: what may not be looked at, in a colour that no value has.
export function hatch(context, theme, ratio) {
  const size = Math.round(6 * ratio);
  const tile = new OffscreenCanvas(size, size);
  const pen = tile.getContext("2d");
  pen.fillStyle = cssOf(theme.hatchGround);
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = cssOf(theme.hatchLine);
  pen.lineWidth = ratio;
  pen.beginPath();
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift - 1, size + 1);
    pen.lineTo(shift + size + 1, -1);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}
