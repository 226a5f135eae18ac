// One head in seven steps (in the app views/attention/attention_steps.py), and what an answer loses without it.

import { powersOf } from "../../charts/canvas/source/drawings/living_picture/arithmetic.js";
import { dot } from "../../charts/canvas/source/drawings/living_picture/unfolded_rows.js";
import { decimals, threeDigits } from "../../charts/canvas/source/toolkit/numbers.js";
import { fill } from "../../charts/canvas/source/toolkit/words.js";
import { bits } from "./figures.js";

const CHOOSES = 0.9; // a row whose largest weight is at least this selects rather than mixes
const SHOWN = 6; // keys with a colour of their own in the mixture of values

const signed = (value) => (value < 0 ? "−" : value > 0 ? "+" : "") + threeDigits(Math.abs(value));

class HeadSteps {
  constructor(figures, { stack, kind, layer, head, row, selected }) {
    Object.assign(this, { figures, stack, kind, layer, head, row, selected });
    const { query, key } = figures.sides(stack, kind);
    Object.assign(this, { queries: query, keys: key });
    this.texts = figures.texts.path;
    this.own = this.texts.kinds[`${stack}.${kind}`];
    this.names = figures.rowsOf(stack, kind).map(({ label }) => label);
    const said = figures.namesPredictions(stack, kind) ? this.texts.row_predicts : this.texts.row_reads;
    this.named = fill(said, { read: query[row].label, predicted: this.names[row] });
  }

  // [position, channel] of this head
  inside(name) {
    const { values, shape } = this.figures.outputs[`inside.${this.stack}.${this.layer}.${this.kind}_attention.${name}`];
    const size = shape[1] * shape[2];
    return { values: values.slice(this.head * size, (this.head + 1) * size), shape: shape.slice(1) };
  }

  vector({ values, shape }, position) {
    return values.subarray(position * shape[1], (position + 1) * shape[1]);
  }

  // Which keys the query of a row may attend to, as 0 and 1.
  allowed(row = null) {
    const cells = this.queries.length * this.keys.length;
    const { values } = this.figures.outputs[`${this.stack}.${this.kind}.allowed`];
    const layer = values.subarray(this.layer * cells, (this.layer + 1) * cells);
    return row === null ? layer : layer.subarray(row * this.keys.length, (row + 1) * this.keys.length);
  }

  products() {
    const [query, key] = [this.inside("query"), this.inside("key")];
    const rows = this.queries.map((_, q) => this.keys.map((__, k) => dot(this.vector(query, q), this.vector(key, k))));
    return { values: Float32Array.from(rows.flat()), shape: [rows.length, this.keys.length] };
  }

  map(name, array, rows, { allowed = null, limit = null, ...metadata } = {}) {
    const { columns, ...template } = this.own.maps[name];
    const { values, shape } = array;
    const shown = values.map((value, k) => (allowed && !allowed[k] ? 0 : value));
    const reach = shown.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const named = ["query", "key", "value", "sums"].includes(name) ? columns : this.keys.map(({ label }) => label);
    const more = { rows, columns: named, limit: (limit ?? reach) || 1, ...metadata };
    const mask = bits(allowed ?? new Uint8Array(values.length).fill(1));
    return this.figures.pack({ ...template, ...more }, { values: { values: shown, shape }, allowed: mask });
  }

  scoreMap(name, array, allowed) {
    const title = `${this.own.maps[name].title} · ${fill(this.texts.words["head {head}"], { head: this.head })}`;
    return this.map(name, array, this.names, { allowed, title, selected: this.selected, chosen_row: this.row });
  }

  // -> { said, maps: [bytes] } and, of a row, { table } or { mix }
  step(number) {
    return [this.projections, this.scores, this.scaled, this.masked, this.softmax, this.mix, this.output][
      number - 1
    ].call(this);
  }

  projections() {
    const [queries, keys] = [this.queries, this.keys].map((tokens) => tokens.map(({ label }) => label));
    const maps = ["query", "key", "value"].map((name) =>
      this.map(name, this.inside(name), name === "query" ? queries : keys),
    );
    return { said: this.own.step_1, maps };
  }

  scores() {
    return { said: this.texts.step_2, maps: [this.scoreMap("product", this.products())] };
  }

