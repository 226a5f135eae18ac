// One short true sentence about each beat, of the token that is followed; and the numbers behind it.

import { threeDigits } from "../../toolkit/numbers.js";
import { say } from "../../toolkit/words.js";

// A token in a sentence for people: without the dot that stands for its space.
export const plainly = (text) => (text.length > 1 && text.startsWith("·") ? text.slice(1) : text);

// -> pieces, every second one of which is stressed
export function captionOf(run, beat) {
  const { model } = run;
  const stack = model.stack(beat.stack);
  if (beat.type === "embedding") return embedding(stack, beat);
  if (beat.type === "memory")
    return pieces(
      say("The encoder has read the whole sentence: |{count}| columns of numbers, which the decoder can attend to."),
      { count: stack.count },
    );
  if (beat.type === "word" || beat.type === "end") return answer(run, beat);
  const position = run.followed(beat);
  const values = { layer: beat.layer, token: stack.tokens[position].label };
  if (beat.kind === "feed_forward") {
    const [{ unit, after }] = stack.units_(beat.layer, position);
    return pieces(
      say(
        "Layer {layer}, feed-forward: adds to |{token}| a vector |{ratio}| times as long as its own; unit {unit} responds most ({value}).",
      ),
      { ...values, ratio: threeDigits(stack.growth(beat.step, position)), unit, value: threeDigits(after) },
    );
  }
  return looks(run, beat, run.shownAttention(beat), beat.layer);
}

// Layer 1, attention: |cat| looks most at |sat|. On average over all heads, or in the one that is chosen.
function looks({ head, model }, beat, { attention, position, keys }, layer) {
  const what = kindText(`${attention.kind}_attention`);
  if (attention.allCut(layer)) return allCut(layer, what);
  const best = strongestShown(attention, layer, head, position);
  const token = model.stack(attention.stack).tokens[position].label;
  const values = { layer, what, token, head, key: best && keys.tokens[best.key].label };
  const isOwn = best?.key === position && attention.kind === "self";
  if (!best) return pieces(say("Layer {layer}, {what}: |{token}| looks at nothing: every key is masked."), values);
  if (head !== null) return pieces(say("Layer {layer}, {what}, head {head}: |{token}| looks most at |{key}|."), values);
  if (isOwn) return pieces(say("Layer {layer}, {what}: |{token}| looks only at itself."), values);
  return best.own > best.weight
    ? pieces(say("Layer {layer}, {what}: |{token}| looks most at itself, then at |{key}|."), values)
    : pieces(say("Layer {layer}, {what}: |{token}| looks most at |{key}|."), values);
}

// The numbers of the sentence, for who asks: which weight, of which layer and head, and how probable the token is.
export function numbersOf(run, beat) {
  const { model, head } = run;
  const shown = beat.type === "embedding" || beat.type === "memory" ? null : run.shownAttention(beat);
  const best = shown && !shown.attention.allCut(shown.layer) && strongestHere(run, shown);
  const parts = [];
  if (best) {
    const { attention, layer, position, keys } = shown;
    const key = best.own > best.weight ? position : best.key;
    const value = model.says(attention, Math.max(best.own, best.weight));
    const weight = say("{weight} on {key}", { weight: value, key: keys.tokens[key].label });
    parts.push(
      head === null
        ? say("layer {layer}, mean of {heads} heads: weight {weight}", { layer, heads: attention.heads, weight })
        : say("layer {layer}, head {head}: weight {weight}", { layer, head, weight }),
    );
  }
  const row = beat.type === "step" ? null : run.rowOf(beat);
  const value = row?.probabilities[run.saidIn(row)];
  if (Number.isFinite(value)) parts.push(say("probability {value}", { value: threeDigits(value) }));
  return parts.join(" · ");
}

const strongestHere = ({ head }, { attention, layer, position }) => strongestShown(attention, layer, head, position);

// What a strip of a lane is: the stream at a place, what is added there, or the output of the last norm.
export function describedStep(stack, kind, level) {
  if (kind === "final") return say("after the last norm");
  if (kind === "stream" && level === 0) return say("after the embedding");
  const { layer, kind: step } = stack.steps[kind === "stream" ? level - 1 : level];
  const values = { layer, step: kindText(step) };
  return kind === "stream" ? say("after layer {layer}, {step}", values) : say("added by layer {layer}, {step}", values);
}

