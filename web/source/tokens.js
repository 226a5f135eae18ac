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

// A picture written as text, cut into patches, as transformer/pictures/ does it.
export class Pictures {
  constructor(described) {
    this.described = described;
    Object.assign(this, described.picture);
  }

  role(id) {
    return this.described.roles[id] ?? "";
  }

  // The shade of every pixel; `refuse(name, values)` where the text is no picture.
  levels(text, refuse) {
    const signs = [...text.replace(/\s/g, "").toLowerCase()];
    const { size } = this;
    const ends = { size, first: this.signs[0], last: this.signs[this.signs.length - 1] };
    const wrong = signs.find((sign) => !this.signs.includes(sign));
    if (wrong) refuse("sign", { sign: `'${wrong}'`, ...ends });
    if (signs.length !== size ** 2) refuse("pixels", { found: signs.length, wanted: size ** 2, ...ends });
    return signs.map((sign) => this.signs.indexOf(sign));
  }

  encode(text, refuse) {
    const levels = this.levels(text, refuse);
    const { size, patch, signs } = this;
    const ids = [];
    for (let row = 0; row < size; row += patch)
      for (let column = 0; column < size; column += patch) {
        let number = 0;
        for (let y = 0; y < patch; y++)
          for (let x = 0; x < patch; x++) number = number * signs.length + levels[(row + y) * size + column + x];
        ids.push(4 + number);
      }
    return ids;
  }

  // The ink of the pixels of every patch; null for a special token.
  thumbnails(ids) {
    const base = this.signs.length;
    return ids.map((id) => {
      if (id < 4) return null;
      const pixels = [];
      for (let rest = id - 4, k = 0; k < this.patch ** 2; k++, rest = Math.floor(rest / base))
        pixels.unshift(rest % base);
      return pixels.map((level) => level / (base - 1));
    });
  }

  // Labelled by their places, from 1.
  sequence(ids) {
    const perRow = this.size / this.patch;
    return ids.map((id, index) => {
      const place = index - 1; // after the class token
      const role = this.role(id);
      const text = role ? this.described.displays[id] : `r${Math.floor(place / perRow) + 1}c${(place % perRow) + 1}`;
      return { id, text, label: text, special: Boolean(role), role };
    });
  }
}
