// Which tables the sheet has, in which strips, and which number stands in each of their cells. "a_b" in a heading is a with the
// index b.

import { CHANNELS } from "./pass.js";

const channels = Array.from({ length: CHANNELS }, (_, c) => String(c + 1));

// A block: a heading; what it holds (`of`: whose sentence is told; `step`: whose code and page, if another's); names of its rows and columns; and
// cell(r, c) -> [name of the matrix, row, column] there. `changes`: whether a reader can change its numbers.
function block(id, heading, rows, cols, cell, more = {}) {
  return { id, heading, rows, cols, cell, of: id, changes: false, ...more };
}

const plain = (id, heading, rows, cols = channels, more = {}) =>
  block(id, heading, rows, cols, (r, c) => [id, r, c], more);

// W with its b below.
function weight(name, bias, heading, more = {}) {
  const rows = [...channels, "b"];
  const cell = (r, c) => (r < CHANNELS ? [name, r, c] : [bias, 0, c]);
  return block(name, heading, rows, channels, cell, { changes: true, last: "own", of: "W", step: name, ...more });
}

const scaleAndShift = (number) =>
  block(`g${number}`, "γ β", channels, ["γ", "β"], (r, c) => [c ? `c${number}` : `g${number}`, 0, r], {
    changes: true,
    narrow: true,
  });

const meanAndStd = (number, words) =>
  block(`mean${number}`, "μ σ", words, ["μ", "σ"], (r, c) => [c ? `std${number}` : `mean${number}`, r, 0]);

// words: of the text, as row names; vocabulary: all words
export function strips(words, vocabulary, heads) {
  const rows = words.map((word, place) => `${word}${"₁₂₃₄₅"[place]}`);
  const split = heads === 2 ? { split: CHANNELS / 2 } : {};
  const perHead = (name, heading, more = {}) =>
    Array.from({ length: heads }, (_, head) =>
      plain(`${name}${head}`, heads === 1 ? heading : `${heading} · ${head + 1}`, rows, rows, {
        of: name,
        head,
        ...more,
      }),
    );
  const projections = ["Q", "K", "V"].flatMap((name) => [
    weight(`W${name}`, `b${name}`, `W_${name}`, split),
    plain(name, `${name} = x·W_${name}`, rows, channels, split),
  ]);
  return [
    {
      id: "embed",
      blocks: [
        plain("onehot", "1-hot", rows, vocabulary, { tiny: true }),
        plain("E", "E", vocabulary, channels, { changes: true, tall: true, named: true }),
        plain("token", "√d·1-hot·E", rows),
        plain("P", "P", rows, channels, { changes: true }),
        plain("x", "x = √d·1-hot·E + P", rows, channels, { short: "x" }),
      ],
    },
    { id: "project", blocks: projections },
    {
      id: "attend",
      blocks: [
        ...perHead("products", "Q·Kᵀ"),
        ...perHead("scores", "÷ √d_k, mask"),
        ...perHead("weights", "α = softmax", { share: true }),
        plain("context", "C = α·V", rows, channels, split),
      ],
    },
    {
      id: "add",
      blocks: [
        weight("WO", "bO", "W_O", heads === 2 ? { splitRow: CHANNELS / 2 } : {}),
        plain("out", "A = C·W_O", rows),
        plain("sum1", "x + A", rows),
        meanAndStd(1, rows),
        scaleAndShift(1),
        plain("norm1", "y = LayerNorm", rows),
        weight("W1", "b1", "W_1", { of: "Wff" }),
        plain("pre", "y·W_1 + b_1", rows),
        plain("hidden", "H = max(0, ·)", rows),
      ],
    },
    {
      id: "predict",
      blocks: [
        weight("W2", "b2", "W_2", { of: "Wff" }),
        plain("ff", "F = H·W_2 + b_2", rows),
        plain("sum2", "y + F", rows),
        meanAndStd(2, rows),
        scaleAndShift(2),
        plain("norm2", "z = LayerNorm", rows),
        plain("logits", "z·Eᵀ", rows, vocabulary, { named: true }),
        plain("probabilities", "p = softmax", rows, vocabulary, { named: true, share: true }),
      ],
    },
  ];
}

// The steps of the forward pass, one result each: the tables that it is computed from, with signs between them, and the
// result. A name is the `of` of a block, or the id of a table of weights.
export const STEPS = [
  ["onehot", "·", "E", "→", "token"],
  ["token", "+", "P", "=", "x"],
  ["x", "·", "WQ", "=", "Q"],
  ["x", "·", "WK", "=", "K"],
  ["x", "·", "WV", "=", "V"],
  ["Q", "·", "K", "=", "products"],
  ["products", "→", "scores"],
  ["scores", "→", "weights"],
  ["weights", "·", "V", "=", "context"],
  ["context", "·", "WO", "=", "out"],
  ["x", "+", "out", "=", "sum1"],
  ["sum1", "mean1", "g1", "→", "norm1"],
  ["norm1", "·", "W1", "=", "pre"],
  ["pre", "→", "hidden"],
  ["hidden", "·", "W2", "=", "ff"],
  ["norm1", "+", "ff", "=", "sum2"],
  ["sum2", "mean2", "g2", "→", "norm2"],
  ["norm2", "·", "E", "=", "logits"],
  ["logits", "→", "probabilities"],
];
