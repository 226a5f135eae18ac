// The model's own thread. Asked: { open } and { run }; answered: { progress }, { opened }, { done } and { problem }.

import { fetchFiles } from "./files.js";
import { Figures } from "./figures.js";
import { wordsOf } from "./masks.js";
import { InputProblem, Model, begin } from "./model.js";

let model = null;
let last = {}; // the runs that were computed last: another layer or figure of them needs no pass
let newest = 0;
let begun = false;

const pause = () => new Promise((resolve) => setTimeout(resolve));

async function open({ id, files, runtime }) {
  model = null;
  last = {};
  let loaded = 0;
  const whole = [runtime, ...files].reduce((sum, { bytes }) => sum + bytes, 0);
  const advance = (bytes) => postMessage({ progress: (loaded += bytes) / whole });
  const { wasm } = await fetchFiles([{ ...runtime, as: "wasm" }], begun ? () => {} : advance);
  if (!begun) begin(wasm);
  begun = true;
  const read = await fetchFiles(files, advance);
  model = await Model.open(read);
  const { layers, heads, attentions, languages } = model.described;
  const each = (part) =>
    Object.fromEntries(Object.entries(languages).map(([language, said]) => [language, said[part]]));
  postMessage({ opened: id, layers, heads, attentions, names: each("names"), masks: each("masks") });
}

// A run that is known is not computed again; null: it was stopped for a newer request.
async function runOf(name, request, id) {
  const key = JSON.stringify(request);
  if (last[name]?.key !== key) {
    let asked = performance.now();
    const stopped = async () => {
      if (performance.now() - asked < 30) return false;
      await pause(); // lets a newer request in
      asked = performance.now();
      return newest !== id;
    };
    const found = await model.run(request, stopped);
    if (!found) return null;
    last[name] = { key, found };
  }
  return last[name].found;
}

// Under a mask: the pass on the tokens of the original run, so that both maps have the same rows, and what is written.
async function masked({ mask, ...request }, original, id) {
  const { stack, kind, word } = mask;
  const span = wordsOf(original.stacks[kind === "cross" ? "encoder" : stack])[word];
  const keys = span ? Array.from({ length: span.end - span.start }, (_, k) => span.start + k) : [];
  const same = { ...request, mask: { ...mask, keys } };
  const changed = await runOf("changed", original.answer ? { ...same, answer: original.answer } : same, id);
  if (!changed) return null;
  const after = original.answer && !request.target ? await runOf("after", same, id) : changed;
  return after && { changed, after };
}

async function run({ id, request, shown, language }) {
  const { mask, ...plain } = request;
  const found = await runOf("original", plain, id);
  if (!found) return;
  const under = mask ? await masked(request, found, id) : null;
  if (mask && !under) return;
  const figures = new Figures(model, under?.changed ?? found, language);
  const bytes = {};
  for (const [name, options] of Object.entries(shown)) bytes[name] = figures[name]({ ...options, original: found });
  const tokens = (list) =>
    list?.map(({ id: number, text, label, special, role, first }) => ({
      id: number,
      text,
      label,
      special,
      role,
      first,
    }));
  postMessage(
    {
      done: id,
      figures: bytes,
      text: found.text,
      after: under?.after.text,
      finished: found.finished,
      unfinished: figures.texts.messages.unfinished.replace("{count}", found.answer?.length),
      answer: found.answer ?? [],
      choices: shown.steps ? figures.choices() : [],
      stacks: Object.fromEntries(Object.entries(found.stacks).map(([stack, list]) => [stack, tokens(list)])),
      prediction: tokens(found.prediction),
    },
    Object.values(bytes).map(({ buffer }) => buffer),
  );
}

async function answer(message) {
  try {
    if (message.open) await open(message.open);
    else if (newest === message.run.id) await run(message.run);
  } catch (error) {
    const id = message.open?.id ?? message.run?.id;
    if (error instanceof InputProblem) {
      const { messages } = model.described.languages[message.run.language] ?? model.described.languages.en;
      const values = { ...error.values, what: messages[error.values.what] };
      const said = messages[error.message].replace(/\{(\w+)\}/g, (place, name) =>
        typeof values[name] === "number" ? values[name].toLocaleString(message.run.language) : (values[name] ?? place),
      );
      postMessage({ problem: id, said });
    } else postMessage({ problem: id, opening: Boolean(message.open), broken: String(error?.message ?? error) });
  }
}

let queue = Promise.resolve();
addEventListener("message", ({ data }) => {
  if (data.run) newest = data.run.id;
  queue = queue.then(() => answer(data));
});