  scaled() {
    const { step_3: said, scaled } = this.own;
    const { row, texts } = this;
    const maps = [this.scoreMap("score", this.inside("scores"))];
    if (!scaled) return { said, maps };
    const largest = (scores) => 1 / powersOf([...scores].filter((_, k) => this.allowed(row)[k])).whole;
    const [without, now] = [this.products(), this.inside("scores")].map((all) => largest(this.vector(all, row)));
    const numbers = { row: this.named, without: threeDigits(without), with: threeDigits(now) };
    const chooses = without >= CHOOSES && now < CHOOSES ? texts.step_3_chooses : "";
    return { said: fill(said, numbers) + chooses, maps };
  }

  masked() {
    const { texts, stack, kind } = this;
    const allowed = this.allowed();
    const causal = kind === "self" && stack === "decoder";
    const count = { causal: 0, other: 0 };
    allowed.forEach((may, cell) => {
      const [query, key] = [Math.floor(cell / this.keys.length), cell % this.keys.length];
      if (!may) count[causal && key > query ? "causal" : "other"]++;
    });
    const reasons = Object.entries(count)
      .filter(([, found]) => found)
      .map(([name, found]) => fill(texts[`step_4_${name}`], { count: found }));
    const values = { masked: count.causal + count.other, cells: allowed.length, reasons: reasons.join(", ") };
    const said = reasons.length ? fill(texts.step_4, values) : texts.step_4_never;
    return { said, maps: [this.scoreMap("score", this.inside("scores"), allowed)] };
  }

  softmax() {
    const { row, texts } = this;
    const allowed = this.allowed(row);
    const scores = this.vector(this.inside("scores"), row);
    const { most } = powersOf([...scores].filter((_, k) => allowed[k]));
    const weights = this.weights();
    const said = fill(texts.step_5, { row: this.named });
    const numbers = { allowed: allowed.filter(Boolean).length, keys: this.keys.length, row };
    const rows = this.keys.map(({ label }, k) => ({
      label,
      values: allowed[k] ? [scores[k], Math.exp(scores[k] - most), weights[k]] : [scores[k], null, null],
    }));
    const columns = ["score", "power", "weight"].map((name) => texts.words[name]);
    return { said, maps: [], table: { columns, rows, below: fill(texts.step_5_shapes, numbers) } };
  }

  weights() {
    const allowed = this.allowed(this.row);
    return this.figures.weightsOf(this).map((weight, k) => (allowed[k] ? weight : 0));
  }

  mix() {
    const { texts, row } = this;
    const [weights, values, context] = [this.weights(), this.inside("value"), this.inside("context")];
    const parts = this.keys.map(({ label }, k) => ({
      name: `${label} × ${threeDigits(weights[k])}`,
      values: Array.from(this.vector(values, k), (value) => weights[k] * value),
    }));
    const order = parts.map(({ values: part }, k) => [k, Math.hypot(...part)]).sort((a, b) => b[1] - a[1]);
    const first = new Set(order.slice(0, SHOWN).map(([k]) => k));
    const shown = parts.filter((_, k) => first.has(k));
    const rest = parts.filter((_, k) => !first.has(k));
    if (rest.length)
      shown.push({
        name: fill(texts.words["{n} other tokens together"], { n: rest.length }),
        values: rest[0].values.map((_, channel) => rest.reduce((sum, part) => sum + part.values[channel], 0)),
        others: true,
      });
    const sum = Array.from(this.vector(context, row));
    return { said: fill(texts.step_6, { row: this.named }), maps: [], mix: { parts: shown, sum, words: texts.words } };
  }

  output() {
    const { outputs } = this.figures;
    const name = `sums.${this.stack}.${this.kind}`;
    const { values, shape } = outputs[`${name}.parts`];
    const size = shape[1] * shape[2];
    const parts = { values: values.slice(this.layer * size, (this.layer + 1) * size), shape: shape.slice(1) };
    const lengths = outputs[`${name}.lengths`].values.subarray(this.layer * shape[1], (this.layer + 1) * shape[1]);
    const { words } = this.texts;
    const rows = [...this.own.maps.sums.rows, ...(this.own.biased ? [words["bias b_O"]] : []), words["sum = output"]];
    const [length, total] = [lengths[this.head], lengths[lengths.length - 1]].map(threeDigits);
    const said = fill(this.own.step_7, { row: this.named, head: this.head, length, total });
    return { said, maps: [this.map("sums", parts, rows, { chosen_row: this.head })] };
  }
}

