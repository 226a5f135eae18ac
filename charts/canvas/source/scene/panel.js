// The frame around every drawing: title, buttons, picture, table, tooltip; what the reader does with pointer and keyboard.
//
// A kind of drawing is a module of functions: read(payload, data before, panel) -> data; scene(data, theme, width, view) ->
// Scene; labelOf(data), help(); describe(data, target) -> lines; click(data, target) -> { event, value } or null; tables(data),
// records(data); choose(data, value): what Python would do about a click, at once where the kind is `eager`. Perhaps
// controls(data, panel) -> elements; act(data, target) and keydown(data, event) -> whether that is done with; state(data):
// what was switched; and, of one that is painted on, isOn, set, strokeEvent.
//
// theme: what theme.js reads, with `ratio` (pixels of the device), `room` (the height of the box, if it has one), `loaded`
// (fonts); in a file, `file` and `unmarked`: nobody points at anything there.

import STYLE from "./panel.css";
import LIVING_PICTURE_STYLE from "./living_picture.css";
import STEPS_STYLE from "./steps.css";
import { fontOf, measureAnew } from "./letters.js";
import { sameTarget } from "./scene.js";
import { ExportMenu } from "./exports.js";
import { button, make } from "../toolkit/elements.js";
import { decodePayload } from "../toolkit/payload.js";
import { writeNumbersFor } from "../toolkit/numbers.js";
import { plainText, tableContent, tooltipContent } from "../toolkit/sentences.js";
import { readTheme } from "../toolkit/theme.js";
import { say, useWords } from "../toolkit/words.js";

const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"];
const WHOLE = { zoom: 1, x: 0, y: 0 };
const LARGE = 24; // px: with larger cells the zoom buttons would be clutter

export class Panel {
  constructor(parent, kinds) {
    Object.assign(this, { parent, kinds, generation: 0, loaded: 0, view: WHOLE, hover: null, cursor: null });
    this.aborter = new AbortController();
    this.spoken = []; // what is said anew in another language
    this.canvas = make("canvas", { tabIndex: 0, role: "application" });
    this.tip = make("div", { className: "tip", hidden: true, "aria-hidden": "true" });
    this.live = make("div", { className: "live", "aria-live": "polite" });
    this.title = make("span", { className: "title" });
    this.extras = make("span", { className: "extras" });
    this.box = make("div", { className: "box" }, this.canvas); // what is larger than it is scrolled
    this.picture = make("div", { className: "picture" }, this.box, this.tip);
    this.table = make("div", { className: "table", hidden: true, tabIndex: 0, role: "region" });
    this.spoken.push(() => this.table.setAttribute("aria-label", say("The numbers as a table")));
    this.menu = new ExportMenu(this);
    const zooms = [
      this.button("−", "Zoom out", () => this.zoomAt(1 / 1.5)),
      this.button("+", "Zoom in", () => this.zoomAt(1.5)),
      this.button("1:1", "Show the whole map", () => this.zoomAt(0)),
    ];
    this.zoomButtons = make("span", { className: "buttons" }, ...zooms);
    this.tableButton = this.button("Table", "Show the numbers as a table", () => this.showTable(this.table.hidden));
    this.toolsButton = this.button("⋯", "Tools for this figure", () =>
      this.toolsButton.setAttribute("aria-expanded", String(this.root.classList.toggle("unfolded"))),
    );
    this.toolsButton.classList.add("tools");
    const buttons = [this.zoomButtons, this.tableButton, this.menu.button, this.toolsButton];
    this.bar = make(
      "div",
      { className: "bar" },
      this.title,
      make("span", { className: "buttons" }, ...buttons),
      this.extras,
    );
    this.root = make(
      "div",
      { className: "stage", panel: this },
      this.bar,
      this.picture,
      this.table,
      this.live,
      this.menu.element,
    );
    this.style = make("style", { textContent: STYLE + STEPS_STYLE + LIVING_PICTURE_STYLE });
    parent.append(this.style, this.root);
    this.pen = this.canvas.getContext("2d");
    this.still = make("canvas"); // the resting picture, kept while something on it is highlighted
    this.speak();
    this.listen();
  }

  get metadata() {
    return this.data.metadata;
  }

