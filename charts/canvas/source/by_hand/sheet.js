// A Transformer on one sheet: every number of the forward pass in tables, computed here whenever a reader changes one. Nothing
// in this file knows Streamlit; component.js connects the two.
//
// data: { parameters, opening, vocabulary, texts, steps, language, view }
//   parameters: matrices by name; opening: ids of the words to begin with; vocabulary: words by id
//   state: as in state.js, and `step`: the step that is shown, from "1" ("" is the first), or "sheet" for the whole sheet
//   texts: of views/by_hand/<language>.toml; steps: by block, { code, file, line, page, link } (page, link: "" for none)
// events: { onChange(texts of the state), onOpen(page) }

import { make } from "../toolkit/elements.js";
import { writeNumbersFor, decimals } from "../toolkit/numbers.js";
import { fill } from "../toolkit/words.js";
import { arithmetic, isComputed } from "./arithmetic.js";
import { STEPS, strips } from "./blocks.js";
import { forwardPass } from "./pass.js";
import { LARGEST, MAX_WORDS, STEP, SheetState, limited, readNumber } from "./state.js";
import style from "./sheet.css";

const TOLERANCE = { absolute: 0.0501, relative: 0.05 }; // of a guess
const DRAG = 8; // pixels for a step

const keyOf = ([name, r, c]) => `${name}.${r}.${c}`;
// Two decimals, as far as a cell of five characters has room for them: −10.9, 104.
const placesOf = (value) => [2, 1].find((places) => value.toFixed(places).length <= 5) ?? 0;
const isSame = (a, b) => Math.round(a * 100) === Math.round(b * 100); // as far as is shown

export class Sheet {
  constructor(root, data, events) {
    Object.assign(this, { root, events, data });
    writeNumbersFor(data.language);
    this.state = new SheetState(data.parameters, data.opening);
    this.step = 0; // null: the whole sheet
    if (data.state) this.read(data.state);
    this.predict = false;
    this.hidden = new Set(); // single cells that the reader hid
    this.shown = new Set(); // while everything is to be predicted: what has been revealed
    this.right = new Set();
    this.lit = new Set();
    this.cells = new Map(); // key -> td
    this.focused = null; // [name, row, column]
    this.pointed = null;
    root.replaceChildren(make("style", { textContent: style }));
    this.frame = root.appendChild(
      make("div", { className: "sheet", sheet: this, role: "group", "aria-label": this.phrase("sheet") }),
    );
    this.result = make("div", { className: "result" });
    this.bar = this.frame.appendChild(make("div", { className: "bar" }));
    this.paper = this.frame.appendChild(make("div", { className: "paper" }));
    this.foot = this.frame.appendChild(make("div", { className: "foot" }));
    this.live = this.frame.appendChild(make("div", { className: "live", role: "status", "aria-live": "polite" }));
    this.listen();
    this.compute();
    this.draw();
  }

  phrase(name, values = {}) {
    return fill(this.data.texts[name] ?? name, values);
  }

  // Another state from outside: an address that was opened, or Back.
  show(texts) {
    this.read(texts);
    this.refresh();
  }

  read(texts) {
    this.state.setTexts(texts);
    const number = Math.trunc(Number(texts.step)) || 1;
    this.step = texts.step === "sheet" ? null : Math.min(STEPS.length, Math.max(1, number)) - 1;
  }

  texts() {
    return { ...this.state.texts(), step: this.step === null ? "sheet" : this.step ? String(this.step + 1) : "" };
  }

  // step: its index, or null for the whole sheet
  showStep(step) {
    this.step = step;
    this.focused = null;
    this.draw();
    this.events.onChange?.(this.texts());
    if (step === null) return;
    const number = this.phrase("step", { number: step + 1, count: STEPS.length });
    this.tell(`${number}. ${this.phrase(`about_${STEPS[step].at(-1)}`)}`);
  }

  compute() {
    this.numbers = forwardPass(this.state.parameters(), this.state.words, this.state.heads);
  }

  value([name, r, c]) {
    return this.numbers[name][r][c];
  }

  isMasked([name, r, c]) {
    return c > r && /^(scores|weights)\d$/.test(name);
  }

  canBeHidden(cell) {
    return isComputed(cell[0]) && cell[0] !== "onehot" && !this.isMasked(cell);
  }

