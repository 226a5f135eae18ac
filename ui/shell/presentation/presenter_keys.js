// Keys of the presenter. A place moves here at once and is told to Python when the keys rest; what has no further to go
// sends nothing. Leaving and turning pages come before whatever has the focus; all other keys come after it.
const REST = 160; // milliseconds
const LETTER = 21; // pixels of a letter at 1280 × 720 (presenter.css)
const TYPING = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]";
const OWN_ARROWS =
  "[type=radio], [role=slider], [role=radiogroup], [role=tablist], [role=listbox], [role=menu], [role=grid], " +
  "[role=spinbutton], canvas";
const ALWAYS = ["Escape", "PageUp", "PageDown", "b"]; // a remote has the last three
const OPEN = "[role=dialog], [role=menu], [role=listbox], [data-baseweb=popover]"; // Escape closes these first
const kept = new WeakMap(); // what has to survive a redraw

export default function ({ parentElement, data, setTriggerValue }) {
  const mine = kept.get(parentElement) ?? { timer: null, sized: null, wanted: null };
  kept.set(parentElement, mine);
  const at = Object.fromEntries(Object.entries(data.places).map(([name, [place]]) => [name, place]));
  if (mine.wanted) at[mine.wanted.what] = mine.wanted.to;

  const bound = {
    ArrowLeft: [data.keys.plain, -1],
    ArrowRight: [data.keys.plain, 1],
    ArrowUp: [data.keys.down, -1],
    ArrowDown: [data.keys.down, 1],
  };
  const shifted = { ArrowLeft: [data.keys.shift, -1], ArrowRight: [data.keys.shift, 1] };

  parentElement.querySelector(".presenter-keys")?.remove();
  const box = element(parentElement, "details", "presenter-keys");
  element(box, "summary", "", data.words.keys);
  const line = element(box, "div", "list");
  hint(["←", "→"], data.keys.plain);
  hint(["⇧", "←", "→"], data.keys.shift);
  hint(["↑", "↓"], data.keys.down);
  hint(["PgUp", "PgDn"], "turn");
  hint(["F"], "full", fullScreen);
  hint(["B"], "dark", darken);
  hint(["Esc"], "leave", leave);

  forget();
  mine.onAlways = (event) => {
    if (!ALWAYS.includes(event.key) || isTyped(event)) return;
    if (event.key === "b" || mine.dark) darken();
    else if (event.key !== "Escape") stepOrTurn(event.key === "PageDown" ? 1 : -1);
    else if (document.querySelector(OPEN)) return;
    else leave();
    event.stopPropagation();
    event.preventDefault(); // or the page would scroll
  };
  mine.onKey = (event) => {
    if (event.defaultPrevented || isTyped(event) || event.composedPath()[0].closest?.(OWN_ARROWS)) return;
    const [what, by] = (event.shiftKey ? shifted : bound)[event.key] ?? ["", 0];
    if (event.key.toLowerCase() === "f") fullScreen();
    else if (what && what !== "steps") move(what, by);
    else return;
    event.preventDefault();
  };
  window.addEventListener("keydown", mine.onAlways, { capture: true });
  window.addEventListener("keydown", mine.onKey);
  mine.onSize = () => {
    clearTimeout(mine.sized);
    mine.sized = setTimeout(tellScale, REST);
  };
  window.addEventListener("resize", mine.onSize);
  tellScale();
  return () => {
    forget();
    if (mine.dark) darken();
    clearTimeout(mine.timer);
    clearTimeout(mine.sized);
  };

  function forget() {
    window.removeEventListener("resize", mine.onSize);
    window.removeEventListener("keydown", mine.onAlways, { capture: true });
    window.removeEventListener("keydown", mine.onKey);
  }

  function isTyped(event) {
    return event.ctrlKey || event.altKey || event.metaKey || event.composedPath()[0].closest?.(TYPING);
  }

  function move(what, by) {
    const to = Math.max(0, Math.min(data.places[what][1] - 1, at[what] + by));
    if (to === at[what]) return;
    if (mine.wanted && mine.wanted.what !== what) tell(); // first what was moved before
    at[what] = to;
    mine.wanted = { what, to };
    clearTimeout(mine.timer);
    mine.timer = setTimeout(tell, REST);
  }

  function tell() {
    clearTimeout(mine.timer);
    if (mine.wanted) setTriggerValue("move", mine.wanted);
    mine.wanted = null;
  }

  // Letters of the style sheet grow with the screen; those of figures that Python draws have to be told.
  function tellScale() {
    const letter = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const scale = Math.max(1, Math.round((10 * letter) / LETTER) / 10);
    if (scale !== data.scale) setTriggerValue("scale", scale);
  }

  // A picture that plays takes a step, as long as it has one (charts/canvas/source/drawings/living_picture/player.js).
  function stepOrTurn(by) {
    if (document.dispatchEvent(new CustomEvent("glassformer-step", { detail: by, cancelable: true }))) turn(by);
  }

  // The room looks at the one who speaks; the next of these keys brings the page back.
  function darken() {
    mine.dark?.remove();
    if (mine.dark) mine.dark = null;
    else {
      mine.dark = element(document.body, "div", "darkness");
      mine.dark.style.cssText = "position: fixed; inset: 0; z-index: 1000000; background: black";
    }
  }

  function turn(by) {
    if (data.turn[by > 0 ? 1 : 0]) setTriggerValue("move", { what: "turn", to: by });
  }

  function fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen?.().catch(() => {}); // a browser may forbid it
  }

  function leave() {
    if (document.fullscreenElement) document.exitFullscreen();
    setTriggerValue("move", { what: "leave", to: 0 });
  }

  function hint(keys, name, onclick) {
    if (!name) return;
    const place = element(line, onclick ? "button" : "span", "");
    if (onclick) {
      place.type = "button";
      place.onclick = onclick;
    }
    for (const key of keys) element(place, "kbd", "", key);
    place.append(` ${data.words[name]}`);
  }

  function element(parent, tag, name, text) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return parent.appendChild(made);
  }
}
