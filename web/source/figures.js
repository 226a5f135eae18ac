// The bytes of every figure, from the outputs of the graphs (web/graphs.py) and what Python said of the figure
// (web/figures.py). A method is named after the page that it draws for.

import { threeDigits, writeNumbersFor } from "../../charts/canvas/source/toolkit/numbers.js";
import { encodePayload } from "../../charts/canvas/source/toolkit/payload.js";
import { fill } from "../../charts/canvas/source/toolkit/words.js";

const END_OF_PREFIX = 60; // characters of the text so far that the sentence about a step repeats

// A masked bit array: eight cells a byte, the first in the lowest bit.
function bits({ values }) {
  const packed = new Uint8Array(Math.ceil(values.length / 8));
  values.forEach((value, at) => value && (packed[at >> 3] |= 1 << (at & 7)));
  return { values: packed, shape: [packed.length] };
}

const where = (tokens, isMeant) => [...tokens.keys()].filter((k) => isMeant(tokens[k]));
const specials = (tokens) => where(tokens, ({ special }) => special);
const labels = (tokens) => tokens.map(({ label }) => label);
const plain = ({ text, special }) => ({ text, special });

export class Figures {
  constructor(model, run, language) {
    Object.assign(this, { model, run, outputs: run.outputs });
    this.texts = model.described.languages[language] ?? model.described.languages.en;
    writeNumbersFor(this.texts.language);
  }

  pack(metadata, arrays) {
    const { words, language } = this.texts;
    return encodePayload(Object.keys(words).length ? { ...metadata, words, language } : metadata, arrays);
  }

  // --- parts of the graphs' outputs -----------------------------------------------------------------------------------

  // Entries `from` to `end` of the last `axes` axes of an output: rows of [row, column], or matrices.
  slice(name, from, end, axes = 1) {
    const { values, shape } = this.outputs[name];
    const sides = shape.slice(-axes);
    const size = sides.reduce((product, side) => product * side, 1);
    return { values: values.slice(from * size, end * size), shape: [end - from, ...sides] };
  }

  matrix(name, at) {
    const { values, shape } = this.slice(name, at, at + 1, 2);
    return { values, shape: shape.slice(1) };
  }

  // Those rows of an output [position, …].
  rows(name, positions) {
    const { values, shape } = this.outputs[name];
    const width = shape[1] ?? 1;
    const found = new Float32Array(positions.length * width);
    positions.forEach((at, k) => found.set(values.subarray(at * width, (at + 1) * width), k * width));
    return { values: found, shape: [positions.length, ...shape.slice(1)] };
  }

  row(name, position) {
    return [...this.rows(name, [position]).values];
  }

  names(part, position) {
    const { classes } = this.model.described;
    return this.row(`${part}.ids`, position).map((id) => classes[id] ?? this.model.text.display(id));
  }

  // Positions that the output was read from, as `prediction_rows` in answer_probabilities.py says.
  get predicted() {
    const { run, model } = this;
    const { classes, framing } = model.described;
    const { prediction } = run;
    if (classes.length) return { positions: [0], everywhere: false };
    if (!model.writes) {
      const tokens = run.stacks.encoder;
      const blanks = where(tokens, ({ role }) => role === "mask");
      if (blanks.length) return { positions: blanks, everywhere: false };
      return { positions: where(tokens, ({ special }) => !special), everywhere: true };
    }
    const first = run.prompt.length - 1;
    const positions = where(prediction, ({ role }) => role !== "pad").filter((k) => k >= first);
    const isEnd = (k) => prediction[k].role === "end";
    if (run.forced && positions.length > 1 && isEnd(positions.at(-1))) positions.pop();
    const endsAtOnce = positions.length === 1 && isEnd(positions[0]) && !model.reads && !run.forced && first > 0;
    if (!endsAtOnce) return { positions, everywhere: false };
    const typed = where(prediction, ({ id }) => !framing.never.includes(id)).filter((k) => k <= first);
    return { positions: typed, everywhere: true };
  }

  // --- living picture -------------------------------------------------------------------------------------------------