  isHidden(cell) {
    if (!this.canBeHidden(cell)) return false;
    const key = keyOf(cell);
    return this.predict ? !this.shown.has(key) : this.hidden.has(key);
  }

  // --- drawing --------------------------------------------------------------------------------------------------

  draw() {
    this.cells.clear();
    this.words = this.state.words.map((id) => this.data.vocabulary[id]);
    const all = strips(this.words, this.data.vocabulary, this.state.heads);
    this.blocks = all.flatMap((strip) => strip.blocks);
    this.frame.classList.toggle("one", this.step !== null);
    this.paper.replaceChildren(...(this.step === null ? this.drawSheet(all) : this.drawStep()));
    this.pointed = null;
    if (!this.focused || !this.cells.has(keyOf(this.focused))) this.focused = this.beginsAt(); // it went with its word
    this.cells.get(keyOf(this.focused)).tabIndex = 0;
    this.drawBar();
    this.write();
  }

  drawSheet(all) {
    const table = all[0].blocks.find((each) => each.tall);
    const right = make("div", { className: "column" });
    const drawn = all.map((strip, place) => this.drawStrip(strip, place));
    right.append(drawn[0], drawn[1]);
    return [make("div", { className: "top" }, this.drawBlock(table), right), ...drawn.slice(2)];
  }

  // The tables of one step; of two heads, those of both.
  drawStep() {
    const parts = STEPS[this.step];
    const section = make("section", { className: "strip" });
    for (const part of parts) {
      const blocks = this.blocks.filter((each) => each.of === part || each.id === part);
      if (!blocks.length) section.append(make("span", { className: "sign", textContent: part, "aria-hidden": "true" }));
      for (const each of blocks) section.append(this.drawBlock(each, part === parts.at(-1)));
    }
    return [make("p", { className: "task", textContent: this.phrase(`about_${parts.at(-1)}`) }), section];
  }

  // Where a drawing begins: the number that the whole sheet leads to, or the largest in the last row of a step; for
  // ReLU, the one furthest below 0.
  beginsAt() {
    if (this.step === null) return this.opensWith();
    const each = this.blocks.find(({ of, id }) => [of, id].includes(STEPS[this.step].at(-1)));
    const last = each.rows.length - 1;
    const size = (c) => Math.abs(this.value(each.cell(last, c)));
    const below = (c) => -this.value(["pre", last, c]);
    const sizes = each.cols.map((_, c) =>
      each.of === "hidden" ? below(c) : this.isMasked(each.cell(last, c)) ? -1 : size(c),
    );
    return each.cell(last, sizes.indexOf(Math.max(...sizes)));
  }

  // The number that the whole sheet leads to.
  opensWith() {
    const last = this.state.words.length - 1;
    const row = this.numbers.probabilities[last];
    return ["probabilities", last, row.indexOf(Math.max(...row))];
  }

  drawStrip(strip, place) {
    const section = make("section", { className: `strip ${strip.id}` });
    section.append(place ? this.rowNames(strip.id) : this.wordChoices(strip.id));
    for (const each of strip.blocks) if (!each.tall) section.append(this.drawBlock(each));
    if (!place) section.append(this.result);
    return section;
  }

  rowNames(id) {
    const list = make("div", { className: "names" }, make("h3", { textContent: this.phrase(`strip_${id}`) }));
    for (const word of this.words) list.append(make("div", { textContent: word, "aria-hidden": "true" }));
    return list;
  }

  wordChoices(id) {
    const list = make("div", { className: "names" }, make("h3", { textContent: this.phrase(`strip_${id}`) }));
    this.state.words.forEach((chosen, place) => {
      const select = make("select", { "aria-label": this.phrase("word", { number: place + 1 }) });
      this.data.vocabulary.forEach((word, id_) => select.append(make("option", { textContent: word, value: id_ })));
      select.value = String(chosen);
      select.onchange = () => {
        this.change(() => (this.state.words[place] = Number(select.value)));
        this.paper.querySelectorAll(".embed select")[place].focus();
      };
      list.append(select);
    });
    return list;
  }

