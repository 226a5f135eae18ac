// One short true sentence about each beat, of the token that is followed; and the numbers behind it.

import { threeDigits } from "../../toolkit/numbers.js";
import { say } from "../../toolkit/words.js";

// A token in a sentence for people: without the dot that stands for its space.
export const plainly = (text) => (text.length > 1 && text.startsWith("·") ? text.slice(1) : text);

// -> pieces, every second one of which is stressed
export function captionOf(picture, beat) {
  const { model, head } = picture;
  const stack = model.stack(beat.stack);
  const named = (position) => stack.tokens[position].label;
  const follow = picture.followed(beat);
  if (beat.type === "embedding") return embedding(model, stack, beat);
  if (beat.type === "memory")
    return pieces(
      say("The encoder has read the whole sentence: |{count}| columns of numbers, which the decoder can attend to."),
      {
        count: stack.count,
      },
    );
  if (beat.type === "word" || beat.type === "end") return word(picture, beat);
  const place = { layer: beat.layer, token: named(follow) };
  if (beat.kind === "feed_forward") {
    const [first] = stack.units_(beat.layer, follow);
    return pieces(
      say(
        "Layer {layer}, feed-forward: adds to |{token}| a vector |{ratio}| times as long as its own; unit {unit} responds most ({value}).",
      ),
      {
        ...place,
        ratio: threeDigits(stack.growth(beat.step, follow)),
        unit: first.unit,
        value: threeDigits(first.after),
      },
    );
  }
  if (!beat.kind.endsWith("_attention"))
    return pieces(say("Layer {layer}, convolution: each token mixes with its neighbours."), place);
  const cross = beat.kind === "cross_attention";
  const attention = model.attention(beat.stack, cross ? "cross" : "self");
  const keys = cross ? model.stack("encoder") : stack;
  const what = kindText(beat.kind);
  return looks(attention, { layer: beat.layer, head, query: follow, cross, what, token: named(follow), keys });
}

// Layer 1, attention: |cat| looks most at |sat|. On average over all heads, or in the one that is chosen.
function looks(attention, { layer, head, query, cross, what, token, keys }) {
  if (attention.allCut(layer)) return allCut(layer, what);
  const best = strongestShown(attention, layer, head, query, cross);
  const values = { layer, what, token, head };
  if (!best) return pieces(say("Layer {layer}, {what}: |{token}| looks at nothing: every key is masked."), values);
  values.key = keys.tokens[best.key].label;
  if (best.key === query && !cross)
    return head === null
      ? pieces(say("Layer {layer}, {what}: |{token}| looks only at itself."), values)
      : pieces(say("Layer {layer}, {what}, head {head}: |{token}| looks only at itself."), values);
  if (best.own > best.weight)
    return head === null
      ? pieces(say("Layer {layer}, {what}: |{token}| looks most at itself, then at |{key}|."), values)
      : pieces(say("Layer {layer}, {what}, head {head}: |{token}| looks most at itself, then at |{key}|."), values);
  return head === null
    ? pieces(say("Layer {layer}, {what}: |{token}| looks most at |{key}|."), values)
    : pieces(say("Layer {layer}, {what}, head {head}: |{token}| looks most at |{key}|."), values);
}

// The numbers of the sentence, for who asks: which weight, of which layer and head, and how probable the token is.
export function numbersOf(picture, beat) {
  const { model, head } = picture;
  const decisive = decisiveHere(picture, beat);
  if (decisive) {
    const [value, without] = [decisive.probability, decisive.without].map(threeDigits);
    const { names, chosen } = model.written[0];
    return say("p({name}) = {value}, without it {without}", { name: names[chosen], value, without });
  }
  const shown = picture.shownAttention(beat);
  const parts = [];
  // The whole run is over; the token that is followed is one of many.
  if (beat.type === "end" && picture.rowOf(beat))
    parts.push(
      say("output token {at} of {count}", {
        at: model.written.indexOf(picture.rowOf(beat)) + 1,
        count: model.written.length,
      }),
    );
  if (shown && (beat.type === "step" || beat.type === "word" || beat.type === "end")) {
    const { attention, layer, position, keys } = shown;
    const best =
      !attention.allCut(layer) && strongestShown(attention, layer, head, position, attention.kind === "cross");
    if (best) {
      const weights = [[best.weight, best.key]];
      if (best.own > best.weight) weights.unshift([best.own, position]);
      const weight = weights
        .map(([one, key]) => {
          const value = model.says(attention, one);
          // The sentence of a step names the keys itself.
          return beat.type === "step"
            ? value
            : say("{weight} on {key}", { weight: value, key: keys.tokens[key].label });
        })
        .join(", ");
      const values = { layer, heads: attention.heads, weight };
      const isNamed = beat.type !== "step" && isExpected(model); // the layer, in the sentence
      parts.push(
        head === null
          ? isNamed
            ? say("mean of {heads} heads: weight {weight}", values)
            : say("layer {layer}, mean of {heads} heads: weight {weight}", values)
          : say("layer {layer}, head {head}: weight {weight}", { layer, head, weight }),
      );
    }
  }
  const row = beat.type === "step" ? null : picture.rowOf(beat);
  const said = row && row.probabilities[isExpected(model) ? 0 : row.chosen];
  if (Number.isFinite(said)) parts.push(say("probability {value}", { value: threeDigits(said) }));
  return parts.join(" · ");
}

