// The model's own thread. Asked: { open } and { run }; answered: { progress }, { opened }, { done } and { problem }.

import { fill } from "../../charts/canvas/source/toolkit/words.js";
import { fetchFiles } from "./files.js";
import { Figures } from "./figures.js";
import { effectOf, readAloud } from "./head_facts.js";
import { maskedWord, wordsIn } from "./masked_word.js";
import { InputProblem, Model, begin } from "./model.js";

let model = null;
let last = {}; // the runs that were computed last: another layer or figure of them needs no pass
let newest = 0;
let begun = false;

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
  postMessage({ opened: id, layers, heads, attentions, names: each("names"), facts: each("facts") });
}

// A run that is known is not computed again; null: it was stopped for a newer request.
async function runOf(name, request, id) {
  const key = JSON.stringify(request);
  if (last[name]?.key !== key) {
    let asked = performance.now();
    const stopped = async () => {
      if (performance.now() - asked < 30) return false;
      await new Promise((resolve) => setTimeout(resolve)); // lets a newer request in
      asked = performance.now();
      return newest !== id;
    };
    const found = await model.run(request, stopped);
    if (!found) return null;
    last[name] = { key, found };
  }
  return last[name].found;
}

// Beside the map of a head: its row in a sentence, and what the output loses without the head.
async function headFacts(figures, place, id) {
  const found = figures.run;
  const { request } = found;
  const { stack, kind, layer, head } = place;
  const here = [stack, kind, layer, head];
  const facts = { aloud: readAloud(figures, place) };
  if (request.removed.some((one) => String(one) === String(here))) return facts;
  if (figures.predicted.everywhere && !model.writes) return { ...facts, effect: effectOf(figures, null) };
  // The same tokens again, so that only what is changed differs.
  const same = { answer: found.answer, chosen: found.chosen };
  const without = await runOf("effect", { ...request, ...same, removed: [...request.removed, here] }, id);
  return without && { ...facts, effect: effectOf(figures, without) };
}

// What the model reads: a sentence for a model that fills in blanks has one.
function withBlank({ masked: chosen, ...request }) {
  const { kind, classes } = model.described;
  if (kind !== "encoder-only" || classes.length || !request.sentence.trim()) return [request, null];
  const word = maskedWord(model.text, request.sentence, chosen);
  const words = wordsIn(request.sentence);
  return [
    { ...request, sentence: word?.sentence ?? request.sentence },
    { words, word },
  ];
}

// view: { page, place, opens, … } as a method of Figures takes it. Where a sentence `opens`, nobody has chosen a token: it is
// that with the head's largest weight. A token that the sentence does not have is corrected.
async function run({ id, request: typed, view, language }) {
  const [request, masked] = withBlank(typed);
  const found = await runOf("original", request, id);
  if (!found) return;
  const figures = new Figures(model, found, language);
  const {
    page,
    opens,
    place: { stack, kind, layer, head, token },
  } = view;
  const strongest = found.outputs[`strongest.${stack}.${kind}`].values[layer * model.described.heads + head];
  const place = { ...view.place, token: opens ? strongest : Math.min(token, found.stacks[stack].length - 1) };
  const figure = figures[page]?.({ ...view, place });
  const facts = page === "attention" ? await headFacts(figures, place, id) : {};
  const whole = request.removed.length ? await runOf("whole", { ...request, removed: [] }, id) : {};
  if (!facts || !whole) return;
  postMessage(
    {
      done: id,
      figure,
      ...facts,
      whole: whole.text,
      masked,
      place,
      text: found.text,
      finished: found.finished,
      unfinished: figures.texts.messages.unfinished.replace("{count}", found.answer?.length),
      answer: found.answer ?? [],
      choices: page === "decoding" ? figures.choices() : [],
      stacks: found.stacks,
      prediction: found.prediction,
    },
    figure ? [figure.buffer] : [],
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
      const written = (value) => messages[value] ?? value.toLocaleString(message.run.language);
      const values = Object.entries(error.values).map(([name, value]) => [name, written(value)]);
      postMessage({ problem: id, said: fill(messages[error.message], Object.fromEntries(values)) });
    } else postMessage({ problem: id, opening: Boolean(message.open), broken: String(error?.message ?? error) });
  }
}

let queue = Promise.resolve();
addEventListener("message", ({ data }) => {
  if (data.run) newest = data.run.id;
  queue = queue.then(() => answer(data));
});
