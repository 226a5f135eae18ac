// The bytes of every figure, from what the graphs gave and from what Python said of the figure (web/figures.py).

import { threeDigits, writeNumbersFor } from "../../charts/canvas/source/toolkit/numbers.js";
import { encodePayload } from "../../charts/canvas/source/toolkit/payload.js";
import { fill } from "../../charts/canvas/source/toolkit/words.js";

const LISTED = 5; // CANDIDATES of transformer/predictions/living_picture_numbers.py
const END_OF_PREFIX = 60; // characters of the text so far that the sentence about a step repeats

// What a masked bit array holds: eight cells a byte, the first in the lowest bit.
function bits(values) {
  const packed = new Uint8Array(Math.ceil(values.length / 8));
  values.forEach((value, at) => value && (packed[at >> 3] |= 1 << (at & 7)));
  return { values: packed, shape: [packed.length] };
}

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

  at(name, from, count, shape) {
    return { values: this.outputs[name].values.slice(from, from + count), shape };
  }

  // --- living picture -------------------------------------------------------------------------------------------------

  // Which rows of the logits the answer was read from.
  rows() {
    const { run, model } = this;
    const { classes } = model.described;
    if (classes.length) return { positions: [0], everywhere: false };
    if (model.writes) {
      const first = run.prompt.length - 1;
      const positions = run.prediction.map((_, k) => k).filter((k) => k >= first && run.prediction[k].role !== "pad");
      if (run.forced && positions.length > 1 && run.prediction[positions[positions.length - 1]].role === "end")
        positions.pop();
      const only = positions.length === 1 ? run.prediction[positions[0]] : null;
      if (model.reads || run.forced || first === 0 || only?.role !== "end") return { positions, everywhere: false };
      const { never } = model.described.framing; // the text ends at once: every token of it is a prediction
      const read = run.prediction.map((_, k) => k).filter((k) => k <= first && !never.includes(run.prediction[k].id));
      return { positions: read, everywhere: true };
    }
    const tokens = run.stacks.encoder;
    const blanks = tokens.map((_, k) => k).filter((k) => tokens[k].role === "mask");
    if (blanks.length) return { positions: blanks, everywhere: false };
    return { positions: tokens.map((_, k) => k).filter((k) => !tokens[k].special), everywhere: true };
  }

  // The most likely tokens of a row; the chosen one takes the last place where it is not among them.
  candidates(position, most) {
    const { outputs } = this;
    const count = outputs["candidates.ids"].shape[1];
    const ids = [
      ...outputs["candidates.ids"].values.subarray(position * count, position * count + Math.min(most, count)),
    ];
    const listed = (part) => [
      ...outputs[`candidates.${part}`].values.subarray(position * count, position * count + ids.length),
    ];
    const found = { ids, logits: listed("logits"), probabilities: listed("probabilities") };
    const id = this.run.prediction[position].id;
    found.chosen = ids.indexOf(id);
    if (found.chosen >= 0) return found;
    found.chosen = ids.length - 1;
    found.ids[found.chosen] = id;
    found.logits[found.chosen] = outputs["chosen.logits"].values[position];
    found.probabilities[found.chosen] = outputs["chosen.probabilities"].values[position];
    return found;
  }

  written() {
    const { positions } = this.rows();
    const { classes } = this.model.described;
    const { outputs } = this;
    const rows = positions.map((position) => {
      if (!classes.length) {
        const found = this.candidates(position, LISTED);
        return { position, names: found.ids.map((id) => this.model.text.display(id)), ...found };
      }
      const order = [...outputs["candidates.ids"].values];
      const sorted = (part) => classes.map((_, k) => outputs[`candidates.${part}`].values[order.indexOf(k)]);
      return {
        position,
        names: classes,
        logits: sorted("logits"),
        probabilities: sorted("probabilities"),
        chosen: order[0],
      };
    });
    const most = Math.max(1, ...rows.map(({ names }) => names.length));
    const table = (part) => {
      const values = new Float32Array(rows.length * most);
      rows.forEach((row, k) => values.set(row[part], k * most));
      return { values, shape: [rows.length, most] };
    };
    return {
      listed: rows.map(({ position, names, chosen }) => ({ position, names, chosen })),
      arrays: {
        "written.probabilities": table("probabilities"),
        "written.logits": table("logits"),
        "written.log_sum": {
          values: Float32Array.from(positions, (position) => outputs.log_sum.values[position]),
          shape: [positions.length],
        },
      },
    };
  }

  // The token that is followed at first, as `_followed` in charts/canvas/living_picture_canvas.py says.
  followed(name, listed) {
    const { run, model, texts } = this;
    const second = Math.min(1, run.stacks[name].length - 1);
    if (name !== texts.living_picture.stacks.at(-1).name) return second;
    if (model.described.classes.length) return run.pictures?.[name] ? 0 : second;
    return (listed[1] ?? listed[0])?.position ?? second;
  }

  livingPicture({ begin = {}, inside = null, links = {} } = {}) {
    const { run, outputs, model } = this;
    const template = this.texts.living_picture;
    const { listed, arrays } = this.written();
    const { everywhere } = this.rows();
    const removed = run.request.removed ?? [];
    const metadata = {
      ...template,
      stacks: template.stacks.map((stack) => ({
        ...stack,
        tokens: run.stacks[stack.name].map(({ text, label, special, role }) => ({ text, label, special, role })),
        pictures: run.pictures?.[stack.name] ?? null,
      })),
      attentions: template.attentions.map((one) => ({ ...one, exact: true })),
      written: listed,
      writes: model.writes && !everywhere,
      asked: !everywhere,
      edited: removed.length > 0,
      text: run.text,
      begin,
      follow: Object.fromEntries(template.stacks.map(({ name }) => [name, this.followed(name, listed)])),
      links,
      inside: template.inside.filter(({ stack, layer }) => inside && stack === inside.stack && layer === inside.layer),
    };
    if (removed.length) metadata.cuts = removed.map(([stack, kind, layer, head]) => ({ stack, kind, layer, head }));
    for (const [name, output] of Object.entries(outputs)) {
      const [first, second, third] = name.split(".");
      if (first === "inside") {
        if (inside && second === inside.stack && Number(third) === inside.layer) arrays[name] = output;
      } else if (third === "allowed") arrays[name] = bits(output.values);
      else if (second === "units") arrays[name] = { ...output, values: Uint16Array.from(output.values) };
      else if (["encoder", "decoder"].includes(first)) arrays[name] = output;
    }
    return this.pack(metadata, arrays);
  }

  // --- attention ------------------------------------------------------------------------------------------------------

  sides(stack, kind) {
    const query = this.run.stacks[stack];
    return { query, key: kind === "cross" ? this.run.stacks.encoder : query };
  }

  // Whether rows are named after the tokens that are predicted, as for cross-attention.
  namesPredictions(stack, kind) {
    return this.texts.maps[`${stack}.${kind}`].shifted;
  }

  // The tokens that name the rows.
  rowsOf(stack, kind) {
    return this.namesPredictions(stack, kind) ? this.run.prediction : this.sides(stack, kind).query;
  }

  // The weights of one row of a head.
  weightsOf({ stack, kind, layer, head, row }) {
    const { shape, values } = this.outputs[`${stack}.${kind}.weights`];
    const from = ((layer * shape[1] + head) * shape[2] + row) * shape[3];
    return values.subarray(from, from + shape[3]);
  }

  attentionMap({ stack, kind, layer, head, selected = null, chosen = null }) {
    const { shifted, ...template } = this.texts.maps[`${stack}.${kind}`];
    const { query, key } = this.sides(stack, kind);
    const [rows, columns] = [query.length, key.length];
    const { heads } = this.model.described;
    const values = this.at(`${stack}.${kind}.weights`, (layer * heads + head) * rows * columns, rows * columns, [
      rows,
      columns,
    ]);
    const allowed = this.outputs[`${stack}.${kind}.allowed`].values.slice(
      layer * rows * columns,
      (layer + 1) * rows * columns,
    );
    values.values.forEach((_, k) => allowed[k] || (values.values[k] = 0));
    const metadata = {
      ...template,
      title: this.texts.titles[`${stack}.${kind}`][layer][head],
      rows: this.rowsOf(stack, kind).map(({ label }) => label),
      columns: key.map(({ label }) => label),
      special_rows: shifted ? [] : specials(query),
      special_columns: specials(key),
      selected,
      chosen_row: chosen,
    };
    return this.pack(metadata, { values, allowed: bits(allowed) });
  }

  // Every head, with every digit of its weights.
  overview({ stack, kind, layer, head }) {
    const template = this.texts.overview;
    const arrays = {};
    const parts = template.parts.map((part, index) => {
      const name = `${part.stack}.${part.attention}`;
      const { query, key } = this.sides(part.stack, part.attention);
      const cells = query.length * key.length;
      const weights = this.outputs[`${name}.weights`].values;
      const masks = [];
      const maskOf = Array.from({ length: this.model.described.layers[part.stack] }, (_, l) => {
        const { values } = bits(this.outputs[`${name}.allowed`].values.subarray(l * cells, (l + 1) * cells));
        const known = masks.findIndex((mask) => mask.every((byte, k) => byte === values[k]));
        return known >= 0 ? known : masks.push(values) - 1;
      });
      arrays[`weights${index}`] = {
        values: Float32Array.from(weights),
        shape: [part.tiles.length, query.length, key.length],
      };
      const [size] = [masks[0].length];
      const joined = new Uint8Array(masks.length * size);
      masks.forEach((mask, k) => joined.set(mask, k * size));
      arrays[`masks${index}`] = { values: joined, shape: [masks.length, size] };
      return {
        ...part,
        rows: query.map(({ label }) => label),
        columns: key.map(({ label }) => label),
        special_rows: specials(query),
        special_columns: specials(key),
        tiles: part.tiles.map((tile) => ({ ...tile, mask: maskOf[tile.layer] })),
      };
    });
    return this.pack({ ...template, parts, selected: [stack, kind, layer, head] }, arrays);
  }

  // --- decoding -------------------------------------------------------------------------------------------------------

  // What could have come at each step: [[{ id, text }]]
  choices() {
    const first = this.run.prompt.length - 1;
    return this.run.prediction
      .slice(first)
      .map((_, step) =>
        this.candidates(first + step, Infinity).ids.map((id) => ({ id, text: this.model.text.display(id) })),
      );
  }

  // Step by step, with the mean of the heads of one layer.
  steps({ layer, begin = [0, 0], forcedCount = 0 }) {
    const { run, model, outputs } = this;
    const { said, title, of, axis } = this.texts.steps;
    const kind = model.reads ? "cross" : "self";
    const { heads } = model.described;
    const first = run.prompt.length - 1;
    const tokens = run.prediction.slice(first);
    const { key, query } = this.sides("decoder", kind);
    const count = key.length;
    const given = run.forced ? tokens.length : forcedCount;
    const bars = tokens.map((token, step) => {
      const position = first + step;
      const found = this.candidates(position, Infinity);
      const before = model.text.decode(
        (model.reads ? run.answer : [...run.prompt, ...run.answer]).slice(
          0,
          (model.reads ? 0 : run.prompt.length) + step,
        ),
      );
      const text = before.length > END_OF_PREFIX ? `…${before.slice(-END_OF_PREFIX)}` : before;
      const rank = found.ids.indexOf(token.id) + 1;
      const how = run.forced
        ? rank === 1
          ? "comes_given_first"
          : "comes_given"
        : step < given
          ? "comes_forced"
          : token.role === "end"
            ? "comes_greedy_end"
            : "comes_greedy";
      const probability = outputs["chosen.probabilities"].values[position];
      const values = {
        place: text ? fill(said.after, { text }) : said.at_beginning,
        token: token.text,
        best: model.text.display(found.ids[0]),
        best_probability: threeDigits(found.probabilities[0]),
        probability: threeDigits(probability),
        rank: found.chosen === found.ids.length - 1 && rank === found.ids.length ? `≥ ${rank}` : rank,
      };
      return { ...found, said: said[how].split("**").map((piece) => fill(piece, values)) };
    });
    const most = Math.max(...bars.map(({ ids }) => ids.length));
    const probabilities = new Float32Array(tokens.length * most);
    const weights = new Uint16Array(tokens.length * count);
    const allowed = new Uint8Array(tokens.length * count);
    const maps = outputs[`decoder.${kind}.weights`].values;
    const masks = outputs[`decoder.${kind}.allowed`].values;
    const rows = query.length;
    const counts = tokens.map((_, step) => (kind === "cross" ? count : first + step + 1));
    bars.forEach((bar, step) => {
      probabilities.set(bar.probabilities, step * most);
      for (let k = 0; k < counts[step]; k++) {
        let sum = 0;
        for (let head = 0; head < heads; head++)
          sum += maps[((layer * heads + head) * rows + first + step) * count + k];
        weights[step * count + k] = Math.round(Math.min(1, sum / heads) * 65535);
        allowed[step * count + k] = masks[(layer * rows + first + step) * count + k];
      }
    });
    const metadata = {
      kind: "steps",
      title,
      tokens: tokens.map(({ text, special }, k) => ({ text, special, given: k < given })),
      before: run.stacks.decoder.slice(0, first + 1).map(({ text, special }) => ({ text, special })),
      said: bars.map((bar) => bar.said),
      candidates: bars.map(({ ids }) => ids.map((id) => model.text.display(id))),
      chosen: bars.map(({ chosen }) => chosen),
      ranks: bars.map(() => 0), // not computed beyond the candidates; the sentence says at least which
      columns: key.map(({ label }) => label),
      counts,
      of: of[layer],
      axis,
      begin,
    };
    const rest = Float32Array.from(bars, (bar) =>
      Math.max(0, 1 - bar.probabilities.reduce((sum, one) => sum + one, 0)),
    );
    return this.pack(metadata, {
      probabilities: { values: probabilities, shape: [tokens.length, most] },
      rest: { values: rest, shape: [tokens.length] },
      weights: { values: weights, shape: [tokens.length, count] },
      allowed: bits(allowed),
    });
  }
}

const specials = (tokens) => tokens.map((_, k) => k).filter((k) => tokens[k].special);
