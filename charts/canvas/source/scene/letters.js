// How wide a text is and in which pieces it is written; no drawing needs a canvas for it. Token text is never markup.

let measuring = null;
const rulers = new Map(); // by font
const MOST = 5000; // texts whose widths are kept

export const fontOf = (theme, size, weight = 400) =>
  `${weight} ${Math.round(size * 100) / 100}px ${theme.font}, sans-serif`;

// A pen that writes in these letters, to measure.
export function penOf(theme, size, weight = 400) {
  measuring ??= document.createElement("canvas").getContext("2d");
  measuring.font = fontOf(theme, size, weight);
  return measuring;
}

// It knows how wide texts are in these letters: while a map is zoomed, the same ones are asked for in every frame.
export function ruler(theme, size, weight = 400) {
  const font = fontOf(theme, size, weight);
  if (!rulers.has(font)) {
    const widths = new Map();
    const measureText = (text) => {
      if (widths.size > MOST) widths.clear();
      if (!widths.has(text)) widths.set(text, penOf(theme, size, weight).measureText(text).width);
      return { width: widths.get(text) };
    };
    rulers.set(font, { measureText });
  }
  return rulers.get(font);
}

// Letters that have been loaded are as wide as they are, not as those that stood for them.
export const measureAnew = () => rulers.clear();

export const widthOf = (theme, text, size, weight = 400) => ruler(theme, size, weight).measureText(text).width;

// A letter with its accents, or an emoji with its skin tone, is one piece.
const segmenter = typeof Intl !== "undefined" && Intl.Segmenter ? new Intl.Segmenter() : null;
const pieces = (text) => (segmenter ? Array.from(segmenter.segment(text), ({ segment }) => segment) : Array.from(text));

// The text, or its beginning and … when it is wider than `room`.
export function shorten(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  const parts = pieces(text);
  let [low, high] = [0, parts.length];
  while (low < high) {
    const half = (low + high + 1) >> 1;
    if (pen.measureText(parts.slice(0, half).join("") + "…").width <= room) low = half;
    else high = half - 1;
  }
  return parts.slice(0, low).join("") + "…";
}

// At most `most` lines of words; what does not fit into the last ends in ….
export function wrap(pen, text, room, most = 2) {
  const words = text ? text.split(" ") : [];
  const lines = [];
  while (words.length && lines.length < most - 1) {
    let line = words.shift();
    while (words.length && pen.measureText(`${line} ${words[0]}`).width <= room) line += ` ${words.shift()}`;
    lines.push(line);
  }
  if (words.length) lines.push(words.join(" "));
  return lines.map((line) => shorten(pen, line, room));
}

// A word that is read from right to left has its leading space, too, on the right.
const fromRight = /^[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

// -> [{ text, x, align, fill }]: of a token whose `paler` is given, the dot that stands for its leading space comes apart.
export function runsOf(theme, { text, at: [x], size, weight, align = "left", room = Infinity, fill, paler }) {
  const isToken = paler && text.startsWith("·");
  if (room === Infinity && !isToken) return [{ text, x, align, fill }];
  const pen = ruler(theme, size, weight);
  const shown = room === Infinity ? text : shorten(pen, text, room);
  if (!isToken || shown.length < 2) return [{ text: shown, x, align, fill }];
  const [dot, word] = ["·", shown.slice(1)];
  const [narrow, wide] = [dot, word].map((part) => pen.measureText(part).width);
  const left = x - { left: 0, center: (narrow + wide) / 2, right: narrow + wide }[align];
  const last = fromRight.test(word);
  return [
    { text: dot, x: last ? left + wide : left, align: "left", fill: paler },
    { text: word, x: last ? left : left + narrow, align: "left", fill },
  ];
}
