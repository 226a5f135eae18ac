// A square to draw a digit in, with a finger or a mouse: its pixels are written into the field of the picture's text.

import { make } from "../../charts/canvas/source/toolkit/elements.js";

const BRUSH = 0.75; // pixels of the picture around the pen that get ink
const SCALE = 24; // pixels of the screen's canvas for each of the picture

export function drawingPad({ size, signs }, texts, field, changed) {
  const canvas = make("canvas", { className: "pad", width: size * SCALE, height: size * SCALE });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", texts.pad);
  const clear = make("button", { type: "button", textContent: texts.clear });
  const pad = make("div", { className: "row" }, canvas, clear);
  let ink = new Float32Array(size * size);

  pad.show = () => {
    const text = [...field.value.replace(/\s/g, "").toLowerCase()];
    ink = Float32Array.from(
      { length: size * size },
      (_, k) => Math.max(0, signs.indexOf(text[k] ?? "0")) / (signs.length - 1),
    );
    paint();
  };

  function paint() {
    const pen = canvas.getContext("2d");
    ink.forEach((value, k) => {
      const shade = Math.round(255 * (1 - value));
      pen.fillStyle = `rgb(${shade}, ${shade}, ${shade})`;
      pen.fillRect((k % size) * SCALE, Math.floor(k / size) * SCALE, SCALE, SCALE);
    });
  }

  function stroke(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height].map(
      (at) => at * size,
    );
    for (let k = 0; k < ink.length; k++) {
      const distance = Math.hypot((k % size) + 0.5 - x, Math.floor(k / size) + 0.5 - y);
      ink[k] = Math.max(ink[k], Math.min(1, Math.max(0, (BRUSH + 0.5 - distance) / BRUSH)));
    }
    write();
  }

  function write() {
    field.value = Array.from(ink, (value) => signs[Math.round(value * (signs.length - 1))]).join("");
    paint();
    changed();
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    stroke(event);
  });
  canvas.addEventListener("pointermove", (event) => event.buttons && stroke(event));
  clear.addEventListener("click", () => {
    ink.fill(0);
    write();
  });
  field.addEventListener("input", (event) => event.isTrusted && pad.show());
  pad.show();
  return pad;
}
