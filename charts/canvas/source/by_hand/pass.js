// The forward pass of the sheet (transformer/toy/by_hand.py), number by number. A matrix is a list of rows. The names are those
// of Python, and tests/browser/test_by_hand.py compares every number with the recorded pass of the torch modules.

export const CHANNELS = 4;
const EPSILON = 1e-5; // under the root of LayerNorm

const sum = (numbers) => numbers.reduce((total, value) => total + value, 0);
const add = (a, b) => a.map((row, r) => row.map((value, c) => value + b[r][c]));
const columns = (matrix, from, to) => matrix.map((row) => row.slice(from, to));
const transpose = (matrix) => matrix[0].map((_, c) => matrix.map((row) => row[c]));
const multiply = (a, b) => a.map((row) => b[0].map((_, c) => sum(row.map((value, k) => value * b[k][c]))));
const linear = (x, weight, bias) => multiply(x, weight).map((row) => row.map((value, c) => value + bias[0][c]));

function softmax(row) {
  const highest = Math.max(...row);
  const powers = row.map((value) => Math.exp(value - highest));
  const total = sum(powers);
  return powers.map((power) => power / total);
}

// Attention of one head: Q Kᵀ, the same divided by √d_k, and the softmax over the words up to the query's own.
function attention(query, key) {
  const products = multiply(query, transpose(key));
  const scores = products.map((row) => row.map((value) => value / Math.sqrt(query[0].length)));
  const weights = scores.map((row, r) => [...softmax(row.slice(0, r + 1)), ...row.slice(r + 1).map(() => 0)]);
  return { products, scores, weights };
}

function normalise(x, scale, shift) {
  const mean = x.map((row) => [sum(row) / row.length]);
  const std = x.map((row, r) => [Math.sqrt(sum(row.map((value) => (value - mean[r][0]) ** 2)) / row.length + EPSILON)]);
  const norm = x.map((row, r) => row.map((v, c) => (scale[0][c] * (v - mean[r][0])) / std[r][0] + shift[0][c]));
  return { mean, std, norm };
}

// parameters: matrices by name; words: ids; heads: 1 or 2 -> every matrix of the sheet by its name
export function forwardPass(parameters, words, heads) {
  const n = { ...parameters };
  n.onehot = words.map((word) => parameters.E.map((_, id) => Number(id === word)));
  n.token = words.map((word) => parameters.E[word].map((value) => value * Math.sqrt(CHANNELS)));
  n.x = add(n.token, parameters.P);
  for (const name of ["Q", "K", "V"]) n[name] = linear(n.x, parameters[`W${name}`], parameters[`b${name}`]);
  const width = CHANNELS / heads;
  const contexts = [];
  for (let head = 0; head < heads; head++) {
    const [query, key, value] = ["Q", "K", "V"].map((name) => columns(n[name], head * width, (head + 1) * width));
    const found = attention(query, key);
    for (const [name, matrix] of Object.entries(found)) n[`${name}${head}`] = matrix;
    contexts.push(multiply(found.weights, value));
  }
  n.context = words.map((_, r) => contexts.flatMap((context) => context[r]));
  n.out = linear(n.context, parameters.WO, parameters.bO);
  n.sum1 = add(n.x, n.out);
  ({ mean: n.mean1, std: n.std1, norm: n.norm1 } = normalise(n.sum1, parameters.g1, parameters.c1));
  n.pre = linear(n.norm1, parameters.W1, parameters.b1);
  n.hidden = n.pre.map((row) => row.map((value) => Math.max(0, value)));
  n.ff = linear(n.hidden, parameters.W2, parameters.b2);
  n.sum2 = add(n.norm1, n.ff);
  ({ mean: n.mean2, std: n.std2, norm: n.norm2 } = normalise(n.sum2, parameters.g2, parameters.c2));
  n.logits = multiply(n.norm2, transpose(parameters.E));
  n.probabilities = n.logits.map(softmax);
  return n;
}
