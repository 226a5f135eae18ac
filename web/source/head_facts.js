// The row of a head in a sentence (in the app views/attention/facts.py), and what an answer loses without the head.

import { decimals, threeDigits } from "../../charts/canvas/source/toolkit/numbers.js";
import { fill } from "../../charts/canvas/source/toolkit/words.js";

const signed = (value) => (value < 0 ? "−" : value > 0 ? "+" : "") + threeDigits(Math.abs(value));

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
  const { facts: texts } = figures.texts;
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
  const { stack, kind, layer, head, row } = place;
  const { facts: texts } = figures.texts;
  const { query, key } = figures.sides(stack, kind);
  const predicts = figures.namesPredictions(stack, kind);
  const isClassToken = row === 0 && query[0].special && figures.model.described.picture;
  const named = isClassToken ? texts.class_token : plainWord(figures.rowsOf(stack, kind)[row].label, texts);
  const from = (layer * query.length + row) * key.length;
  const allowed = figures.outputs[`${stack}.${kind}.allowed`].values.subarray(from, from + key.length);
  if (!allowed.some(Boolean)) return [[texts.aloud_nothing, { row: named }]];
  const weights = figures.weightsOf(place);
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