  // whole: whether its heading says how it is computed, as that of the whole sheet's tables does
  drawBlock(each, whole = true) {
    const kinds = ["tiny", "tall", "narrow", "named", "changes", "share"].filter((kind) => each[kind]);
    const box = make("div", { className: ["block", ...kinds].join(" ") });
    const caption = make("h4", { title: this.phrase(`name_${each.of}`) });
    const heading = each.short ?? each.heading;
    caption.append(...indexed(whole ? heading : heading.split(" = ")[0]));
    const table = make("table", { role: "grid", "aria-label": this.nameOf(each) });
    const heads = each.cols.map((name) => make("th", { scope: "col", textContent: name }));
    table.append(
      make("thead", {}, make("tr", {}, make("th", { className: "corner", textContent: this.phrase("row") }), ...heads)),
    );
    const body = table.appendChild(make("tbody"));
    each.rows.forEach((name, r) => {
      const line = body.appendChild(make("tr", {}, make("th", { scope: "row", textContent: name })));
      if (each.last && r === each.rows.length - 1) line.className = "own";
      if (each.splitRow === r) line.classList.add("split");
      each.cols.forEach((_, c) => line.append(this.drawCell(each, r, c)));
    });
    box.append(caption, table);
    return box;
  }

  drawCell(each, r, c) {
    const cell = each.cell(r, c);
    const td = make("td", { tabIndex: -1 });
    if (each.split === c) td.classList.add("split");
    td.dataset.cell = keyOf(cell);
    td.sheetCell = cell;
    td.sheetBlock = each;
    this.cells.set(keyOf(cell), td);
    return td;
  }

  nameOf(each) {
    const name = this.phrase(`name_${each.of}`);
    return each.head === undefined || this.state.heads === 1
      ? name
      : this.phrase("of_head", { name, head: each.head + 1 });
  }

  // Every number, as it is now.
  write() {
    for (const [key, td] of this.cells) {
      const cell = td.sheetCell;
      if (td.querySelector("input")) continue; // somebody is typing there
      const hidden = this.isHidden(cell);
      const value = this.value(cell);
      td.textContent = hidden ? "?" : this.text(cell);
      td.className = [
        td.classList.contains("split") ? "split" : "",
        hidden ? "hidden" : "",
        this.isMasked(cell) ? "masked" : "",
        this.lit.has(key) && !hidden ? "lit" : "",
        this.right.has(key) ? "right" : "",
        this.state.isEdited(...cell) ? "edited" : "",
      ].join(" ");
      const strength = hidden || this.isMasked(cell) ? 0 : Math.min(1, Math.abs(value) / (td.sheetBlock.share ? 1 : 3));
      td.style.setProperty("--tint", strength.toFixed(3));
      td.dataset.sign = value < 0 ? "minus" : "plus";
    }
    this.writeResult();
    this.mark();
    for (const [button, enabled] of [
      [this.undoButton, this.state.past.length],
      [this.redoButton, this.state.future.length],
      [this.resetButton, !this.state.isOpening],
    ])
      button.disabled = !enabled;
  }

  text(cell) {
    const value = this.value(cell);
    if (this.isMasked(cell)) return cell[0].startsWith("scores") ? "−∞" : decimals(0, 0);
    if (cell[0] === "onehot") return String(value);
    if (isComputed(cell[0])) return decimals(value + 0, placesOf(value)).replace(/^−(0[.,]00)$/, "$1");
    return decimals(value, Number.isInteger(Math.round(value * 100) / 10) ? 1 : 2);
  }

  writeResult() {
    const [name, last, best] = this.opensWith();
    const row = this.numbers[name][last];
    const hidden = row.some((_, id) => this.isHidden([name, last, id]));
    const line = make("p", { className: "next" });
    line.append(`${this.words.join(" ")} → `, make("b", { textContent: hidden ? "?" : this.data.vocabulary[best] }));
    const bars = make("div", { className: "bars", "aria-hidden": "true" });
    row.forEach((value, id) => {
      const bar = make("i");
      bar.style.width = hidden ? "0" : `${(value * 100).toFixed(1)}%`;
      const row_ = [
        make("span", { textContent: this.data.vocabulary[id] }),
        make("span", { className: "track" }, bar),
        make("span", { textContent: hidden ? "?" : decimals(value, 2) }),
      ];
      bars.append(make("div", { className: id === best && !hidden ? "best" : "" }, ...row_));
    });
    this.result.replaceChildren(line, bars);
    this.summary.replaceChildren(...line.cloneNode(true).childNodes); // on a phone, where the result is far away
  }

