// The row of a head in a sentence (in the app views/attention/attention_sections.py), and what an answer loses without the head.

import { threeDigits } from "../../charts/canvas/source/toolkit/numbers.js";
import { fill } from "../../charts/canvas/source/toolkit/words.js";

// A token in a sentence, without the dot that stands for a space; an image patch is called that.
function plainWord(label, texts) {
  const isPatch = texts.patch && /^r\d+c\d+$/.test(label);
  return isPatch ? fill(texts.patch, { name: label }) : label.replace(/^·(?=.)/su, "");
}

// What the probability of the output is multiplied by without a head: { label, value, below }. `figures` and `without` are
// of the run with and without it; without a question there is no `without`.
export function effectOf(figures, without) {
  const { facts: texts } = figures.texts;
  const { positions, everywhere } = figures.predicted;
  if (!without) return { label: texts.effect, value: "", below: texts.effect_none };
  const logP = ({ outputs }) => positions.reduce((sum, at) => sum + outputs["chosen.log_probability"].values[at], 0);
  const change = logP(without) - logP(figures);
  const { classes } = figures.model.described;
  const { chosen, prediction } = figures.run;
  const one =
    everywhere || positions.length > 1 ? null : plainWord(classes[chosen?.[0]] ?? prediction[positions[0]].text, texts);
  const all = everywhere ? texts.effect_what_text : texts.effect_what;
  const sign = change < 0 ? "−" : change > 0 ? "+" : "";
  return {
    label: one === null ? texts.effect : fill(texts.effect_of_one, { what: one }),
    value: fill(texts.effect_value, { what: one ?? all, factor: threeDigits(Math.exp(change)) }),
    below: fill(texts.effect_of, { change: sign + threeDigits(Math.abs(change)) }),
  };
}

// The key with the largest weight of a row -> [template, values].
export function readAloud(figures, place) {
  const { stack, kind, layer, head, token } = place;
  const { facts: texts } = figures.texts;
  const { model, run } = figures;
  const { query, key } = figures.sides(stack, kind);
  const isClassToken = token === 0 && query[0].special && model.described.picture;
  const row = isClassToken ? texts.class_token : plainWord(figures.rowTokens(place)[token].label, texts);
  const name = `${stack}.${kind}`;
  const at = (part, matrix) =>
    figures.slice(`${name}.${part}`, matrix * query.length + token, matrix * query.length + token + 1);
  const { values: allowed } = at("allowed", layer);
  const { values: weights } = at("weights", layer * model.described.heads + head);
  const order = [...weights.keys()].filter((k) => allowed[k]).sort((a, b) => weights[b] - weights[a]);
  if (!order.length) return [[texts.aloud_nothing, { row }]];
  const word = (k) => {
    const isEmpty = run.pictures?.encoder[k]?.every((ink) => !ink);
    return isEmpty ? fill(texts.empty_patch, { name: key[k].label }) : plainWord(key[k].label, texts);
  };
  const template = texts[figures.rowTokens(place) === query ? "aloud" : "aloud_predicting"];
  return [[template, { row, head, first: word(order[0]), share: threeDigits(weights[order[0]]) }]];
}
