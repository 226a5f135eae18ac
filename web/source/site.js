// The page: what is typed and clicked, and the drawings of the app around it. The model runs in worker.js.

import STYLE from "./site.css";
import { KINDS } from "../../charts/canvas/source/drawings/kinds.js";
import { Panel } from "../../charts/canvas/source/scene/panel.js";
import { fromBase64 } from "../../charts/canvas/source/toolkit/base64.js";
import { make } from "../../charts/canvas/source/toolkit/elements.js";
import { fill } from "../../charts/canvas/source/toolkit/words.js";
import { LessonBar } from "./lessons.js";
import { NONE, isKept } from "./masked_word.js";
import { drawingPad } from "./pad.js";
import { rich } from "./rich_text.js";
import { PAGES, appAddress, exampleOf, headOf, openingOf, placeOf, readState, restInApp, writeState } from "./state.js";

const PLACED = { isPlaced: true, opens: false }; // the reader has chosen a head
const TYPING = 120; // milliseconds without a key before the model runs
const site = JSON.parse(document.getElementById("site").textContent);
const languages = Object.keys(site.texts);

class Site {
  constructor(root) {
    this.root = root;
    this.state = readState(asked(), site, languages);
    this.asked = 0;
    this.opened = null; // what the worker says of the model that is open
    this.inside = null; // the layer of the living picture that is unfolded
    this.typed = {}; // the reader's own sentence and target, and their own picture
    this.bar = new LessonBar(this, site.lessons);
    document.head.append(make("style", { textContent: STYLE }));
    if (this.bar.lesson && !asked().includes("sentence=")) this.take(this.bar.step);
    this.build();
    const rest = restInApp(asked(), site.lessons);
    if (rest) this.hintAt(this.texts.rest, ...this.linkToApp(rest));
    this.startWorker();
    addEventListener("popstate", () => this.turn(() => (this.state = readState(asked(), site, languages))));
    const sizes = new ResizeObserver(() => this.measure());
    for (const one of [document.documentElement, this.bar.element]) sizes.observe(one);
    addEventListener("resize", () => this.measure());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.panel?.refresh());
  }

  get texts() {
    return site.texts[this.state.language];
  }
  get model() {
    return site.models.find(({ checkpoint }) => checkpoint === this.state.checkpoint);
  }
  get isTranslator() {
    return this.model.kind === "encoder-decoder";
  }

  // --- the model's thread ---------------------------------------------------------------------------------------------

  startWorker() {
    this.worker?.terminate();
    if (!canRun()) return this.fail("", this.texts.no_wasm);
    this.worker = globalThis.glassformerWorker
      ? new Worker(globalThis.glassformerWorker) // in the single file
      : new Worker("worker.js", { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.hear(data));
    this.worker.addEventListener("error", ({ message }) => this.fail(message || "worker.js"));
    this.open();
  }

  open() {
    this.opened = null;
    this.progress.hidden = false;
    this.progress.value = 0;
    const { files, checkpoint } = this.model;
    const size = files.reduce((sum, { bytes }) => sum + bytes, site.runtime.bytes) / 1e6;
    this.say(fill(this.texts.loading, { size: size.toFixed(0) }));
    const placed = files.map((file) => ({ ...file, path: file.path ?? `models/${checkpoint}/${file.name}` }));
    this.worker.postMessage({
      open: { id: ++this.asked, files: placed.map(absolute), runtime: absolute(site.runtime) },
    });
  }

  ask() {
    clearTimeout(this.typing);
    if (!this.opened) return;
    const { state } = this;
    const { lesson, step } = this.bar;
    const opens = state.opens && !lesson;
    if (opens) Object.assign(state, headOf(openingOf(this.model)));
    this.fit();
    this.host.setAttribute("aria-busy", "true");
    this.sent = performance.now();
    const { sentence, target, forced, removed, masked, language, page } = state;
    const stop = lesson && step.page === page ? { stop: step.stop, step: this.bar.place } : this.unfold;
    const view = { page, place: placeOf(state), opens, stop, inside: this.inside };
    const request = { sentence, target, forced, removed, masked: lesson ? NONE : masked };
    this.worker.postMessage({ run: { id: ++this.asked, request, view, language } });
  }

  // A place that this model does not have is corrected.
  fit() {
    const { state, opened } = this;
    if (!opened.attentions.some(([stack, kind]) => stack === state.stack && kind === state.kind))
      [state.stack, state.kind] = opened.attentions.at(-1);
    state.layer = Math.min(state.layer, opened.layers[state.stack] - 1);
    state.head = Math.min(state.head, opened.heads - 1);
    if (state.page === "decoding" && !opened.layers.decoder) state.page = PAGES[0];
    const isThere = ([stack, , layer, head]) => layer < (opened.layers[stack] ?? 0) && head < opened.heads;
    state.removed = state.removed.filter(isThere);
  }

  async hear(data) {
    if (data.progress !== undefined) this.progress.value = data.progress;
    else if ((data.opened ?? data.problem ?? data.done) !== this.asked) return;
    else if (data.opened) {
      this.opened = data;
      this.progress.hidden = true;
      this.fit();
      this.ask();
    } else if (data.done) await this.show(data);
    else {
      this.host.setAttribute("aria-busy", "false");
      if (data.opening) this.fail(data.broken);
      else this.say(data.said ?? fill(this.texts.broken, { problem: data.broken }), true);
    }
  }

  // Where the model cannot run: why, and a figure of it that Python recorded, if it can be had.
  async fail(problem, said = fill(this.texts.failed, { problem })) {
    this.progress.hidden = true;
    this.say(said, true);
    this.answer.append(
      " ",
      press(this.texts.retry, () => this.startWorker()),
    );
    this.below.replaceChildren();
    const recorded = this.model.recorded?.[this.state.language] ?? this.model.recorded?.en;
    const response = recorded && (await fetch(recorded).catch(() => null));
    if (!response?.ok) return;
    this.answer.firstChild.append(` ${this.texts.recorded}`);
    await this.draw(new Uint8Array(await response.arrayBuffer()), "recorded");
  }

  say(text, problem = false) {
    this.answer.replaceChildren(make("span", { textContent: text, className: problem ? "problem" : "" }));
  }

  hintAt(...parts) {
    this.shows.hidden = !parts.join("");
    this.shows.replaceChildren(...parts);
  }

  // --- what is shown --------------------------------------------------------------------------------------------------

  async show(data) {
    const { state } = this;
    this.found = data;
    Object.assign(state, data.place);
    this.sayAnswer(data);
    this.tokens.replaceChildren(...(state.page === "tokens" ? this.tokenLists(data) : []));
    this.place?.toggleAttribute("hidden", state.page === "tokens");
    if (data.figure) await this.draw(data.figure, state.page);
    this.aloud.replaceChildren(...(data.aloud ?? []).flatMap(([said, values]) => rich(said, values)));
    this.aloud.hidden = !data.aloud;
    refill(this.below, ...(state.page === "attention" ? this.aboutHead(data) : []));
    this.host.setAttribute("aria-busy", "false");
    this.host.dataset.shown = String(data.done);
    globalThis.glassformerTook = performance.now() - this.sent; // for benchmarks
    history.replaceState(null, "", addressOf(state));
    this.fillControls();
  }

  sayAnswer({ text, whole, masked, finished, unfinished, answer }) {
    const { texts, model, state } = this;
    const isComplete = model.kind === "decoder-only" && finished && answer.length === 1;
    const line = (label, textContent) => {
      const said = make("span", { textContent, lang: "" });
      return make("span", { className: "compared" }, make("small", { textContent: `${label} ` }), said);
    };
    if (whole !== undefined) {
      const without = whole === text ? texts.same_output : text;
      this.answer.replaceChildren(line(texts.whole_model, whole), line(texts.without, without));
    } else {
      const textContent = `→ ${isComplete ? texts.empty_answer : text}`;
      this.answer.replaceChildren(make("span", { textContent, lang: isComplete ? state.language : "" }));
    }
    const small = (textContent) => this.answer.append(" ", make("small", { textContent }));
    if (masked?.word) small(fill(texts.masked_said, { word: masked.word.text }));
    if (!finished) small(unfinished);
  }

  // Below the map of a head: what is lost without it, and the rows to choose from.
  aboutHead({ effect, stacks, text }) {
    const { state, texts } = this;
    const said = make("p", { className: "effect", role: "status", hidden: !effect }); // the head may be removed already
    if (effect) {
      const small = make("small", { textContent: ` ${effect.below}` });
      said.append(make("b", { textContent: `${effect.label} ` }), effect.value, small);
      said.title = this.opened.facts[state.language].effect_help.replace("{answer}", text);
    }
    const choose = (token) => this.set({ token, ...PLACED });
    const rows = stacks[state.stack].map((token, k) =>
      press(token.text, () => choose(k), { ariaLabel: token.label, ariaPressed: String(k === state.token) }),
    );
    const strip = make("div", { className: "strip", role: "group", "aria-label": texts.row });
    strip.append(make("span", { textContent: texts.row }), ...rows);
    const unfold = press(texts.unfold, () => {
      this.unfold = { stop: `unfold ${state.kind}_attention`, step: String(++this.asked) };
      this.inside = { stack: state.stack, layer: state.layer };
      this.turnTo("overview");
    });
    return [said, strip, unfold];
  }

  tokenLists({ stacks, prediction }) {
    const item = ({ text, special, id }) => {
      const parts = [make("span", { textContent: text }), make("small", { textContent: id })];
      return make("li", { className: special ? "special" : "" }, ...parts);
    };
    const list = (title, tokens) => [
      make("p", { textContent: title }),
      make("ul", { className: "tokens" }, ...tokens.map(item)),
    ];
    const { reads, writes } = this.texts;
    const read = list(reads, stacks.encoder ?? stacks.decoder);
    return stacks.decoder && prediction ? [...read, ...list(writes, prediction)] : read;
  }

  // How much the lesson leaves for the drawing, below the figure's buttons; without a lesson the page scrolls.
  measure() {
    const { element, lesson } = this.bar;
    const figure = (this.panel?.box ?? this.host).getBoundingClientRect();
    const bar = element.getBoundingClientRect();
    const foot = bar.left > figure.right ? 0 : bar.height;
    const room = lesson ? `${Math.max(280, innerHeight - figure.top - scrollY - foot - 8)}px` : "";
    if (this.host.style.getPropertyValue("--figure-room") === room) return;
    this.host.style.setProperty("--figure-room", room);
    this.panel?.refresh();
  }

  async draw(bytes, page) {
    this.measure();
    if (this.drawn !== page) {
      this.panel?.destroy();
      this.place?.remove();
      this.place = make("div");
      this.host.append(this.place);
      this.panel = new Panel(this.place.attachShadow({ mode: "open" }), KINDS);
      this.drawn = page;
    }
    const setTriggerValue = (event, value) => this.chosen(event, value);
    this.script ??= loadScript();
    await this.panel.update({ data: bytes, script: await this.script, setTriggerValue });
  }

  // What the reader chose in a drawing.
  chosen(event, value) {
    const { state } = this;
    if (event === "place") {
      Object.assign(state, value, PLACED);
      history.replaceState(null, "", addressOf(state));
    } else if (event === "inside") {
      this.inside = value;
      this.ask();
    } else if (event === "step") {
      this.at = value;
      this.fillControls();
    } else if (state.page === "attention") this.set({ token: value.query, ...PLACED });
    else if (state.page === "heads") {
      const { stack, attention: kind, layer, head } = value;
      Object.assign(state, { stack, kind, layer, head }, PLACED);
      this.turnTo("attention");
    }
  }

  // --- what the page is made of ---------------------------------------------------------------------------------------

  build() {
    const { texts, state, model } = this;
    document.documentElement.lang = state.language;
    this.panel?.destroy();
    this.panel = this.place = this.drawn = null;
    const models = site.models.map(({ checkpoint, name }) => [checkpoint, `${name[state.language]} · ${checkpoint}`]);
    const examples = model.examples.map(({ label: name }, k) => [String(k), name[state.language]]);
    const lessons = site.lessons.map(({ name, texts: said }) => [name, said[state.language].title]);
    const start = (name) =>
      name &&
      this.openStep(
        site.lessons.find((one) => one.name === name),
        1,
      );
    const choices = [
      select(models, state.checkpoint, (value) => this.change(value), texts.model, "models"),
      select(
        [["", texts.choose_example], ...examples],
        "",
        (k) => k && this.takeExample(k),
        texts.examples,
        "examples",
      ),
      lessons.length
        ? select([["", texts.lessons], ...lessons], this.bar.lesson?.name ?? "", start, texts.lessons)
        : "",
      select(
        languages.map((one) => [one, site.texts[one].language]),
        state.language,
        (language) => this.turn(() => (state.language = language)),
        "Language",
      ),
    ];
    const what = model.picture ? "picture" : model.kind === "decoder-only" ? "prompt" : "sentence";
    this.sentence = this.area(texts[what], "sentence");
    this.target = this.area(texts.target, "target", texts.target_hint);
    this.target.parentElement.hidden = !this.isTranslator;
    this.pad = model.picture
      ? drawingPad(model.picture, texts, this.sentence, () => this.sentence.dispatchEvent(new Event("input")))
      : "";
    this.progress = make("progress", { max: 1, value: 0, hidden: Boolean(this.opened) });
    this.answer = make("p", { className: "answer", role: "status", "aria-live": "polite" });
    this.shows = make("p", { className: "hint", hidden: true });
    this.tokens = make("div");
    const pages = PAGES.filter((page) => page !== "decoding" || model.kind !== "encoder-only");
    this.tabs = pages.map((page) => {
      const tab = press(texts[`page_${page}`], () => this.turnTo(page), { role: "tab", id: `tab-${page}` });
      tab.addEventListener("keydown", ({ key }) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
        if (by) this.tabs.at((this.tabs.indexOf(tab) + by) % this.tabs.length).focus();
      });
      return tab;
    });
    this.hint = make("p", { className: "hint" });
    this.controls = make("div", { className: "row controls" });
    this.host = make("section", { className: "figure", role: "tabpanel", "aria-busy": "true" }, this.tokens);
    this.aloud = make("p", { className: "aloud", hidden: true });
    this.below = make("div");
    const boxes = [this.sentence.parentElement, this.target.parentElement, this.pad];
    const main = make(
      "main",
      {},
      make("div", { className: "texts" }, ...boxes),
      this.shows,
      this.progress,
      this.answer,
    );
    const tabs = make("nav", { role: "tablist" }, ...this.tabs);
    main.append(tabs, this.hint, this.controls, this.aloud, this.host, this.below);
    const header = make("header", {}, make("h1", { textContent: "Glassformer" }), ...choices);
    this.root.replaceChildren(header, main, this.foot(), this.bar.element);
    this.root.classList.toggle("in-lesson", Boolean(this.bar.lesson));
    this.bar.show();
    this.fillControls();
  }

  area(label, name, placeholder = "") {
    const found = make("textarea", { value: this.state[name], rows: 1, placeholder, spellcheck: false, name });
    found.addEventListener("input", () => {
      // The state is what the box says, at once; only the model waits for another key.
      const { sentence, masked, isPlaced } = this.state;
      const kept = name !== "sentence" || isKept(masked, sentence, found.value);
      const opens = !isPlaced && !exampleOf(this.model, found.value);
      Object.assign(this.state, { [name]: found.value, masked: kept ? masked : "", forced: [], opens });
      this.inside = this.unfold = null;
      this.keep();
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.ask(), TYPING);
    });
    make("label", {}, make("span", { textContent: label }), found);
    return found;
  }

  foot() {
    const { texts } = this;
    const copy = press(texts.share, async () => {
      await navigator.clipboard.writeText(location.href);
      copy.textContent = texts.copied;
      setTimeout(() => (copy.textContent = texts.share), 2000);
    });
    this.toApp = site.app ? make("a", { textContent: texts.in_the_app, target: "_top" }) : "";
    const row = make("div", { className: "row" }, copy, this.toApp);
    const about = make("p", { textContent: texts.about });
    if (!site.licences) row.append(make("a", { href: "LICENSES.txt", textContent: texts.licences }));
    const licences = make("summary", { textContent: texts.licences });
    const all = site.licences ? make("details", {}, licences, make("pre", { textContent: site.licences })) : "";
    return make("footer", {}, row, about, all);
  }

  // --- controls -------------------------------------------------------------------------------------------------------

  fillControls() {
    const { state, texts } = this;
    for (const tab of this.tabs) {
      const here = tab.id === `tab-${state.page}`;
      tab.setAttribute("aria-selected", String(here));
      tab.tabIndex = here ? 0 : -1;
    }
    this.host.setAttribute("aria-labelledby", `tab-${state.page}`);
    this.hint.textContent = texts[`hint_${state.page}`];
    if (this.toApp) this.toApp.href = appAddress(site.app, state);
    if (!this.opened) return this.controls.replaceChildren();
    const ofPage = { attention: () => this.headControls(), decoding: () => this.stepControls() }[state.page];
    refill(this.controls, ...this.maskedControls(), ...(ofPage?.() ?? []), ...this.removedControls());
  }

  maskedControls() {
    const { words = [], word } = this.found?.masked ?? {};
    if (!words.length || this.bar.lesson) return [];
    // A word that occurs several times has its number.
    const numbered = words.map((one, k) => {
      const count = words.slice(0, k + 1).filter((other) => other === one).length;
      return [String(k), words.filter((other) => other === one).length > 1 ? `${one} (${count})` : one];
    });
    const { masked_word: label, masked_none: none } = this.texts;
    const choose = (masked) => this.set({ masked });
    return [labelled(label, [...numbered, [NONE, none]], word ? String(word.number) : NONE, choose)];
  }

  headControls() {
    const { state, texts, opened } = this;
    const kinds = opened.attentions.map(([stack, kind]) => [`${stack} ${kind}`, this.nameOf(stack, kind)]);
    const choose = (value) => {
      const [stack, kind] = value.split(" ");
      this.set({ stack, kind, ...PLACED });
    };
    const number = (name, count) => {
      const options = Array.from({ length: count }, (_, k) => [String(k), String(k)]);
      return labelled(texts[name], options, String(state[name]), (k) => this.set({ [name]: Number(k), ...PLACED }));
    };
    const here = [state.stack, state.kind, state.layer, state.head];
    const isGone = state.removed.some((head) => String(head) === String(here));
    return [
      ...(kinds.length > 1 ? [select(kinds, `${state.stack} ${state.kind}`, choose, texts.attention)] : []),
      number("layer", opened.layers[state.stack]),
      number("head", opened.heads),
      press(isGone ? texts.restore : texts.remove, () => this.toggleHead(here)),
    ];
  }

  stepControls() {
    if (!this.found?.choices.length) return [];
    const { choices, answer } = this.found;
    const step = Math.min(this.at ?? 0, choices.length - 1);
    const options = choices[step].map(({ id, text }) => [String(id), text]);
    const force = (id) => this.set({ forced: [...answer.slice(0, step), Number(id)], target: "" });
    const label = fill(this.texts.instead, { step: step + 1 });
    const unforce = press(this.texts.unforce, () => this.set({ forced: [] }));
    return [labelled(label, options, String(answer[step]), force), ...(this.state.forced.length ? [unforce] : [])];
  }

  removedControls() {
    const { removed } = this.state;
    const { texts } = this;
    if (!removed.length) return [];
    const chips = removed.map((head) => {
      const [stack, kind, layer, number] = head;
      const name = `${this.nameOf(stack, kind)} ${layer}.${number} ×`;
      return press(name, () => this.toggleHead(head), { className: "chip", title: texts.restore });
    });
    const all = press(texts.restore_all, () => this.set({ removed: [] }));
    return [make("span", { className: "row" }, texts.removed, ...chips), ...(chips.length > 1 ? [all] : [])];
  }

  nameOf(stack, kind) {
    return this.opened.names[this.state.language][`${stack}.${kind}`];
  }

  // --- what changes ---------------------------------------------------------------------------------------------------

  set(changes) {
    if ("removed" in changes || "target" in changes) this.inside = null;
    Object.assign(this.state, changes);
    this.fillControls();
    this.ask();
  }

  toggleHead(head) {
    const { removed } = this.state;
    const others = removed.filter((one) => String(one) !== String(head));
    this.set({ removed: others.length < removed.length ? others : [...removed, head], ...PLACED });
  }

  turnTo(page) {
    if (page === this.state.page) return;
    if (this.state.page === "overview") this.unfold = null;
    this.state.page = page;
    history.pushState(null, "", addressOf(this.state));
    this.fillControls();
    this.ask();
  }

  // Builds the page anew after a change of the language, the model, or everything; `said`: what is told above the answer.
  turn(change, said = "") {
    const { checkpoint } = this.state;
    change();
    this.unfold = null;
    this.build();
    this.hintAt(said);
    if (checkpoint === this.state.checkpoint && this.opened) this.ask();
    else this.open();
  }

  takeExample(number) {
    const { place, sentence, target, shows } = this.model.examples[number];
    this.sentence.value = sentence;
    this.target.value = target;
    this.pad.show?.();
    this.hintAt(shows[this.state.language]);
    this.inside = null;
    this.set({ ...place, sentence, target, masked: "", forced: [], opens: false });
  }

  // What the reader typed belongs to them: the next model that reads the like opens with it.
  keep() {
    const { sentence, target, lesson } = this.state;
    const { picture, examples } = this.model;
    if (lesson) return;
    const isExample = examples.some((one) => one.sentence === sentence && one.target === target);
    const own = { ...this.typed.text, sentence, ...(this.isTranslator ? { target } : {}) };
    this.typed[picture ? "picture" : "text"] = isExample ? null : own;
  }

  change(checkpoint) {
    this.keep();
    this.turn(() => {
      this.state.checkpoint = checkpoint;
      const typed = this.typed[this.model.picture ? "picture" : "text"];
      const fresh = { forced: [], removed: [], masked: "", isPlaced: false, opens: Boolean(typed), lesson: "" };
      Object.assign(this.state, openingOf(this.model), typed, this.isTranslator ? {} : { target: "" }, fresh);
    });
  }

  // --- lessons --------------------------------------------------------------------------------------------------------

  openStep(lesson, number) {
    if (!this.state.lesson) this.own = structuredClone(this.state); // what the reader comes back to
    this.turn(() => {
      Object.assign(this.state, { lesson: lesson.name, step: number });
      this.take(this.bar.step);
      history.pushState(null, "", addressOf(this.state));
    });
    scrollTo(0, 0);
  }

  // The view of a step.
  take({ page, place }) {
    this.inside = null;
    this.at = 0;
    Object.assign(this.state, place, { page, forced: [], removed: [] });
  }

  leaveLesson(said = "") {
    this.turn(() => {
      const { language } = this.state;
      Object.assign(this.state, { ...openingOf(this.model), ...this.own, language, lesson: "", step: 1 });
      this.own = null;
      history.pushState(null, "", addressOf(this.state));
    }, said);
  }

  // Where a step is that only the app has; `name`: of its page
  elsewhere(name) {
    const { lesson, number, step } = this.bar;
    const place = `language=${this.state.language}&lesson=${lesson.name}&lesson_step=${number}`;
    return [...rich(fill(this.texts.elsewhere, { page: name })), ...this.linkToApp(`${step.address}&${place}`)];
  }

  linkToApp(address) {
    if (!site.app) return [];
    const href = `${site.app.replace(/\/$/, "")}/${address}`;
    return [" ", make("a", { href, target: "_top", textContent: this.texts.in_the_app })];
  }
}

