// One number taken apart, beside the picture: the products behind a score, the powers behind a weight, the steps of a norm.

import { button, make } from "../../toolkit/elements.js";
import { threeDigits } from "../../toolkit/numbers.js";
import { say } from "../../toolkit/words.js";

// -> { title, lines: [text], table: { columns, rows } or null }, or null where there is nothing to take apart.
export function arithmeticOf(unfolded, { row: index, cell: number }) {
  const row = unfolded.rows[index];
  const cell = row?.cells[number];
  if (!cell) return null;
  const { run } = unfolded;
  const token = run.model.stack(cell.stack).tokens[cell.position].label;
  const find = (name) => unfolded.rows.find((one) => one.name === name);
  if (["key", "product"].includes(row.name)) return product(find, cell, token);
  if (row.name === "score") return score(run, find, cell, token);
  if (row.name === "weight") return find("score") ? weight(find, cell, token) : null;
  if (["value", "weighted"].includes(row.name)) return weighted(find, cell, token);
  if (row.name === "context") return context(find, token);
  if (row.name === "norm") return norm(run, row, cell, token);
  if (["after", "sum"].includes(row.name)) return sum(find, row, cell, token);
  if (row.name === "units") return units(cell, token);
  return null;
}

const same = (row, { stack, position }) => row.cells.find((cell) => cell.stack === stack && cell.position === position);
const brackets = (value) => (value < 0 ? `(${threeDigits(value)})` : threeDigits(value));

// The numbers of some vectors, side by side; `count` rows, or as many as the first has numbers.
const tableOf = (first, names, vectors, count = vectors[0].length) => ({
  columns: [first, ...names],
  rows: Array.from({ length: count }, (_, k) => [String(k), ...vectors.map((values) => threeDigits(values[k]))]),
});

function product(find, cell, token) {
  const [{ values: q }] = find("query").cells;
  const { values: k } = same(find("key"), cell);
  const total = threeDigits(same(find("product"), cell).value);
  return {
    title: say("q · k for {token}", { token }),
    lines: [say("{count} products, then their sum: {sum}", { count: k.length, sum: total })],
    table: tableOf(say("channel"), ["q", "k", "q · k"], [q, k, Array.from(k, (one, at) => q[at] * one)]),
  };
}

const MASKED = () => say("It is masked: its score is replaced by −∞, so its weight is 0.");

function score(run, find, cell, token) {
  const { stack, layer, kind } = run.unfolded;
  const inside = run.model.inside(stack, layer);
  const scale = inside.scale[`${kind}_attention`];
  const [product_, result] = [same(find("product"), cell).value, cell.value].map(threeDigits);
  const said = inside.plain[`${kind}_attention`]
    ? `${product_} ÷ √${Math.round(scale ** -2)} = ${result}`
    : say("{product} × {scale}, with this model’s further terms: {score}", {
        product: product_,
        scale: threeDigits(scale),
        score: result,
      });
  const lines = cell.masked ? [said, MASKED()] : [said];
  return { title: say("Score of {token}", { token }), lines, table: null };
}

// The denominator of a softmax, after the largest score is subtracted from all: { most, whole }.
export function powersOf(scores) {
  const most = Math.max(...scores);
  return { most, whole: scores.reduce((all, one) => all + Math.exp(one - most), 0) };
}

function weight(find, cell, token) {
  const title = say("Weight of {token}", { token });
  if (cell.masked) return { title, lines: [MASKED()], table: null };
  const scores = find("score").cells.filter(({ masked }) => !masked);
  const own = same(find("score"), cell).value;
  const { most, whole } = powersOf(scores.map(({ value }) => value));
  const power = Math.exp(own - most);
  const said = {
    most: threeDigits(most),
    score: threeDigits(own),
    bracketed: brackets(most),
    power: threeDigits(power),
  };
  const lines = [
    say("The largest score is {most}. e to the power of {score} − {bracketed} is {power}.", said),
    say("The sum of all {count} powers is {whole}.", { count: scores.length, whole: threeDigits(whole) }),
    `${threeDigits(power)} ÷ ${threeDigits(whole)} = ${threeDigits(cell.value)}`,
  ];
  return { title, lines, table: null };
}

