// What a sub-layer does to the token that is followed, row by row, from the bottom up.
//
// A row: { name, label, about, cells: [{ stack, position, values } or { stack, position, value, masked }], scale, limit }. Cells with
// `values` are strips of a vector, others are numbers. `lines`: from which cells of the row below lines lead here, and how wide.

import { say } from "../../toolkit/words.js";

const VECTOR = 3.4; // heights of letters, where nothing but vectors is shown
const ONE_VECTOR = 9; // where there is only one row of them

export function rowsOf(run) {
  const { unfolded } = run;
  if (unfolded.part === "embedding") return embeddingRows(run);
  return unfolded.part === "feed_forward" ? feedForwardRows(run) : attentionRows(run);
}

const strips = (stack, count, read) =>
  Array.from({ length: count }, (_, position) => ({ stack: stack.name, position, values: read(position) }));

function embeddingRows(run) {
  const { stack: name } = run.unfolded;
  const stack = run.model.stack(name);
  const count = run.shownIn(stack);
  const limit = stack.inputLimit;
  const looked = strips(stack, count, (position) => stack.row("token", 0, position));
  const input = strips(stack, count, (position) => stack.stream(0, position));
  const sum = {
    name: "sum",
    label: "x",
    about: say("The input vector of layer 0."),
    cells: input,
    limit,
    tall: VECTOR,
  };
  // Where nothing is added, both are one vector.
  if (input.every(({ values }, at) => values.every((value, k) => value === looked[at].values[k])))
    return [{ ...sum, label: stack.pictures ? "x" : say("x = row of E"), tall: ONE_VECTOR }];
  const rows = [
    {
      name: "token",
      label: stack.pictures ? say("image patch") : say("row of E"),
      about: stack.pictures
        ? say("The vector of the image patch.")
        : say("This token’s row of the embedding matrix, as it enters the model."),
      cells: looked,
      limit,
      tall: VECTOR,
    },
  ];
  if (stack.arrays("place"))
    rows.push({
      name: "place",
      label: say("+ position"),
      about: say("The encoding of the position in the sentence, which is added."),
      cells: strips(stack, count, (position) => stack.row("place", 0, position)),
      limit,
      tall: VECTOR,
    });
  return [...rows, sum];
}

function feedForwardRows(run) {
  const { stack: name, layer } = run.unfolded;
  const { model } = run;
  const stack = model.stack(name);
  const step = stack.stepOf(layer, "feed_forward");
  const inside = model.inside(name, layer);
  const count = run.shownIn(stack);
  const limit = stack.limit;
  const rows = [inputRow(stack, step, count)];
  if (inside && stack.adds) addNorm(rows, stack, inside, "feed_forward_norm", count);
  const units = Array.from({ length: count }, (_, position) => ({
    stack: name,
    position,
    units: stack.units_(layer, position),
  }));
  rows.push({
    name: "units",
    label: say("units"),
    about: say("The units that respond most, before and after the activation function."),
    cells: units,
    limit: stack.unitLimit,
    tall: 7,
  });
  rows.push({
    name: "update",
    label: say("· W₂"),
    about: say("The sum of what all units write: the update."),
    cells: strips(stack, count, (position) => stack.update(step, position)),
    limit,
  });
  rows.push(outputRow(stack, step, count));
  return rows;
}

