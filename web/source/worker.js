// The model's own thread. Asked: { open } and { run }; answered: { progress }, { opened }, { done } and { problem }.

import { fetchFiles } from "./files.js";
import { Figures } from "./figures.js";
import { InputProblem, Model, begin } from "./model.js";

let model = null;
let last = null; // the run that was computed last: another layer or figure of it needs no pass
let newest = 0;
let begun = false;

const pause = () => new Promise((resolve) => setTimeout(resolve));

async function open({ id, files, runtime }) {
  model = last = null;
  let loaded = 0;
  const whole = [runtime, ...files].reduce((sum, { bytes }) => sum + bytes, 0);
  const advance = (bytes) => postMessage({ progress: (loaded += bytes) / whole });
  const { wasm } = await fetchFiles([{ ...runtime, as: "wasm" }], begun ? () => {} : advance);
  if (!begun) begin(wasm);
  begun = true;
  const read = await fetchFiles(files, advance);
  model = await Model.open(read);
  const { layers, heads, attentions, languages } = model.described;
  const names = Object.fromEntries(Object.entries(languages).map(([language, { names: said }]) => [language, said]));
  postMessage({ opened: id, layers, heads, attentions, names });
}

async function run({ id, request, shown, language }) {
  const key = JSON.stringify(request);
  if (last?.key !== key) {
    let asked = performance.now();
    const stopped = async () => {
      if (performance.now() - asked < 30) return false;
      await pause(); // lets a newer request in
      asked = performance.now();
      return newest !== id;
    };
    const found = await model.run(request, stopped);
    if (!found) return;
    last = { key, found };
  }
  const { found } = last;
  const figures = new Figures(model, found, language);
  const bytes = {};
  for (const [name, options] of Object.entries(shown)) bytes[name] = figures[name](options);
  const tokens = (list) =>
    list?.map(({ id: number, text, label, special, role }) => ({ id: number, text, label, special, role }));
  postMessage(
    {
      done: id,
      figures: bytes,
      text: found.text,
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
