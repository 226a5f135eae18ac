// The model's own thread. Asked: { open } and { run }; answered: { progress }, { opened }, { done } and { problem }.

import { fetchFiles } from "./files.js";
import { Figures } from "./figures.js";
import { answerLogP, effectOf, headStep, leaveEachOut, readAloud, trustRow, whatIsPredicted } from "./head_steps.js";
import { maskedWord, wordsIn } from "./masked_word.js";
import { wordsOf } from "./masks.js";
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
  postMessage({
    opened: id,
    layers,
    heads,
    attentions,
    names: each("names"),
    masks: each("masks"),
    path: each("path"),
  });
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

// The same tokens again, so that only what is changed differs.
const again = (request, found) => ({
  ...request,
  ...(found.answer ? { answer: found.answer } : { chosen: found.prediction?.map(({ id }) => id) ?? [found.chosen] }),
});

// What the answer loses without one more head.
async function effect(figures, request, found, [stack, kind, layer, head], id) {
  const { language, path: texts } = figures.texts;
  if (figures.rows().everywhere && !model.writes) return effectOf(null, null, texts);
  const removed = [...request.removed, [stack, kind, layer, head]];
  const without = await runOf("effect", again({ ...request, removed }, found), id);
  if (!without) return without;
  const [before, after] = [found, without].map((one) => answerLogP(new Figures(model, one, language)));
  return effectOf(before, after, texts, whatIsPredicted(figures));
}

async function trust(figures, found, place, id) {
  const target = found.stacks.decoder.map((token) => token.id).slice(0, place.row + 1);
  const source = found.stacks.encoder?.map((token) => token.id);
  const wanted = found.prediction[place.row].id;
  const logP = async (...texts) => {
    await pause(); // lets a newer request in
    if (newest !== id) throw new Stopped();
    return model.logP(...texts, wanted);
  };
  return trustRow(figures, place, await leaveEachOut(logP, source, target, place.kind));
}

class Stopped extends Error {}

// Beside the map of a head: its steps, what is lost without it, how far to trust it, and the same head for a second sentence.
async function besides({ shown, second, plain, found, figures, id, language }) {
  const said = {};
  const { attentionMap: map } = shown;
  if (map?.chosen !== undefined) said.aloud = readAloud(figures, { ...map, row: map.chosen });
  if (shown.headStep) {
    const { stack, row } = shown.headStep;
    const sums =
      shown.headStep.step === 7 ? await runOf("sums", again({ ...plain, row: { [stack]: row } }, found), id) : found;
    if (!sums) return null;
    said.headStep = headStep(sums === found ? figures : new Figures(model, sums, language), shown.headStep);
  }
  if (shown.effect) said.effect = await effect(figures, plain, found, shown.effect, id);
  if (shown.trust) said.trust = await trust(figures, found, shown.trust, id);
  if (second) {
    const other = await runOf("second", { ...plain, sentence: second, target: "", forced: [] }, id);
    if (!other) return null;
    const { stack, kind, layer, head, chosen } = map;
    const place = { stack, kind, layer, head, chosen: Math.min(chosen, other.stacks[stack].length - 1) };
    said.second = { text: other.text, map: new Figures(model, other, language).attentionMap(place) };
  }
  if (plain.removed?.length) {
    const whole = await runOf("whole", { ...plain, removed: [] }, id);
    if (!whole) return null;
    said.whole = whole.text;
  }
  return said;
}

// A token of the map that this sentence does not have is corrected.
function fitted(shown, found) {
  const end = (stack) => found.stacks[stack].length - 1;
  const fit = ({ row, ...place }) => ({ ...place, row: Math.min(row, end(place.stack)) });
  const more = Object.fromEntries(
    ["headStep", "trust"].filter((name) => shown[name]).map((name) => [name, fit(shown[name])]),
  );
  const { attentionMap: map } = shown;
  if (map && map.chosen > end(map.stack)) more.attentionMap = { ...map, chosen: end(map.stack) };
  return { ...shown, ...more };
}

// Where a sentence opens for which nobody has chosen a head: at that of the opening.
function openingPlace(found, place) {
  return { ...place, token: strongestRow(new Figures(model, found, "en"), place) };
}

// What is shown, at another place.
function movedTo({ stack, kind, layer, head, token }, shown) {
  const at = { stack, kind, layer, head };
  const moved = { ...shown };
  for (const name of ["attentionMap", "maskEditor", "overview", "headStep", "trust"])
    if (shown[name]) moved[name] = { ...shown[name], ...at };
  if (shown.attentionMap) moved.attentionMap.chosen = token;
  for (const name of ["headStep", "trust"]) if (shown[name]) moved[name].row = token;
  if (shown.effect) moved.effect = [stack, kind, layer, head];
  if (shown.livingPicture) moved.livingPicture = { ...shown.livingPicture, begin: { ...at, token } };
  return moved;
}

const BESIDES = ["headStep", "effect", "trust"];

// What the model reads: a sentence for a model that fills in blanks has one.
function withBlank({ masked: chosen, ...request }) {
  const { kind, classes } = model.described;
  if (kind !== "encoder-only" || classes.length || !request.sentence.trim()) return [request, null];
  const word = maskedWord(model.text, request.sentence, chosen);
  const second = request.second && (maskedWord(model.text, request.second)?.sentence ?? request.second);
  const words = wordsIn(request.sentence);
  return [
    { ...request, sentence: word?.sentence ?? request.sentence, second },
    { words, word },
  ];
}

async function run({ id, request: typed, shown: wanted, language, opensAt }) {
  const [request, blank] = withBlank(typed);
  const { mask, second, ...plain } = request;
  const found = await runOf("original", plain, id);
  if (!found) return;
  const place = opensAt && openingPlace(found, opensAt);
  const asked = place ? movedTo(place, wanted) : wanted;
  const under = mask ? await masked(request, found, id) : null;
  if (mask && !under) return;
  const figures = new Figures(model, under?.changed ?? found, language);
  const shown = fitted(asked, found);
  const bytes = {};
  for (const [name, options] of Object.entries(shown))
    if (!BESIDES.includes(name)) bytes[name] = figures[name]({ ...options, original: found });
  const more = await besides({ shown, second, plain, found, figures, id, language });
  if (!more) return;
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
      ...more,
      masked: blank,
      place,
      text: found.text,
      after: under?.after.text,
      finished: found.finished,
      unfinished: figures.texts.messages.unfinished.replace("{count}", found.answer?.length),
      answer: found.answer ?? [],
      choices: shown.steps ? figures.choices() : [],
      stacks: Object.fromEntries(Object.entries(found.stacks).map(([stack, list]) => [stack, tokens(list)])),
      prediction: tokens(found.prediction),
    },
    [...Object.values(bytes), ...(more.headStep?.maps ?? []), ...(more.second ? [more.second.map] : [])].map(
      ({ buffer }) => buffer,
    ),
  );
}

async function answer(message) {
  try {
    if (message.open) await open(message.open);
    else if (newest === message.run.id) await run(message.run);
  } catch (error) {
    const id = message.open?.id ?? message.run?.id;
    if (error instanceof Stopped) return;
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