// What a strip of a lane is: the stream at a place, what is added there, or the output of the last norm.
export function describedStep(stack, kind, level) {
  if (kind === "final") return say("after the last norm");
  if (kind === "stream" && level === 0) return say("after the embedding");
  const { layer, kind: step } = stack.steps[kind === "stream" ? level - 1 : level];
  const values = { layer, step: kindText(step) };
  return kind === "stream" ? say("after layer {layer}, {step}", values) : say("added by layer {layer}, {step}", values);
}

export function kindText(kind) {
  return {
    self_attention: say("attention"),
    cross_attention: say("cross-attention"),
    feed_forward: say("feed-forward"),
    convolution: say("convolution"),
  }[kind];
}

// What the one thick line shows: the same of the mean of all heads, where no head is chosen. In self-attention it leads to
// another token where there is one; `own` is then the weight on the token itself, which may be larger.
function strongestShown(attention, layer, head, query, cross) {
  const other = (key) => cross || key !== query;
  const mean = head === null && attention.strongestOnAverage(layer, query, other);
  const best = mean || strongest(attention, layer, head, query, cross);
  return best && { ...best, own: cross ? 0 : attention.mean(layer, mean ? null : best.head, query, query) };
}

// The largest weight on another token, or, where there is none, on the token itself.
export function strongest(attention, layer, head, query, cross) {
  return (
    (!cross && attention.strongest(layer, head, query, (key) => key !== query)) ||
    attention.strongest(layer, head, query)
  );
}

function embedding(model, stack, beat) {
  const values = { count: beat.shown, channels: stack.channels };
  if (stack.pictures)
    return pieces(
      say("The image is cut into patches: |{count}| tokens, each now a column of |{channels}| numbers."),
      values,
    );
  if (beat.stack === "decoder" && model.stacks.length > 1)
    return pieces(say("The decoder begins with |{token}|, a column of |{channels}| numbers."), {
      ...values,
      token: stack.tokens[0].label,
    });
  return pieces(
    say("The sentence is cut into |{count}| tokens. Each becomes a column of |{channels}| numbers."),
    values,
  );
}

function word(picture, beat) {
  const { model, head } = picture;
  const row = picture.rowOf(beat);
  const stack = model.last;
  if (!row) return given(picture, beat);
  const probability = threeDigits(row.probabilities[row.chosen]);
  const name = row.names[row.chosen];
  if (model.metadata.classes) return predicted(picture, stack, beat, name);
  if (isExpected(model)) return expected(picture, stack, row, beat);
  if (!model.metadata.writes) return filled(picture, stack, row, beat);
  const layer = picture.openLayer(stack.name, beat) ?? stack.layers - 1;
  const kind = model.attention(stack.name, "cross") ? "cross" : "self";
  const attention = model.attention(stack.name, kind);
  const values = { name: plainly(name), probability };
  const alone = () => pieces(say("The next token is |{name}|, with probability |{probability}|."), values);
  if (attention.allCut(layer)) return [...allCut(layer, kindText(`${kind}_attention`)), ...alone()];
  const best = strongestShown(attention, layer, head, row.position, kind === "cross");
  if (!best) return alone();
  const key = plainly((kind === "cross" ? model.stacks[0] : stack).tokens[best.key].label);
  if (best.own <= best.weight || (kind === "self" && best.key === row.position))
    return pieces(say("To write |{name}|, the model looks at |{key}|."), { ...values, key });
  const token = plainly(stack.tokens[row.position].label);
  return pieces(say("To write |{name}|, the model looks at |{token}|, then at |{key}|."), { ...values, token, key });
}