function attentionRows(run) {
  const { stack: name, layer, kind } = run.unfolded;
  const { model } = run;
  const stack = model.stack(name);
  const attention = model.attention(name, kind);
  const keys = kind === "cross" ? model.stacks[0] : stack;
  const query = run.queryIn(stack);
  const head = run.headOf(attention, layer, query);
  const step = stack.stepOf(layer, `${kind}_attention`);
  const inside = model.inside(name, layer);
  const part = `${kind}_attention`;
  const count = kind === "cross" ? keys.count : run.shownIn(stack);
  const { limit } = stack;
  const rows = [];
  const x = inputRow(stack, step, kind === "cross" ? 0 : count);
  if (kind === "cross") {
    x.cells = strips(keys, count, (position) => keys.final(position) ?? keys.stream(keys.steps.length, position));
    x.cells.push({ stack: name, position: query, values: stack.stream(step, query) });
    x.about = say("The input: the encoder’s vectors, and the vector of the token that attends to them.");
  }
  rows.push(x);
  const weights = Array.from({ length: count }, (_, position) => ({
    stack: keys.name,
    position,
    value: attention.weight(layer, head, query, position),
    masked: !attention.allowed(layer, query, position),
  }));
  const softmax = {
    name: "weight",
    label: say("softmax"),
    about: say("Attention weights: e to the power of each score, divided by the sum over all keys. They sum to 1."),
    cells: weights,
    scale: "sequential",
    limit: 1,
  };
  if (!inside) {
    rows.push(softmax, updateRow(stack, step, query, limit), afterRow(stack, step, query));
    return rows;
  }
  if (stack.adds) addNorm(rows, stack, inside, `${part}_norm`, kind === "cross" ? [query] : count);
  const of = (what, position) => vectorOf(inside.array(`${part}.${what}`), head, position);
  const spread = spreadOf([...weights.map(({ position }) => of("key", position)), of("query", query)]);
  const values = weights.map(({ position }) => of("value", position));
  const valueSpread = spreadOf(values);
  rows.push(
    {
      name: "value",
      label: say("values V"),
      about: say("The value of each token in this head, which the weights mix."),
      cells: weights.map((cell, k) => ({ ...placeOf(cell), values: values[k] })),
      limit: valueSpread,
    },
    {
      name: "key",
      label: say("keys K"),
      about: say("The key of each token in this head, with which queries are compared."),
      cells: weights.map((cell) => ({ ...placeOf(cell), values: of("key", cell.position) })),
      limit: spread,
    },
    {
      name: "query",
      label: say("query Q"),
      about: say("The query of the followed token in this head, which is compared with all keys."),
      cells: [{ stack: name, position: query, values: of("query", query) }],
      limit: spread,
    },
  );
  const q = of("query", query);
  const products = weights.map(({ position }) => dot(q, of("key", position)));
  rows.push({
    name: "product",
    label: "q · k",
    about: say("Query times key: multiplied channel by channel, then summed."),
    cells: weights.map((cell, k) => ({ ...cell, value: products[k] })),
    scale: "stripes",
    limit: Math.max(1e-9, ...products.map(Math.abs)),
    lines: "query",
  });
  const scores = weights.map(({ position }) => scoreOf(inside.array(`${part}.scores`), head, query, position));
  const radicand = Math.round(inside.scale[part] ** -2);
  const rooted = inside.plain[part] && radicand !== 1;
  rows.push({
    name: "score",
    label: rooted ? `÷ √${radicand}` : say("score"),
    about: rooted
      ? say("Scores: the products divided by this root. Keys that cannot be attended to are masked.")
      : say("Scores, with this model’s further terms. Keys that cannot be attended to are masked."),
    cells: weights.map((cell, k) => ({ ...cell, value: scores[k], hatched: cell.masked })),
    scale: "stripes",
    limit: Math.max(1e-9, ...scores.map(Math.abs)),
  });
  softmax.cells = weights.map((cell) => ({ ...cell, hatched: cell.masked }));
  rows.push(softmax, {
    name: "weighted",
    label: say("× V"),
    about: say("Each value times its weight."),
    cells: weights.map((cell, k) => ({ ...placeOf(cell), values: values[k].map((one) => one * cell.value) })),
    limit: valueSpread,
  });
  rows.push({
    name: "context",
    label: say("sum"),
    about: say("The sum of all weighted values: the output of this head."),
    cells: [{ stack: name, position: query, values: of("context", query) }],
    limit: valueSpread,
    lines: "weighted",
    weights: weights.map(({ value }) => value),
  });
  rows.push(updateRow(stack, step, query, limit), afterRow(stack, step, query));
  return rows;
}

const placeOf = ({ stack, position }) => ({ stack, position });

const inputRow = (stack, step, count) => ({
  name: "x",
  label: "x",
  about: say("The input vectors; each thread is the mean of neighbouring channels."),
  cells: strips(stack, count, (position) => stack.stream(step, position)),
  limit: stack.limit,
});

const outputRow = (stack, step, count) => ({
  name: "after",
  label: stack.adds ? say("x + update") : say("norm(x + update)"),
  about: stack.adds ? say("The sum continues upwards.") : say("The sum is normalised and continues upwards."),
  cells: strips(stack, count, (position) => stack.stream(step + 1, position)),
  limit: stack.limit,
});

const updateRow = (stack, step, position, limit) => ({
  name: "update",
  label: stack.normed ? say("update") : say("heads · W_O"),
  about: stack.normed
    ? say("All heads side by side, times W_O, then normalised: the update.")
    : say("All heads side by side, times W_O: the update."),
  cells: [{ stack: stack.name, position, values: stack.update(step, position) }],
  limit,
});

const afterRow = (stack, step, position) => {
  const row = outputRow(stack, step, 0);
  row.cells = [{ stack: stack.name, position, values: stack.stream(step + 1, position) }];
  return row;
};

function addNorm(rows, stack, inside, name, where) {
  const output = inside.array(`${name}.output`);
  if (!output) return;
  const positions = Array.isArray(where) ? where : Array.from({ length: where }, (_, position) => position);
  const width = output.shape[1];
  const cells = positions.map((position) => ({
    stack: stack.name,
    position,
    values: output.values.subarray(position * width, (position + 1) * width),
  }));
  rows.push({
    name: "norm",
    norm: name,
    label: say("norm"),
    about: say("Every vector is normalised to the same size, then each channel is scaled by a learned factor."),
    cells,
    limit: spreadOf(cells.map(({ values }) => values)),
  });
}

// Of [head, position, channel].
function vectorOf({ values, shape }, head, position) {
  const from = (head * shape[1] + position) * shape[2];
  return values.subarray(from, from + shape[2]);
}

const scoreOf = ({ values, shape }, head, query, key) => values[(head * shape[1] + query) * shape[2] + key];

export const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);

function spreadOf(vectors) {
  let most = 0;
  for (const vector of vectors) for (const value of vector) if (Math.abs(value) > most) most = Math.abs(value);
  return most * 0.8 || 1;
}
