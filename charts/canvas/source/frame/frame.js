// The frame around every drawing: sizes, theme, title, buttons and table.
//
// A drawing has: metadata, label, help; layout(context, theme, width) -> height; paintBase(context, theme, ratio) and
// paintFocus(context, theme, target, ratio, still); geometry(); hit(x, y) -> target or null; first(), holds(target),
// step(target, key) -> target; anchor(target) -> [x, y]; describe(target) -> lines; click(target) -> { event, value } or null;
// tables(), records() -> rows of the CSV; perhaps controls(), tipEdge(target), act(target) -> whether a click is done with, keydown(event) -> whether a key is, choose(value): what Python would do about a click,
// pinned -> the height of what stays while a high picture is scrolled, state() -> metadata of what was switched, key(key): an own key; layoutKey(context, theme, width) -> height and paintKey(context,
// theme, top): what buttons say, on an exported picture; and, if it can zoom, zoomBy, panBy, resetZoom, zoomed, worthZooming, reveal.

import CANVAS_STYLE from "./canvas.css";
import LIVING_PICTURE_STYLE from "./living_picture.css";
import STEPS_STYLE from "./steps.css";
import { cssOf } from "../toolkit/colour.js";
import { make } from "../toolkit/elements.js";
import { decodePayload } from "../toolkit/payload.js";
import { tableContent } from "../toolkit/sentences.js";
import { writeNumbersFor } from "../toolkit/numbers.js";
import { fontOf } from "../toolkit/text.js";
import { readTheme } from "../toolkit/theme.js";
import { say, useWords } from "../toolkit/words.js";
import { ExportMenu } from "./export_menu.js";

export class Frame {
  constructor(parent) {
    this.generation = 0;
    this.hover = null;
    this.cursor = null;
    this.showsTable = false;
    this.aborter = new AbortController();
    this.spoken = [];
    this.canvas = make("canvas", { tabIndex: 0, role: "application" });
    this.tip = make("div", { className: "tip", hidden: true, "aria-hidden": "true" });
    this.live = make("div", { className: "live", "aria-live": "polite" });
    this.title = make("span", { className: "title" });
    this.extras = make("span", { className: "extras" });
    this.zoomButtons = make(
      "span",
      { className: "buttons" },
      this.button("−", "Zoom out", () => this.zoom(1 / 1.5)),
      this.button("+", "Zoom in", () => this.zoom(1.5)),
      this.button("1:1", "Show the whole map", () => this.resetZoom()),
    );
    this.tableButton = this.button("Table", "Show the numbers as a table", () => this.toggleTable());
    this.tableButton.setAttribute("aria-pressed", "false");
    this.menu = new ExportMenu(this);
    this.toolsButton = this.button("⋯", "Tools for this figure", () => this.toggleTools());
    this.toolsButton.classList.add("tools");
    this.toolsButton.setAttribute("aria-expanded", "false");
    const buttons = make(
      "span",
      { className: "buttons" },
      this.zoomButtons,
      this.tableButton,
      this.menu.button,
      this.toolsButton,
    );
    this.bar = make("div", { className: "bar" }, this.title, buttons, this.extras);
    this.pinned = null; // a canvas for what stays of a high picture while it is scrolled, as soon as there is one
    this.picture = make("div", { className: "picture" }, this.canvas, this.tip);
    this.table = make("div", {
      className: "table",
      hidden: true,
      tabIndex: 0,
      role: "region",
      "aria-label": "The numbers as a table",
    });
    this.spoken.push(() => this.table.setAttribute("aria-label", say("The numbers as a table")));
    this.root = make("div", { className: "stage" }, this.bar, this.picture, this.table, this.live, this.menu.element);
    for (const button of buttons.querySelectorAll("button")) {
      const [text, explanation] = [button.textContent, button.title];
      this.spoken.push(() =>
        Object.assign(button, { textContent: say(text), title: say(explanation), ariaLabel: say(explanation) }),
      );
    }
    parent.append(make("style", { textContent: CANVAS_STYLE + STEPS_STYLE + LIVING_PICTURE_STYLE }), this.root);
    this.context = this.canvas.getContext("2d");
    this.still = document.createElement("canvas");
    this.listen();
  }

  button(text, explanation, action) {
    const button = make("button", {
      type: "button",
      textContent: say(text),
      title: say(explanation),
      "aria-label": say(explanation),
    });
    button.addEventListener("click", action);
    return button;
  }

  // Called at every rerun and at every change of theme.
  async update({ data, script, setTriggerValue }, makeDrawing) {
    const generation = ++this.generation;
    this.script = script;
    this.trigger = setTriggerValue;
    if (data !== this.data) {
      const payload = await decodePayload(data);
      // A newer update may have overtaken this one while it was being inflated.
      if (generation !== this.generation) return;
      this.data = data;
      useWords(payload.metadata.words);
      writeNumbersFor(payload.metadata.language);
      for (const repeat of this.spoken) repeat(); // what was written before its language was known
      this.drawing = makeDrawing(payload, this.drawing, this);
      this.title.textContent = this.drawing.metadata.title;
      if (this.drawing.begin) this.canvas.style.touchAction = "none";
      this.canvas.setAttribute("aria-label", this.drawing.label);
      this.canvas.setAttribute("aria-roledescription", this.drawing.help);
      this.theme ??= readTheme(this.root);
      const controls = this.drawing.controls?.() ?? [];
      const shown = [...this.extras.children];
      if (controls.length !== shown.length || controls.some((control, k) => control !== shown[k]))
        this.extras.replaceChildren(...controls);
      if (this.cursor && !this.drawing.holds(this.cursor)) this.cursor = null;
      if (this.hover && !this.drawing.holds(this.hover)) this.setHover(null);
      if (this.showsTable) this.fillTable();
    }
    this.refresh();
    // What is still under the pointer may have another value now.
    this.tip.dataset.target = "";
    if (this.hover) this.showTip(this.hover, this.hoverAt);
    // Labels are measured: do it again once the page's own font is there.
    await document.fonts.load(fontOf(this.theme)).catch(() => []);
    if (generation === this.generation) this.refresh();
  }

