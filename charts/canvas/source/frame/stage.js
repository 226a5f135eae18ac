// What the reader does: pointer, wheel, keyboard, and the tooltip that answers.

import { plainText, tooltipContent } from "../toolkit/sentences.js";
import { Frame } from "./frame.js";

const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"];
const sameTarget = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export class Stage extends Frame {
  on(target, name, handler, options = {}) {
    target.addEventListener(name, handler, { signal: this.aborter.signal, ...options });
  }

  // To the pointer.
  listenTo(canvas) {
    this.on(canvas, "pointermove", (event) => this.onMove(event));
    this.on(canvas, "pointerdown", (event) => this.onDown(event));
    this.on(canvas, "pointerup", () => this.onUp());
    this.on(canvas, "pointercancel", () => this.onUp(false));
    this.on(canvas, "pointerleave", () => this.setHover(null));
    this.on(canvas, "click", (event) => this.onClick(event));
  }

  listen() {
    const on = (...what) => this.on(...what);
    this.listenTo(this.canvas);
    on(this.canvas, "dblclick", () => this.drawing?.begin || this.resetZoom());
    on(this.canvas, "wheel", (event) => this.onWheel(event), { passive: false });
    on(this.canvas, "keydown", (event) => this.onKey(event));
    on(this.canvas, "focus", () => this.schedule());
    on(this.canvas, "blur", () => this.onBlur());
    for (const name of ["keydown", "keyup"])
      on(window, name, ({ key }) => key === "Shift" && this.hold(name === "keydown"));
    on(window, "blur", () => this.hold(false));
    on(window, "resize", () => this.ratio !== window.devicePixelRatio && this.refresh());
    this.sizes = new ResizeObserver(() => Math.floor(this.picture.clientWidth) !== this.width && this.refresh());
    this.sizes.observe(this.picture);
  }

  place(event) {
    this.onPinned = event.target === this.pinned;
    const box = event.target.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  // Shift is held: a drawing may show what is pointed at in another way meanwhile.
  hold(held) {
    if (!this.drawing?.follows || this.drawing.held === held) return;
    this.drawing.held = held;
    if (this.hover ?? this.cursor) this.schedule();
  }

  onMove(event) {
    if (!this.ready) return;
    this.hold(event.shiftKey);
    const [x, y] = this.place(event);
    if (this.stroke) {
      this.stroke = this.drawing.goOn(this.stroke, this.drawing.hit(x, y));
      this.setHover(null);
      this.schedule(true);
      return;
    }
    if (this.drag) {
      const [dx, dy] = [x - this.drag.x, y - this.drag.y];
      if (this.drag.moved || Math.hypot(dx, dy) > 4) {
        this.drag = { x, y, moved: true };
        this.setHover(null);
        this.drawing.panBy(dx, dy);
        this.schedule(true);
      }
      return;
    }
    this.setHover(this.drawing.hit(x, y), [x, y]);
  }

  onDown(event) {
    this.dragged = false;
    // A finger does not hover: it shows the tooltip where it comes down.
    if (event.pointerType !== "mouse") this.onMove(event);
    if (!this.ready) return;
    const [x, y] = this.place(event);
    // A map that is painted on: the stroke begins here and is told to Python when it ends. Shift moves a zoomed map.
    this.stroke = event.button === 0 && !event.shiftKey ? (this.drawing.begin?.(this.drawing.hit(x, y)) ?? null) : null;
    if (this.stroke) {
      this.canvas.setPointerCapture(event.pointerId);
      this.schedule(true);
    }
    if (this.stroke || !this.drawing.zoomed?.()) return;
    this.drag = { x, y, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  onUp(finished = true) {
    if (this.stroke && finished) this.trigger("edit", this.drawing.strokeValue(this.stroke));
    else if (this.stroke) this.drawing.takeBack(this.stroke);
    this.stroke = null;
    this.dragged = Boolean(this.drag?.moved);
    this.drag = null;
  }

  onClick(event) {
    // The end of a drag is no click, and the second click of a double click resets the zoom.
    if (!this.ready || this.dragged || event.detail > 1 || this.drawing.begin) return;
    this.choose(this.drawing.hit(...this.place(event)));
  }

  choose(target) {
    if (target && this.drawing.act?.(target)) return;
    const chosen = target && this.drawing.click(target);
    if (chosen) this.trigger(chosen.event, chosen.value);
  }

  onWheel(event) {
    if (!event.ctrlKey || !this.ready || !this.drawing.zoomBy) return;
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 240), ...this.place(event));
  }

  onKey(event) {
    if (!this.ready || event.altKey || event.metaKey || event.ctrlKey) return;
    const { key } = event;
    if (this.drawing.keydown?.(event));
    else if (ARROWS.includes(key))
      this.moveCursor(this.cursor ? this.drawing.step(this.cursor, key, event.shiftKey) : this.drawing.first());
    else if (key === "Enter" || key === " ") this.drawing.begin ? this.paintAt(this.cursor) : this.choose(this.cursor);
    else if (key === "Escape") this.moveCursor(null);
    else if (this.drawing.key?.(key))
      this.moveCursor(this.cursor); // says what the cursor is on now
    else if (this.drawing.zoomBy && "+=-0".includes(key)) this.zoomAt(this.cursor, { "-": 1 / 1.5, 0: 0 }[key] ?? 1.5);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // One cell of a mask, without a mouse.
  paintAt(target) {
    const stroke = target && this.drawing.begin(target);
    if (!stroke) return;
    this.trigger("edit", this.drawing.strokeValue(stroke));
    this.schedule(true);
    this.moveCursor(target);
  }

  // Around the cursor, which stays in sight; a factor of 0 shows everything again.
  zoomAt(target, factor) {
    if (factor) this.zoom(factor, ...(target ? this.drawing.anchor(target) : []));
    else this.resetZoom();
    if (target) this.moveCursor(target);
  }

  moveCursor(target) {
    this.cursor = target;
    this.hover = null;
    this.onPinned = false;
    if (target && this.drawing.zoomed?.()) {
      this.drawing.reveal(target);
      this.repaint();
    } else this.schedule();
    const lines = target ? this.drawing.describe(target) : [];
    this.live.textContent = plainText(lines);
    this.showTip(target, target && this.drawing.anchor(target));
  }

  onBlur() {
    this.tip.hidden = true;
    this.schedule();
  }

  setHover(target, at) {
    this.hoverAt = at;
    if (!sameTarget(target, this.hover)) {
      this.hover = target;
      this.schedule();
    }
    this.canvas.style.cursor =
      target && this.drawing.click(target) ? "pointer" : this.drawing?.zoomed?.() ? "grab" : "default";
    this.showTip(target, at);
  }

  // Beside the pointer, kept inside the drawing's width; never under the pointer.
  showTip(target, at) {
    this.tip.hidden = !target || !at;
    if (this.tip.hidden) return;
    const key = JSON.stringify(target);
    if (this.tip.dataset.target !== key) {
      this.tip.dataset.target = key;
      this.tip.replaceChildren(...tooltipContent(this.drawing.describe(target)));
    }
    const [x, above] = at;
    const y = above + (this.onPinned ? (this.pinned?.offsetTop ?? 0) : 0); // how far it has stayed behind
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const edge = this.drawing.tipEdge?.(target) ?? this.width;
    const left = x + 18 + width > edge ? Math.max(0, x - width - 14) : x + 18;
    this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(y + 20 + height > this.height ? y - height - 12 : y + 20)}px)`;
  }
}
