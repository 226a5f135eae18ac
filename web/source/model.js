// One model in ONNX Runtime: what a sentence becomes, every number of it, and what the model writes.

import * as runtime from "onnxruntime-web/wasm";
import { Pictures, Text } from "./tokens.js";

const WEIGHTS = "model.safetensors";

export function begin(wasm) {
  Object.assign(runtime.env.wasm, { wasmBinary: wasm, numThreads: 1, proxy: false });
  runtime.env.logLevel = "error";
}

// A text that the model cannot take: the name of a sentence in the model's texts, and what stands in its {…}.
export class InputProblem extends Error {
  constructor(name, values = {}) {
    super(name);
    Object.assign(this, { values });
  }
}

export class Model {
  // files: the bytes of each file by name, inflated
  static async open(files) {
    const read = (name) => JSON.parse(new TextDecoder().decode(files[name]));
    const model = new Model();
    model.described = read("model.json");
    model.text = model.described.picture
      ? new Pictures(model.described)
      : new Text(model.described, read("tokenizer.json"));
    model.sessions = {};
    for (const stack of Object.keys(model.described.graphs))
      model.sessions[stack] = await runtime.InferenceSession.create(files[`${stack}.onnx`], {
        executionProviders: ["wasm"],
        externalData: [{ path: WEIGHTS, data: files[WEIGHTS] }],
      });
    return model;
  }

  get writes() {
    return "decoder" in this.sessions;
  }
  get reads() {
    return "encoder" in this.sessions;
  }

  // Everything about one request: { sentence, target, forced: [id], removed: [[stack, kind, layer, head]], answer: [id]
  // that is read instead of writing one, chosen: [id] whose probabilities are wanted where nothing is written, instead of
  // the most likely ones }. `stopped` is asked between steps of writing.
  async run(request, stopped = () => false) {
    const { framing, classes, picture } = this.described;
    const found = { request, stacks: {}, outputs: {}, forced: Boolean(request.target), finished: true };
    const { outputs } = found;
    let source = null;
    if (this.reads) {
      source = [...framing.before, ...this.read(request.sentence), ...framing.after];
      this.checkLength(source.length, "sentence");
      found.stacks.encoder = this.text.sequence(source);
      if (picture) found.pictures = { encoder: this.text.thumbnails(source) };
      Object.assign(outputs, await this.pass("encoder", source, { chosen: request.chosen }, request));
    }
    if (!this.writes) {
      found.chosen = [...outputs["chosen.ids"].values];
      if (classes.length) return { ...found, text: classes[found.chosen[0]] };
      found.prediction = this.text.sequence(found.chosen);
      const filled = source.map((id, k) => (this.text.role(id) === "mask" ? found.chosen[k] : id));
      return { ...found, text: this.text.decode(filled) };
    }
    const prompt = this.prompt(request);
    let { answer } = request;
    if (!answer && request.target) {
      answer = [...this.target(request.target), ...framing.end];
      this.checkLength(prompt.length + answer.length - 1, "target");
    } else if (!answer) {
      answer = await this.write(request, prompt, outputs, source, stopped);
      if (answer === null) return null;
      found.finished = framing.ends.includes(answer.at(-1));
    }
    const whole = [...prompt, ...answer];
    const [read, predicted] = [whole.slice(0, -1), whole.slice(1)];
    found.stacks.decoder = this.text.sequence(read);
    Object.assign(outputs, await this.pass("decoder", read, { ...outputs, chosen: predicted }, request));
    const text = this.text.decode(this.reads ? answer : whole);
    return { ...found, prompt, answer, prediction: this.text.sequence(predicted), text };
  }

  prompt(request) {
    const { framing } = this.described;
    if (this.reads) return request.target ? framing.given : framing.answer;
    const ids = [...framing.before, ...this.read(request.sentence), ...framing.after];
    this.checkLength(ids.length, "text");
    return ids;
  }

