// Buttons that switch heads on and off, in the browser only.

import { make } from "../toolkit/elements.js";
import { say } from "../toolkit/words.js";

export class HeadChips {
  // on: a Set of heads; changed() is called after every switch
  constructor(count, on, changed) {
    Object.assign(this, { count, on, changed, buttons: [] });
  }

  element(stage) {
    const heads = Array.from({ length: this.count }, (_, head) => head);
    this.buttons = heads.map((head) => {
      const properties = {
        type: "button",
        className: "chip",
        title: say("Show or hide head {head}", { head }),
        "aria-label": say("head {head}", { head }),
      };
      const chip = make("button", properties, make("span", { className: "swatch" }), String(head));
      chip.addEventListener("click", () => this.toggle(head));
      return chip;
    });
    const all = stage.button("all", "Show all heads", () => this.show(heads));
    const none = stage.button("none", "Hide all heads", () => this.show([]));
    return make(
      "span",
      { className: "chips", role: "group", "aria-label": say("heads") },
      make("span", { textContent: say("heads") }),
      ...this.buttons,
      all,
      none,
    );
  }

  toggle(head) {
    const on = new Set(this.on);
    if (!on.delete(head)) on.add(head);
    this.show(on);
  }

  show(heads) {
    this.on = new Set(heads);
    this.mark(this.colour);
    this.changed();
  }

  // colour: from a head to its CSS colour, in the theme of the moment
  mark(colour) {
    this.colour = colour;
    this.buttons.forEach((chip, head) => {
      chip.setAttribute("aria-pressed", String(this.on.has(head)));
      chip.firstChild.style.background = colour(head);
    });
  }
}
