// What a reader can change: the words, the number of heads, and any parameter. As texts, since it is part of an address:
// { words: "0.1.3", heads: "2", cells: "WQ.0.1:0.5_E.3.2:-1" }.

export const MAX_WORDS = 5;
export const STEP = 0.1;
export const LARGEST = 9.9;
const KEPT = 100; // steps that can be undone

// One decimal, or two if somebody types them; null if it is no number.
export function readNumber(text) {
  const value = Number(text.trim().replace("−", "-").replace(",", "."));
  if (!text.trim() || !Number.isFinite(value)) return null;
  return limited(value);
}

export const limited = (value) => Math.round(Math.min(LARGEST, Math.max(-LARGEST, value)) * 100) / 100 + 0;

export class SheetState {
  // parameters: as stored, by name; opening: the words that the sheet opens with
  constructor(parameters, opening) {
    Object.assign(this, { stored: parameters, opening, past: [], future: [] });
    this.reset();
  }

  set({ words, heads, cells }) {
    Object.assign(this, { words, heads, cells });
  }

  snapshot() {
    return { words: [...this.words], heads: this.heads, cells: new Map(this.cells) };
  }

  // Call it before a change that can be undone.
  remember() {
    this.past = [...this.past.slice(1 - KEPT), this.snapshot()];
    this.future = [];
  }

  undo() {
    return this.#go(this.past, this.future);
  }

  redo() {
    return this.#go(this.future, this.past);
  }

  #go(from, to) {
    if (!from.length) return false;
    to.push(this.snapshot());
    this.set(from.pop());
    return true;
  }

  get isOpening() {
    return !this.cells.size && this.heads === 1 && this.words.join() === this.opening.join();
  }

  reset() {
    this.setTexts({});
  }

  put(name, row, column, value) {
    const key = `${name}.${row}.${column}`;
    if (value === this.stored[name][row][column]) this.cells.delete(key);
    else this.cells.set(key, value);
  }

  isEdited(name, row, column) {
    return this.cells.has(`${name}.${row}.${column}`);
  }

  // -> every parameter by name, with the changes
  parameters() {
    const found = { ...this.stored };
    for (const [key, value] of this.cells) {
      const [name, row, column] = key.split(".");
      if (found[name] === this.stored[name]) found[name] = this.stored[name].map((numbers) => [...numbers]);
      found[name][row][column] = value;
    }
    return found;
  }

  // Texts of the address; "" stands for what the sheet opens with.
  texts() {
    return {
      words: this.words.join() === this.opening.join() ? "" : this.words.join("."),
      heads: this.heads === 1 ? "" : String(this.heads),
      cells: [...this.cells].map(([key, value]) => `${key}:${value}`).join("_"),
    };
  }

  // Python has checked them (transformer/toy/by_hand.py).
  setTexts({ words, heads, cells }) {
    const changed = (cells || "").split("_").filter(Boolean);
    this.set({
      words: words ? words.split(".").map(Number) : [...this.opening],
      heads: Number(heads || 1),
      cells: new Map(changed.map((one) => [one.split(":")[0], Number(one.split(":")[1])])),
    });
  }
}