  // place: where it opens, with the `stop` and `step` of a lesson; inside: the layer that is unfolded
  overview({ place, stop = {}, inside = null }) {
    const { run, outputs, model } = this;
    const template = this.texts.living_picture;
    const { positions, everywhere } = this.predicted;
    const removed = run.request.removed ?? [];
    const metadata = {
      ...template,
      stacks: template.stacks.map((stack) => ({
        ...stack,
        tokens: run.stacks[stack.name].map(({ text, label, special, role }) => ({ text, label, special, role })),
        pictures: run.pictures?.[stack.name] ?? null,
      })),
      attentions: template.attentions.map((one) => ({ ...one, exact: true })),
      written: positions.map((position) => ({
        position,
        names: this.names("written", position),
        chosen: outputs["written.chosen"].values[position],
      })),
      writes: model.writes && !everywhere,
      asked: !everywhere,
      edited: removed.length > 0,
      text: run.text,
      begin: { ...place, ...stop },
      follow: Object.fromEntries(template.stacks.map(({ name }) => [name, this.followed(name, positions)])),
      inside: template.inside.filter(({ stack, layer }) => stack === inside?.stack && layer === inside.layer),
    };
    if (removed.length) metadata.cuts = removed.map(([stack, kind, layer, head]) => ({ stack, kind, layer, head }));
    const arrays = {};
    for (const part of ["probabilities", "logits", "log_sum"])
      arrays[`written.${part}`] = this.rows(`written.${part}`, positions);
    for (const [name, output] of Object.entries(outputs)) {
      const [first, second, third] = name.split(".");
      const isInside = first === "inside" && second === inside?.stack && Number(third) === inside.layer;
      if (!isInside && !(first in run.stacks)) continue;
      if (name.endsWith(".allowed")) arrays[name] = bits(output);
      else if (name.endsWith(".units")) arrays[name] = { ...output, values: Uint16Array.from(output.values) };
      else arrays[name] = output;
    }
    return this.pack(metadata, arrays);
  }

  // The token that is followed at first, as `_followed` in charts/canvas/living_picture_canvas.py says.
  followed(name, positions) {
    const { run, model, texts } = this;
    const second = Math.min(1, run.stacks[name].length - 1);
    if (name !== texts.living_picture.stacks.at(-1).name) return second;
    if (model.described.classes.length) return run.pictures?.[name] ? 0 : second;
    return positions[1] ?? positions[0] ?? second;
  }

  // --- attention ------------------------------------------------------------------------------------------------------

  sides(stack, kind) {
    const query = this.run.stacks[stack];
    return { query, key: kind === "cross" ? this.run.stacks.encoder : query };
  }

  // The tokens that name the rows: those that are predicted for cross-attention.
  rowTokens({ stack, kind }) {
    return this.texts.maps[`${stack}.${kind}`].shifted ? this.run.prediction : this.run.stacks[stack];
  }

  attention({ place }) {
    const { stack, kind, layer, head, token } = place;
    const name = `${stack}.${kind}`;
    const { shifted, ...template } = this.texts.maps[name];
    const { query, key } = this.sides(stack, kind);
    const metadata = {
      ...template,
      title: this.texts.titles[name][layer][head],
      rows: labels(this.rowTokens(place)),
      columns: labels(key),
      special_rows: shifted ? [] : specials(query),
      special_columns: specials(key),
      selected: null,
      chosen_row: token,
    };
    return this.pack(metadata, {
      values: this.matrix(`${name}.weights`, layer * this.model.described.heads + head),
      allowed: bits(this.matrix(`${name}.allowed`, layer)),
    });
  }