  button(text, explanation, action) {
    const made = button("", "", action);
    this.spoken.push(() =>
      Object.assign(made, { textContent: say(text), title: say(explanation), ariaLabel: say(explanation) }),
    );
    return made;
  }

  speak() {
    for (const repeat of this.spoken) repeat();
  }

  // Called at every rerun and at every change of theme.
  async update({ data: bytes, script, setTriggerValue }) {
    const generation = ++this.generation;
    Object.assign(this, { script, trigger: setTriggerValue });
    if (bytes !== this.bytes) {
      const payload = await decodePayload(bytes);
      if (generation !== this.generation) return; // a newer update has overtaken this one
      this.bytes = bytes;
      useWords(payload.metadata.words);
      writeNumbersFor(payload.metadata.language);
      this.speak();
      this.take(payload);
    }
    this.refresh();
    if (this.hover) this.showTip(this.hover, this.hoverAt);
    // Labels are measured: do it again if the page's own font comes only now.
    if (document.fonts.check(this.font)) return;
    await document.fonts.load(this.font).catch(() => []);
    measureAnew();
    this.loaded++;
    if (generation === this.generation) this.refresh();
  }

  get font() {
    return fontOf(readTheme(this.root), 16);
  }

  take(payload) {
    this.told = null; // what the tooltip is about: it may have another value now
    const before = this.data?.metadata.kind === payload.metadata.kind ? this.data : null;
    this.kind = this.kinds[payload.metadata.kind];
    this.data = this.kind.read(payload, before, this);
    const { metadata } = this.data;
    // Another head of the same sentence: keep what the reader has zoomed to.
    const same = ["rows", "columns"].every((side) => before?.metadata[side]?.length === metadata[side]?.length);
    if (!same || !before) Object.assign(this, { view: WHOLE, hover: null, cursor: null });
    this.title.textContent = metadata.title;
    this.canvas.setAttribute("aria-label", this.kind.labelOf(this.data));
    this.canvas.setAttribute("aria-roledescription", this.kind.help());
    const controls = this.kind.controls?.(this.data, this) ?? [];
    const shown = [...this.extras.children]; // those that stay keep the focus, and a press that has begun
    if (controls.length !== shown.length || controls.some((one, k) => one !== shown[k]))
      this.extras.replaceChildren(...controls);
    if (!this.table.hidden) this.showTable(true);
  }

  destroy() {
    this.aborter.abort();
    this.sizes.disconnect();
    cancelAnimationFrame(this.frame);
    this.style.remove();
    this.root.remove();
  }

  // --- painting -----------------------------------------------------------------------------------------------------

  // The height of the box is what the page's style sheet leaves for the figure, if it says so.
  themeNow() {
    const [ratio, room] = [window.devicePixelRatio || 1, parseFloat(getComputedStyle(this.box).maxHeight) || null];
    return { ...readTheme(this.root), ratio, room, loaded: this.loaded };
  }

  // For a file, with what is other there than on the page.
  sceneFor(change) {
    const theme = { ...change(this.themeNow()), room: null, file: true, unmarked: true };
    return [this.kind.scene(this.data, theme, this.width || 800, this.view), theme];
  }

  refresh() {
    // A browser that cannot paint shows the numbers as text.
    if (!this.pen) return this.data && this.table.hidden && this.showTable(true);
    const width = Math.floor(this.box.clientWidth);
    // Nothing to draw yet, or nowhere to draw it (a hidden tab, the table instead of the picture).
    if (!this.data || width < 40) return;
    this.width = width;
    this.theme = this.themeNow();
    this.root.classList.toggle("dark", this.theme.dark);
    const tools = getComputedStyle(this.root).getPropertyValue("--figure-tools").trim();
    this.root.classList.toggle("folded", tools === "folded");
    this.repaint();
  }

