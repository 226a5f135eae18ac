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

const row = (name, label, about, cells, more) => ({ name, label, about, cells, ...more });

const strips = (stack, count, read) =>
  Array.from({ length: count }, (_, position) => ({ stack: stack.name, position, values: read(position) }));

function embeddingRows(run) {
  const stack = run.model.stack(run.unfolded.stack);
  const count = run.shownIn(stack);
  const look = { limit: stack.inputLimit, tall: VECTOR };
  const looked = strips(stack, count, (position) => stack.row("token", 0, position));
  const input = strips(stack, count, (position) => stack.stream(0, position));
  const about = say("The input vector of layer 0.");
  // Where nothing is added, both are one vector.
  if (input.every(({ values }, at) => values.every((value, k) => value === looked[at].values[k])))
    return [row("sum", stack.pictures ? "x" : say("x = row of E"), about, input, { ...look, tall: ONE_VECTOR })];
  const token = stack.pictures
    ? row("token", say("image patch"), say("The vector of the image patch."), looked, look)
    : row(
        "token",
        say("row of E"),
        say("This token’s row of the embedding matrix, as it enters the model."),
        looked,
        look,
      );
  const sum = row("sum", "x", about, input, look);
  if (!stack.arrays("place")) return [token, sum];
  const places = strips(stack, count, (position) => stack.row("place", 0, position));
  const added = say("The encoding of the position in the sentence, which is added.");
  return [token, row("place", say("+ position"), added, places, look), sum];
}

function feedForwardRows(run) {
  const { stack: name, layer } = run.unfolded;
  const stack = run.model.stack(name);
  const step = stack.stepOf(layer, "feed_forward");
  const inside = run.model.inside(name, layer);
  const count = run.shownIn(stack);
  const of = (position) => ({ stack: name, position, units: stack.units_(layer, position) });
  const units = Array.from({ length: count }, (_, position) => of(position));
  const responds = say("The units that respond most, before and after the activation function.");
  const update = strips(stack, count, (position) => stack.update(step, position));
  return [
    inputRow(stack, step, count),
    ...(stack.adds ? normRow(stack, inside, "feed_forward_norm", positionsTo(count)) : []),
    row("units", say("units"), responds, units, { limit: stack.unitLimit, tall: 7 }),
    row("update", say("· W₂"), say("The sum of what all units write: the update."), update, { limit: stack.limit }),
    outputRow(stack, step, positionsTo(count)),
  ];
}

const positionsTo = (count) => Array.from({ length: count }, (_, position) => position);

