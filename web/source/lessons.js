// A lesson at the foot of the page: what to do, a question with two tries, and the explanation (lessons/, in the app
// ui/shell/guidance/).

import { make } from "../../charts/canvas/source/toolkit/elements.js";
import { fill } from "../../charts/canvas/source/toolkit/words.js";
import { rich } from "./rich_text.js";

const MOST_TRIES = 2;

export class LessonBar {
  // site: the page, with `state`, `texts`, `openStep(step)`, `elsewhere(page)` and `leaveLesson()`
  constructor(site, lessons) {
    this.site = site;
    this.lessons = lessons;
    this.tries = new Map(); // "lesson step" -> indices of the chosen options; the answer is 0
    this.element = make("section", { className: "lesson", hidden: true });
  }

  get lesson() {
    return this.lessons.find(({ name }) => name === this.site.state.lesson);
  }
  get number() {
    return Math.min(Math.max(1, this.site.state.step), this.lesson.steps.length);
  }
  get step() {
    return this.lesson?.steps[this.number - 1];
  }
  get words() {
    return this.step.texts[this.site.state.language];
  }
  get place() {
    return `${this.lesson.name} ${this.number}`;
  }
  get tried() {
    return this.tries.get(this.place) ?? [];
  }
  get answered() {
    const { tried } = this;
    const left = this.words.choices.length - tried.length;
    return tried.length > 0 && (tried[tried.length - 1] === 0 || tried.length === MOST_TRIES || left < MOST_TRIES);
  }

  score() {
    const all = [...this.tries].filter(([place]) => place.startsWith(`${this.lesson.name} `));
    return {
      answered: all.length,
      first: all.filter(([, tries]) => tries[0] === 0).length,
      end: all.filter(([, tries]) => tries[tries.length - 1] === 0).length,
    };
  }

  show() {
    this.element.hidden = !this.lesson;
    if (!this.lesson) return this.element.replaceChildren();
    const { texts } = this.site;
    const { title } = this.lesson.texts[this.site.state.language];
    this.element.setAttribute("aria-label", title);
    const count = this.lesson.steps.length;
    const head = make(
      "div",
      { className: "row head" },
      make("strong", { textContent: `${this.number} / ${count} · ${this.words.title}` }),
      this.button(texts.back, () => this.go(this.number - 1), { sign: "←", disabled: this.number === 1 }),
      this.number < count
        ? this.button(texts.next, () => this.go(this.number + 1), { sign: "→" })
        : this.button(texts.finish, () => this.finish(), { sign: "⚑" }),
      this.button(texts.leave, () => this.site.leaveLesson(), { sign: "×" }),
    );
    if (this.step.address)
      return this.element.replaceChildren(head, make("p", {}, ...this.site.elsewhere(this.words.page)));
    const { do: task, notice } = this.words;
    const lines = [make("p", {}, make("b", { textContent: `${texts.do} ` }), ...rich(task))];
    if (notice) lines.push(make("p", {}, make("b", { textContent: `${texts.notice} ` }), ...rich(notice)));
    const asked = this.words.choices.length ? [this.answered ? this.explanation() : this.question()] : [];
    const columns = make("div", { className: "columns" }, make("div", {}, ...lines), ...asked);
    columns.classList.toggle("answered", this.words.choices.length > 0 && this.answered);
    this.element.replaceChildren(head, columns);
  }

  question() {
    const { texts } = this.site;
    const { question, choices, hint } = this.words;
    const chosen = this.tried[this.tried.length - 1];
    const group = make("fieldset", {}, make("legend", {}, ...rich(question)));
    for (const option of this.step.order.filter((one) => !this.tried.includes(one))) {
      const input = make("input", { type: "radio", name: "lesson option", value: String(option) });
      input.addEventListener("change", () => (check.disabled = false));
      group.append(make("label", {}, input, make("span", {}, ...rich(choices[option]))));
    }
    const check = this.button(
      texts.check,
      () => {
        const option = Number(group.querySelector("input:checked").value);
        this.tries.set(this.place, [...this.tried, option]);
        this.show();
        this.element.querySelector("[role=status]")?.focus();
      },
      { disabled: true },
    );
    const leads = hint ? [make("b", { textContent: ` ${texts.hint} ` }), ...rich(hint)] : [];
    const said = chosen === undefined ? "" : status(...this.feedback(chosen), ...leads);
    return make("div", {}, said, group, check);
  }

  // What is wrong with an option, without the answer.
  feedback(option) {
    const { choices, feedback } = this.words;
    return [
      make("span", { className: "wrong", textContent: "✗ " }),
      ...rich(`**${sentence(choices[option])}** ${feedback[option] ?? ""}`),
    ];
  }

  explanation() {
    const { texts } = this.site;
    const { choices, explanation } = this.words;
    const last = this.tried[this.tried.length - 1];
    const right = last === 0;
    const said = texts[right ? "right" : "wrong"].replace("{answer}", sentence(choices[0]).replace(/\.$/, ""));
    const before = right ? [make("span", { className: "right", textContent: "✓ " })] : [...this.feedback(last), " "];
    const asked = make("b", {}, ...rich(this.words.question));
    return status(asked, " ", ...before, ...rich(`${said} ${explanation}`));
  }

  go(number) {
    this.site.openStep(this.lesson, number);
  }

  finish() {
    const score = this.score();
    const said = fill(this.site.texts.score, score);
    this.site.leaveLesson(score.answered ? said : "");
  }

  // In a narrow window its `sign` stands for the text (site.css).
  button(text, action, { sign = "", disabled = false } = {}) {
    const button = make("button", { type: "button", disabled }, make("span", { textContent: text }));
    if (sign) Object.assign(button.dataset, { sign });
    button.addEventListener("click", action);
    return button;
  }
}

const status = (...parts) => make("p", { role: "status", tabIndex: -1 }, ...parts);

// An option that is a sentence has its own full stop.
const sentence = (option) => (/[.…?]$/.test(option) ? option : `${option}.`);
