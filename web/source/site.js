// The page: what is typed and clicked, and the drawings of the app around it. The model runs in worker.js.

import STYLE from "./site.css";
import { KINDS } from "../../charts/canvas/source/drawings/kinds.js";
import { arithmeticOf, arithmeticPanel } from "../../charts/canvas/source/drawings/living_picture/arithmetic.js";
import { LivingPictureModel } from "../../charts/canvas/source/drawings/living_picture/model.js";
import { rowsOf } from "../../charts/canvas/source/drawings/living_picture/unfolded_rows.js";
import { Panel } from "../../charts/canvas/source/scene/panel.js";
import { fromBase64 } from "../../charts/canvas/source/toolkit/base64.js";
import { make } from "../../charts/canvas/source/toolkit/elements.js";
import { decodePayload } from "../../charts/canvas/source/toolkit/payload.js";
import { fill } from "../../charts/canvas/source/toolkit/words.js";
import { HeadPanel } from "./head_panel.js";
import { LessonBar } from "./lessons.js";
import { NONE, isKept } from "./masked_word.js";
import { drawingPad } from "./pad.js";
import { rich } from "./rich_text.js";
import { PAGES, appAddress, exampleOf, headOf, openingOf, readState, restInApp, writeState } from "./state.js";

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
    this.inside = null;
    this.typed = {}; // the reader's own sentence and target, and their own picture
    this.bar = new LessonBar(this, site.lessons);
    document.head.append(make("style", { textContent: STYLE }));
    if (this.bar.lesson && !asked().includes("sentence=")) this.take(this.bar.step);
    this.build();
    this.sayRest(restInApp(asked(), site.lessons));
    this.startWorker();
    addEventListener("popstate", () => {
      const { checkpoint } = this.state;
      this.state = readState(asked(), site, languages);
      this.build();
      if (checkpoint !== this.state.checkpoint || !this.opened) this.open();
      else this.ask();
    });
    const sizes = new ResizeObserver(() => this.measure());
    for (const one of [document.documentElement, this.bar.element]) sizes.observe(one);
    addEventListener("resize", () => this.measure());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.refresh());
  }

  get texts() {
    return site.texts[this.state.language];
  }
  get model() {
    return site.models.find(({ checkpoint }) => checkpoint === this.state.checkpoint);
  }

  // --- the model's thread ---------------------------------------------------------------------------------------------

  startWorker() {
    this.worker?.terminate();
    if (!canRun()) return this.fail("", this.texts.no_wasm);
    this.worker = globalThis.glassformerWorker
      ? new Worker(globalThis.glassformerWorker) // in the single file
      : new Worker("worker.js", { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.hear(data));
    this.worker.addEventListener("error", (event) => this.fail(event.message || "worker.js"));
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
    this.fit();
    this.host.setAttribute("aria-busy", "true");
    this.sent = performance.now();
    const { sentence, target, forced, removed, language } = this.state;
    const request = { sentence, target, forced, removed, masked: this.bar.lesson ? NONE : this.state.masked };
    const opensAt = this.state.opens && !this.bar.lesson ? { opensAt: headOf(openingOf(this.model)) } : {};
    this.worker.postMessage({ run: { id: ++this.asked, request, shown: this.shown(), language, ...opensAt } });
  }

  // The figures of the page, by the names of figures.js.
  shown() {
    const { page, stack, kind, layer, head, token, cell, forced } = this.state;
    const { lesson, step } = this.bar;
    const stop = lesson && step.page === page ? { stop: step.stop, step: this.bar.place } : {};
    const begin = { stack, kind, layer, head, token, ...stop };
    if (page === "tokens") return {};
    if (page === "overview") return { livingPicture: { begin, inside: this.inside } };
    if (page === "heads") return { overview: { stack, kind, layer, head } };
    if (page === "decoding") {
      const layers = this.opened.layers.decoder;
      return { steps: { layer: Math.min(layer, layers - 1), begin: this.stepBegin, forcedCount: forced.length } };
    }
    const here = this.state.removed.some((one) => String(one) === String([stack, kind, layer, head]));
    return {
      attentionMap: { stack, kind, layer, head, selected: cell, chosen: token },
      ...(here ? {} : { effect: [stack, kind, layer, head] }),
      ...(cell ? { livingPicture: { begin, inside: { stack, layer } } } : {}),
    };
  }

  // A place that this model does not have is corrected.
  fit() {
    const { state, opened } = this;
    if (!opened.attentions.some(([stack, kind]) => stack === state.stack && kind === state.kind))
      [state.stack, state.kind] = opened.attentions[opened.attentions.length - 1];
    state.layer = Math.min(state.layer, opened.layers[state.stack] - 1);
    state.head = Math.min(state.head, opened.heads - 1);
    if (state.page === "decoding" && !opened.layers.decoder) state.page = PAGES[0];
    state.removed = state.removed.filter(
      ([stack, , layer, head]) => layer < (opened.layers[stack] ?? 0) && head < opened.heads,
    );
  }

  async hear(data) {
    if (data.progress !== undefined) this.progress.value = data.progress;
    else if (data.opened) {
      if (data.opened !== this.asked) return;
      this.opened = data;
      this.progress.hidden = true;
      this.fit();
      this.fillControls();
      this.ask();
    } else if (data.problem) {
      if (data.problem !== this.asked) return;
      this.host.setAttribute("aria-busy", "false");
      if (data.said) this.say(data.said, true);
      else if (data.opening) this.fail(data.broken);
      else this.say(fill(this.texts.broken, { problem: data.broken }), true);
    } else if (data.done === this.asked) await this.show(data);
  }

  fail(problem, said = fill(this.texts.failed, { problem })) {
    this.progress.hidden = true;
    this.say(said, true);
    const retry = make("button", { type: "button", textContent: this.texts.retry });
    retry.addEventListener("click", () => this.startWorker());
    this.answer.append(" ", retry);
    return this.showRecorded();
  }

  say(text, problem = false) {
    this.answer.replaceChildren(make("span", { textContent: text, className: problem ? "problem" : "" }));
  }

  // --- what is shown --------------------------------------------------------------------------------------------------

  async show(data) {
    const { state } = this;
    this.found = data;
    if (data.place) Object.assign(state, data.place);
    const { texts, model } = this;
    const isComplete = model.kind === "decoder-only" && data.finished && data.answer.length === 1;
    const said = isComplete ? texts.empty_answer : data.text;
    this.answer.replaceChildren(make("span", { textContent: `→ ${said}`, lang: isComplete ? state.language : "" }));
    if (data.whole !== undefined) this.compare([texts.whole_model, data.whole], [texts.without, data.text]);
    const word = data.masked?.word;
    if (word) this.answer.append(" ", make("small", { textContent: fill(texts.masked_said, { word: word.text }) }));
    if (!data.finished) this.answer.append(make("span", { className: "hint", textContent: ` ${data.unfinished}` }));
    this.tokens.replaceChildren(...(state.page === "tokens" ? this.tokenLists(data) : []));
    this.place?.toggleAttribute("hidden", state.page === "tokens");
    const name = {
      overview: "livingPicture",
      attention: "attentionMap",
      heads: "overview",
      decoding: "steps",
    }[state.page];
    if (data.figures[name]) await this.draw(data.figures[name], state.page);
    this.showBesides(data);
    await this.showArithmetic(data);
    this.host.setAttribute("aria-busy", "false");
    this.host.dataset.shown = String(data.done);
    globalThis.glassformerTook = performance.now() - this.sent; // for benchmarks
    this.writeAddress();
    this.fillControls();
  }

  // Two outputs, [label, text] each; the second may not be there yet.
  compare([first, text], [second, other]) {
    const line = (label, said) =>
      make(
        "span",
        { className: "compared" },
        make("small", { textContent: `${label} ` }),
        make("span", { textContent: said, lang: "" }),
      );
    const lines = [line(first, text)];
    if (other !== undefined) lines.push(line(second, other === text ? this.texts.same_output : other));
    this.answer.replaceChildren(...lines);
  }

  // What belongs to the map of a head.
  showBesides(data) {
    const isShown = this.state.page === "attention";
    this.aloud.replaceChildren(...(data.aloud ?? []).flatMap(([said, values]) => rich(said, values)));
    this.aloud.hidden = !isShown || !this.aloud.hasChildNodes();
    if (isShown) this.panel.show(data, this.opened.facts[this.state.language]);
    else this.panel.hide();
  }

  // How much the lesson leaves for the figure and its buttons; without a lesson the page scrolls.
  measure() {
    const { element, lesson } = this.bar;
    const top = this.host.getBoundingClientRect().top + scrollY;
    const bar = element.getBoundingClientRect();
    const foot = bar.left > this.host.getBoundingClientRect().right ? 0 : bar.height;
    const room = lesson ? `${Math.max(280, innerHeight - top - foot - 8)}px` : "";
    if (this.host.style.getPropertyValue("--figure-room") === room) return;
    if (room) this.host.style.setProperty("--figure-room", room);
    else this.host.style.removeProperty("--figure-room");
    this.refresh();
  }

  // Paints the figure anew: its room or the theme is another.
  refresh() {
    this.stage?.refresh();
  }

  async draw(bytes, page) {
    this.measure();
    if (this.drawn !== page) {
      this.stage?.destroy();
      this.place?.remove();
      this.place = make("div");
      this.host.append(this.place);
      this.stage = new Panel(this.place.attachShadow({ mode: "open" }), KINDS);
      this.drawn = page;
    }
    const setTriggerValue = (event, value) => this.chosen(event, value);
    await this.stage.update({ data: bytes, script: await this.lazyScript(), setTriggerValue });
  }

  lazyScript() {
    return (this.script ??= lazyScript());
  }

  // What the reader chose in a drawing.
  chosen(event, value) {
    const { state } = this;
    if (event === "place") {
      Object.assign(state, value, PLACED);
      return this.writeAddress();
    }
    if (event === "inside") {
      this.inside = value;
      return this.ask();
    }
    if (event === "step") {
      this.at = value;
      return this.fillControls();
    }
    if (state.page === "attention") {
      const { query, key } = value;
      const same = state.cell?.[0] === query && state.cell[1] === key;
      state.cell = same ? null : [query, key];
      state.token = query;
      Object.assign(state, PLACED);
      if (state.cell) this.opens = true;
      return this.ask();
    }
    if (state.page === "heads") {
      Object.assign(state, {
        stack: value.stack,
        kind: value.attention,
        layer: value.layer,
        head: value.head,
        ...PLACED,
      });
      return this.turnTo("attention");
    }
  }

  tokenLists({ stacks, prediction }) {
    const list = (tokens) =>
      make(
        "ul",
        { className: "tokens" },
        ...tokens.map(({ text, special, id }) =>
          make(
            "li",
            { className: special ? "special" : "" },
            make("span", { textContent: text }),
            make("small", { textContent: id }),
          ),
        ),
      );
    const { texts } = this;
    const parts = [make("p", { textContent: texts.reads }), list(stacks.encoder ?? stacks.decoder)];
    if (stacks.decoder && prediction) parts.push(make("p", { textContent: texts.writes }), list(prediction));
    return parts;
  }

  // The chosen cell of a map, taken apart as in the living picture: the product, the score, the weight.
  async showArithmetic({ figures }) {
    const { page, cell, stack, kind, layer, head } = this.state;
    this.arithmetics.replaceChildren();
    if (page !== "attention" || !cell || !figures.livingPicture) return;
    const model = new LivingPictureModel(await decodePayload(figures.livingPicture));
    const [query, key] = cell;
    const run = {
      model,
      unfolded: { stack, layer, kind, part: "attention" },
      queryIn: () => query,
      headOf: () => head,
      shownIn: ({ count }) => count,
    };
    if (query >= model.stack(stack).count || key >= (kind === "cross" ? model.stacks[0] : model.stack(stack)).count)
      return;
    const rows = rowsOf(run);
    for (const name of ["product", "score", "weight"]) {
      const row = rows.findIndex((one) => one.name === name);
      const found = row < 0 ? null : arithmeticOf({ rows, run }, { row, cell: key });
      if (found) this.arithmetics.append(arithmeticPanel(found, () => {}));
    }
    if (this.opens) this.arithmetics.scrollIntoView({ block: "nearest" });
    this.opens = false;
  }

  // --- controls -------------------------------------------------------------------------------------------------------

  build() {
    const { texts, state, model } = this;
    document.documentElement.lang = state.language;
    this.stage?.destroy();
    this.stage = this.place = this.drawn = null;
    const languageChoice = this.select(
      languages.map((one) => [one, site.texts[one].language]),
      state.language,
      (value) => this.set({ language: value }, true),
      "Language",
    );
    const models = this.select(
      site.models.map(({ checkpoint, name }) => [checkpoint, `${name[state.language]} · ${checkpoint}`]),
      state.checkpoint,
      (value) => this.change(value),
      texts.model,
    );
    models.className = "models";
    const writes = model.kind !== "encoder-only";
    const prompt = model.kind === "decoder-only";
    const label = model.picture ? texts.picture : prompt ? texts.prompt : texts.sentence;
    this.sentence = this.area(label, state.sentence, "sentence");
    this.target = this.area(texts.target, state.target, "target", texts.target_hint);
    this.target.parentElement.hidden = model.kind !== "encoder-decoder";
    this.pad = model.picture
      ? drawingPad(model.picture, texts, this.sentence, () => this.sentence.dispatchEvent(new Event("input")))
      : "";
    this.examples = this.select(
      [["", texts.choose_example], ...model.examples.map(({ label: name }, k) => [String(k), name[state.language]])],
      "",
      (value) => value && this.takeExample(model.examples[Number(value)]),
      texts.examples,
    );
    this.examples.className = "examples";
    this.progress = make("progress", { max: 1, value: 0, hidden: Boolean(this.opened) });
    this.answer = make("p", { className: "answer", role: "status", "aria-live": "polite" });
    this.shows = make("p", { className: "hint", hidden: true });
    this.tokens = make("div");
    const pages = PAGES.filter((page) => page !== "decoding" || writes);
    this.tabs = pages.map((page) => {
      const tab = make("button", {
        type: "button",
        role: "tab",
        textContent: texts[`page_${page}`],
        id: `tab-${page}`,
      });
      tab.addEventListener("click", () => this.turnTo(page));
      tab.addEventListener("keydown", ({ key }) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
        if (by) this.tabs[(this.tabs.indexOf(tab) + by + this.tabs.length) % this.tabs.length].focus();
      });
      return tab;
    });
    this.hint = make("p", { className: "hint says" });
    this.controls = make("div", { className: "row controls" });
    this.host = make("section", { className: "figure", role: "tabpanel", "aria-busy": "true" }, this.tokens);
    this.arithmetics = make("div", { className: "arithmetics" });
    this.aloud = make("p", { className: "aloud", hidden: true });
    this.panel = new HeadPanel({ state, texts, set: (changes) => this.set(changes) });
    this.root.replaceChildren(
      make(
        "header",
        {},
        make("h1", { textContent: "Glassformer" }),
        models,
        this.examples,
        ...this.lessonChoice(),
        languageChoice,
      ),
      make(
        "main",
        {},
        make("div", { className: "texts" }, this.sentence.parentElement, this.target.parentElement, this.pad),
        this.shows,
        this.progress,
        this.answer,
        make("nav", { role: "tablist" }, ...this.tabs),
        this.hint,
        this.controls,
        this.aloud,
        this.host,
        this.panel.element,
        this.arithmetics,
      ),
      this.foot(),
      this.bar.element,
    );
    this.root.classList.toggle("in-lesson", Boolean(this.bar.lesson));
    this.bar.show();
    this.fillControls();
  }

  // What a link names and only the app has, and where it is there.
  sayRest(address) {
    if (!address) return;
    this.shows.hidden = false;
    this.shows.replaceChildren(this.texts.rest, ...this.linkToApp(address));
  }

  linkToApp(address) {
    if (!site.app) return [];
    const href = `${site.app.replace(/\/$/, "")}/${address}`;
    return [" ", make("a", { href, target: "_top", textContent: this.texts.in_the_app })];
  }

  // Where a step is that only the app has; `name`: of its page
  elsewhere(name) {
    const { lesson, number, step } = this.bar;
    const place = `language=${this.state.language}&lesson=${lesson.name}&lesson_step=${number}`;
    return [...rich(fill(this.texts.elsewhere, { page: name })), ...this.linkToApp(`${step.address}&${place}`)];
  }

  lessonChoice() {
    if (!site.lessons.length) return [];
    const { texts, state } = this;
    const named = site.lessons.map(({ name, texts: said }) => [name, said[state.language].title]);
    const start = (name) =>
      name &&
      this.openStep(
        site.lessons.find((lesson) => lesson.name === name),
        1,
      );
    return [this.select([["", texts.lessons], ...named], this.bar.lesson?.name ?? "", start, texts.lessons)];
  }

  openStep(lesson, number) {
    if (!this.state.lesson) this.own = structuredClone(this.state); // what the reader comes back to
    Object.assign(this.state, { lesson: lesson.name, step: number });
    const { checkpoint } = this.state;
    this.take(this.bar.step);
    history.pushState(null, "", addressOf(this.state));
    scrollTo(0, 0);
    this.build();
    if (checkpoint === this.state.checkpoint && this.opened) this.ask();
    else this.open();
  }

  // The view of a step.
  take({ page, place }) {
    this.inside = null;
    this.at = 0;
    Object.assign(this.state, place, { page, forced: [], removed: [], cell: null });
  }

  leaveLesson(said = "") {
    const { checkpoint, language } = this.state;
    Object.assign(this.state, { ...openingOf(this.model), ...(this.own ?? {}), language, lesson: "", step: 1 });
    this.own = null;
    history.pushState(null, "", addressOf(this.state));
    this.build();
    this.shows.hidden = !said;
    this.shows.textContent = said;
    if (checkpoint === this.state.checkpoint) this.ask();
    else this.open();
  }

  foot() {
    const { texts } = this;
    const copy = make("button", { type: "button", textContent: texts.share });
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(location.href);
      copy.textContent = texts.copied;
      setTimeout(() => (copy.textContent = texts.share), 2000);
    });
    const row = make("div", { className: "row" }, copy);
    if (site.app) {
      this.toApp = make("a", { textContent: texts.in_the_app, target: "_top" });
      row.append(this.toApp);
    }
    const about = make("p", { textContent: texts.about });
    if (!site.licences) row.append(make("a", { href: "LICENSES.txt", textContent: texts.licences }));
    const licences = make("summary", { textContent: texts.licences });
    const all = site.licences ? make("details", {}, licences, make("pre", { textContent: site.licences })) : "";
    return make("footer", {}, row, about, all);
  }

  select(options, value, chosen, label) {
    const found = make("select", { "aria-label": label });
    found.append(...options.map(([key, text]) => make("option", { value: key, textContent: text })));
    found.value = value;
    found.addEventListener("change", () => chosen(found.value));
    return found;
  }

  area(label, value, name, placeholder = "") {
    const found = make("textarea", { value, rows: 1, placeholder, spellcheck: false, name });
    found.addEventListener("input", () => {
      // The state is what the box says, at once; only the model waits for another key.
      const { sentence, masked, isPlaced } = this.state;
      const kept = name !== "sentence" || isKept(masked, sentence, found.value);
      const opens = !isPlaced && !exampleOf(this.model, found.value);
      Object.assign(this.state, { [name]: found.value, masked: kept ? masked : "", forced: [], cell: null, opens });
      this.inside = null;
      this.keep();
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.ask(), TYPING);
    });
    make("label", {}, make("span", { textContent: label }), found);
    return found;
  }

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
    const held = this.controls.contains(document.activeElement) ? document.activeElement.ariaLabel : null;
    this.controls.replaceChildren(...this.controlsOf());
    if (held) [...this.controls.querySelectorAll("select, button")].find((one) => one.ariaLabel === held)?.focus();
  }

  controlsOf() {
    const { state, texts, opened } = this;
    if (!opened) return [];
    const parts = [];
    const { words, word } = this.found?.masked ?? { words: [] };
    const labelled = (label, control) => make("label", {}, label, control);
    const numbers = (count) => Array.from({ length: count }, (_, k) => [String(k), String(k)]);
    const press = (text, action) => {
      const button = make("button", { type: "button", textContent: text, ariaLabel: text });
      button.addEventListener("click", action);
      return button;
    };
    if (words.length && !this.bar.lesson) {
      const listed = words.map((text, k) => [String(k), numbered(words, k)]);
      const choose = (masked) => this.set({ masked });
      const chosen = word ? String(word.number) : NONE;
      parts.push(
        labelled(
          texts.masked_word,
          this.select([...listed, [NONE, texts.masked_none]], chosen, choose, texts.masked_word),
        ),
      );
    }
    if (state.page === "attention") {
      const kinds = opened.attentions.map(([stack, kind]) => [
        `${stack} ${kind}`,
        opened.names[state.language][`${stack}.${kind}`],
      ]);
      const choose = (value) => {
        const [stack, kind] = value.split(" ");
        this.set({ stack, kind, cell: null, ...PLACED });
      };
      if (kinds.length > 1) parts.push(this.select(kinds, `${state.stack} ${state.kind}`, choose, texts.attention));
      const layers = this.select(
        numbers(opened.layers[state.stack]),
        String(state.layer),
        (layer) => this.set({ layer: Number(layer), ...PLACED }),
        texts.layer,
      );
      const heads = this.select(
        numbers(opened.heads),
        String(state.head),
        (head) => this.set({ head: Number(head), ...PLACED }),
        texts.head,
      );
      const gone = state.removed.some((head) => String(head) === String(this.headHere()));
      parts.push(labelled(texts.layer, layers), labelled(texts.head, heads));
      parts.push(press(gone ? texts.restore : texts.remove, () => this.toggleHead(this.headHere())));
    }
    if (state.page === "decoding" && this.found?.choices.length) {
      const step = Math.min(this.at ?? 0, this.found.choices.length - 1);
      const taken = this.found.answer[step];
      const options = this.found.choices[step].map(({ id, text }) => [String(id), text]);
      const force = (id) => this.set({ forced: [...this.found.answer.slice(0, step), Number(id)], target: "" });
      parts.push(
        labelled(
          fill(texts.instead, { step: step + 1 }),
          this.select(options, String(taken), force, fill(texts.instead, { step: step + 1 })),
        ),
      );
      if (state.forced.length) parts.push(press(texts.unforce, () => this.set({ forced: [] })));
    }
    if (state.removed.length) {
      const chips = state.removed.map((head) => {
        const [stack, kind, layer, number] = head;
        const name = opened.names[state.language][`${stack}.${kind}`];
        const chip = press(`${name} ${layer}.${number} ×`, () => this.toggleHead(head));
        chip.className = "chip";
        chip.title = texts.restore;
        return chip;
      });
      parts.push(make("span", { className: "row" }, texts.removed, ...chips));
      if (chips.length > 1) parts.push(press(texts.restore_all, () => this.set({ removed: [] })));
    }
    return parts;
  }

  headHere() {
    const { stack, kind, layer, head } = this.state;
    return [stack, kind, layer, head];
  }

  toggleHead(head) {
    const same = (other) => String(other) === String(head);
    const { removed } = this.state;
    this.set({ removed: removed.some(same) ? removed.filter((one) => !same(one)) : [...removed, head], ...PLACED });
  }

  takeExample(example) {
    const { place, sentence, target, shows } = example;
    this.sentence.value = sentence;
    this.target.value = target;
    this.pad.show?.();
    this.shows.hidden = false;
    this.shows.textContent = shows[this.state.language];
    this.set({ ...place, sentence, target, masked: "", forced: [], cell: null, opens: false });
  }

  // What the reader typed belongs to them: the next model that reads the like opens with it.
  keep() {
    const { sentence, target, lesson } = this.state;
    const { picture, kind, examples } = this.model;
    if (lesson) return;
    const isExample = examples.some((one) => one.sentence === sentence && one.target === target);
    const own = { ...this.typed.text, sentence, ...(kind === "encoder-decoder" ? { target } : {}) };
    this.typed[picture ? "picture" : "text"] = isExample ? null : own;
  }

  change(checkpoint) {
    this.keep();
    this.state.checkpoint = checkpoint;
    const { picture, kind } = this.model;
    const typed = this.typed[picture ? "picture" : "text"];
    Object.assign(this.state, openingOf(this.model), typed, kind === "encoder-decoder" ? {} : { target: "" }, {
      forced: [],
      removed: [],
      masked: "",
      isPlaced: false,
      opens: Boolean(typed),
      cell: null,
      lesson: "",
    });
    this.opened = null;
    this.build();
    this.open();
  }

  turnTo(page) {
    if (page === this.state.page) return;
    this.state.page = page;
    this.arithmetics.replaceChildren();
    history.pushState(null, "", addressOf(this.state));
    this.fillControls();
    this.ask();
  }

  set(changes, anew = false) {
    if ("sentence" in changes || "removed" in changes || "target" in changes) this.inside = null;
    Object.assign(this.state, changes);
    if (anew) this.build();
    this.fillControls();
    this.ask();
  }

  writeAddress() {
    history.replaceState(null, "", addressOf(this.state));
    if (this.toApp) this.toApp.href = appAddress(site.app, this.state);
  }

  // Where the model cannot run: figures of it that Python recorded, as they are.
  async showRecorded() {
    this.panel.hide();
    const recorded = this.model.recorded?.[this.state.language] ?? this.model.recorded?.en;
    if (!recorded) return;
    this.drawn = null;
    const bytes = await fetch(recorded).then(
      (response) => (response.ok ? response.arrayBuffer() : null),
      () => null,
    );
    if (!bytes) return; // neither is there a network
    this.answer.firstChild.append(` ${this.texts.recorded}`);
    await this.draw(new Uint8Array(bytes), "recorded");
  }
}

// A word that occurs several times has its number.
function numbered(words, k) {
  const isRepeated = words.filter((word) => word === words[k]).length > 1;
  return isRepeated ? `${words[k]} (${words.slice(0, k + 1).filter((word) => word === words[k]).length})` : words[k];
}

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
async function lazyScript() {
  if (site.canvas) return fromBase64(site.canvas);
  const response = await fetch("canvas.bin");
  return new Uint8Array(await response.arrayBuffer());
}

if (isSecureContext && !inFile) navigator.serviceWorker?.register("service_worker.js").catch(() => {});
globalThis.glassformerSite = new Site(document.getElementById("app")); // for tests and benchmarks