  // The same page and width: another view, or a cell that was painted.
  repaint() {
    if (!this.theme) return;
    const { width } = this;
    this.scene = this.kind.scene(this.data, this.theme, width, this.view);
    this.view = this.scene.view ?? WHOLE;
    const [wide, height] = [Math.max(width, this.scene.size[0]), Math.ceil(this.scene.size[1])];
    const size = { width: Math.round(wide * this.theme.ratio), height: Math.round(height * this.theme.ratio) };
    if (this.canvas.width !== size.width || this.canvas.height !== size.height) Object.assign(this.canvas, size);
    Object.assign(this.canvas.style, { width: wide > width ? `${wide}px` : "", height: `${height}px` });
    this.lookAt(this.scene.about);
    this.zoomable = Boolean(this.scene.window);
    const { zoom } = this.view;
    this.canvas.style.touchAction = this.kind.isOn || zoom > 1 ? "none" : "pan-y";
    this.zoomButtons.hidden = !this.zoomable || (zoom === 1 && Math.min(...this.scene.cell) >= LARGE);
    this.isKept = false;
    this.wipe();
    this.scene.paint(this.pen, this.theme);
    this.canvas.dataset.geometry = JSON.stringify({ ...this.kind.state?.(this.data), ...this.scene.geometry() });
    this.paintFocus();
  }

  // Nothing, or the resting picture; in pixels of the page from then on.
  wipe() {
    const { pen, canvas, theme } = this;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    if (this.isKept) pen.drawImage(this.still, 0, 0);
    pen.scale(theme.ratio, theme.ratio);
  }

  // A frame of an animation has nothing highlighted, and copies nothing.
  paintFocus() {
    const { pen, canvas, theme } = this;
    if (this.isKept) this.wipe();
    const target = this.hover ?? (this.focused() ? this.cursor : null);
    if (!target) return;
    if (!this.isKept) {
      Object.assign(this.still, { width: canvas.width, height: canvas.height })
        .getContext("2d")
        .drawImage(canvas, 0, 0);
      this.isKept = true;
    }
    this.scene.paint(pen, theme, this.scene.focus(target, this.held));
  }

  // The reader switched something.
  changed() {
    if (this.table.hidden) this.repaint();
    else this.showTable(true);
  }

