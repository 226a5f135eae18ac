// A sheet of few pixels: a pen that leaves ink where it passes, soft at its edge, as in the pictures of the corpus.
const SIDE = 176; // CSS pixels of the sheet
const REACH = 1.2; // pixels of the picture from the middle of the pen to where its ink ends
const STEP = 0.25;

export default function ({ parentElement, data, setTriggerValue }) {
  const { size, most, words, signs } = data;
  const pixels = [...data.pixels];
  let erasing = false;
  let last = null;
  let cursor = null;

  parentElement.querySelector(".picture")?.remove();
  const whole = parentElement.appendChild(element("div", "picture"));
  whole.appendChild(element("div", "title", words.title));
  const sheet = whole.appendChild(element("canvas", "sheet"));
  const scale = window.devicePixelRatio || 1;
  sheet.width = sheet.height = SIDE * scale;
  sheet.tabIndex = 0;
  sheet.setAttribute("role", "application");
  sheet.setAttribute("aria-label", words.hint);
  const tools = whole.appendChild(element("div", "row"));
  const eraser = tools.appendChild(
    button(words.erase, () => eraser.setAttribute("aria-pressed", (erasing = !erasing))),
  );
  eraser.setAttribute("aria-pressed", "false");
  tools.appendChild(
    button(words.clear, () => {
      pixels.fill(0);
      paint();
      send();
    }),
  );
  whole.appendChild(element("div", "hint", words.hint));
  whole.appendChild(element("div", "title", words.examples));
  const gallery = whole.appendChild(element("div", "row"));
  for (const example of data.examples) {
    const one = gallery.appendChild(button("", () => setTriggerValue("chosen", text(example.pixels))));
    one.className = "example";
    one.title = one.ariaLabel = example.label;
    one.setAttribute("aria-pressed", String(text(example.pixels) === text(pixels)));
    const small = one.appendChild(element("canvas"));
    small.width = small.height = size;
    example.pixels.forEach((level, at) => fill(small, at, level, 1));
  }
  paint();

  sheet.onpointerdown = (event) => {
    sheet.setPointerCapture(event.pointerId);
    last = place(event);
    pass(last, last);
  };
  sheet.onpointermove = (event) => {
    if (last === null) return;
    const here = place(event);
    pass(last, here);
    last = here;
  };
  sheet.onpointerup = sheet.onpointercancel = () => {
    if (last !== null) send();
    last = null;
  };
  sheet.onkeydown = (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (!move && event.key !== " ") return;
    event.preventDefault();
    cursor ??= [0, 0];
    if (move) cursor = cursor.map((at, axis) => Math.min(size - 1, Math.max(0, at + move[axis])));
    else {
      const at = cursor[1] * size + cursor[0];
      pixels[at] = pixels[at] ? 0 : most;
      send();
    }
    paint();
  };

  function place(event) {
    const box = sheet.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * size, ((event.clientY - box.top) / box.height) * size];
  }

  function pass(from, to) {
    const steps = Math.max(1, Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / STEP));
    for (let step = 0; step <= steps; step++) {
      const [x, y] = from.map((at, axis) => at + ((to[axis] - at) * step) / steps);
      pixels.forEach((level, at) => {
        const distance = Math.hypot((at % size) + 0.5 - x, Math.floor(at / size) + 0.5 - y);
        const ink = Math.round(most * Math.min(1, Math.max(0, REACH - distance)));
        pixels[at] = erasing ? Math.min(level, most - ink) : Math.max(level, ink);
      });
    }
    paint();
  }

  function paint() {
    sheet.getContext("2d").clearRect(0, 0, sheet.width, sheet.height);
    pixels.forEach((level, at) => fill(sheet, at, level, sheet.width / size));
    if (cursor === null) return;
    const pen = sheet.getContext("2d");
    pen.strokeStyle = getComputedStyle(sheet).borderColor;
    pen.lineWidth = 2 * scale;
    pen.strokeRect(...cursor.map((at) => (at * sheet.width) / size), sheet.width / size, sheet.width / size);
  }

  function fill(canvas, at, level, width) {
    const pen = canvas.getContext("2d");
    pen.fillStyle = getComputedStyle(whole).color;
    pen.globalAlpha = level / most;
    pen.fillRect((at % size) * width, Math.floor(at / size) * width, width, width);
    pen.globalAlpha = 1;
  }

  function text(levels) {
    return levels.map((level) => signs[level]).join("");
  }

  function send() {
    setTriggerValue("chosen", text(pixels));
  }

  function button(label, act) {
    const made = element("button", "", label);
    made.type = "button";
    made.onclick = act;
    return made;
  }

  function element(tag, name = "", content = "") {
    const made = document.createElement(tag);
    made.className = name;
    made.textContent = content;
    return made;
  }
}
