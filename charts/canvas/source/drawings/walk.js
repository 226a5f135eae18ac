// The text being written: buttons, arrow keys and the tokens themselves go from step to step, all in the browser. Python is told
// once the reader rests. All text goes through textContent: it is what a user typed or a model wrote.

import { button, make } from "../toolkit/elements.js";
import { isForFigure, stepTo } from "../toolkit/keys.js";
import { say } from "../toolkit/words.js";

const REST = 800; // milliseconds without a move
const walked = new Map(); // where the reader is, and what Python knows of it: a drawing may be made anew

export class Walk {
  // changed(): called after every move
  constructor(metadata, stage, changed) {
    Object.assign(this, { metadata, stage, changed, last: metadata.tokens.length - 1, aborter: new AbortController() });
    const key = String(metadata.begin); // another one only when Python moves the reader
    if (!walked.has(key)) walked.set(key, { step: metadata.begin[1], told: metadata.begin[1] });
    // A step sent while the drawing was being replaced may not have arrived.
    else if (!stage.walk && walked.get(key).moved) walked.get(key).told = null;
    this.at = walked.get(key);
    this.at.step = Math.min(this.last, this.at.step);
    this.what = metadata.title;
    stage.walk?.stop();
    stage.walk = this;
    document.addEventListener("keydown", (event) => this.onKey(event), { signal: this.aborter.signal });
    stage.aborter.signal.addEventListener("abort", () => this.stop(), { signal: this.aborter.signal });
    if (this.at.told !== this.at.step) this.rest();
  }

  get step() {
    return this.at.step;
  }
  get place() {
    return say("step {step} of {count}", { step: this.step + 1, count: this.last + 1 });
  }
  get said() {
    return this.metadata.said[this.step].join("");
  }

  stop() {
    this.aborter.abort();
    this.sizes?.disconnect();
    clearTimeout(this.timer);
    this.lead?.remove();
  }

  // The two buttons go before the title, which says where we are; below are the tokens and the sentence about the step.
  controls() {
    const { stage } = this;
    const arrow = (text, explanation, by) => button(text, explanation, () => this.move(this.step + by));
    this.back = arrow("←", say("one step back"), -1);
    this.next = arrow("→", say("one step forward"), 1);
    this.lead = make("span", { className: "lead" }, this.back, this.next);
    stage.bar.prepend(this.lead);
    stage.root.classList.add("stepper");
    stage.title.classList.add("count");
    const hint = make("span", { className: "keys", textContent: say("← → arrow keys, Home, End, or click a token") });
    const special = (token) => (token.special ? " special" : "");
    const before = this.metadata.before.map((token) =>
      make("span", { className: `token before${special(token)}`, textContent: token.text }),
    );
    this.tokens = this.metadata.tokens.map((token, index) => {
      const explanation = `${token.text}, ${say("step {step}", { step: index + 1 })}`;
      const className = `token${special(token)}${token.given ? " given" : ""}`;
      return button(token.text, explanation, () => this.move(index), { className, ariaLabel: explanation });
    });
    this.line = make("div", { className: "line", role: "group", "aria-label": this.what }, ...before, ...this.tokens);
    this.sentence = make("div", { className: "sentence" });
    this.show();
    this.sizes = new ResizeObserver(() => this.scroll()); // its first call comes once the line is on the page
    this.sizes.observe(this.line);
    return [hint, this.line, this.sentence];
  }

  show() {
    const { step, last } = this;
    this.tokens.forEach((token, index) => {
      token.classList.toggle("current", index === step);
      token.classList.toggle("later", index > step);
      if (index === step) token.setAttribute("aria-current", "step");
      else token.removeAttribute("aria-current");
    });
    this.back.disabled = step === 0;
    this.next.disabled = step === last;
    this.stage.title.textContent = this.place;
    this.sentence.replaceChildren(
      ...this.metadata.said[step].map((piece, i) => (i % 2 ? make("strong", { textContent: piece }) : piece)),
    );
    this.scroll();
  }

  // Scrolls the line, never the page.
  scroll() {
    const token = this.tokens[this.step];
    this.line.scrollTop = token.offsetTop - (this.line.clientHeight - token.offsetHeight) / 2;
  }

  onKey(event) {
    const to = stepTo(event.key, this.step, this.last);
    if (to === undefined || !isForFigure(event)) return;
    event.preventDefault(); // or the page would scroll
    this.move(to);
  }

  move(to) {
    const step = Math.max(0, Math.min(this.last, to));
    if (step === this.step) return;
    this.at.step = step;
    this.show();
    this.stage.live.textContent = `${this.place}. ${this.said}`;
    this.changed();
    this.rest();
  }

  rest() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.at.told === this.step) return; // there and back again
      Object.assign(this.at, { told: this.step, moved: true });
      this.stage.trigger("step", this.step);
    }, REST);
  }
}