  button(name, onclick, more = {}) {
    return make("button", { type: "button", textContent: this.phrase(name), onclick, ...more });
  }

  // --- the bar above ----------------------------------------------------------------------------------------------

  drawBar() {
    const pressed = (name, is, onclick) => this.button(name, onclick, { "aria-pressed": String(is) });
    const sign = (name, textContent, onclick, disabled) =>
      this.button(name, onclick, { textContent, title: this.phrase(name), "aria-label": this.phrase(name), disabled });
    this.undoButton = this.button("undo", () => this.goBack("undo"));
    this.redoButton = this.button("redo", () => this.goBack("redo"));
    this.resetButton = this.button("reset", () => this.change(() => this.state.reset()));
    const heads = make("span", { className: "group", role: "group", "aria-label": this.phrase("heads") });
    for (const count of [1, 2])
      heads.append(pressed(`heads_${count}`, this.state.heads === count, () => this.setHeads(count)));
    const words = make("span", { className: "group", role: "group", "aria-label": this.phrase("words") });
    const count = this.state.words.length;
    words.append(
      sign("fewer", "−", () => this.setCount(count - 1), count === 1),
      make("span", { className: "count", textContent: this.phrase(count === 1 ? "count_one" : "count", { count }) }),
      sign("more", "+", () => this.setCount(count + 1), count === MAX_WORDS),
    );
    const predict = pressed("predict", this.predict, () => this.togglePredict());
    predict.title = this.phrase("predict_help");
    const legend = make(
      "span",
      { className: "legend" },
      `${this.phrase("legend_begin")} `,
      make("b", { textContent: this.phrase("legend_blue") }),
      ` ${this.phrase("legend")}`,
    );
    const [step, last] = [this.step, STEPS.length - 1];
    const whole = pressed("whole", step === null, () => this.showStep(step === null ? 0 : null));
    const back = this.button("back", () => this.showStep(step - 1), { disabled: !step });
    const next = this.button("next", () => this.showStep(step + 1), { disabled: step === last, className: "onward" });
    const place = make("b", { textContent: this.phrase("step", { number: step + 1, count: STEPS.length }) });
    const focused = this.bar.getRootNode().activeElement;
    const again =
      focused && this.bar.contains(focused) ? [...this.bar.querySelectorAll("button")].indexOf(focused) : -1;
    this.summary = make("p", { className: "next", "aria-hidden": "true" });
    const changes = [this.undoButton, this.redoButton, this.resetButton, heads, words, predict];
    this.bar.replaceChildren(
      ...(step === null ? [whole, ...changes, legend, this.summary] : [back, next, place, this.summary, whole]),
    );
    if (again >= 0) this.bar.querySelectorAll("button")[again].focus();
  }

  setHeads(count) {
    if (count === this.state.heads) return;
    this.change(() => (this.state.heads = count));
  }

  setCount(count) {
    const { words } = this.state;
    this.change(
      () => (this.state.words = count < words.length ? words.slice(0, count) : [...words, this.opensWith()[2]]),
    );
  }

  togglePredict() {
    this.predict = !this.predict;
    this.shown.clear();
    this.hidden.clear();
    this.right.clear();
    this.lit.clear();
    this.drawBar();
    this.write();
    this.tell(this.phrase(this.predict ? "said_predict" : "said_show"));
  }

  // --- changes ----------------------------------------------------------------------------------------------------

  // A change that can be undone and that may alter the tables themselves.
  change(make_) {
    this.state.remember();
    make_();
    this.refresh();
  }

  goBack(way) {
    if (this.state[way]()) this.refresh();
  }

  refresh() {
    this.base = this.numbers;
    this.compute();
    this.light();
    this.draw();
    this.report();
  }

  // Light what differs from the numbers before this change; a guess is asked for anew where the number is another one.
  light() {
    this.lit = new Set();
    for (const [name, matrix] of Object.entries(this.numbers))
      matrix.forEach((row, r) =>
        row.forEach((value, c) => {
          if (this.isMasked([name, r, c]) || isSame(value, this.base[name]?.[r]?.[c])) return;
          this.lit.add(keyOf([name, r, c]));
          this.shown.delete(keyOf([name, r, c]));
          this.right.delete(keyOf([name, r, c]));
        }),
      );
  }

