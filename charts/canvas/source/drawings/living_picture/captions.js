// One short true sentence about each beat, of the token that is followed.

import { threeDigits } from "../../toolkit/numbers.js";
import { say } from "../../toolkit/words.js";

// -> pieces, every second one of which is stressed
export function captionOf(picture, beat) {
  const { model, head } = picture;
  const stack = model.stack(beat.stack);
  const named = (position) => stack.tokens[position].label;
  const follow = picture.followed(beat);
  if (beat.type === "embedding") return embedding(model, stack, beat);
  if (beat.type === "memory")
    return pieces(
      say("The encoder has read the whole sentence: |{count}| columns of numbers, at which the decoder may look."),
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
        "Layer {layer}, feed-forward adds to |{token}| a vector |{ratio}| times as long; unit {unit} answers most ({value}).",
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
  const best = strongest(attention, beat.layer, head, follow, cross);
  const what = kindText(beat.kind);
  if (attention.allCut(beat.layer)) return allCut(beat.layer, what);
  if (!best)
    return pieces(say("Layer {layer}, {what}: |{token}| looks at nothing: all is masked."), { ...place, what });
  const values = {
    ...place,
    what,
    head: best.head,
    weight: model.says(attention, best.weight),
    key: keys.tokens[best.key].label,
  };
  if (best.key === follow && !cross)
    return pieces(say("Layer {layer}, {what}, head {head}: |{token}| keeps |{weight}| for itself."), values);
  return pieces(say("Layer {layer}, {what}, head {head}: |{token}| takes |{weight}| from |{key}|."), values);
}

// What a strip of a lane is: the stream at a place, what is added there, or the output of the last norm.
export function describedStep(stack, kind, level) {
  if (kind === "final") return say("behind the last norm");
  if (kind === "stream" && level === 0) return say("behind the embedding");
  const { layer, kind: step } = stack.steps[kind === "stream" ? level - 1 : level];
  const values = { layer, step: kindText(step) };
  return kind === "stream"
    ? say("behind layer {layer}, {step}", values)
    : say("added by layer {layer}, {step}", values);
}

export function kindText(kind) {
  return {
    self_attention: say("attention"),
    cross_attention: say("cross-attention"),
    feed_forward: say("feed-forward"),
    convolution: say("convolution"),
  }[kind];
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
      say("The picture is cut into patches: |{count}| tokens, each now a column of |{channels}| numbers."),
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
  if (model.metadata.classes)
    return pieces(say("Of {count} classes the model finds |{name}| the likeliest: |{probability}|."), {
      count: row.names.length,
      name,
      probability,
    });
  if (!model.metadata.writes)
    return pieces(
      model.metadata.asked
        ? say("Into the blank goes |{name}|, with probability |{probability}|.")
        : say("In the place of |{token}| the model finds |{name}| likeliest: |{probability}|."),
      { name, probability, token: stack.tokens[row.position].label },
    );
  const layer = picture.openLayer(stack.name, beat) ?? stack.layers - 1;
  const kind = model.attention(stack.name, "cross") ? "cross" : "self";
  const attention = model.attention(stack.name, kind);
  const best = strongest(attention, layer, head, row.position, kind === "cross");
  const keys = kind === "cross" ? model.stacks[0] : stack;
  const values = { token: stack.tokens[row.position].label, name, probability, layer };
  if (attention.allCut(layer))
    return [
      ...allCut(layer, kindText(`${kind}_attention`)),
      ...pieces(say("Behind |{token}| comes |{name}|, with probability |{probability}|."), values),
    ];
  if (!best) return pieces(say("Behind |{token}| comes |{name}|, with probability |{probability}|."), values);
  return pieces(
    say(
      "Behind |{token}|: layer {layer}, head {head} takes |{weight}| from |{key}|; the next token is |{name}| (|{probability}|).",
    ),
    {
      ...values,
      head: best.head,
      weight: model.says(attention, best.weight),
      key: keys.tokens[best.key].label,
    },
  );
}

// Every second piece is stressed: none of these.
const allCut = (layer, what) => [
  `${say("Layer {layer}, {what}: every head is cut, nothing of it arrives.", { layer, what })} `,
  "",
];

// A token that was typed, or a place that was not asked about: where it looks.
function given(picture, beat) {
  const { model, head } = picture;
  const stack = model.stack(picture.place(beat).stack);
  const position = picture.followed(beat);
  const layer = picture.chosenLayer(stack.name);
  const attention = model.attention(stack.name, "self");
  const best = strongest(attention, layer, head, position, false);
  const values = { layer, what: say("attention"), token: stack.tokens[position].label };
  if (attention.allCut(layer)) return allCut(layer, say("attention"));
  if (!best) return pieces(say("Layer {layer}, {what}: |{token}| looks at nothing: all is masked."), values);
  return pieces(say("Layer {layer}, {what}, head {head}: |{token}| takes |{weight}| from |{key}|."), {
    ...values,
    head: best.head,
    weight: model.says(attention, best.weight),
    key: stack.tokens[best.key].label,
  });
}

// Parted before the values come in: a token may hold the very sign that parts what is stressed.
const pieces = (template, values) =>
  template.split("|").map((piece) => piece.replace(/\{(\w+)\}/g, (_, name) => values[name]));
