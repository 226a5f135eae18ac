// From a typed text to ids and back, as transformer/text/tokenizer.py does it, and the labels of figures.

import { Tokenizer } from "@huggingface/tokenizers";

const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉";

export class Text {
  // described: model.json; file: tokenizer.json
  constructor(described, file) {
    this.described = described;
    // "</s>" typed by a reader is text: the library would take every added token out of it first.
    this.backend = new Tokenizer({ ...file, added_tokens: [] }, {});
  }

  encode(text, continues = false) {
    if (!text) return [];
    const whole =
      (continues ? "" : " ") +
      text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
    return this.backend.encode(whole, { add_special_tokens: false }).ids;
  }

  // With the mask for every blank, [MASK] or ___. The space before a blank belongs to the word that is missing.
  encodeWithBlanks(text) {
    const [first, ...others] = text.split(/\[MASK\]|_{3,}/);
    if (!others.length) return this.encode(text);
    const mask = Number(Object.entries(this.described.roles).find(([, role]) => role === "mask")[0]);
    const ids = this.encode(first.replace(/ $/, ""));
    others.forEach((part, k) =>
      ids.push(mask, ...this.encode(k < others.length - 1 ? part.replace(/ $/, "") : part, true)),
    );
    return ids;
  }

  decode(ids) {
    const shown = ids.filter((id) => !this.role(id));
    return shown.length ? this.backend.decode(shown, { clean_up_tokenization_spaces: false }).replace(/^ /, "") : "";
  }

  role(id) {
    return this.described.roles[id] ?? "";
  }
  display(id) {
    return this.described.displays[id];
  }

  // [{ id, text, label, special, role }]: labels are unique, the second `·the` is `·the₂`.
  sequence(ids) {
    const numbers = new Map();
    const taken = new Set();
    return ids.map((id) => {
      const text = this.display(id);
      let label;
      do {
        const number = (numbers.get(text) ?? 0) + 1;
        numbers.set(text, number);
        label = number === 1 ? text : text + [...String(number)].map((digit) => SUBSCRIPTS[digit]).join("");
      } while (taken.has(label));
      taken.add(label);
      return { id, text, label, special: Boolean(this.role(id)), role: this.role(id) };
    });
  }
}
