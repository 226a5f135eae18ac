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
export const PAGES = ["overview", "tokens", "attention", "heads", "masks", "decoding"];

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
    cell: null,
  };
  if (!VIEW.some((name) => asked.has(name))) return { ...state, ...openingOf(model) };
  for (const name of VIEW) {
    const text = asked.get(name);
    state[name] = text === null ? DEFAULTS[name] : typeof DEFAULTS[name] === "number" ? whole(text) : text;
  }
  return state;
}

export function openingOf(model) {
  const [first] = model.examples;
  return { ...DEFAULTS, ...model.place, sentence: first?.sentence ?? DEFAULTS.sentence, target: first?.target ?? "" };
}

// "zero:decoder.1.cross.3", as transformer/runs/edit_specs.py writes it -> [stack, kind, layer, head]
function parseRemoved(spec) {
  const found = /^zero:(encoder|decoder)\.(\d+)\.(self|cross)\.(\d+)$/.exec(spec);
  return found && [found[1], found[3], Number(found[2]), Number(found[4])];
}
export const specOf = ([stack, kind, layer, head]) => `zero:${stack}.${layer}.${kind}.${head}`;

// The query of the address, all of the view in it.
export function writeState(state) {
  const query = new URLSearchParams();
  if (state.page !== PAGES[0]) query.set("page", state.page);
  for (const name of ["checkpoint", ...VIEW]) query.set(name, String(state[name]));
  query.set("language", state.language);
  for (const head of state.removed) query.append("edit", specOf(head));
  if (state.page === "masks") for (const text of maskTexts(state.mask)) query.append("mask", text);
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
  const page = state.removed.length ? "surgery" : state.page === PAGES[0] ? "" : state.page;
  if (state.page !== "attention" && !state.removed.length) query.delete("edit");
  return `${app.replace(/\/$/, "")}/${page}?${query}`;
}