export const headStep = (figures, { step, ...place }) => new HeadSteps(figures, place).step(step);

// log p of what is asked about in a run, in nats: [row]
export function answerLogP(figures) {
  const { outputs, run } = figures;
  const { positions } = figures.rows();
  const { classes } = figures.model.described;
  if (!classes.length) return positions.map((at) => outputs["chosen.logits"].values[at] - outputs.log_sum.values[at]);
  const at = outputs["candidates.ids"].values.indexOf(run.chosen);
  return [outputs["candidates.logits"].values[at] - outputs.log_sum.values[0]];
}

// A token in a sentence, without the dot that stands for a space; an image patch is called that.
function plainWord(label, texts) {
  const isPatch = texts.patch && /^r\d+c\d+$/.test(label);
  return isPatch ? fill(texts.patch, { name: label }) : label.replace(/^·(?=.)/su, "");
}

// -> { word }, the class or the only token that is predicted, or { all }, a name of all that is
export function whatIsPredicted(figures) {
  const { run, model } = figures;
  const { path: texts } = figures.texts;
  const { positions, everywhere } = figures.rows();
  if (model.described.classes.length) return { word: model.described.classes[run.chosen] };
  if (everywhere) return { all: texts.effect_what_text };
  if (positions.length > 1) return { all: texts.effect_what };
  return { word: plainWord(run.prediction[positions[0]].text, texts) };
}

// What the probability of what is predicted is multiplied by without a head; null where nothing is asked.
export function effectOf(before, after, texts, { word, all } = {}) {
  if (!before) return { label: texts.effect, value: "", below: texts.effect_none };
  const sum = (numbers) => numbers.reduce((whole, one) => whole + one, 0);
  const change = sum(after) - sum(before);
  return {
    label: word === undefined ? texts.effect : fill(texts.effect_of_one, { what: word }),
    value: fill(texts.effect_value, { what: word ?? all, factor: threeDigits(Math.exp(change)) }),
    below: fill(texts.effect_of, { change: signed(change) }),
  };
}

// --- the row in a sentence ------------------------------------------------------------------------------------------------

const MOSTLY = 0.5; // smallest weight for "mostly attends to one token"

// Numbers with equal decimals, as many as the largest needs (three_digits_alike of charts/toolkit/style.py).
function alike(values) {
  const largest = Math.max(0, ...values.map(Math.abs));
  if (!(largest >= 1e-4 && largest < 1e6)) return values.map(threeDigits);
  const count = largest >= 0.1 && largest <= 1 ? 3 : Math.max(0, 2 - Math.floor(Math.log10(largest)));
  const isShown = (value) => value === 0 || Math.abs(value) >= 0.5 * 10 ** -count;
  return values.map((value) => (isShown(value) ? decimals(value, count) : threeDigits(value)));
}

// The keys with the largest weights, as views/attention/facts.py says them -> [template, values] of each part.
export function readAloud(figures, place) {
  const { stack, kind, head, row } = place;
  const { path: texts } = figures.texts;
  const steps = new HeadSteps(figures, place);
  const { query, key } = figures.sides(stack, kind);
  const predicts = figures.namesPredictions(stack, kind);
  const isClassToken = row === 0 && query[0].special && figures.model.described.picture;
  const named = isClassToken ? texts.class_token : plainWord(steps.names[row], texts);
  const allowed = steps.allowed(row);
  if (!allowed.some(Boolean)) return [[texts.aloud_nothing, { row: named }]];
  const weights = figures.weightsOf({ ...place, head }).subarray(0, key.length);
  const keyWord = (k) => {
    const ink = figures.run.pictures?.encoder[k];
    const { label } = key[k];
    return ink?.every((shade) => !shade) ? fill(texts.empty_patch, { name: label }) : plainWord(label, texts);
  };
  const order = [...weights.keys()].filter((k) => allowed[k]).sort((a, b) => weights[b] - weights[a]);
  const most = order.slice(0, 3).map((k) => ({ label: keyWord(k), weight: weights[k] }));
  const shares = alike(most.map(({ weight }) => weight));
  const mostly = most[0].weight >= MOSTLY;
  const template = `aloud_${mostly ? "mostly" : "spread"}${predicts ? "_predicting" : ""}`;
  const others = most
    .map(({ label, weight }, k) => ({ weight, said: fill(texts.aloud_other, { label, share: shares[k] }) }))
    .filter(({ weight }, k) => k && weight >= 0.01);
  const then = texts[mostly ? "aloud_then" : "aloud_then_to"];
  const all = others.map(({ said }) => said).join(", ");
  return [
    [texts[template], { row: named, head, first: most[0].label, share: shares[0] }],
    others.length ? [then, { others: all }] : [".", {}],
  ];
}

