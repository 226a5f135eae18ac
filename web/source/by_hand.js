// The sheet of the page By hand: a Transformer whose numbers the browser computes whenever one is changed. It needs no model.

import { Sheet } from "../../charts/canvas/source/by_hand/sheet.js";
import { LARGEST, MAX_WORDS } from "../../charts/canvas/source/by_hand/state.js";
import { make } from "../../charts/canvas/source/toolkit/elements.js";

const CELL = /^([A-Za-z]\w?)\.(\d)\.(\d):(-?\d(?:\.\d\d?)?)$/;

// What of an address exists on the sheet, as views/by_hand/by_hand_view_model.py checks it.
export function checkedTexts({ words, heads, cells, step }, { parameters, vocabulary }) {
  const known = words.split(".").filter((word) => /^\d{1,2}$/.test(word) && Number(word) < vocabulary.length);
  const changed = cells.split("_").filter((text) => {
    const [, name, row, column, value] = CELL.exec(text) ?? [];
    const stored = Object.hasOwn(parameters, name ?? "") ? parameters[name][row]?.[column] : undefined;
    return stored !== undefined && stored !== Number(value) && Math.abs(Number(value)) <= LARGEST;
  });
  return {
    words: known.slice(0, MAX_WORDS).join("."),
    heads: heads === "2" ? "2" : "",
    cells: changed.join("_"),
    step: /^([1-9]\d?|sheet)$/.test(step) ? step : "",
  };
}

export class ByHand {
  // data: what the sheet draws; events: { onChange(texts), onOpen(page) }
  constructor(data, texts, events) {
    this.element = make("div");
    const state = checkedTexts(texts, data);
    this.sheet = new Sheet(this.element.attachShadow({ mode: "open" }), { ...data, state }, events);
  }

  fit() {
    this.sheet.fit();
  }

  destroy() {
    this.sheet.destroy();
    this.element.remove();
  }
}
