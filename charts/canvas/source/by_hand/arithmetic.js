// How each number of the sheet comes about: its formula with the numbers filled in, and the cells it is computed from.

import { CHANNELS } from "./pass.js";

const range = (count) => Array.from({ length: count }, (_, k) => k);
const head = (name) => Number(name.at(-1));

// Sums of products, each of two cells.
const products = (pairs) => ({ pairs });

const RULES = {
  onehot: (n, r, c, { words }) => ({ text: words[r] === c ? "one" : "zero", cells: [] }),
  token: (n, r, c, { words }) => ({ line: ["√4 · ", ["E", words[r], c]], cells: [["onehot", r, words[r]]] }),
  x: (n, r, c) => ({ line: [["token", r, c], " + ", ["P", r, c]] }),
  ...Object.fromEntries(["Q", "K", "V"].map((name) => [name, linear("x", `W${name}`, `b${name}`)])),
  products: (n, r, c, { heads }, name) => {
    const width = CHANNELS / heads;
    const first = head(name) * width;
    return products(range(width).map((k) => [["Q", r, first + k], ["K", c, first + k]])); // prettier-ignore
  },
  scores: (n, r, c, { heads }, name) =>
    c > r ? { text: "masked", cells: [] } : { line: [[`products${head(name)}`, r, c], ` / √${CHANNELS / heads}`] },
  weights: (n, r, c, state, name) =>
    c > r
      ? { text: "masked", cells: [] }
      : shareOf(
          range(r + 1).map((k) => [`scores${head(name)}`, r, k]),
          c,
        ),
  context: (n, r, c, { heads }) =>
    products(range(r + 1).map((k) => [[`weights${Math.floor(c / (CHANNELS / heads))}`, r, k], ["V", k, c]])), // prettier-ignore
  out: linear("context", "WO", "bO"),
  sum1: (n, r, c) => ({ line: [["x", r, c], " + ", ["out", r, c]] }),
  ...normRules(1, "sum1"),
  pre: linear("norm1", "W1", "b1"),
  hidden: (n, r, c) => ({ line: ["max(0, ", ["pre", r, c], ")"] }),
  ff: linear("hidden", "W2", "b2"),
  sum2: (n, r, c) => ({ line: [["norm1", r, c], " + ", ["ff", r, c]] }),
  ...normRules(2, "sum2"),
  logits: (n, r, c) => products(range(CHANNELS).map((k) => [["norm2", r, k], ["E", c, k]])), // prettier-ignore
  probabilities: (n, r, c) => shareOf(range(n.logits[r].length).map((k) => ["logits", r, k]), c), // prettier-ignore
};

function linear(from, weight, bias) {
  return (n, r, c) => ({
    pairs: range(n[from][r].length).map((k) => [
      [from, r, k],
      [weight, k, c],
    ]),
    plus: n[bias][0][c] ? [bias, 0, c] : null,
    cells: [[bias, 0, c]],
  });
}

function normRules(number, from) {
  const row = (r) => range(CHANNELS).map((k) => [from, r, k]);
  const mean = (r) => [`mean${number}`, r, 0];
  const spread = (r) =>
    row(r).flatMap((cell, k) => [k ? " + (" : "(", cell, " − ", k ? { again: mean(r) } : mean(r), ")²"]);
  return {
    [`mean${number}`]: (n, r) => ({
      line: ["(", ...row(r).flatMap((cell, k) => (k ? [" + ", cell] : [cell])), ") / 4"],
    }),
    [`std${number}`]: (n, r) => ({ line: ["√((", ...spread(r), ") / 4 + 0.00001)"] }),
    [`norm${number}`]: (n, r, c) => {
      const line = ["(", [from, r, c], " − ", mean(r), ") / ", [`std${number}`, r, 0]];
      const [scale, shift] = [
        [`g${number}`, 0, c],
        [`c${number}`, 0, c],
      ];
      if (n[scale[0]][0][c] !== 1) line.push(" · ", scale);
      if (n[shift[0]][0][c]) line.push(" + ", shift);
      return { line, cells: [scale, shift] };
    },
  };
}

// e to the power of one cell, divided by the sum over all of them.
function shareOf(cells, chosen) {
  const sum = cells.flatMap((cell, k) => [k ? " + e^" : "e^", k === chosen ? { again: cell } : cell]);
  return { line: ["e^", cells[chosen], " / (", ...sum, ")"] };
}

// The rule of a matrix: heads have one in common.
const ruleOf = (name) => RULES[name] ?? RULES[name.replace(/\d$/, "")];

export const isComputed = (name) => Boolean(ruleOf(name));

// n: the forward pass; state: { words, heads } -> { line: texts and cells in turn, cells: all that it is computed from,
// text: the name of a sentence instead of a line }; null for a number that is stored
export function arithmetic(n, [name, r, c], state) {
  const found = ruleOf(name)?.(n, r, c, state, name);
  if (!found) return null;
  if (found.text) return { line: [], cells: found.cells, text: found.text };
  const line = found.line ?? sumOfProducts(found);
  const used = line.filter((part) => Array.isArray(part));
  return {
    line: line.map((part) => part.again ?? part),
    cells: [...used, ...(found.cells ?? [])],
  };
}

function sumOfProducts({ pairs, plus }) {
  const line = pairs.flatMap(([a, b], k) => [...(k ? [" + "] : []), a, "·", b]);
  return plus ? [...line, " + ", plus] : line;
}