function weighted(find, cell, token) {
  const { values: v } = same(find("value"), cell);
  const share = same(find("weight"), cell).value;
  const [shares, mixed] = [Array.from(v, () => share), Array.from(v, (value) => value * share)];
  return {
    title: say("Value of {token} times its weight", { token }),
    lines: [say("Every channel is multiplied by {weight}.", { weight: threeDigits(share) })],
    table: tableOf(say("channel"), ["v", say("weight"), "w · v"], [v, shares, mixed]),
  };
}

function context(find, token) {
  const shares = find("weight").cells.map(({ value }) => value);
  const [{ values }] = find("context").cells;
  const weights = [...shares].sort((a, b) => b - a).slice(0, 4).map(threeDigits).join(", "); // prettier-ignore
  const said = { channel: 0, sum: threeDigits(values[0]), weights };
  return {
    title: say("Output of this head for {token}", { token }),
    lines: [
      say("Channel {channel}: the sum of all weighted values is {sum}. The largest weights are {weights}.", said),
    ],
    table: tableOf(say("channel"), [say("sum")], [values]),
  };
}

function norm(run, row, cell, token) {
  const { stack, layer } = run.unfolded;
  const { position, values } = cell;
  const at = (part) => run.model.inside(stack, layer).array(`${row.norm}.${part}`);
  const number = (part) => threeDigits(at(part).values[position]);
  const lines = [];
  if (at("mean")) {
    const count = run.model.stack(stack).channels;
    lines.push(say("Mean of its {count} channels: {mean}", { count, mean: number("mean") }));
  }
  if (at("std")) lines.push(say("Standard deviation: {std}", { std: number("std") }));
  const parts = ["input", "normalized", "output"].filter(at);
  const names = { input: "x", normalized: say("normalised"), output: say("× γ + β") };
  const vectors = parts.map((part) => at(part).values.subarray(position * at(part).shape[1]));
  return {
    title: say("Norm of {token}", { token }),
    lines,
    table: tableOf(say("thread"), parts.map((part) => names[part]), vectors, values.length), // prettier-ignore
  };
}

function sum(find, row, cell, token) {
  const parts = (row.name === "sum" ? ["token", "place"] : ["x", "update"]).map(find).filter(Boolean);
  const found = parts.map((part) => same(part, cell));
  if (found.some((one) => !one)) return null;
  const names = [...parts.map(({ label }) => label), row.label];
  const vectors = [...found.map(({ values }) => values), cell.values];
  return {
    title: say("The sum for {token}", { token }),
    lines: [],
    table: tableOf(say("thread"), names, vectors, cell.values.length),
  };
}

const units = (cell, token) => ({
  title: say("The strongest units for {token}", { token }),
  lines: [],
  table: {
    columns: [say("unit"), say("input"), say("output")],
    rows: cell.units.map(({ unit, before, after }) => [String(unit), threeDigits(before), threeDigits(after)]),
  },
});

// The softmax behind a candidate: all that could have come share the probability.
export function candidateArithmetic(row, vocabulary) {
  const most = Math.max(...row.logits);
  const whole = Math.exp(row.logSum - most);
  return {
    title: say("From logits to probabilities"),
    lines: [
      say("The model gives a logit to each of {count} candidates. The largest listed is {most}.", {
        count: vocabulary,
        most: threeDigits(most),
      }),
      say("The probability is e to the power of (logit − {most}), divided by the sum over all candidates, {whole}.", {
        most: brackets(most),
        whole: threeDigits(whole),
      }),
    ],
    table: {
      columns: ["", say("logit"), say("power"), say("probability")],
      rows: row.names.map((name, k) => [
        name,
        threeDigits(row.logits[k]),
        threeDigits(Math.exp(row.logits[k] - most)),
        threeDigits(row.probabilities[k]),
      ]),
    },
  };
}

// The panel as elements of the page.
export function arithmeticPanel({ title, lines, table }, close) {
  const name = make("strong", {}, make("bdi", { textContent: title }));
  const head = make("div", { className: "head" }, name, button("×", say("Close"), close));
  const said = lines.map((line) => make("p", { textContent: line }));
  const more = { className: "arithmetic", role: "region", tabIndex: 0, "aria-label": title };
  const panel = make("div", more, head, ...said);
  if (!table) return panel;
  const line = (tag, texts) => make("tr", {}, ...texts.map((textContent) => make(tag, { textContent })));
  const top = make("thead", {}, line("th", table.columns));
  for (const heading of top.querySelectorAll("th")) heading.scope = "col";
  panel.append(make("table", {}, top, make("tbody", {}, ...table.rows.map((cells) => line("td", cells)))));
  return panel;
}
