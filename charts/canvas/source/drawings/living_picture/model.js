// What the payload of charts/canvas/living_picture_canvas.py holds, by names.

import { decimals, threeDigits } from "../../toolkit/numbers.js";

class Stack {
  constructor(described, arrays) {
    Object.assign(this, described);
    this.arrays = (name) => arrays[`${this.name}.${name}`];
    this.count = this.tokens.length;
    this.threads = arrays[`${this.name}.stream`].shape[2];
    this.shown = arrays[`${this.name}.units`].shape[2] ?? 0; // units a token
    this.limit = limitOf(this.arrays("stream").values);
    // The vectors that go in are often shorter than what becomes of them.
    const inputs = ["token", "place"].map((name) => this.arrays(name)?.values ?? []);
    this.inputLimit = limitOf(inputs.flatMap((values) => [...values]));
    this.finalLimit = this.arrays("final") ? limitOf(this.arrays("final").values) : 1;
    this.unitLimit = Math.max(...sizesOf(this.arrays("after_activation").values).slice(-1)) || 1;
  }

  row(name, at, position) {
    const { values } = this.arrays(name);
    const from = (at * this.count + position) * this.threads;
    return values.subarray(from, from + this.threads);
  }
  stream(level, position) {
    return this.row("stream", level, position);
  }
  update(step, position) {
    return this.row("update", step, position);
  }
  growth(step, position) {
    return this.arrays("growth").values[step * this.count + position];
  }
  final(position) {
    return this.arrays("final") ? this.row("final", 0, position) : null;
  }
  // [{ unit, before, after }], the strongest first
  units_(layer, position) {
    const [numbers, before, after] = ["units", "before_activation", "after_activation"].map(this.arrays);
    const from = (layer * this.count + position) * this.shown;
    return Array.from({ length: this.shown }, (_, k) => ({
      unit: numbers.values[from + k],
      before: before.values[from + k],
      after: after.values[from + k],
    }));
  }
  stepOf(layer, kind) {
    return this.steps.findIndex((step) => step.layer === layer && step.kind === kind);
  }
}

class Attention {
  constructor({ stack, kind, exact }, arrays, cuts = []) {
    Object.assign(this, { stack, kind, exact, divisor: exact ? 1 : 65535 });
    this.cuts = cuts.filter((cut) => cut.stack === stack && cut.kind === kind);
    const { shape, values } = arrays[`${stack}.${kind}.weights`];
    [this.layers, this.heads, this.queries, this.keys] = shape;
    this.values = values;
    this.bits = arrays[`${stack}.${kind}.allowed`].values;
  }
  weight(layer, head, query, key) {
    const at = ((layer * this.heads + head) * this.queries + query) * this.keys + key;
    return this.values[at] / this.divisor;
  }
  allowed(layer, query, key) {
    const at = (layer * this.queries + query) * this.keys + key;
    return ((this.bits[at >> 3] >> (at & 7)) & 1) === 1;
  }
  // Of one head, or the mean of all of them (head: null).
  mean(layer, head, query, key) {
    if (head !== null) return this.weight(layer, head, query, key);
    let sum = 0;
    for (let each = 0; each < this.heads; each++) sum += this.weight(layer, each, query, key);
    return sum / this.heads;
  }
  // The key, of those that `counts` lets pass, that gets most from a query on average over all heads.
  strongestOnAverage(layer, query, counts = () => true) {
    let best = null;
    for (let key = 0; key < this.keys; key++) {
      const weight = this.mean(layer, null, query, key);
      if (this.allowed(layer, query, key) && counts(key) && weight > (best?.weight ?? 0)) best = { key, weight };
    }
    return best;
  }
  // Whether what a head writes does not arrive: the model was edited.
  isCut(layer, head) {
    return this.cuts.some((cut) => [null, layer].includes(cut.layer) && (cut.head === null || cut.head === head));
  }
  allCut(layer) {
    return Array.from({ length: this.heads }, (_, head) => head).every((head) => this.isCut(layer, head));
  }
  // The key, of those that `counts` lets pass, that gets most from a query, in one head or in all that are not cut.
  strongest(layer, head, query, counts = () => true) {
    let best = null;
    for (let each = head ?? 0; each <= (head ?? this.heads - 1); each++)
      for (let key = 0; key < this.keys; key++) {
        const weight = this.weight(layer, each, query, key);
        if (head === null && this.isCut(layer, each)) break;
        else if (this.allowed(layer, query, key) && counts(key) && !(best && best.weight >= weight) && weight > 0)
          best = { head: each, key, weight };
      }
    return best;
  }
}

export class LivingPictureModel {
  constructor({ metadata, arrays }) {
    Object.assign(this, { metadata, arrays });
    this.stacks = metadata.stacks.map((stack) => new Stack(stack, arrays));
    this.attentions = metadata.attentions.map((one) => new Attention(one, arrays, metadata.cuts));
    const listed = (name, at, count) => {
      const { shape, values } = arrays[`written.${name}`];
      return values.subarray(at * shape[1], at * shape[1] + count);
    };
    this.written = metadata.written.map((row, at) => ({
      ...row,
      probabilities: listed("probabilities", at, row.names.length),
      logits: listed("logits", at, row.names.length),
      logSum: arrays["written.log_sum"].values[at],
    }));
  }
  stack(name) {
    return this.stacks.find((stack) => stack.name === name);
  }
  attention(stack, kind) {
    return this.attentions.find((attention) => attention.stack === stack && attention.kind === kind);
  }
  // The stack out of which the answer comes.
  get last() {
    return this.stacks[this.stacks.length - 1];
  }
  // Of one layer: { array(name), scale, plain }, or null as long as it was not sent.
  inside(stack, layer) {
    const found = this.metadata.inside.find((one) => one.stack === stack && one.layer === layer);
    return found ? { ...found, array: (name) => this.arrays[`inside.${stack}.${layer}.${name}`] } : null;
  }
  // As it is written of a weight: two digits behind the point where it was rounded on its way.
  says(attention, weight) {
    return attention.exact ? threeDigits(weight) : decimals(weight, 2);
  }
}

// Where colours end: 95 of 100 values lie below it.
function limitOf(values) {
  const sizes = sizesOf(values);
  return sizes[Math.floor((sizes.length - 1) * 0.95)] || sizes[sizes.length - 1] || 1;
}

const sizesOf = (values) => Float32Array.from(values, (value) => (Number.isFinite(value) ? Math.abs(value) : 0)).sort();