// Whether the model adds nothing to a text, so that what it expects after each of its tokens is shown.
export const isExpected = ({ metadata, last }) => !metadata.writes && !metadata.asked && last.name === "decoder";

function expected(picture, stack, { position, names }, beat) {
  const values = { token: plainly(stack.tokens[position].label), name: plainly(names[0]) };
  if (position === stack.count - 1) return pieces(say("After |{token}|, the model ends the text."), values);
  const best = looksMostAt(picture, stack, beat);
  if (!best) return pieces(say("After |{token}|, the model predicts |{name}|."), values);
  Object.assign(values, { key: best.key, layer: best.layer });
  return best.own > best.weight
    ? pieces(
        say("After |{token}|, the model predicts |{name}|; layer {layer} looks at |{token}|, then at |{key}|."),
        values,
      )
    : pieces(say("After |{token}|, the model predicts |{name}|; layer {layer} looks most at |{key}|."), values);
}

// A blank; or, in a sentence without one, any token.
function filled(picture, stack, row, beat) {
  const { asked } = picture.model.metadata;
  const values = { name: plainly(row.names[row.chosen]), token: plainly(stack.tokens[row.position].label) };
  const best = asked && looksMostAt(picture, stack, beat);
  if (!best)
    return asked
      ? pieces(say("The model fills the blank with |{name}|."), values)
      : pieces(say("For |{token}|, the model predicts |{name}|."), values);
  return best.own > best.weight
    ? pieces(say("To fill the blank with |{name}|, the model looks at the blank itself, then at |{key}|."), {
        ...values,
        key: best.key,
      })
    : pieces(say("To fill the blank with |{name}|, the model looks at |{key}|."), { ...values, key: best.key });
}

// Of a class: which word it hangs on, where that word is followed; otherwise where the followed token looks.
function predicted(picture, stack, beat, name) {
  const decisive = decisiveHere(picture, beat);
  if (decisive) {
    const values = { name, word: decisive.word, other: decisive.other };
    return decisive.other === name
      ? pieces(say("The model predicts |{name}|; that depends most on |{word}|."), values)
      : pieces(say("The model predicts |{name}|; without |{word}|, |{other}|."), values);
  }
  const seen = looksMostAt(picture, stack, beat);
  if (seen === null) return pieces(say("The model predicts |{name}|."), { name });
  return seen.own > seen.weight
    ? pieces(say("The model predicts |{name}|; |{token}| looks most at itself, then at |{key}|."), { name, ...seen })
    : pieces(say("The model predicts |{name}|; |{token}| looks most at |{key}|."), { name, ...seen });
}

// The word without which the predicted class is least probable, where the picture ends on it.
export function decisiveHere(picture, beat) {
  const { decisive, pooling } = picture.model.metadata;
  const here =
    beat.type !== "step" &&
    beat.type !== "embedding" &&
    (decisive?.positions.includes(picture.followed(beat)) || (pooling === "first" && picture.followed(beat) === 0));
  return (here && decisive) || null;
}

// Where the token that is followed looks in the open layer, as the lines show it; null where it is only at itself.
function looksMostAt(picture, stack, beat) {
  const attention = picture.model.attention(stack.name, "self");
  const layer = picture.openLayer(stack.name, beat) ?? picture.chosenLayer(stack.name);
  const query = picture.followed(beat);
  if (attention.allCut(layer)) return null;
  const best = strongestShown(attention, layer, picture.head, query, false);
  if (!best || best.key === query) return null;
  const [token, key] = [query, best.key].map((position) => plainly(stack.tokens[position].label));
  return { token, key, layer, own: best.own, weight: best.weight };
}

// Every second piece is stressed: none of these.
const allCut = (layer, what) => [
  `${say("Layer {layer}, {what}: all edges of every head are cut, so no value arrives.", { layer, what })} `,
  "",
];

// A token that was typed, or a place that was not asked about: where it looks.
function given(picture, beat) {
  const { model, head } = picture;
  const stack = model.stack(picture.place(beat).stack);
  const position = picture.followed(beat);
  const layer = picture.chosenLayer(stack.name);
  const attention = model.attention(stack.name, "self");
  const token = stack.tokens[position].label;
  return looks(attention, { layer, head, query: position, cross: false, what: say("attention"), token, keys: stack });
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
