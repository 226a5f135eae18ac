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
export const PAGES = ["overview", "tokens", "attention", "heads", "decoding"];
// Pages that only the app has, though a link to this one may name them; and the page that is nearest.
const NEAREST = { masks: "attention", by_hand: PAGES[0] };
// What such links name besides.
const ONLY_IN_APP = ["mask", "second", "attention_section", "attention_step"];

const whole = (text) => (/^\d{1,9}$/.test(text) ? Number(text) : 0);

// models and lessons: as index.html lists them
export function readState(search, { models, lessons }, languages) {
  const asked = new URLSearchParams(search);
  const model = models.find(({ checkpoint }) => checkpoint === asked.get("checkpoint")) ?? models[0];
  const wished = asked.get("language") ?? (navigator.language ?? "").slice(0, 2);
  const state = {
    checkpoint: model.checkpoint,
    page: PAGES.includes(asked.get("page")) ? asked.get("page") : (NEAREST[asked.get("page")] ?? PAGES[0]),
    language: languages.includes(wished) ? wished : languages[0],
    forced: (asked.get("forced") ?? "").split(",").filter(Boolean).map(whole),
    removed: asked.getAll("edit").map(parseRemoved).filter(Boolean),
    lesson: lessons.find(({ name }) => name === asked.get("lesson"))?.name ?? "",
    step: whole(asked.get("lesson_step") ?? "") || 1,
    masked: asked.get("masked") ?? "",
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

// Where the app shows what a link names and this page does not have; "" if the page has all of it.
export function restInApp(search, lessons) {
  const asked = new URLSearchParams(search);
  const page = asked.get("page");
  const lesson = asked.get("lesson");
  const edits = asked.getAll("edit").some((edit) => !parseRemoved(edit));
  const isWhole =
    !Object.hasOwn(NEAREST, page ?? "") &&
    !ONLY_IN_APP.some((name) => asked.has(name)) &&
    !edits &&
    (!lesson || lessons.some(({ name }) => name === lesson));
  if (isWhole) return "";
  if (asked.has("second")) asked.set("page", "compare");
  else if (edits) asked.set("page", "surgery");
  return `?${asked}`;
}

// The example with this sentence that says where to look.
export const exampleOf = (model, sentence) =>
  model.examples.find((one) => one.sentence === sentence && Object.keys(one.place).length);

export function openingOf(model) {
  const [first] = model.examples;
  return { ...DEFAULTS, ...model.place, sentence: first?.sentence ?? DEFAULTS.sentence, target: first?.target ?? "" };
}

export const headOf = ({ stack, kind, layer, head }) => ({ stack, kind, layer, head });
export const placeOf = (state) => ({ ...headOf(state), token: state.token });

// "zero:decoder.1.cross.3", as transformer/runs/edit_specs.py writes it -> [stack, kind, layer, head]
function parseRemoved(spec) {
  const found = /^zero:(encoder|decoder)\.(\d+)\.(self|cross)\.(\d+)$/.exec(spec);
  return found && [found[1], found[3], Number(found[2]), Number(found[4])];
}
const specOf = ([stack, kind, layer, head]) => `zero:${stack}.${layer}.${kind}.${head}`;

// The query of the address, all of the view in it.
export function writeState(state) {
  const query = new URLSearchParams();
  if (state.page !== PAGES[0]) query.set("page", state.page);
  for (const name of ["checkpoint", ...VIEW]) query.set(name, String(state[name]));
  if (state.masked) query.set("masked", state.masked);
  query.set("language", state.language);
  for (const head of state.removed) query.append("edit", specOf(head));
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
  return `${app.replace(/\/$/, "")}/${page}?${query}`;
}