export const kindText = (kind) =>
  ({
    self_attention: say("attention"),
    cross_attention: say("cross-attention"),
    feed_forward: say("feed-forward"),
    embedding: say("embedding"),
  })[kind];

// What the one thick line shows: the same of the mean of all heads, where no head is chosen. In self-attention it leads to
// another token where there is one; `own` is then the weight on the token itself, which may be larger.
function strongestShown(attention, layer, head, query) {
  const cross = attention.kind === "cross";
  const mean = head === null && attention.strongestOnAverage(layer, query, (key) => cross || key !== query);
  const best = mean || strongest(attention, layer, head, query);
  return best && { ...best, own: cross ? 0 : attention.mean(layer, mean ? null : best.head, query, query) };
}

// The largest weight on another token, or, where there is none, on the token itself.
export const strongest = (attention, layer, head, query) =>
  (attention.kind === "self" && attention.strongest(layer, head, query, (key) => key !== query)) ||
  attention.strongest(layer, head, query);

function embedding(stack, { shown, stack: name }) {
  const values = { count: shown, channels: stack.channels, token: stack.tokens[0].label };
  if (stack.pictures)
    return pieces(
      say("The image is cut into patches: |{count}| tokens, each now a column of |{channels}| numbers."),
      values,
    );
  return name === "decoder" && shown === 1
    ? pieces(say("The decoder begins with |{token}|, a column of |{channels}| numbers."), values)
    : pieces(say("The sentence is cut into |{count}| tokens. Each becomes a column of |{channels}| numbers."), values);
}

// What is predicted, and where the token that is followed looks in the open layer.
function answer(run, beat) {
  const { model } = run;
  const row = run.rowOf(beat);
  const shown = run.shownAttention(beat);
  if (!row) return looks(run, beat, shown, shown.layer);
  const name = plainly(row.names[run.saidIn(row)]);
  const values = { name, token: plainly(model.last.tokens[row.position].label) };
  const said = pieces(predicted(run, row), values);
  const decisive = run.decisiveHere(beat);
  if (decisive)
    return pieces(say("The model predicts |{name}|; that depends most on |{word}|."), { name, word: decisive.word });
  if (!shown) return said;
  const { attention, layer, position, keys } = shown;
  if (attention.allCut(layer)) return [...allCut(layer, kindText(`${attention.kind}_attention`)), ...said];
  const best = strongestHere(run, shown);
  if (!best || (attention.kind === "self" && best.key === position)) return said;
  const isLater = best.own > best.weight;
  values.key = plainly(keys.tokens[best.key].label);
  if (model.metadata.writes)
    return isLater
      ? pieces(say("To write |{name}|, the model looks at |{token}|, then at |{key}|."), values)
      : pieces(say("To write |{name}|, the model looks at |{key}|."), values);
  const from = plainly(model.stack(attention.stack).tokens[position].label);
  const where = isLater
    ? say("Layer {layer} looks most at |{from}| itself, then at |{key}|.")
    : say("Layer {layer} looks most at |{key}|.");
  return joined(said, pieces(where, { ...values, layer, from }));
}

function predicted({ model }, { position }) {
  const { metadata, last } = model;
  if (metadata.classes) return say("The model predicts |{name}|.");
  if (metadata.writes) return say("The next token is |{name}|.");
  if (metadata.asked) return say("The model fills the blank with |{name}|.");
  if (last.name !== "decoder") return say("For |{token}|, the model predicts |{name}|.");
  return position === last.count - 1
    ? say("Here, the model ends the text.")
    : say("After |{token}|, the model predicts |{name}|.");
}

// Every second piece is stressed: none of these.
const allCut = (layer, what) => [
  `${say("Layer {layer}, {what}: all edges of every head are cut, so no value arrives.", { layer, what })} `,
  "",
];

// Two sentences in one line.
function joined(one, other) {
  const roles = [...one.roles, ...other.roles.slice(1)];
  return Object.assign([...one.slice(0, -1), `${one.at(-1)} ${other[0]}`, ...other.slice(1)], { roles });
}

// Parted before the values come in: a token may hold the very sign that parts what is stressed. `roles`: by piece, the name
// of its value.
function pieces(template, values) {
  const parts = template.split("|");
  const roles = parts.map((piece) => piece.match(/^\{(\w+)\}$/)?.[1] ?? null);
  return Object.assign(
    parts.map((piece) => piece.replace(/\{(\w+)\}/g, (_, name) => values[name])),
    { roles },
  );
}
