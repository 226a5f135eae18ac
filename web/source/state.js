import { maskTexts, parseMask } from "./masks.js";

// What is shown, and the address that says it: the same parameters as the app's (ui/shell/focus.py), and `page`.

// As Focus begins. An address that says any of VIEW says all of it; one that says none opens as the checkpoint does.
const DEFAULTS = {
  sentence: "The cat sat on the mat.",
  target: "",
  stack: "encoder",
  kind: "self",
  layer: 0,
  head: 0,
  token: 0,
};
const VIEW = Object.keys(DEFAULTS);
const PLACE = ["stack", "kind", "layer", "head", "token"];
export const SECTIONS = ["path", "trust"]; // of the Attention page, as the app names them
const STEPS = 7; // of a head
export const PAGES = ["overview", "tokens", "attention", "heads", "masks", "decoding", "by_hand"];
const HAND = ["words", "heads", "cells", "step"]; // of the sheet: hand_words and so on in the address

const whole = (text) => (/^\d{1,9}$/.test(text) ? Number(text) : 0);

// models: as index.html lists them
export function readState(search, models, languages) {
  const asked = new URLSearchParams(search);
  const model = models.find(({ checkpoint }) => checkpoint === asked.get("checkpoint")) ?? models[0];
  const wished = asked.get("language") ?? (navigator.language ?? "").slice(0, 2);
  const state = {
    checkpoint: model.checkpoint,
    page: PAGES.includes(asked.get("page")) ? asked.get("page") : PAGES[0],
    language: languages.includes(wished) ? wished : languages[0],
    forced: (asked.get("forced") ?? "").split(",").filter(Boolean).map(whole),
    removed: asked.getAll("edit").map(parseRemoved).filter(Boolean),
    lesson: asked.get("lesson") ?? "",
    step: whole(asked.get("lesson_step") ?? "") || 1,
    mask: parseMask(asked.getAll("mask")),
    section: SECTIONS.includes(asked.get("attention_section")) ? asked.get("attention_section") : SECTIONS[0],
    headStep: Math.min(STEPS, Math.max(1, whole(asked.get("attention_step") ?? ""))),
    second: asked.get("second") ?? "",
    masked: asked.get("masked") ?? "",
    hand: Object.fromEntries(HAND.map((name) => [name, asked.get(`hand_${name}`) ?? ""])),
    cell: null,
    isPlaced: PLACE.some((name) => asked.has(name)),
  };
  if (!VIEW.some((name) => asked.has(name))) return { ...state, ...openingOf(model) };
  for (const name of VIEW) {
    const text = asked.get(name);
    state[name] = text === null ? DEFAULTS[name] : typeof DEFAULTS[name] === "number" ? whole(text) : text;
  }
  const example = state.isPlaced ? null : exampleOf(model, state.sentence);
  if (example) Object.assign(state, example.place);
  state.opens = !state.isPlaced && !example;
  return state;
}

// The example with this sentence that says where to look.
export const exampleOf = (model, sentence) =>
  model.examples.find((one) => one.sentence === sentence && Object.keys(one.place).length);

export function openingOf(model) {
  const [first] = model.examples;
  return { ...DEFAULTS, ...model.place, sentence: first?.sentence ?? DEFAULTS.sentence, target: first?.target ?? "" };
}

export const headOf = ({ stack, kind, layer, head }) => ({ stack, kind, layer, head });

// "zero:decoder.1.cross.3", as transformer/runs/edit_specs.py writes it -> [stack, kind, layer, head]; a sub-layer, as in
// "drop:decoder.1.cross", has the head null
export function parseRemoved(spec) {
  const found = /^(zero|drop):(encoder|decoder)\.(\d+)\.(self|cross)(?:\.(\d+))?$/.exec(spec);
  if (!found || (found[1] === "zero") !== (found[5] !== undefined)) return null;
  return [found[2], found[4], Number(found[3]), found[5] === undefined ? null : Number(found[5])];
}
export const specOf = ([stack, kind, layer, head]) =>
  head === null ? `drop:${stack}.${layer}.${kind}` : `zero:${stack}.${layer}.${kind}.${head}`;

// The query of the address, all of the view in it.
export function writeState(state) {
  const query = new URLSearchParams();
  if (state.page !== PAGES[0]) query.set("page", state.page);
  for (const name of ["checkpoint", ...VIEW]) query.set(name, String(state[name]));
  if (state.masked) query.set("masked", state.masked);
  query.set("language", state.language);
  for (const head of state.removed) query.append("edit", specOf(head));
  if (state.page === "masks") for (const text of maskTexts(state.mask)) query.append("mask", text);
  if (state.page === "attention") {
    if (state.section !== SECTIONS[0]) query.set("attention_section", state.section);
    if (state.headStep > 1) query.set("attention_step", String(state.headStep));
    if (state.second) query.set("second", state.second);
  }
  if (state.page === "by_hand")
    for (const name of HAND) if (state.hand[name]) query.set(`hand_${name}`, state.hand[name]);
  if (state.forced.length) query.set("forced", state.forced.join(","));
  if (state.lesson) {
    query.set("lesson", state.lesson);
    query.set("lesson_step", String(state.step));
  }
  return `?${query}`;
}

// The same view in the app: its page is in the path, and removed heads are on Surgery.
export function appAddress(app, state) {
  const query = new URLSearchParams(writeState(state));
  for (const own of ["page", "forced"]) query.delete(own);
  const compared = state.page === "attention" && state.second;
  const page =
    state.removed.length && state.page !== "by_hand"
      ? "surgery"
      : compared
        ? "compare"
        : state.page === PAGES[0]
          ? ""
          : state.page;
  if (state.page !== "attention" && !state.removed.length) query.delete("edit");
  return `${app.replace(/\/$/, "")}/${page}?${query}`;
}