// --- how far to trust the row of a decoder's map: what its prediction loses without each token ----------------------------

// -> F(x) − F(x without this token) for every token that the row may read, null where it cannot be left out; `logP(source,
// target, row)` is F.
export async function leaveEachOut(logP, source, target, kind) {
  const row = target.length - 1;
  const whole = await logP(source, target, row);
  const list = kind === "cross" ? source : target;
  const lost = [];
  for (let k = 0; k < list.length; k++) {
    const shorter = list.filter((_, other) => other !== k);
    if (!shorter.length) lost.push(null);
    else if (kind === "cross") lost.push(whole - (await logP(shorter, target, row)));
    else lost.push(whole - (await logP(source, shorter, row - 1)));
  }
  return lost;
}

export function trustRow(figures, place, lost) {
  const { stack, kind, head, row } = place;
  const { path: texts } = figures.texts;
  const rowOf = (h) => Array.from(figures.weightsOf({ ...place, head: h }).subarray(0, lost.length));
  const own = rowOf(head);
  const every = Array.from({ length: figures.model.described.heads }, (_, h) => rowOf(h));
  const mean = own.map((_, k) => every.reduce((sum, one) => sum + one[k], 0) / every.length);
  const { key, query } = figures.sides(stack, kind);
  const labels = key.slice(0, lost.length).map(({ label }) => label);
  const agreement = (shares) => {
    const rho = spearman(shares, lost);
    return Number.isNaN(rho) ? "–" : Math.abs(rho) < 0.005 ? threeDigits(0) : signedTwo(rho);
  };
  const rows = [
    { name: fill(texts.trust_head, { head }), values: own, rho: agreement(own) },
    { name: texts.words["mean of all heads"], values: mean, rho: agreement(mean) },
    { name: texts.words["leave one out"], values: lost, rho: "", signed: true },
  ];
  if (lost.every((value) => value === null)) return { said: texts.trust_words_alone, labels, rows };
  const most = (list) => list.reduce((best, value, k) => (Math.abs(value) > Math.abs(list[best] ?? 0) ? k : best), 0);
  const [looked, missed] = [most(own), most(lost)];
  const answer = figures.run.prediction[row].text;
  const named =
    stack === "decoder"
      ? fill(texts.trust_row_predicts, { word: answer })
      : fill(texts.trust_row, { word: query[row].label });
  const said = fill(texts.trust_words, {
    ...{ row: named, looked: labels[looked], share: threeDigits(own[looked]) },
    ...{ answer, missed: labels[missed], change: signed(-lost[missed]) },
    ...{ unit: texts.trust_unit_log_probability, agreement: rows[0].rho },
  });
  return { said, labels, rows };
}

const signedTwo = (rho) => threeDigits(Number(rho.toFixed(2))).replace(/(\d{2})0$/, "$1");

// The correlation of the ranks of the sizes; ties share their mean rank (transformer/attribution/attention_trust.py).
export function spearman(first, second) {
  const known = first.map((_, k) => k).filter((k) => first[k] !== null && second[k] !== null);
  if (known.length < 3) return NaN;
  const [one, two] = [first, second].map((values) => centredRanks(known.map((k) => Math.abs(values[k]))));
  const size = Math.sqrt(dot(one, one) * dot(two, two));
  return size > 0 ? dot(one, two) / size : NaN;
}

function centredRanks(values) {
  const ranks = values.map((value) => {
    const below = values.filter((other) => other < value).length;
    return below + (values.filter((other) => other === value).length + 1) / 2;
  });
  return ranks.map((rank) => rank - (values.length + 1) / 2);
}
