// The model's own thread. Asked: { open } and { run }; answered: { progress }, { opened }, { done } and { problem }.

import { fetchFiles } from "./files.js";
import { Figures } from "./figures.js";
import { answerLogP, effectOf, readAloud, whatIsPredicted } from "./head_facts.js";
import { maskedWord, wordsIn } from "./masked_word.js";
import { InputProblem, Model, begin } from "./model.js";
import { strongestRow } from "./strongest_pair.js";

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
  postMessage({ opened: id, layers, heads, attentions, names: each("names"), facts: each("facts") });
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

// The same tokens again, so that only what is changed differs.
const again = (request, found) => ({
  ...request,
  ...(found.answer ? { answer: found.answer } : { chosen: found.prediction?.map(({ id }) => id) ?? [found.chosen] }),
});

// What the answer loses without one more head.
async function effect(figures, request, found, [stack, kind, layer, head], id) {
  const { language, facts: texts } = figures.texts;
  if (figures.rows().everywhere && !model.writes) return effectOf(null, null, texts);
  const removed = [...request.removed, [stack, kind, layer, head]];
  const without = await runOf("effect", again({ ...request, removed }, found), id);
  if (!without) return without;
  const [before, after] = [found, without].map((one) => answerLogP(new Figures(model, one, language)));
  return effectOf(before, after, texts, whatIsPredicted(figures));
}

// Beside the map of a head: its row in a sentence, what is lost without it, and the output of the whole model.
async function besides({ shown, request, found, figures, id }) {
  const said = {};
  const { attentionMap: map } = shown;
  if (map?.chosen !== undefined) said.aloud = readAloud(figures, { ...map, row: map.chosen });
  if (shown.effect) said.effect = await effect(figures, request, found, shown.effect, id);
  if (request.removed?.length) {
    const whole = await runOf("whole", { ...request, removed: [] }, id);
    if (!whole) return null;
    said.whole = whole.text;
  }
  return said;
}

// A token of the map that this sentence does not have is corrected.
function fitted(shown, found) {
  const { attentionMap: map } = shown;
  const end = map && found.stacks[map.stack].length - 1;
  return map?.chosen > end ? { ...shown, attentionMap: { ...map, chosen: end } } : shown;
}

// Where a sentence opens for which nobody has chosen a head: at that of the opening.
function openingPlace(found, place) {
  return { ...place, token: strongestRow(new Figures(model, found, "en"), place) };
}

// What is shown, at another place.
function movedTo({ stack, kind, layer, head, token }, shown) {
  const at = { stack, kind, layer, head };
  const moved = { ...shown };
  for (const name of ["attentionMap", "overview"]) if (shown[name]) moved[name] = { ...shown[name], ...at };
  if (shown.attentionMap) moved.attentionMap.chosen = token;
  if (shown.effect) moved.effect = [stack, kind, layer, head];
  if (shown.livingPicture) moved.livingPicture = { ...shown.livingPicture, begin: { ...at, token } };
  return moved;
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

async function run({ id, request: typed, shown: wanted, language, opensAt }) {
  const [request, blank] = withBlank(typed);
  const found = await runOf("original", request, id);
  if (!found) return;
  const place = opensAt && openingPlace(found, opensAt);
  const asked = place ? movedTo(place, wanted) : wanted;
  const figures = new Figures(model, found, language);
  const shown = fitted(asked, found);
  const bytes = {};
  for (const [name, options] of Object.entries(shown)) if (name !== "effect") bytes[name] = figures[name](options);
  const more = await besides({ shown, request, found, figures, id });
  if (!more) return;
  postMessage(
    {
      done: id,
      figures: bytes,
      ...more,
      masked: blank,
      place,
      text: found.text,
      finished: found.finished,
      unfinished: figures.texts.messages.unfinished.replace("{count}", found.answer?.length),
      answer: found.answer ?? [],
      choices: shown.steps ? figures.choices() : [],
      stacks: found.stacks,
      prediction: found.prediction,
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