// --- elements ---------------------------------------------------------------------------------------------------------

function press(textContent, action, more = {}) {
  const button = make("button", { type: "button", textContent, ariaLabel: textContent, ...more });
  button.addEventListener("click", action);
  return button;
}

function select(options, value, chosen, label, className = "") {
  const found = make("select", { "aria-label": label, className });
  found.append(...options.map(([key, text]) => make("option", { value: key, textContent: text })));
  found.value = value;
  found.addEventListener("change", () => chosen(found.value));
  return found;
}

const labelled = (label, ...choice) => make("label", {}, label, select(...choice, label));

// What had the focus has it again.
function refill(element, ...children) {
  const held = element.contains(document.activeElement) ? document.activeElement.ariaLabel : null;
  element.replaceChildren(...children);
  if (held) [...element.querySelectorAll("select, button")].find((one) => one.ariaLabel === held)?.focus();
}

// --- where the page is ------------------------------------------------------------------------------------------------

// A file on a disk keeps its query: there, the view is behind the #.
const inFile = location.protocol === "file:";
const asked = () => (inFile && location.hash ? location.hash.slice(1) : location.search);
const addressOf = (state) => (inFile ? `#${writeState(state).slice(1)}` : writeState(state));

// The smallest module with an instruction of SIMD, which the runtime needs.
const SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
];
const canRun = () => typeof WebAssembly === "object" && WebAssembly.validate(new Uint8Array(SIMD));

// A worker that was made of a Blob knows no folder.
const absolute = (file) => ({ ...file, path: new URL(file.path ?? file.name, location.href).href });

// The drawings' script, which an exported page holds a copy of.
async function loadScript() {
  if (site.canvas) return fromBase64(site.canvas);
  const response = await fetch("canvas.bin");
  return new Uint8Array(await response.arrayBuffer());
}

if (isSecureContext && !inFile) navigator.serviceWorker?.register("service_worker.js").catch(() => {});
globalThis.glassformerSite = new Site(document.getElementById("app")); // for tests and benchmarks