  heads({ place }) {
    const arrays = {};
    const parts = this.texts.overview.parts.map((part, index) => {
      const name = `${part.stack}.${part.attention}`;
      const { query, key } = this.sides(part.stack, part.attention);
      const masks = []; // each is sent once
      const maskOf = Array.from({ length: this.model.described.layers[part.stack] }, (_, layer) => {
        const { values } = bits(this.matrix(`${name}.allowed`, layer));
        const known = masks.findIndex((mask) => mask.join() === values.join());
        return known >= 0 ? known : masks.push(values) - 1;
      });
      arrays[`weights${index}`] = this.slice(`${name}.weights`, 0, part.tiles.length, 2);
      arrays[`masks${index}`] = {
        values: Uint8Array.from(masks.flatMap((mask) => [...mask])),
        shape: [masks.length, masks[0].length],
      };
      return {
        ...part,
        rows: labels(query),
        columns: labels(key),
        special_rows: specials(query),
        special_columns: specials(key),
        tiles: part.tiles.map((tile) => ({ ...tile, mask: maskOf[tile.layer] })),
      };
    });
    const { stack, kind, layer, head } = place;
    return this.pack({ ...this.texts.overview, parts, selected: [stack, kind, layer, head] }, arrays);
  }

  // --- decoding -------------------------------------------------------------------------------------------------------

  // What could have come at each step: [[{ id, text }]]
  choices() {
    const { run, model } = this;
    const first = run.prompt.length - 1;
    return run.answer.map((_, step) =>
      this.row("step.ids", first + step).map((id) => ({ id, text: model.text.display(id) })),
    );
  }

  // Step by step, with the mean of the heads of one layer.
  decoding({ place }) {
    const { run, model, outputs } = this;
    const { title, of, axis } = this.texts.steps;
    const kind = model.reads ? "cross" : "self";
    const layer = Math.min(place.layer, model.described.layers.decoder - 1);
    const first = run.prompt.length - 1;
    const tokens = run.prediction.slice(first);
    const { key, query } = this.sides("decoder", kind);
    const given = run.forced ? tokens.length : (run.request.forced ?? []).length;
    const positions = tokens.map((_, step) => first + step);
    const at = (name) => positions.map((position) => outputs[name].values[position]);
    const maps = [layer * query.length + first, (layer + 1) * query.length];
    const weights = this.slice(`mean.decoder.${kind}`, ...maps);
    const metadata = {
      kind: "steps",
      title,
      tokens: tokens.map((token, k) => ({ ...plain(token), given: k < given })),
      before: run.stacks.decoder.slice(0, first + 1).map(plain),
      said: tokens.map((token, step) => this.sayStep(token, step, first + step, given)),
      candidates: positions.map((position) => this.names("step", position)),
      chosen: at("step.chosen"),
      ranks: at("step.rank").map((rank, k) => (rank > at("step.chosen")[k] + 1 ? rank : 0)),
      columns: labels(key),
      counts: positions.map((position) => (kind === "cross" ? key.length : position + 1)),
      of: of[layer],
      axis,
      begin: [0, 0],
    };
    return this.pack(metadata, {
      probabilities: this.rows("step.probabilities", positions),
      rest: this.rows("step.rest", positions),
      weights: { ...weights, values: Uint16Array.from(weights.values) },
      allowed: bits(this.slice(`decoder.${kind}.allowed`, ...maps)),
    });
  }

  // The sentence about a step, in pieces.
  sayStep(token, step, position, given) {
    const { run, model, outputs } = this;
    const { said } = this.texts.steps;
    const before = [...(model.reads ? [] : run.prompt), ...run.answer.slice(0, step)];
    const text = model.text.decode(before);
    const rank = outputs["step.rank"].values[position];
    const chances = this.row("step.probabilities", position);
    let how = token.role === "end" ? "comes_greedy_end" : "comes_greedy";
    if (run.forced) how = rank === 1 ? "comes_given_first" : "comes_given";
    else if (step < given) how = "comes_forced";
    const after = text.length > END_OF_PREFIX ? `…${text.slice(-END_OF_PREFIX)}` : text;
    const values = {
      place: text ? fill(said.after, { text: after }) : said.at_beginning,
      token: token.text,
      best: this.names("step", position)[0],
      best_probability: threeDigits(chances[0]),
      probability: threeDigits(chances[outputs["step.chosen"].values[position]]),
      rank,
    };
    return said[how].split("**").map((piece) => fill(piece, values));
  }
}