  // One number; `begins` with the first of a movement, which is undone as a whole. -> whether it is another number
  setNumber(cell, value, begins) {
    if (isSame(this.value(cell), value)) return false;
    if (begins) {
      this.state.remember();
      this.base = this.numbers;
    }
    this.state.put(...cell, value);
    this.compute();
    this.light();
    this.write();
    this.report(cell);
    return true;
  }

  report(cell = null) {
    this.events.onChange?.(this.texts());
    const last = this.opensWith();
    const drawn = [...this.lit].filter((key) => this.cells.has(key)).length;
    const next = this.isHidden(last) ? "?" : this.data.vocabulary[last[2]];
    const values = { count: drawn, next, probability: this.isHidden(last) ? "?" : decimals(this.value(last), 2) };
    if (!cell) return this.tell(this.phrase("said_all", values));
    this.tell(this.phrase("said_changed", { cell: this.label(cell), value: this.text(cell), ...values }));
  }

  tell(sentence) {
    this.live.textContent = sentence;
  }

  // --- which cell is looked at --------------------------------------------------------------------------------------

  rest(cell) {
    const before = this.focused && this.cells.get(keyOf(this.focused));
    if (before) before.tabIndex = -1;
    this.focused = cell;
    this.cells.get(keyOf(cell)).tabIndex = 0;
    this.mark();
  }

  // The cell, what it is computed from, and its formula below.
  mark() {
    const cell = this.pointed ?? this.focused;
    if (!cell) return;
    for (const td of this.paper.querySelectorAll(".target, .source")) td.classList.remove("target", "source");
    const found = arithmetic(this.numbers, cell, this.state);
    this.cells.get(keyOf(cell))?.classList.add("target");
    for (const one of found?.cells ?? []) this.cells.get(keyOf(one))?.classList.add("source");
    this.writeFoot(cell, found);
  }

  label([name, r, c]) {
    const td = this.cells.get(keyOf([name, r, c]));
    const each = td.sheetBlock;
    const row = td.parentElement.firstElementChild.textContent;
    return `${symbol(each, name)}[${row}, ${each.cols[td.cellIndex - 1]}]`; // the row's name is a cell, too
  }

  shownNumber(cell, alone = false) {
    if (this.isHidden(cell)) return "?";
    const text = this.text(cell);
    return text.startsWith("−") && !alone ? `(${text})` : text;
  }

  writeFoot(cell, found) {
    const td = this.cells.get(keyOf(cell));
    const each = td.sheetBlock;
    const hidden = this.isHidden(cell);
    const formula = make("div", { className: "formula" }, make("b", {}, ...indexed(this.label(cell))));
    if (found?.text) formula.append(` = ${this.text(cell)}. ${this.phrase(`why_${found.text}`)}`);
    else if (found) {
      formula.append(" = ");
      let power = false; // after "e^" a number stands above the line
      for (const part of found.line) {
        if (Array.isArray(part))
          formula.append(make(power ? "sup" : "span", { textContent: this.shownNumber(part, power) }));
        else formula.append(part.replace("^", ""));
        power = !Array.isArray(part) && part.endsWith("^");
      }
      formula.append(" = ", make("b", { className: "answer", textContent: hidden ? "?" : this.text(cell) }));
    } else formula.append(` = ${this.text(cell)} · ${this.phrase("change_help")}`);
    const about = make("div", { className: "about" });
    about.append(make("span", { textContent: this.phrase(`about_${each.of}`) }));
    const step = this.data.steps[each.step ?? each.of];
    if (step) {
      const code = make("code", { textContent: step.code, title: `${step.file}, ${step.line}` });
      about.append(make("span", { className: "code" }, `${step.file}:${step.line} `, code));
      if (step.link) {
        const open = make("a", { href: "#", textContent: step.link });
        open.onclick = (event) => {
          event.preventDefault();
          this.events.onOpen?.(step.page);
        };
        about.append(open);
      }
    }
    const buttons = make("div", { className: "buttons" });
    if (this.canBeHidden(cell)) buttons.append(...this.footButtons(cell, each, hidden));
    // What stays the same stays: a press on a button of it may have begun.
    const key = `${keyOf(cell)} ${hidden} ${this.predict}`;
    if (this.footOf === key) return this.foot.querySelector(".formula").replaceWith(formula);
    this.footOf = key;
    this.foot.replaceChildren(formula, buttons, about);
  }

