// The mask that a reader has made: in the address as the app writes it (views/masks/masks_view_model.py), and as the
// numbers that a graph takes (web/graphs.py).

export const PRESETS = ["own", "no_causal", "window", "itself", "word"];
export const OWN = { preset: "own", size: 2, word: 0, everywhere: true, cells: {} };

const PAIR = /^(\d{1,5})-(\d{1,5})$/;

// What makes no sense is left out.
export function parseMask(texts) {
  const found = { ...OWN, cells: {} };
  for (const text of texts) {
    const [, name, rest] = /^(\S*) ?(.*)$/s.exec(text);
    const number = /^\d{1,5}$/.test(rest) ? Number(rest) : null;
    if (name === "layer") found.everywhere = false;
    else if (name === "allow" || name === "block") {
      for (const pair of rest.split(",")) if (PAIR.test(pair)) found.cells[cellName(pair)] = name === "allow";
    } else if (PRESETS.includes(name)) {
      found.preset = name;
      if (name === "window") found.size = Math.max(1, number ?? 2);
      if (name === "word") found.word = number ?? 0;
    }
  }
  return found;
}

// "007-1" is "7-1".
const cellName = (pair) => pair.split("-").map(Number).join("-");

export function maskTexts({ preset, size, word, everywhere, cells }) {
  const texts = preset === "own" ? [] : [{ window: `window ${size}`, word: `word ${word}` }[preset] ?? preset];
  if (!everywhere) texts.push("layer");
  for (const [name, wanted] of [
    ["allow", true],
    ["block", false],
  ]) {
    const pairs = Object.keys(cells).filter((cell) => cells[cell] === wanted);
    const order = (pair) => pair.split("-").map(Number);
    pairs.sort((a, b) => order(a)[0] - order(b)[0] || order(a)[1] - order(b)[1]);
    if (pairs.length) texts.push(`${name} ${pairs.join(",")}`);
  }
  return texts;
}

// The presets that mean something for this kind of attention.
export function presetsFor(stack, kind, words) {
  const causal = stack === "decoder" && kind === "self";
  const leftOut = [...(causal ? [] : ["no_causal"]), ...(kind === "cross" ? ["window", "itself"] : [])];
  if (!words.length) leftOut.push("word");
  return PRESETS.filter((name) => !leftOut.includes(name));
}

export const isOwn = ({ preset, cells }) => preset === "own" && !Object.keys(cells).length;

// The words of a sentence, as transformer/text/word_spans.py finds them: [{ text, start, end }]
export function wordsOf(tokens) {
  const words = [];
  let previous = null;
  tokens.forEach((token, index) => {
    if (token.special) {
      previous = null;
      return;
    }
    if (previous && !token.first && !startsWord(token.text, previous.text)) {
      const last = words[words.length - 1];
      last.text += token.text;
      last.end = index + 1;
    } else words.push({ text: token.text, start: index, end: index + 1 });
    previous = token;
  });
  return words.map((word) => ({ ...word, text: word.text.replaceAll("·", " ").trim() || word.text }));
}

function startsWord(text, before) {
  if (text.startsWith("⟨") || before === "·") return false;
  return /^[·⏎]/.test(text) || isMark(text) !== isMark(before);
}

const isMark = (text) => {
  const bare = text.replaceAll("·", " ").trim();
  return bare !== "" && !/[\p{L}\p{N}'’]/u.test(bare);
};

// What the graph adds to a cell of the model's own mask: 1 allows it, −1 blocks it, 0 leaves it. `keys`: the positions of
// the blocked word.
export function signOf({ preset, size, keys, cells }, query, key) {
  const painted = cells[`${query}-${key}`];
  if (painted !== undefined) return painted ? 1 : -1;
  const distance = Math.abs(query - key);
  if (preset === "no_causal") return 1;
  if (preset === "window") return distance < size ? 0 : -1;
  if (preset === "itself") return distance ? -1 : 0;
  return preset === "word" && keys.includes(key) ? -1 : 0;
}
