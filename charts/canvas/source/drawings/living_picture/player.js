// Buttons, slider and keys that move the picture from beat to beat, and the clock that plays it.

import { timer } from "d3-timer";
import { make } from "../../toolkit/elements.js";
import { say } from "../../toolkit/words.js";
import { durationOf } from "./beats.js";
import { kindText } from "./captions.js";

const SPEEDS = [0.5, 1, 2, 4];
const MARKS = { name: "predicted", key: "looked-at", word: "looked-at" };
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Player {
  constructor(drawing, previous) {
    Object.assign(this, { drawing, stage: drawing.stage, speed: previous?.speed ?? 1, aborter: new AbortController() });
    previous?.stop();
    previous?.aborter.abort();
    const { signal } = this.aborter;
    document.addEventListener("keydown", (event) => this.onKey(event), { signal });
    document.addEventListener("glassformer-step", (event) => this.onStep(event), { signal });
    drawing.stage.aborter.signal.addEventListener("abort", () => (this.stop(), this.aborter.abort()), { signal });
  }

  get last() {
    return this.drawing.beats.length - 1;
  }

  // Made once a language: a press that has begun on a button, or a drag of the slider, goes on when the run comes anew.
  controls() {
    const { stage } = this;
    const { language } = this.drawing.metadata;
    if (this.sentence && this.language === language) {
      this.show();
      return [this.slider, this.sentence];
    }
    this.language = language;
    const control = (text, explanation, action) => {
      const made = make("button", {
        type: "button",
        textContent: text,
        title: explanation,
        "aria-label": explanation,
      });
      made.addEventListener("click", action);
      return made;
    };
    this.play = control("▶", say("Play"), () => this.toggle());
    this.play.classList.add("play");
    this.back = control("←", say("one step back"), () => this.go(this.drawing.at - 1));
    this.next = control("→", say("one step forward"), () => this.go(this.drawing.at + 1));
    this.fast = control(`${this.speed}×`, say("Speed"), () => {
      this.speed = SPEEDS[(SPEEDS.indexOf(this.speed) + 1) % SPEEDS.length];
      this.fast.textContent = `${this.speed}×`;
    });
    stage.bar.querySelector(".lead")?.remove();
    this.lead = make("span", { className: "lead" }, this.play, this.back, this.next, this.fast);
    stage.bar.prepend(this.lead);
    stage.root.classList.add("living-picture");
    this.slider = make("input", {
      type: "range",
      min: 0,
      max: this.last,
      step: 1,
      "aria-label": say("Position in the animation"),
    });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.sentence = make("div", { className: "sentence" });
    this.said = make("span", { className: "said" });
    this.inside = make("button", {
      type: "button",
      textContent: say("Unfold"),
      title: say("Show its computation, number by number (Enter)"),
    });
    this.inside.addEventListener("click", () => this.drawing.unfold(this.drawing.partOf(this.drawing.beat)));
    this.heads = make("button", {
      type: "button",
      textContent: say("Heads"),
      title: say("One line for each head, in its colour (n)"),
    });
    this.heads.addEventListener("click", () => this.listHeads());
    this.numbers = make("span", { className: "numbers" });
    this.path = null;
    this.show();
    return [this.slider, this.sentence];
  }

  listHeads() {
    const { drawing } = this;
    drawing.listsHeads = !drawing.listsHeads;
    if (!drawing.listsHeads) drawing.head = null;
    drawing.changed();
  }

  show() {
    const { drawing } = this;
    this.report();
    this.slider.value = drawing.at;
    this.slider.setAttribute("aria-valuetext", drawing.caption.join(""));
    this.back.disabled = drawing.at === 0;
    this.next.disabled = drawing.at === this.last;
    this.play.textContent = this.clock ? "❚❚" : "▶";
    this.play.title = this.play.ariaLabel = this.clock ? say("Pause") : say("Play");
    const { caption } = drawing;
    // What is predicted and what is looked at are marked as in the picture.
    const markOf = (i) => (drawing.beat.type === "step" ? "" : (MARKS[caption.roles?.[i]] ?? ""));
    const pieces = caption.map((piece, i) =>
      i % 2 ? make("strong", { textContent: piece, className: markOf(i) }) : piece,
    );
    this.said.replaceChildren(...pieces);
    this.sentence.classList.toggle("of-word", ["word", "end"].includes(drawing.beat.type) && !drawing.unfolded);
    // Numbers are for who stops.
    this.numbers.title = this.clock ? "" : drawing.numbers;
    const parts = this.numbers.title.split(/(?= · )/); // each is shown whole, or not at all if it does not fit
    this.numbers.replaceChildren(...parts.map((textContent) => make("span", { textContent })));
    this.heads.setAttribute("aria-pressed", String(drawing.showsHeads(drawing.beat)));
    // What stands in the line is changed only where it is another: who presses or has the focus would lose it.
    const path = drawing.unfolded ? JSON.stringify([drawing.unfolded, drawing.headNow, this.followed()]) : "";
    if (path === this.path) return;
    this.path = path;
    this.replace(drawing.unfolded ? this.crumbs() : [this.said, this.numbers, this.inside, this.heads]);
  }

  // The bar of a lesson waits for this before it takes an answer (ui/shell/guidance/lesson_bar.js).
  report() {
    const { step } = this.drawing.metadata.begin;
    if (step) document.documentElement.dataset.pictureStep = !this.clock && this.drawing.hasArrived ? step : "";
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
    const stack = this.drawing.model.stack(this.drawing.unfolded.stack);
    return stack.tokens[this.drawing.queryIn(stack)].label;
  }

  // Where in the model the reader is: back, the parts of this layer, the head, and the page that tells more.
  crumbs() {
    const { drawing } = this;
    const { unfolded } = drawing;
    const press = (text, explanation, action, pressed) => {
      const button = make("button", { type: "button", textContent: text, title: explanation, className: "crumb" });
      if (pressed !== undefined) button.setAttribute("aria-pressed", String(pressed));
      button.addEventListener("click", action);
      return button;
    };
    const back = press(`‹ ${say("Back")}`, say("Back to the whole model (Escape)"), () => drawing.fold());
    const parts = drawing.parts().map((one) => {
      const name =
        one.part === "attention"
          ? kindText(`${one.kind}_attention`)
          : one.part === "embedding"
            ? say("embedding")
            : kindText(one.part);
      const here = one.part === unfolded.part && one.kind === unfolded.kind;
      return press(name, say("Unfold this part"), () => drawing.unfold(one), here);
    });
    const layer = unfolded.layer === null ? "" : say("layer {layer}", { layer: unfolded.layer });
    const named = make("strong", {
      className: "said",
      textContent: [layer, this.followed()].filter(Boolean).join(", "),
    });
    return [back, ...parts, ...this.headChoice(), named, ...this.link(press)];
  }

  headChoice() {
    const { drawing } = this;
    const { unfolded, model } = drawing;
    if (unfolded.part !== "attention") return [];
    const { heads } = model.attention(unfolded.stack, unfolded.kind);
    const options = Array.from({ length: heads }, (_, head) =>
      make("option", { value: head, textContent: say("head {head}", { head }), selected: head === drawing.headNow }),
    );
    const select = make("select", { "aria-label": say("Head") }, ...options);
    select.addEventListener("change", () => {
      drawing.head = Number(select.value);
      drawing.changed();
    });
    return [select];
  }

  link(press) {
    const { drawing } = this;
    const { part, kind } = drawing.unfolded;
    const page = drawing.metadata.links[part === "attention" ? `${kind}_attention` : part];
    if (!page) return [];
    return [
      press(`${say("More on its page")} →`, say("Opens the page with more detail, at the same location"), () => {
        clearTimeout(drawing.rest);
        drawing.stage.trigger("page", { page, ...drawing.focus() });
      }),
    ];
  }

  // A presenter's remote: on from the first beat to the last, and back; what goes beyond them turns the page.
  onStep(event) {
    const to = this.begun ? this.drawing.at + event.detail : event.detail > 0 ? 0 : -1;
    if (to < 0 || to > this.last) return;
    event.preventDefault();
    this.go(to);
  }

  onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const inside = event.composedPath()[0];
    if (
      inside.closest?.(
        "input, textarea, select, [contenteditable], [role=slider], [role=radiogroup], [role=tablist], [role=listbox], [role=menu], [role=grid], [role=spinbutton], canvas, .table",
      )
    )
      return;
    if (event.key === " " && inside.closest?.("button")) return;
    if (this.key(event.key)) event.preventDefault();
  }

  key(name) {
    const places = { ArrowLeft: this.drawing.at - 1, ArrowRight: this.drawing.at + 1, Home: 0, End: this.last };
    if (name === " ") this.toggle();
    else if (name in places) this.go(places[name]);
    else return false;
    return true;
  }

  toggle() {
    if (this.clock) return this.stop();
    this.drawing.leave();
    // It opens in the midst of the run where a token in the midst is shown; the first press plays the whole run.
    const { at, fraction, metadata } = this.drawing;
    if ((at >= this.last && fraction >= 1) || !(this.begun || metadata.begin.stop)) this.drawing.at = -1;
    this.advance();
  }

  // From the first beat to the last, or from one to another.
  begin(from = -1, to = this.last) {
    this.stop();
    this.drawing.leave();
    this.drawing.at = from;
    this.advance(to);
  }

  advance(to = this.last) {
    const { drawing } = this;
    if (drawing.at >= to) return this.stop();
    drawing.at++;
    this.run(() => this.advance(to));
  }

  // Plays one beat; then goes on with `after`, if there is one.
  run(after) {
    const { drawing, stage } = this;
    this.begun = true; // it opens with the whole run
    this.clock?.stop();
    const whole = durationOf(drawing.beat, drawing.beats) / this.speed;
    const moves = still() ? 0 : Math.min(whole * 0.7, 1400);
    drawing.fraction = moves ? 0 : 1;
    this.clock = timer((elapsed) => {
      const before = drawing.fraction;
      drawing.fraction = moves ? Math.min(1, elapsed / moves) : 1;
      if (drawing.fraction !== before || before < 1) stage.repaint();
      if (elapsed < (after ? whole : moves)) return;
      this.clock.stop();
      this.clock = null;
      if (after) after();
      else this.show();
    });
    stage.repaint();
    this.show();
    stage.live.textContent = drawing.caption.join("");
  }

  stop() {
    this.clock?.stop();
    this.clock = null;
    this.drawing.fraction = 1;
    if (this.stage.ready) this.stage.repaint();
    if (this.play) this.show();
  }

  // To a beat: a step forward moves, anything else is there at once.
  go(to) {
    const { drawing } = this;
    const at = Math.max(0, Math.min(this.last, to));
    drawing.leave();
    if (at === drawing.at) return this.stop();
    this.begun = true;
    const forward = at === drawing.at + 1;
    drawing.at = at;
    this.clock?.stop();
    this.clock = null;
    if (forward) return this.run(null);
    drawing.fraction = 1;
    this.stage.repaint();
    this.show();
    this.stage.live.textContent = drawing.caption.join("");
  }
}