  footButtons(cell, each, hidden) {
    if (!hidden) return this.predict ? [] : [this.button("hide", () => this.hide(cell))];
    const whole = each.rows.flatMap((_, r) => each.cols.map((__, c) => each.cell(r, c)));
    return [
      this.button("reveal", () => this.reveal([cell])),
      ...(this.predict ? [this.button("reveal_table", () => this.reveal(whole))] : []),
    ];
  }

  hide(cell) {
    this.hidden.add(keyOf(cell));
    this.right.delete(keyOf(cell));
    this.write();
    this.startTyping(this.cells.get(keyOf(cell)));
  }

  reveal(cells) {
    for (const cell of cells) {
      this.shown.add(keyOf(cell));
      this.hidden.delete(keyOf(cell));
    }
    this.write();
    this.cells.get(keyOf(this.focused)).focus();
    this.tell(this.phrase("said_revealed", { cell: this.label(cells[0]), value: this.text(cells[0]) }));
  }

  // --- pointer and keyboard ------------------------------------------------------------------------------------------

  listen() {
    const cellOf = (event) => event.target.closest?.("td");
    this.paper.addEventListener("pointerover", (event) => {
      const td = cellOf(event);
      if (!td || event.pointerType === "touch" || this.dragging || td.sheetCell === this.pointed) return;
      this.pointed = td.sheetCell;
      this.mark();
    });
    this.paper.addEventListener("pointerleave", () => {
      this.pointed = null;
      this.mark();
    });
    this.paper.addEventListener("focusin", (event) => {
      const td = cellOf(event);
      if (td && keyOf(td.sheetCell) !== keyOf(this.focused)) this.rest(td.sheetCell);
    });
    this.paper.addEventListener("pointerdown", (event) => this.press(event, cellOf(event)));
    this.paper.addEventListener("keydown", (event) => this.key(event, cellOf(event)));
    this.frame.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target.closest("input")) return;
      const key = event.key.toLowerCase();
      const way = key === "z" && !event.shiftKey ? "undo" : key === "y" || key === "z" ? "redo" : null;
      if (!way) return;
      event.preventDefault();
      this.goBack(way);
      this.cells.get(keyOf(this.focused))?.focus();
    });
  }

  canType(cell) {
    return !isComputed(cell[0]) || this.isHidden(cell);
  }

  // A press is a drag if the pointer moves, and else begins to type.
  press(event, td) {
    if (!td || event.button || td.querySelector("input")) return;
    const cell = td.sheetCell;
    if (isComputed(cell[0]) || event.pointerType === "touch") {
      td.addEventListener("pointerup", () => this.canType(cell) && this.startTyping(td), { once: true });
      return;
    }
    event.preventDefault();
    td.focus();
    const from = { x: event.clientX, y: event.clientY, value: this.value(cell) };
    let [moved, changed] = [false, false];
    const move = ({ clientX, clientY }) => {
      const way = clientX - from.x - (clientY - from.y);
      if (!moved && Math.abs(way) < DRAG) return;
      const value = limited(Math.round((from.value + STEP * Math.trunc(way / DRAG)) * 10) / 10);
      this.dragging = true;
      changed = this.setNumber(cell, value, !changed) || changed;
      moved = true;
    };
    const end = () => {
      removeEventListener("pointermove", move);
      this.dragging = false;
      if (!moved) this.startTyping(td);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end, { once: true });
    addEventListener("pointercancel", end, { once: true });
  }

  key(event, td) {
    if (!td || event.ctrlKey || event.metaKey || event.altKey || td.querySelector("input")) return;
    const way = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    const cell = td.sheetCell;
    if (way) {
      event.preventDefault();
      this.nearest(td, ...way)?.focus();
    } else if (this.canType(cell) && (event.key === "Enter" || event.key === "F2" || /^[-−.,\d]$/.test(event.key))) {
      event.preventDefault();
      this.startTyping(td, event.key.length === 1 ? event.key : null);
    } else if (event.key === "h" && isComputed(cell[0]) && !this.isHidden(cell) && !this.predict) this.hide(cell);
  }

  nearest(td, x, y) {
    const middle = (node) => {
      const box = node.getBoundingClientRect();
      return [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    };
    const [left, top] = middle(td);
    let best = null;
    for (const other of this.cells.values()) {
      const [across, down] = [middle(other)[0] - left, middle(other)[1] - top];
      const [along, aside] = x ? [across * x, Math.abs(down)] : [down * y, Math.abs(across)];
      if (along < 4) continue;
      const distance = along + aside * (x ? 40 : 3);
      if (!best || distance < best.distance) best = { distance, other };
    }
    return best?.other;
  }

  // A box in the cell: for another number, or for a guess.
  startTyping(td, first = null) {
    const cell = td.sheetCell;
    if (!this.canType(cell) || td.querySelector("input")) return;
    if (keyOf(cell) !== keyOf(this.focused)) this.rest(cell);
    const guess = this.isHidden(cell);
    const before = this.value(cell);
    const input = make("input", {
      type: "text",
      inputMode: "decimal",
      autocomplete: "off",
      value: first ?? (guess ? "" : this.text(cell)),
      "aria-label": guess ? this.phrase("guess", { cell: this.label(cell) }) : this.label(cell),
    });
    if (!guess) {
      input.setAttribute("role", "spinbutton");
      input.setAttribute("aria-valuemin", -LARGEST);
      input.setAttribute("aria-valuemax", LARGEST);
      input.setAttribute("aria-valuenow", before);
    }
    td.replaceChildren(input);
    input.focus();
    if (!first) input.select();
    let [changed, done] = [false, false];
    const set = (value) => {
      changed = this.setNumber(cell, value, !changed) || changed;
      input.setAttribute("aria-valuenow", value);
    };
    const finish = (keep, refocus) => {
      if (done) return;
      done = true;
      if (!keep && changed) {
        this.state.undo();
        this.compute();
        this.light();
        this.report();
      }
      input.remove();
      this.write();
      if (refocus) td.focus();
    };
    input.oninput = () => {
      const value = readNumber(input.value);
      if (!guess && value !== null) set(value);
    };
    input.onblur = () => finish(true, false);
    input.onkeydown = (event) => {
      if (event.key === "Escape") finish(false, true);
      else if (event.key === "Enter" && guess) this.judge(cell, input, finish);
      else if (event.key === "Enter") finish(true, true);
      else if (!guess && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
        const step = (event.shiftKey ? 10 : 1) * STEP * (event.key === "ArrowUp" ? 1 : -1);
        set(limited(this.value(cell) + step));
        input.value = this.text(cell);
        input.select();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    };
    if (first) input.oninput();
  }

  judge(cell, input, finish) {
    const [guess, value] = [readNumber(input.value), this.value(cell)];
    if (guess === null) return;
    if (Math.abs(guess - value) <= Math.max(TOLERANCE.absolute, TOLERANCE.relative * Math.abs(value))) {
      const key = keyOf(cell);
      this.shown.add(key);
      this.hidden.delete(key);
      this.right.add(key);
      finish(true, true);
      this.verdict("said_right", cell);
      return;
    }
    input.classList.add("wrong");
    input.select();
    this.verdict(guess < value ? "said_low" : "said_high", cell);
  }

  // What a guess is worth, for eyes and ears.
  verdict(name, cell) {
    const sentence = this.phrase(name, { cell: this.label(cell), value: this.text(cell) });
    this.foot.querySelector(".formula").append(make("span", { className: "verdict", textContent: sentence }));
    this.tell(sentence);
  }
}

// What a cell of a block is called: W_Q and its b_Q share a block, as do γ and β, μ and σ.
function symbol(each, name) {
  if (/^b[QKVO12]$/.test(name)) return `b_${name[1]}`;
  if (/^(mean|std|[gc])\d$/.test(name)) return "LN";
  return { probabilities: "p", onehot: "1-hot", token: "√d·E", products: "QKᵀ", context: "C", out: "A", norm1: "y", norm2: "z", logits: "logit", sum1: "x+A", sum2: "y+F", ff: "F", pre: "y·W₁", hidden: "max", scores: "QKᵀ/√d" }[
    each.of
  ] ?? (each.of === "weights" ? "α" : each.of.startsWith("W") ? each.heading : each.id); // prettier-ignore
}

// "W_Q" with its index set lower.
function indexed(text) {
  return text.split(/_(k|Q|K|V|O|1|2)/).map((part, place) => (place % 2 ? make("sub", { textContent: part }) : part));
}