function attentionRows(run) {
  const { stack: name, layer, kind } = run.unfolded;
  const { model } = run;
  const stack = model.stack(name);
  const attention = model.attention(name, kind);
  const keys = kind === "cross" ? model.stacks[0] : stack;
  const query = run.queryIn(stack);
  const head = run.headOf(attention, layer, query);
  const part = `${kind}_attention`;
  const step = stack.stepOf(layer, part);
  const inside = model.inside(name, layer);
  const count = kind === "cross" ? keys.count : run.shownIn(stack);
  const places = positionsTo(count).map((position) => ({ stack: keys.name, position }));
  const own = { stack: name, position: query };
  const weights = places.map((place) => ({
    ...place,
    value: attention.weight(layer, head, query, place.position),
    masked: !attention.allowed(layer, query, place.position),
  }));
  const x = inputRow(stack, step, kind === "cross" ? 0 : count);
  if (kind === "cross") {
    x.cells = strips(keys, count, (position) => keys.final(position) ?? keys.stream(keys.steps.length, position));
    x.cells.push({ ...own, values: stack.stream(step, query) });
    x.about = say("The input: the encoder’s vectors, and the vector of the token that attends to them.");
  }
  const softmax = row(
    "weight",
    say("softmax"),
    say("Attention weights: e to the power of each score, divided by the sum over all keys. They sum to 1."),
    weights.map((cell) => ({ ...cell, hatched: Boolean(inside) && cell.masked })),
    { scale: "sequential", limit: 1 },
  );
  const end = [updateRow(stack, step, query), outputRow(stack, step, [query])];
  if (!inside) return [x, softmax, ...end];
  const of = (what, position) => vectorOf(inside.array(`${part}.${what}`), head, position);
  const [q, context] = [of("query", query), of("context", query)];
  const [k, v] = ["key", "value"].map((what) => places.map(({ position }) => of(what, position)));
  const [limit, valueLimit] = [spreadOf([...k, q]), spreadOf(v)];
  const vectors = (values) => places.map((place, at) => ({ ...place, values: values[at] }));
  const numbers = (values, hatched) =>
    weights.map((cell, at) => ({ ...cell, value: values[at], hatched: hatched && cell.masked }));
  const signed = (values) => ({ scale: "stripes", limit: Math.max(1e-9, ...values.map(Math.abs)) });
  const products = k.map((one) => dot(q, one));
  const scores = places.map(({ position }) => scoreOf(inside.array(`${part}.scores`), head, query, position));
  const radicand = Math.round(inside.scale[part] ** -2);
  const rooted = inside.plain[part] && radicand !== 1;
  const scored = rooted
    ? say("Scores: the products divided by this root. Keys that cannot be attended to are masked.")
    : say("Scores, with this model’s further terms. Keys that cannot be attended to are masked.");
  const said = {
    value: say("The value of each token in this head, which the weights mix."),
    key: say("The key of each token in this head, with which queries are compared."),
    query: say("The query of the followed token in this head, which is compared with all keys."),
    product: say("Query times key: multiplied channel by channel, then summed."),
    weighted: say("Each value times its weight."),
    context: say("The sum of all weighted values: the output of this head."),
  };
  const mixed = v.map((one, at) => one.map((value) => value * weights[at].value));
  const shares = { lines: "weighted", weights: weights.map(({ value }) => value) };
  return [
    x,
    ...(stack.adds ? normRow(stack, inside, `${part}_norm`, kind === "cross" ? [query] : positionsTo(count)) : []),
    row("value", say("values V"), said.value, vectors(v), { limit: valueLimit }),
    row("key", say("keys K"), said.key, vectors(k), { limit }),
    row("query", say("query Q"), said.query, [{ ...own, values: q }], { limit }),
    row("product", "q · k", said.product, numbers(products, false), { ...signed(products), lines: "query" }),
    row("score", rooted ? `÷ √${radicand}` : say("score"), scored, numbers(scores, true), signed(scores)),
    softmax,
    row("weighted", say("× V"), said.weighted, vectors(mixed), { limit: valueLimit }),
    row("context", say("sum"), said.context, [{ ...own, values: context }], { limit: valueLimit, ...shares }),
    ...end,
  ];
}

const inputRow = (stack, step, count) =>
  row(
    "x",
    "x",
    say("The input vectors; each thread is the mean of neighbouring channels."),
    strips(stack, count, (position) => stack.stream(step, position)),
    { limit: stack.limit },
  );

function outputRow(stack, step, positions) {
  const cells = positions.map((position) => ({
    stack: stack.name,
    position,
    values: stack.stream(step + 1, position),
  }));
  const label = stack.adds ? say("x + update") : say("norm(x + update)");
  const about = stack.adds ? say("The sum continues upwards.") : say("The sum is normalised and continues upwards.");
  return row("after", label, about, cells, { limit: stack.limit });
}

function updateRow(stack, step, position) {
  const about = stack.normed
    ? say("All heads side by side, times W_O, then normalised: the update.")
    : say("All heads side by side, times W_O: the update.");
  const cells = [{ stack: stack.name, position, values: stack.update(step, position) }];
  return row("update", stack.normed ? say("update") : say("heads · W_O"), about, cells, { limit: stack.limit });
}

// The norm before a sub-layer; none where it was not sent.
function normRow(stack, inside, norm, positions) {
  const output = inside?.array(`${norm}.output`);
  if (!output) return [];
  const width = output.shape[1];
  const cells = positions.map((position) => ({
    stack: stack.name,
    position,
    values: output.values.subarray(position * width, (position + 1) * width),
  }));
  const about = say("Every vector is normalised to the same size, then each channel is scaled by a learned factor.");
  return [row("norm", say("norm"), about, cells, { norm, limit: spreadOf(cells.map(({ values }) => values)) })];
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
