// One number taken apart, beside the picture: the products behind a score, the powers behind a weight, the steps of a norm.

import { make } from "../../toolkit/elements.js";
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

function product(find, cell, token) {
  const [query] = find("query").cells;
  const key = same(find("key"), cell);
  const result = same(find("product"), cell);
  return {
    title: say("q · k for {token}", { token }),
    lines: [
      say("{count} products, then their sum: {sum}", { count: key.values.length, sum: threeDigits(result.value) }),
    ],
    table: {
      columns: [say("channel"), "q", "k", "q · k"],
      rows: Array.from(key.values, (k, channel) => [
        String(channel),
        threeDigits(query.values[channel]),
        threeDigits(k),
        threeDigits(query.values[channel] * k),
      ]),
    },
  };
}

function score(run, find, cell, token) {
  const { stack, layer, kind } = run.unfolded;
  const inside = run.model.inside(stack, layer);
  const scale = inside.scale[`${kind}_attention`];
  const { value } = same(find("product"), cell);
  const said = inside.plain[`${kind}_attention`]
    ? `${threeDigits(value)} ÷ √${Math.round(scale ** -2)} = ${threeDigits(cell.value)}`
    : say("{product} × {scale}, with this model’s further terms: {score}", {
        product: threeDigits(value),
        scale: threeDigits(scale),
        score: threeDigits(cell.value),
      });
  const lines = [said];
  if (cell.masked) lines.push(say("It is masked: its score is replaced by −∞, so its weight is 0."));
  return { title: say("Score of {token}", { token }), lines, table: null };
}

// The denominator of a softmax, after the largest score is subtracted from all: { most, whole }.
export function powersOf(scores) {
  const most = Math.max(...scores);
  return { most, whole: scores.reduce((all, one) => all + Math.exp(one - most), 0) };
}

function weight(find, cell, token) {
  if (cell.masked)
    return {
      title: say("Weight of {token}", { token }),
      lines: [say("It is masked: its score is replaced by −∞, so its weight is 0.")],
      table: null,
    };
  const scores = find("score").cells.filter(({ masked }) => !masked);
  const own = same(find("score"), cell);
  const { most, whole } = powersOf(scores.map(({ value }) => value));
  const power = Math.exp(own.value - most);
  return {
    title: say("Weight of {token}", { token }),
    lines: [
      say("The largest score is {most}. e to the power of {score} − {bracketed} is {power}.", {
        most: threeDigits(most),
        score: threeDigits(own.value),
        bracketed: brackets(most),
        power: threeDigits(power),
      }),
      say("The sum of all {count} powers is {whole}.", { count: scores.length, whole: threeDigits(whole) }),
      `${threeDigits(power)} ÷ ${threeDigits(whole)} = ${threeDigits(cell.value)}`,
    ],
    table: null,
  };
}

function weighted(find, cell, token) {
  const value = same(find("value"), cell);
  const share = same(find("weight"), cell).value;
  return {
    title: say("Value of {token} times its weight", { token }),
    lines: [say("Every channel is multiplied by {weight}.", { weight: threeDigits(share) })],
    table: {
      columns: [say("channel"), "v", say("weight"), "w · v"],
      rows: Array.from(value.values, (v, channel) => [
        String(channel),
        threeDigits(v),
        threeDigits(share),
        threeDigits(v * share),
      ]),
    },
  };
}

function context(find, token) {
  const shares = find("weight").cells;
  const [found] = find("context").cells;
  const order = shares
    .map((_, k) => k)
    .sort((a, b) => shares[b].value - shares[a].value)
    .slice(0, 4);
  return {
    title: say("Output of this head for {token}", { token }),
    lines: [
      say("Channel {channel}: the sum of all weighted values is {sum}. The largest weights are {weights}.", {
        channel: 0,
        sum: threeDigits(found.values[0]),
        weights: order.map((k) => threeDigits(shares[k].value)).join(", "),
      }),
    ],
    table: {
      columns: [say("channel"), say("sum")],
      rows: Array.from(found.values, (value, k) => [String(k), threeDigits(value)]),
    },
  };
}

function norm(run, row, cell, token) {
  const { stack, layer } = run.unfolded;
  const inside = run.model.inside(stack, layer);
  const at = (part) => inside.array(`${row.norm}.${part}`);
  const lines = [];
  if (at("mean"))
    lines.push(
      say("Mean of its {count} channels: {mean}", {
        count: run.model.stack(stack).channels,
        mean: threeDigits(at("mean").values[cell.position]),
      }),
    );
  if (at("std")) lines.push(say("Standard deviation: {std}", { std: threeDigits(at("std").values[cell.position]) }));
  const parts = ["input", "normalized", "output"].filter(at);
  const value = (part, k) => at(part).values[cell.position * at(part).shape[1] + k];
  const names = { input: "x", normalized: say("normalised"), output: say("× γ + β") };
  return {
    title: say("Norm of {token}", { token }),
    lines,
    table: {
      columns: [say("thread"), ...parts.map((part) => names[part])],
      rows: Array.from(cell.values, (_, k) => [String(k), ...parts.map((part) => threeDigits(value(part, k)))]),
    },
  };
}

function sum(find, row, cell, token) {
  const parts = row.name === "sum" ? ["token", "place"] : ["x", "update"];
  const found = parts
    .map((name) => find(name))
    .filter(Boolean)
    .map((one) => same(one, cell));
  if (found.some((one) => !one)) return null;
  return {
    title: say("The sum for {token}", { token }),
    lines: [],
    table: {
      columns: [say("thread"), ...parts.slice(0, found.length).map((name) => find(name).label), row.label],
      rows: Array.from(cell.values, (value, k) => [
        String(k),
        ...found.map(({ values }) => threeDigits(values[k])),
        threeDigits(value),
      ]),
    },
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
  const head = make("div", { className: "head" }, make("strong", {}, make("bdi", { textContent: title })));
  const button = make("button", { type: "button", textContent: "×", title: say("Close"), "aria-label": say("Close") });
  button.addEventListener("click", close);
  head.append(button);
  const said = lines.map((line) => make("p", { textContent: line }));
  const panel = make(
    "div",
    { className: "arithmetic", role: "region", tabIndex: 0, "aria-label": title },
    head,
    ...said,
  );
  if (table) {
    const cells = (tag, texts) =>
      texts.map((text) => make(tag, { textContent: text, ...(tag === "th" ? { scope: "col" } : {}) }));
    panel.append(
      make(
        "table",
        {},
        make("thead", {}, make("tr", {}, ...cells("th", table.columns))),
        make("tbody", {}, ...table.rows.map((row) => make("tr", {}, ...cells("td", row)))),
      ),
    );
  }
  return panel;
}