  // Greedy, after the ids that are forced. The answer to the last request is a guess: one pass over it checks all of its
  // tokens, as no position depends on a later one, and where it is right up to a letter that was typed, few passes are left.
  async write(request, prompt, encoded, source, stopped) {
    const { framing, limit } = this.described;
    const forced = request.forced ?? [];
    const room = limit - prompt.length;
    if (room < forced.length + 1) throw new InputProblem("room", { length: prompt.length + forced.length, limit });
    const most = Math.min(room, Math.max(forced.length, forced.length + (source ? 2 * source.length + 10 : 40)));
    const known = this.guess ?? [];
    const ids = [...forced];
    const ended = () => ids.length >= most || framing.ends.includes(ids[ids.length - 1]);
    while (!ended()) {
      if (await stopped()) return null;
      const guess = known.slice(ids.length, most - 1).filter((id) => !framing.ends.includes(id));
      const read = [...prompt, ...ids, ...guess];
      const { "chosen.ids": best } = await this.pass("decoder", read, encoded, request, ["chosen.ids"]);
      const first = prompt.length + ids.length - 1;
      for (let k = 0; k <= guess.length; k++) {
        ids.push(best.values[first + k]);
        if (ended() || ids[ids.length - 1] !== guess[k]) break;
      }
    }
    this.guess = ids;
    return ids;
  }

  read(text) {
    this.checkText(text, "sentence");
    if (this.described.picture)
      return this.text.encode(text, (name, values) => {
        throw new InputProblem(name, values);
      });
    const blanks = this.described.kind === "encoder-only" && !this.described.classes.length;
    return blanks ? this.text.encodeWithBlanks(text) : this.text.encode(text);
  }

  target(text) {
    this.checkText(text, "target");
    const ids = this.text.encode(text);
    this.checkLength(ids.length + 1, "target");
    return ids;
  }

  checkText(text, what) {
    const { characters } = this.described;
    if (!text.trim()) throw new InputProblem("empty", { what });
    const length = [...text].length;
    if (length > characters) throw new InputProblem("characters", { what, length, most: characters });
  }

  checkLength(length, what) {
    const { limit } = this.described;
    if (length > limit) throw new InputProblem("tokens", { what, length, limit, more: length - limit });
  }

  // -> { name: { values, shape } }: all outputs of the graph, or those that are `wanted`. `given`: `chosen`, the ids whose
  // probabilities are wanted, and for a decoder the outputs of the encoder.
  async pass(stack, ids, { memory, sinks, chosen }, request, wanted) {
    const { layers, heads, attentions, graphs, classes } = this.described;
    const long = (values) => new runtime.Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
    const mostLikely = classes.length ? [-1] : ids.map(() => -1);
    const feeds = { [`${stack}.ids`]: long(ids), chosen: long(chosen ?? mostLikely) };
    if (memory) feeds.memory = new runtime.Tensor("float32", memory.values, memory.shape);
    if (sinks) feeds.sinks = new runtime.Tensor("bool", sinks.values, sinks.shape);
    for (const [of, kind] of attentions) {
      if (of !== stack) continue;
      const factors = new Float32Array(layers[stack] * heads).fill(1);
      for (const [s, k, layer, head] of request.removed ?? [])
        if (s === stack && k === kind) factors[layer * heads + head] = 0;
      feeds[`${stack}.${kind}.heads`] = new runtime.Tensor("float32", factors, [layers[stack], heads]);
    }
    const read = Object.fromEntries(graphs[stack].inputs.map((name) => [name, feeds[name]]));
    const outputs = await this.sessions[stack].run(read, wanted ?? graphs[stack].outputs);
    const found = {};
    for (const [name, { data, dims }] of Object.entries(outputs))
      found[name] = { values: data instanceof BigInt64Array ? Int32Array.from(data, Number) : data, shape: dims };
    return found;
  }
}
