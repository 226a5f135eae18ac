// Token text on the canvas: always fillText, never markup.

export const fontOf = (theme, scale = 0.875, weight = 400) =>
  `${weight} ${Math.round(theme.size * scale * 10) / 10}px ${theme.font}, sans-serif`;

// A letter with its accents, or an emoji with its skin tone, is one piece.
const segmenter = typeof Intl !== "undefined" && Intl.Segmenter ? new Intl.Segmenter() : null;
const pieces = (text) => (segmenter ? Array.from(segmenter.segment(text), ({ segment }) => segment) : Array.from(text));

// The text, or its beginning and … when it is wider than `room`.
export function shorten(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const parts = pieces(text);
  let [low, high] = [0, parts.length];
  while (low < high) {
    const half = (low + high + 1) >> 1;
    if (context.measureText(parts.slice(0, half).join("") + "…").width <= room) low = half;
    else high = half - 1;
  }
  return parts.slice(0, low).join("") + "…";
}

// At most `most` lines of words; what does not fit into the last ends in ….
export function wrap(context, text, room, most = 2) {
  const words = text ? text.split(" ") : [];
  const lines = [];
  while (words.length && lines.length < most - 1) {
    let line = words.shift();
    while (words.length && context.measureText(`${line} ${words[0]}`).width <= room) line += ` ${words.shift()}`;
    lines.push(line);
  }
  if (words.length) lines.push(words.join(" "));
  return lines.map((line) => shorten(context, line, room));
}

export const widest = (context, labels) =>
  labels.reduce((width, label) => Math.max(width, context.measureText(label).width), 0);

// A word that is read from right to left has its leading space, too, on the right.
const fromRight = /^[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

// A token: the dot that stands for its leading space is paler than the word. Baseline is the middle.
export function drawToken(context, label, x, y, { align = "left", colour, paler, room = Infinity }) {
  const text = shorten(context, label, room);
  const dot = text.startsWith("·") && text.length > 1 ? "·" : "";
  const word = text.slice(dot.length);
  const dotWidth = dot ? context.measureText(dot).width : 0;
  const width = dotWidth + context.measureText(word).width;
  const left = align === "right" ? x - width : align === "center" ? x - width / 2 : x;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const dotLast = fromRight.test(word);
  context.fillStyle = paler;
  if (dot) context.fillText(dot, dotLast ? left + width - dotWidth : left, y);
  context.fillStyle = colour;
  context.fillText(word, dotLast ? left : left + dotWidth, y);
  return width;
}

export function drawText(context, text, x, y, { align = "left", colour }) {
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillStyle = colour;
  context.fillText(text, x, y);
}
