// The row of a head's largest weight from one token to another, with which a typed sentence opens, as
// `AttentionView.strongest_pair` finds it: the diagonal of self-attention, special tokens and punctuation are left out.

const isMark = (text) => /^\p{P}+$/u.test(text.replace(/^·/, ""));

// An apostrophe within a word is none.
function standsAlone(tokens, k) {
  const { text } = tokens[k];
  if (!isMark(text)) return false;
  const before = tokens[k - 1]?.text ?? "";
  const after = tokens[k + 1]?.text ?? "";
  return !(/[\p{L}\p{N}]$/u.test(before) && !text.startsWith("·") && /^[\p{L}\p{N}]/u.test(after));
}

const sinksOf = (tokens) =>
  tokens.map((token, k) => (token.special && token.role !== "mask") || standsAlone(tokens, k));

export function strongestRow(figures, { stack, kind, layer, head }) {
  const queries = figures.run.stacks[stack];
  const keys = figures.run.stacks[kind === "cross" ? "encoder" : stack];
  const sinks = sinksOf(keys);
  let best = { weight: 0, row: 0 };
  for (let row = 0; row < queries.length; row++) {
    if (kind === "self" && sinks[row]) continue;
    const weights = figures.weightsOf({ stack, kind, layer, head, row });
    for (let k = 0; k < keys.length; k++)
      if (!sinks[k] && !(kind === "self" && k === row) && weights[k] > best.weight) best = { weight: weights[k], row };
  }
  return best.row;
}
