// Buttons, slider and keys that move the picture from beat to beat, and the clock that plays it.

import { button, make } from "../../toolkit/elements.js";
import { isForFigure, stepTo } from "../../toolkit/keys.js";
import { say } from "../../toolkit/words.js";
import { durationOf } from "./beats.js";
import { kindText } from "./captions.js";

const SPEEDS = [0.5, 1, 2, 4];
const MARKS = { name: "predicted", key: "looked-at", word: "looked-at" };
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Player {
  constructor(run, panel) {
    Object.assign(this, { run, panel, speed: 1, aborter: new AbortController() });
    const { signal } = this.aborter;
    document.addEventListener("keydown", (event) => this.onKey(event), { signal });
    document.addEventListener("glassformer-step", (event) => this.onStep(event), { signal });
    panel.aborter.signal.addEventListener("abort", () => this.destroy(), { signal });
  }

  destroy() {
    cancelAnimationFrame(this.frame);
    this.aborter.abort();
  }

  get last() {
    return this.run.beats.length - 1;
  }

  // Made once a language: a press that has begun on a button, or a drag of the slider, goes on when the run comes anew.
  controls() {
    const { language } = this.run.metadata;
    if (!this.sentence || this.language !== language) this.build(language);
    this.slider.max = this.last;
    this.show();
    return [this.slider, this.sentence];
  }

  build(language) {
    const { panel, run } = this;
    this.language = language;
    this.play = button("▶", say("Play"), () => this.toggle(), { className: "play" });
    this.back = button("←", say("one step back"), () => this.go(run.at - 1));
    this.next = button("→", say("one step forward"), () => this.go(run.at + 1));
    this.fast = button(`${this.speed}×`, say("Speed"), () => {
      this.speed = SPEEDS[(SPEEDS.indexOf(this.speed) + 1) % SPEEDS.length];
      this.fast.textContent = `${this.speed}×`;
    });
    panel.bar.querySelector(".lead")?.remove();
    panel.bar.prepend(make("span", { className: "lead" }, this.play, this.back, this.next, this.fast));
    panel.root.classList.add("living-picture");
    this.slider = make("input", { type: "range", min: 0, step: 1, "aria-label": say("Position in the animation") });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.sentence = make("div", { className: "sentence" });
    this.said = make("span", { className: "said" });
    const unfold = () => run.unfold(run.partOf(run.beat));
    this.inside = button(say("Unfold"), say("Show its computation, number by number (Enter)"), unfold);
    this.numbers = make("span", { className: "numbers" });
    this.path = null;
  }

  show() {
    const { run } = this;
    if (!this.sentence) return;
    this.report();
    const { caption } = run;
    this.slider.value = run.at;
    this.slider.setAttribute("aria-valuetext", caption.join(""));
    this.back.disabled = run.at === 0;
    this.next.disabled = run.at === this.last;
    this.play.textContent = this.after === undefined ? "▶" : "❚❚";
    this.play.title = this.play.ariaLabel = this.after === undefined ? say("Play") : say("Pause");
    // What is predicted and what is looked at are marked as in the picture.
    const markOf = (i) => (run.beat.type === "step" ? "" : (MARKS[caption.roles?.[i]] ?? ""));
    const pieces = caption.map((piece, i) =>
      i % 2 ? make("strong", { textContent: piece, className: markOf(i) }) : piece,
    );
    this.said.replaceChildren(...pieces);
    this.sentence.classList.toggle("of-word", ["word", "end"].includes(run.beat.type) && !run.unfolded);
    // Numbers are for who stops. Each is shown whole, or not at all if it does not fit.
    this.numbers.title = this.after === undefined ? run.numbers : "";
    const parts = this.numbers.title.split(/(?= · )/);
    this.numbers.replaceChildren(...parts.map((textContent) => make("span", { textContent })));
    // What stands in the line is changed only where it is another: who presses or has the focus would lose it.
    const path = run.unfolded ? JSON.stringify([run.unfolded, run.headNow, this.followed()]) : "";
    if (path === this.path) return;
    this.path = path;
    this.replace(run.unfolded ? this.crumbs() : [this.said, this.numbers, this.inside]);
  }

  // The bar of a lesson waits for this before it takes an answer (ui/shell/guidance/lesson_bar.js).
  report() {
    const { step } = this.run.metadata.begin;
    const arrived = this.after === undefined && this.run.hasArrived;
    if (step) document.documentElement.dataset.pictureStep = arrived ? step : "";
  }

  // The focus goes to the control of the same name, or to the first.
  replace(parts) {
    const name = (node) => node.ariaLabel ?? node.textContent;
    const focused = this.sentence.getRootNode().activeElement;
    const held = focused && this.sentence.contains(focused) ? name(focused) : null;
    this.sentence.replaceChildren(...parts);
    if (held === null) return;
    const controls = [...this.sentence.querySelectorAll("button, select")];
    (controls.find((control) => name(control) === held) ?? controls[0])?.focus();
  }

  followed() {
    const stack = this.run.model.stack(this.run.unfolded.stack);
    return stack.tokens[this.run.queryIn(stack)].label;
  }

  // Where in the model the reader is: back, the parts of this layer, the head, and the page that tells more.
  crumbs() {
    const { run } = this;
    const { unfolded } = run;
    const press = (text, explanation, action, pressed) => {
      const made = button(text, explanation, action, { className: "crumb" });
      if (pressed !== undefined) made.setAttribute("aria-pressed", String(pressed));
      return made;
    };
    const back = press(`‹ ${say("Back")}`, say("Back to the whole model (Escape)"), () => run.fold());
    const parts = run.parts().map((one) => {
      const name = kindText(one.part === "attention" ? `${one.kind}_attention` : one.part);
      const here = one.part === unfolded.part && one.kind === unfolded.kind;
      return press(name, say("Unfold this part"), () => run.unfold(one), here);
    });
    const layer = unfolded.layer === null ? "" : say("layer {layer}", { layer: unfolded.layer });
    const textContent = [layer, this.followed()].filter(Boolean).join(", ");
    return [
      back,
      ...parts,
      ...this.headChoice(),
      make("strong", { className: "said", textContent }),
      ...this.link(press),
    ];
  }

  headChoice() {
    const { run } = this;
    if (run.unfolded.part !== "attention") return [];
    const { heads } = run.model.attention(run.unfolded.stack, run.unfolded.kind);
    const options = Array.from({ length: heads }, (_, head) =>
      make("option", { value: head, textContent: say("head {head}", { head }), selected: head === run.headNow }),
    );
    const select = make("select", { "aria-label": say("Head") }, ...options);
    select.addEventListener("change", () => {
      run.head = Number(select.value);
      run.changed();
    });
    return [select];
  }

  link(press) {
    const { run } = this;
    const { part, kind } = run.unfolded;
    const page = run.metadata.links[part === "attention" ? `${kind}_attention` : part];
    if (!page) return [];
    const open = () => {
      clearTimeout(run.rest);
      this.panel.trigger("page", { page, ...run.focus() });
    };
    return [press(`${say("More on its page")} →`, say("Opens the page with more detail, at the same location"), open)];
  }

  // A presenter's remote: on from the first beat to the last, and back; what goes beyond them turns the page.
  onStep(event) {
    const to = this.begun ? this.run.at + event.detail : event.detail > 0 ? 0 : -1;
    if (to < 0 || to > this.last) return;
    event.preventDefault();
    this.go(to);
  }

  onKey(event) {
    const isPress = event.key === " " && event.composedPath()[0].closest?.("button");
    if (isForFigure(event) && !isPress && this.key(event.key)) event.preventDefault();
  }

  key(name) {
    const to = stepTo(name, this.run.at, this.last);
    if (name === " ") this.toggle();
    else if (to !== undefined) this.go(to);
    return name === " " || to !== undefined;
  }

  toggle() {
    if (this.after !== undefined) return this.stop();
    const { run } = this;
    run.leave();
    // It opens in the midst of the run where a token in the midst is shown; the first press plays the whole run.
    if ((run.at >= this.last && run.fraction >= 1) || !(this.begun || run.metadata.begin.stop)) run.at = -1;
    this.advance(this.last);
  }

  // From one beat to another.
  begin(from, to) {
    this.stop();
    this.run.leave();
    this.run.at = from;
    this.advance(to);
  }

  advance(to) {
    if (this.run.at >= to) return this.stop();
    this.run.at++;
    this.playBeat(() => this.advance(to));
  }

  // Plays one beat; then goes on with `after`, if there is one. While it plays, `after` is not undefined.
  playBeat(after) {
    const { run, panel } = this;
    this.begun = true; // it opens with the whole run
    cancelAnimationFrame(this.frame);
    const whole = durationOf(run.beat, run.beats) / this.speed;
    const moves = still() ? 0 : Math.min(whole * 0.7, 1400);
    run.fraction = moves ? 0 : 1;
    this.after = after;
    const start = performance.now();
    const tick = (now) => {
      const [before, elapsed] = [run.fraction, now - start];
      run.fraction = moves ? Math.min(1, Math.max(0, elapsed / moves)) : 1;
      if (run.fraction !== before || before < 1) panel.repaint();
      if (elapsed < (after ? whole : moves)) return void (this.frame = requestAnimationFrame(tick));
      this.after = undefined;
      if (after) after();
      else this.show();
    };
    this.frame = requestAnimationFrame(tick);
    panel.repaint();
    this.show();
    panel.live.textContent = run.caption.join("");
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.after = undefined;
    this.run.fraction = 1;
    this.panel.repaint();
    this.show();
  }

  // To a beat: a step forward moves, anything else is there at once.
  go(to) {
    const { run, panel } = this;
    const at = Math.max(0, Math.min(this.last, to));
    run.leave();
    if (at === run.at) return this.stop();
    this.begun = true;
    const forward = at === run.at + 1;
    run.at = at;
    if (forward) return this.playBeat(null);
    this.stop();
    panel.live.textContent = run.caption.join("");
  }
}
