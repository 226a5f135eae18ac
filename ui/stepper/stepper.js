// The text being written. Moving shows at once; the last of several quick moves is what Python hears of.
// All text goes through textContent: it is what a user typed or a model wrote.
const REST = 150; // milliseconds without a move, after which Python is told; a first move is told at once
const PATIENCE = 3000; // milliseconds that Python may lag behind
const OWN_KEYS = "input, textarea, select, [contenteditable], [role=slider], [role=radiogroup], [role=tablist], " +
  "[role=listbox], [role=menu], [role=grid], [role=spinbutton], canvas";
const kept = new WeakMap(); // what has to survive a redraw, by place on the page

export default function ({ parentElement, data, setTriggerValue }) {
  const mine = kept.get(parentElement) ?? { moved: 0, timer: null, wanted: null, text: "" };
  kept.set(parentElement, mine);
  mine.send = (step) => setTriggerValue("step", step);
  const last = data.tokens.length - 1;
  const text = JSON.stringify(data.tokens);
  if (mine.wanted === data.step || mine.text !== text || Date.now() - mine.moved > PATIENCE) mine.wanted = null;
  mine.text = text;
  let step = mine.wanted ?? data.step; // Python may still be drawing an earlier one

  parentElement.querySelector(".stepper")?.remove();
  const root = element("div", "stepper");
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", data.words.text);
  const bar = root.appendChild(element("div", "bar"));
  const back = button(bar, "←", data.words.back, () => move(step - 1));
  const next = button(bar, "→", data.words.next, () => move(step + 1));
  const count = bar.appendChild(element("span", "count"));
  count.setAttribute("aria-live", "polite");
  bar.appendChild(element("span", "keys", data.words.keys));
  const line = root.appendChild(element("div", "line"));
  for (const token of data.before) line.appendChild(element("span", `chip before${special(token)}`, token.text));
  const chips = data.tokens.map((token, index) => {
    const chip = button(line, token.text, `${token.text}, ${data.words.step} ${index + 1}`, () => move(index));
    chip.className = `chip${special(token)}${token.given ? " given" : ""}`;
    return chip;
  });
  parentElement.appendChild(root);
  show();

  if (mine.onKey) document.removeEventListener("keydown", mine.onKey);
  mine.onKey = (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const places = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: last };
    const element = event.composedPath()[0];
    if (!(event.key in places) || element.closest?.(OWN_KEYS)) return;
    event.preventDefault(); // or the page would scroll
    move(places[event.key]);
  };
  document.addEventListener("keydown", mine.onKey);
  return () => {
    document.removeEventListener("keydown", mine.onKey);
    clearTimeout(mine.timer);
  };

  function move(to) {
    const target = Math.max(0, Math.min(last, to));
    if (target === step) return;
    step = mine.wanted = target;
    show();
    const pause = Date.now() - mine.moved;
    mine.moved = Date.now();
    clearTimeout(mine.timer);
    mine.timer = setTimeout(() => mine.send(mine.wanted ?? step), pause > REST ? 0 : REST);
  }

  function show() {
    chips.forEach((chip, index) => {
      chip.classList.toggle("current", index === step);
      chip.classList.toggle("later", index > step);
      if (index === step) chip.setAttribute("aria-current", "step");
      else chip.removeAttribute("aria-current");
    });
    back.disabled = step === 0;
    next.disabled = step === last;
    count.textContent = `${data.words.step} ${step + 1} ${data.words.of} ${last + 1}`;
    const chip = chips[step]; // scroll the line, never the page
    line.scrollTop = chip.offsetTop - (line.clientHeight - chip.offsetHeight) / 2;
  }

  function button(parent, text, label, onclick) {
    const made = parent.appendChild(element("button", "", text));
    made.type = "button";
    made.setAttribute("aria-label", label);
    made.title = label;
    made.onclick = onclick;
    return made;
  }

  function special(token) {
    return token.special ? " special" : "";
  }

  function element(tag, name, text) {
    const made = document.createElement(tag);
    made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  }
}
