// Lines between tokens: what is under the pointer, and what is said about it.

import { threeDigits } from "../toolkit/numbers.js";
import { quoted } from "../toolkit/sentences.js";
import { say } from "../toolkit/words.js";
import { matrixTable } from "./describe.js";
import { MATRIX_COLUMNS, matrixRecords } from "./records.js";
import { LinesPicture } from "./lines_picture.js";

export class LinesDrawing extends LinesPicture {
  hit(x, y) {
    const index = Math.floor((y - this.top) / this.line);
    const { rows, columns } = this.metadata;
    if (index < 0) return null;
    if (x <= this.leftX && index < rows.length) return { side: "query", index };
    if (x >= this.rightX && x <= this.rightX + this.rightRoom + this.barRoom && index < columns.length)
      return { side: "key", index };
    return null;
  }

  first() {
    return { side: "query", index: this.metadata.selected ?? 0 };
  }

  holds({ side, index }) {
    return index < this.count(side);
  }

  count(side) {
    return side === "query" ? this.metadata.rows.length : this.metadata.columns.length;
  }

  step({ side, index }, key) {
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const other = key === "ArrowLeft" ? "query" : "key";
      return { side: other, index: Math.min(index, this.count(other) - 1) };
    }
    const last = this.count(side) - 1;
    const moves = { ArrowUp: index - 1, ArrowDown: index + 1, Home: 0, PageUp: 0, End: last, PageDown: last };
    return { side, index: Math.min(last, Math.max(0, moves[key])) };
  }

  // The number keys switch heads.
  key(key) {
    const head = /^[0-9]$/.test(key) ? Number(key) : this.matrices.length;
    if (head >= this.matrices.length) return false;
    this.chips.toggle(head);
    return true;
  }

  anchor({ side, index }) {
    return [side === "query" ? this.leftX : this.rightX - 16, this.tokenY(index)];
  }

  describe({ side, index }) {
    const { rows, columns } = this.metadata;
    const looks = side === "query";
    const title = {
      parts: [...quoted((looks ? rows : columns)[index]), say(looks ? " looks most at" : " is looked at most by")],
    };
    const lines = this.shownHeads().map((head) => {
      const matrix = this.matrices[head];
      let best = null;
      for (let other = 0; other < (looks ? columns : rows).length; other++) {
        const [row, column] = looks ? [index, other] : [other, index];
        if (matrix.allowed(row, column) && !(best && best.weight >= matrix.at(row, column)))
          best = { other, weight: matrix.at(row, column) };
      }
      const swatch = this.headColour(this.stage.theme, head);
      if (!best)
        return { parts: [`${say("head {head}", { head })}${say(": ")}${say("everything is masked")}`], swatch };
      return {
        parts: [
          `${say("head {head}", { head })}${say(": ")}`,
          ...quoted((looks ? columns : rows)[best.other]),
          ` ${threeDigits(best.weight)}`,
        ],
        swatch,
      };
    });
    return [title, ...(lines.length ? lines : [{ parts: [say("no head is switched on")], muted: true }])];
  }

  // In cross-attention the right-hand tokens belong to another sentence: only the left ones are a choice.
  click({ side, index }) {
    return side === "query" || this.metadata.same_tokens ? { event: "click", value: { token: index } } : null;
  }

  choose({ token }) {
    this.metadata.selected = token === this.metadata.selected ? null : token;
  }

  state() {
    return { heads: this.shownHeads() };
  }

  records() {
    const number = (weight) => weight.toFixed(6); // sent in 1/65535
    const rows = this.matrices.flatMap((matrix, head) => [...matrixRecords(this.metadata, matrix, number, head)]);
    return [["head", ...MATRIX_COLUMNS], ...rows];
  }

  tables() {
    return this.shownHeads().map((head) =>
      matrixTable(
        `${this.metadata.title}, ${say("head {head}", { head })}`,
        this.metadata,
        this.matrices[head],
        threeDigits,
      ),
    );
  }
}
