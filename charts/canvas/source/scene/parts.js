// Marks that several drawings have: a legend of colours, a frame around what is pointed at, a patch of an image.

import { cssOf } from "../toolkit/colour.js";
import { threeDigits } from "../toolkit/numbers.js";
import { ruler, widthOf, wrap } from "./letters.js";

// The colour bar with its two ends, what it measures, and what else is explained: [text, fill]. It wraps on narrow screens.
// `most`: what stands at its end, if not the limit. -> { marks, height, right }
export function legend(theme, { scale, limit, most, entries }, [x, y], room) {
  const letter = 0.8 * theme.size;
  const [line, fill] = [1.5 * theme.size, cssOf(theme.muted)];
  const largest = most ?? (limit === 1 && scale !== "diverging" ? "1" : threeDigits(limit));
  const ends = [scale === "diverging" ? `−${largest}` : "0", largest];
  const [low, high] = ends.map((end) => widthOf(theme, end, letter) + 8);
  const bar = Math.max(24, Math.min(9.5 * theme.size, room - low - high)); // beside a long row of labels there is little room
  const across = Array.from({ length: 33 }, (_, k) => cssOf(theme[scale][Math.round((k / 32) * 255)]));
  const [tall, middle] = [0.62 * theme.size, y + line / 2];
  const marks = [
    { text: ends[0], at: [x, middle], size: letter, fill },
    { rect: [x + low, middle - tall / 2, bar, tall], round: 3, fill: { across }, stroke: cssOf(theme.faint) },
    { text: ends[1], at: [x + low + bar + 8, middle], size: letter, fill },
  ];
  let [atX, atY] = [x + low + bar + high + 14, y];
  for (const [text, colour] of entries.filter(([said]) => said)) {
    const box = colour ? 1.4 * theme.size + 6 : 0;
    const wide = box + widthOf(theme, text, letter);
    if (atX > x && atX + wide > x + room) [atX, atY] = [x, atY + line];
    // What is wider than everything takes two lines.
    const lines = wrap(ruler(theme, letter), text, x + room - atX - box);
    if (box)
      marks.push({
        rect: [atX, atY + line / 2 - 0.42 * theme.size, box - 6, 0.84 * theme.size],
        round: 3,
        fill: colour,
      });
    lines.forEach((one, k) =>
      marks.push({ text: one, at: [atX + box, atY + line / 2 + k * theme.size], size: letter, fill }),
    );
    [atX, atY] = [atX + wide + 24, atY + (lines.length - 1) * theme.size];
  }
  return { marks, height: atY + line - y, right: Math.max(atX - 24, x + low + bar + high) };
}

// Two lines, one in the colour and one in the page's own, so that it shows on every cell.
export function outline(theme, [x, y, width, height], colour, thick) {
  const [least, round] = [Math.min(width, height), Math.min(width, height) >= 22 ? 4 : 0];
  const frame = (inset) => [x + inset, y + inset, width - 2 * inset, height - 2 * inset];
  return [
    { rect: frame(thick), round, stroke: cssOf(theme.ground), thick: 1.5, least: 3 * thick },
    { rect: frame(0), round, stroke: cssOf(colour), thick, least: 0 },
  ].filter((mark) => least >= mark.least);
}

// Lines that show on every cell, for the same reason.
export const twice = (theme, path, cap) => [
  { path, stroke: cssOf(theme.ground, 0.85), thick: 5, cap },
  { path, stroke: cssOf(theme.ink), thick: 2.5, cap },
];

// pixels: of each the ink, 0 to 1, or the colour, in reading order; (x, y): the middle
export function patch(theme, pixels, [x, y], side) {
  const rect = [x - side / 2, y - side / 2, side, side];
  const grey = (ink) => cssOf([1, 1, 1].map(() => Math.round(255 * (1 - ink))));
  const fills = pixels.map((pixel) => (typeof pixel === "string" ? pixel : grey(pixel)));
  return [...pixelsIn(fills, rect, UNDER), { rect, stroke: cssOf(theme.faint) }];
}

const UNDER = 0.6; // how far a pixel reaches under the next one, so that no seam shows between them
const SHEER = 0.5; // how much of the colour of a cell the image on it hides
const SEEN = 3; // the least side of a pixel that is painted by itself

// What a patch holds, over the colour of its cell: its own colours, or its ink, white as chalk.
export function inkOf(pixels, rect) {
  if (typeof pixels[0] !== "string")
    return pixelsIn(
      pixels.map((ink) => cssOf([255, 255, 255], ink && 0.15 + 0.75 * ink)),
      rect,
    );
  const colours = pixels.map((pixel) => [1, 3, 5].map((at) => parseInt(pixel.slice(at, at + 2), 16)));
  const mean = [0, 1, 2].map((channel) => colours.reduce((sum, one) => sum + one[channel], 0) / colours.length);
  const seen = rect[2] / Math.sqrt(pixels.length) < SEEN ? [mean] : colours;
  return pixelsIn(
    seen.map((one) => cssOf(one.map(Math.round), SHEER)),
    rect,
  );
}

function pixelsIn(fills, [x, y, width, height], under = 0) {
  const across = Math.round(Math.sqrt(fills.length));
  const [wide, tall] = [width / across, height / across];
  const reach = (place) => (place < across - 1 ? under : 0);
  return fills.map((fill, at) => {
    const [column, row] = [at % across, Math.floor(at / across)];
    return { rect: [x + column * wide, y + row * tall, wide + reach(column), tall + reach(row)], fill };
  });
}
