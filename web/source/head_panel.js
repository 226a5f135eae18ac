// Below an attention map: what is lost without the head, and the rows to choose from.

import { make } from "../../charts/canvas/source/toolkit/elements.js";

export class HeadPanel {
  // page: { state, texts, set(changes) }
  constructor(page) {
    this.page = page;
    this.effect = make("p", { className: "effect", role: "status" });
    this.rows = make("div", { className: "strip", role: "group" });
    this.element = make("div", { hidden: true }, this.effect, this.rows);
  }

  // data: what the worker found; said: the model's texts of it
  show({ effect, stacks, text }, said) {
    const { state } = this.page;
    this.element.hidden = false;
    this.effect.hidden = !effect; // the head is removed already
    this.effect.replaceChildren(
      make("b", { textContent: `${effect?.label} ` }),
      effect?.value ?? "",
      make("small", { textContent: ` ${effect?.below ?? ""}` }),
    );
    this.effect.title = said.effect_help.replace("{answer}", text);
    this.strip(stacks[state.stack]);
  }

  hide() {
    this.element.hidden = true;
  }

  strip(tokens) {
    const { state, texts, set } = this.page;
    this.rows.setAttribute("aria-label", texts.row);
    const row = Math.min(state.token, tokens.length - 1);
    const held = this.rows.contains(document.activeElement);
    const buttons = tokens.map(({ text }, k) => {
      const button = make("button", { type: "button", textContent: text, "aria-pressed": String(k === row) });
      button.addEventListener("click", () => set({ token: k, cell: null, isPlaced: true, opens: false }));
      return button;
    });
    this.rows.replaceChildren(make("span", { textContent: texts.row }), ...buttons);
    if (held) buttons[row].focus();
  }
}
