// The menu behind “Export”: files of the figure.

import { make } from "../toolkit/elements.js";
import { say } from "../toolkit/words.js";
import { Files } from "./files.js";
import { canWritePdf } from "./pdf.js";

export class ExportMenu {
  constructor(frame) {
    this.frame = frame;
    this.files = new Files(frame);
    this.element = make("div", { className: "menu", popover: "auto", role: "dialog", "aria-label": say("Export") });
    this.button = frame.button("Export", "Export this figure or its numbers", () => {});
    this.button.popoverTargetElement = this.element;
    this.element.addEventListener("beforetoggle", (event) => {
      if (event.newState === "open") this.fill();
      this.left = event.newState === "closed" && this.element.matches(":focus-within");
    });
    this.element.addEventListener("toggle", (event) => {
      if (event.newState === "open") this.place();
      else if (this.left) this.button.focus(); // the keyboard goes on where it was
    });
    // Letters typed here are not for the app's own keys.
    this.element.addEventListener("keydown", (event) => event.stopPropagation());
    window.addEventListener("scroll", () => this.close(), {
      capture: true,
      passive: true,
      signal: frame.aborter.signal,
    });
  }

  close() {
    if (this.element.matches(":popover-open")) this.element.hidePopover();
  }

  // Anew at every opening: the language and the title may have changed.
  fill() {
    const { files, frame } = this;
    const save = (text, explanation, action) =>
      frame.button(text, explanation, () => {
        this.close();
        action();
      });
    this.element.setAttribute("aria-label", say("Export"));
    const pictures = make(
      "div",
      { className: "buttons" },
      save("PNG", "Download this figure as PNG", () => files.png()),
      save("SVG", "Download this figure as SVG", () => files.drawn("svg")),
      ...(canWritePdf() ? [save("PDF", "Download this figure as PDF", () => files.drawn("pdf"))] : []),
      save("HTML", "Download a page that works offline (HTML)", () => files.html()),
      save("CSV", "Download the numbers as CSV", () => files.csv()),
    );
    this.element.replaceChildren(pictures);
  }

  // Under its button, inside the window.
  place() {
    const at = this.button.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const left = Math.max(8, Math.min(at.right, document.documentElement.clientWidth - 8) - width);
    const top = Math.max(8, Math.min(at.bottom + 4, window.innerHeight - height - 8));
    Object.assign(this.element.style, { left: `${left}px`, top: `${top}px` });
    this.element.querySelector("button").focus();
  }
}