  // At most one painting a frame; once the resting picture is out of date, it stays on the list.
  schedule(restingToo = false) {
    this.stale ||= restingToo;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      if (!this.scene) return;
      if (this.stale) this.repaint();
      else this.paintFocus();
      this.stale = false;
    });
  }

  focused() {
    return this.root.getRootNode().activeElement === this.canvas;
  }

  showTable(shown) {
    this.table.hidden = !shown;
    this.picture.hidden = shown;
    this.tableButton.setAttribute("aria-pressed", String(shown));
    if (shown) this.table.replaceChildren(...tableContent(this.kind.tables(this.data)));
    else this.refresh();
  }

  // --- zoom ---------------------------------------------------------------------------------------------------------

  // Keeps the place (x, y) where it is; a factor of 0 shows everything again.
  zoomAt(factor, place) {
    const [left, top, width, height] = this.scene.window;
    const [x, y] = place ?? (this.cursor ? this.middleOf(this.cursor) : [left + width / 2, top + height / 2]);
    const before = this.view;
    const zoom = Math.min(Math.max(1, 64 / Math.min(...this.scene.cell)), Math.max(1, before.zoom * factor));
    const pan = (from, at) => ((from + at) * zoom) / before.zoom - at;
    this.view = { zoom, x: pan(before.x, x - left), y: pan(before.y, y - top) };
    this.setHover(null);
    this.schedule(true);
  }

  // By the keyboard; the cursor stays in sight.
  zoomAtCursor(factor) {
    this.zoomAt(factor);
    this.repaint();
    if (this.cursor) this.moveCursor(this.cursor);
  }

  // Moves what is zoomed so that the target can be seen.
  reveal(target) {
    const [x, y, width, height] = this.scene.box(target);
    const [left, top, wide, tall] = this.scene.window;
    const pull = (pan, from, size, extent) => Math.max(pan + from + size - extent, Math.min(pan, pan + from));
    this.view = {
      ...this.view,
      x: pull(this.view.x, x - left, width, wide),
      y: pull(this.view.y, y - top, height, tall),
    };
    this.repaint();
  }

  // What is outside of the box comes into it; the page stays where it is.
  scrollTo([, y, , height]) {
    const { scrollTop, clientHeight } = this.box;
    this.box.scrollTop = Math.max(y + height - clientHeight, Math.min(scrollTop, y));
  }

  // A wide picture begins at its left edge; what it is about comes to the middle of the box where it lies further right,
  // whenever it is another part.
  lookAt(x) {
    const { clientWidth } = this.box;
    if (x !== this.about) this.box.scrollLeft = x > 0.75 * clientWidth ? x - clientWidth / 2 : 0;
    this.about = x;
  }

  middleOf(target) {
    const [x, y, width, height] = this.scene.box(target);
    return [x + width / 2, y + height / 2];
  }

  // --- pointer ------------------------------------------------------------------------------------------------------

  listen() {
    const on = (target, names, handler, options = {}) => {
      for (const name of names.split(" "))
        target.addEventListener(name, (event) => (this.scene || target === window) && handler(event), {
          signal: this.aborter.signal,
          ...options,
        });
    };
    on(this.canvas, "pointermove", (event) => this.onMove(event));
    on(this.canvas, "pointerdown", (event) => this.onDown(event));
    on(this.canvas, "pointerup pointercancel", (event) => this.onUp(event.type === "pointerup"));
    on(this.canvas, "pointerleave", () => this.setHover(null));
    on(this.canvas, "click", (event) => this.onClick(event));
    on(this.canvas, "dblclick", () => this.kind.isOn || (this.zoomable && this.zoomAt(0)));
    on(this.canvas, "wheel", (event) => this.onWheel(event), { passive: false });
    on(this.canvas, "keydown", (event) => this.onKey(event));
    on(this.canvas, "focus", () => this.schedule());
    on(this.canvas, "blur", () => ((this.tip.hidden = true), this.schedule()));
    for (const name of ["keydown", "keyup"])
      on(window, name, ({ key }) => key === "Shift" && this.hold(name === "keydown"));
    on(window, "blur", () => this.hold(false));
    on(window, "resize", () => this.theme && this.theme.ratio !== window.devicePixelRatio && this.refresh());
    this.sizes = new ResizeObserver(() => Math.floor(this.box.clientWidth) !== this.width && this.refresh());
    this.sizes.observe(this.box);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  // Shift is held: a drawing may show what is pointed at in another way meanwhile.
  hold(held) {
    if (Boolean(this.held) === held) return;
    this.held = held;
    if (this.hover ?? this.cursor) this.schedule();
  }

  onMove(event) {
    this.hold(event.shiftKey);
    const [x, y] = this.at(event);
    if (this.stroke) return this.goOn(this.scene.hit(x, y));
    if (!this.drag) return this.setHover(this.scene.hit(x, y), [x, y]);
    const [dx, dy] = [x - this.drag.x, y - this.drag.y];
    if (!this.drag.moved && Math.hypot(dx, dy) <= 4) return;
    this.drag = { x, y, moved: true };
    this.view = { ...this.view, x: this.view.x - dx, y: this.view.y - dy };
    this.setHover(null);
    this.schedule(true);
  }

  onDown(event) {
    this.dragged = false;
    // A finger does not hover: it shows the tooltip where it comes down.
    if (event.pointerType !== "mouse") this.onMove(event);
    const [x, y] = this.at(event);
    // A map that is painted on: the stroke begins here. Shift moves a zoomed map.
    if (this.kind.isOn && event.button === 0 && !event.shiftKey) this.begin(this.scene.hit(x, y));
    else if (this.view.zoom > 1) this.drag = { x, y, moved: false };
    if (this.stroke || this.drag) this.canvas.setPointerCapture(event.pointerId);
  }

  onUp(finished) {
    if (this.stroke) this.end(finished);
    this.dragged = Boolean(this.drag?.moved);
    this.drag = null;
  }

  onClick(event) {
    // The end of a drag is no click, and the second click of a double click resets the zoom.
    if (!this.dragged && event.detail <= 1 && !this.kind.isOn) this.choose(this.scene.hit(...this.at(event)));
  }

  onWheel(event) {
    if (!event.ctrlKey || !this.zoomable) return;
    event.preventDefault();
    this.zoomAt(Math.exp(-event.deltaY / 240), this.at(event));
  }

  choose(target) {
    if (!target || this.kind.act?.(this.data, target)) return;
    const chosen = this.kind.click(this.data, target);
    if (!chosen) return;
    if (this.kind.eager) this.kind.choose(this.data, chosen.value); // Python's answer comes a tenth of a second later
    if (this.kind.eager) this.schedule(true);
    this.trigger(chosen.event, chosen.value);
  }

  // --- a stroke over cells ------------------------------------------------------------------------------------------

  begin(target) {
    if (target?.row === undefined || target.column === undefined) return;
    this.stroke = { on: !this.kind.isOn(this.data, target), cells: new Map(), last: target };
    this.paintCell(target);
  }

  paintCell(target) {
    const { cells, on } = this.stroke;
    const key = `${target.row},${target.column}`;
    if (!cells.has(key)) cells.set(key, { ...target, was: this.kind.isOn(this.data, target) });
    this.kind.set(this.data, target, on);
    this.schedule(true);
  }

  // A fast mouse skips cells: all on the straight line from the last one are painted.
  goOn(target) {
    this.setHover(null);
    if (target?.row === undefined || target.column === undefined) return;
    const { row, column } = this.stroke.last;
    const [rows, columns] = [target.row - row, target.column - column];
    const steps = Math.max(Math.abs(rows), Math.abs(columns));
    for (let k = 1; k <= steps; k++)
      this.paintCell({ row: row + Math.round((rows * k) / steps), column: column + Math.round((columns * k) / steps) });
    this.stroke.last = target;
  }

  end(finished) {
    const { cells, on } = this.stroke;
    this.stroke = null;
    const { event, value } = this.kind.strokeEvent([...cells.values()], on);
    if (finished) this.trigger(event, value);
    else for (const cell of cells.values()) this.kind.set(this.data, cell, cell.was);
    this.schedule(true);
  }

  // --- keyboard -----------------------------------------------------------------------------------------------------

  onKey(event) {
    if (event.altKey || event.metaKey || event.ctrlKey) return;
    const { key } = event;
    if (this.kind.keydown?.(this.data, event)) this.repeat();
    else if (ARROWS.includes(key))
      this.moveCursor(this.cursor ? this.scene.step(this.cursor, key, event.shiftKey) : this.scene.first);
    else if ((key === "Enter" || key === " ") && this.kind.isOn) this.paintAtCursor();
    else if (key === "Enter" || key === " ") this.choose(this.cursor);
    else if (key === "Escape") this.moveCursor(null);
    else if (this.zoomable && "+=-0".includes(key)) this.zoomAtCursor({ "-": 1 / 1.5, 0: 0 }[key] ?? 1.5);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // One cell, without a mouse.
  paintAtCursor() {
    if (!this.cursor) return;
    this.begin(this.cursor);
    this.end(true);
    this.moveCursor(this.cursor);
  }

  // Says what the cursor is on now.
  repeat() {
    if (this.cursor) this.moveCursor(this.cursor);
  }

  moveCursor(target) {
    Object.assign(this, { cursor: target, hover: null });
    if (target && this.view.zoom > 1) this.reveal(target);
    else this.schedule();
    if (target) this.scrollTo(this.scene.box(target));
    this.live.textContent = target ? plainText(this.kind.describe(this.data, target)) : "";
    this.showTip(target, target && this.middleOf(target));
  }

  setHover(target, at) {
    this.hoverAt = at;
    if (!sameTarget(target, this.hover)) {
      this.hover = target;
      this.schedule();
    }
    const active = target && this.kind.click(this.data, target);
    this.canvas.style.cursor = active ? "pointer" : this.view.zoom > 1 ? "grab" : "default";
    this.showTip(target, at);
  }

  // Beside the pointer, kept inside the drawing's width; never under the pointer.
  showTip(target, at) {
    this.tip.hidden = !target || !at;
    if (this.tip.hidden) return;
    if (!sameTarget(target, this.told))
      this.tip.replaceChildren(...tooltipContent(this.kind.describe(this.data, target)));
    this.told = target;
    const [x, y] = [at[0] - this.box.scrollLeft, at[1] - this.box.scrollTop];
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const left = x + 18 + width > this.width ? Math.max(0, x - width - 14) : x + 18;
    const top = y + 20 + height > this.box.offsetHeight ? y - height - 12 : y + 20;
    this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }
}