  destroy() {
    this.aborter.abort();
    this.sizes.disconnect();
    cancelAnimationFrame(this.frame);
    this.root.previousSibling.remove(); // the style sheet
    this.root.remove();
  }

  // --- painting -------------------------------------------------------------------------------------

  refresh() {
    // A browser that cannot paint shows the numbers as text.
    if (!this.context) return void (this.drawing && !this.showsTable && this.toggleTable());
    const width = Math.floor(this.picture.clientWidth);
    // Nothing to draw yet, or nowhere to draw it (a hidden tab, the table instead of the picture).
    if (!this.drawing || width < 40) return;
    this.layOut(width);
    for (const canvas of [this.canvas, this.still]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(this.height * this.ratio);
    }
    this.canvas.style.height = `${this.height}px`;
    this.zoomButtons.hidden = !this.drawing.worthZooming?.();
    this.root.classList.toggle("folded", this.read("--figure-tools") === "folded");
    this.layOutPinned(width);
    this.repaint();
  }

  layOut(width) {
    this.theme = readTheme(this.root);
    this.theme.room = this.roomLeft();
    this.root.classList.toggle("dark", this.theme.dark);
    this.ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.height = Math.ceil(this.drawing.layout(this.context, this.theme, width));
    this.laidOut = this.drawing;
  }

  // The height that the page leaves for the picture, if it says how much it leaves for picture and buttons, or that both
  // end in the window; else null.
  roomLeft() {
    const said = this.read("--figure-room").trim();
    const room = parseFloat(said);
    const [top, begin] = [this.picture, this.root].map((part) => part.getBoundingClientRect().top);
    if (said === "window") {
      const scrolled = document.querySelector("[data-testid=stMain]")?.scrollTop ?? 0;
      return Math.max(window.innerHeight / 2, window.innerHeight - top - scrolled - 0.6 * this.theme.size);
    }
    return room ? Math.max(160, room - (top - begin)) : null;
  }

  // What the page says in its style sheet about all figures.
  read(property) {
    return getComputedStyle(this.root).getPropertyValue(property).trim();
  }

  // It lies on the same part of the picture, so that a place on either is the same place.
  layOutPinned(width) {
    const { pinned } = this.drawing;
    if (!(pinned < 0.7 * window.innerHeight)) {
      this.pinned?.remove();
      this.pinned = null;
      return;
    }
    if (!this.pinned) {
      this.pinned = make("canvas", { className: "pinned", ariaHidden: "true" });
      this.canvas.before(this.pinned);
      this.listenTo(this.pinned);
    }
    [this.pinned.width, this.pinned.height] = [this.canvas.width, Math.round(pinned * this.ratio)];
    Object.assign(this.pinned.style, { width: `${width}px`, height: `${pinned}px`, marginBottom: `-${pinned}px` });
  }

  get ready() {
    return this.drawing !== undefined && this.laidOut === this.drawing;
  }

  // The resting picture is kept, so that hovering only paints what is highlighted.
  repaint() {
    if (!this.ready) return;
    this.stale = false;
    const pen = this.still.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    this.drawing.paintBase(pen, this.theme, this.ratio);
    this.paintNow();
  }

  paintNow() {
    const pen = this.context;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.still, 0, 0);
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.drawing.paintFocus(
      pen,
      this.theme,
      this.hover ?? (this.focused() ? this.cursor : null),
      this.ratio,
      this.still,
    );
    this.canvas.dataset.geometry = JSON.stringify(this.drawing.geometry());
    if (!this.pinned) return;
    const { width, height } = this.pinned;
    const upper = this.pinned.getContext("2d");
    upper.fillStyle = cssOf(this.theme.ground);
    upper.fillRect(0, 0, width, height);
    upper.drawImage(this.canvas, 0, 0, width, height, 0, 0, width, height);
  }

  // At most one painting a frame; once the resting picture is out of date, it stays on the list.
  schedule(restingToo = false) {
    this.stale ||= restingToo;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      if (this.stale) this.repaint();
      else if (this.ready) this.paintNow();
    });
  }

  focused() {
    return this.root.getRootNode().activeElement === this.canvas;
  }

  // --- buttons ----------------------------------------------------------------------------------------------

  zoom(factor, x, y) {
    this.drawing.zoomBy(factor, x, y);
    this.afterZoom();
  }

  resetZoom() {
    if (!this.drawing?.zoomed?.()) return;
    this.drawing.resetZoom();
    this.afterZoom();
  }

  afterZoom() {
    this.canvas.style.touchAction = this.drawing.zoomed() || this.drawing.begin ? "none" : "pan-y";
    this.setHover(null);
    this.schedule(true);
  }

  // On a phone and during a presentation, all buttons but one are folded.
  toggleTools() {
    const open = this.root.classList.toggle("unfolded");
    this.toolsButton.setAttribute("aria-expanded", String(open));
  }

  toggleTable() {
    this.showsTable = !this.showsTable;
    this.tableButton.setAttribute("aria-pressed", String(this.showsTable));
    this.picture.hidden = this.showsTable;
    this.table.hidden = !this.showsTable;
    if (this.showsTable) this.fillTable();
    else this.refresh();
  }

  fillTable() {
    this.table.replaceChildren(...tableContent(this.drawing.tables()));
  }
}
