// What is typed into one of Streamlit's boxes is taken after a pause, at once on Enter (Shift+Enter: a new line), and
// before a click elsewhere does what it does. The box keeps its draft; this only presses the keys that Streamlit waits for.
const SHORTEST = 300; // milliseconds of a pause
const LONGEST = 1500;
const SLOW = 4000; // a page that takes longer than this waits for Enter
const AT_ONCE = 50; // Streamlit sends what was typed a moment later; a click that is heard before would overtake it

export default function ({ parentElement, data }) {
  const typing = (globalThis.glassformerTyping ??= new Typing());
  typing.boxes = data.boxes;
  let line = parentElement.querySelector(".line");
  if (!line) {
    line = parentElement.appendChild(document.createElement("div"));
    line.className = "line";
    const run = line.appendChild(document.createElement("button"));
    run.type = "button";
    run.onclick = () => typing.takeAll();
    line.appendChild(document.createElement("span")).setAttribute("role", "status");
  }
  line.hidden = !data.line;
  const [run, hint] = line.children;
  run.textContent = data.words.run;
  run.title = data.words.run_help;
  typing.say = () => {
    const seconds = (typing.seconds ?? 0).toLocaleString(document.documentElement.lang, { maximumFractionDigits: 1 });
    const text = typing.waits ? data.words.waits.replace("{seconds}", seconds) : data.words.follows;
    if (hint.textContent !== text) hint.textContent = text;
  };
  typing.say();
}

class Typing {
  boxes = [];
  say = () => {};
  #dirty = new Set(); // boxes whose draft has not been taken
  #timer = 0;
  #taken = -Infinity; // when a draft was last taken before a click
  #durations = []; // of the last answers, in milliseconds
  #asked = 0;
  #under = null; // what the pointer went down on
  #entry = false; // whether the address of a half typed sentence is the newest entry of the browser's history
  #ending = false;

  constructor() {
    const capture = { capture: true };
    document.addEventListener("input", (event) => this.#typed(event), capture);
    document.addEventListener("keydown", (event) => this.#pressed(event), capture);
    document.addEventListener("focusout", (event) => this.#left(event), capture);
    window.addEventListener("pointerdown", (event) => this.#elsewhere(event), capture);
    window.addEventListener("click", (event) => this.#clicked(event), capture);
    window.addEventListener("pointerup", (event) => this.#released(event), capture);
    this.#measure();
    this.#keepHistoryShort();
  }

  // The shorter of the last two answers: a first one may have opened a model.
  get #duration() {
    return this.#durations.length ? Math.min(...this.#durations) : 0;
  }

  get seconds() {
    return this.#duration / 1000;
  }

  get waits() {
    return this.#duration > SLOW;
  }

  takeAll() {
    for (const box of [...this.#dirty]) this.#take(box);
    this.#sentenceIsWhole();
  }

  #box(event) {
    const box = event.composedPath?.()[0];
    if (!(box instanceof HTMLTextAreaElement || box instanceof HTMLInputElement)) return null;
    return this.boxes.some((name) => box.closest(`.${CSS.escape(name)}`)) ? box : null;
  }

  #typed(event) {
    const box = this.#box(event);
    if (!box) return;
    this.#dirty.add(box);
    clearTimeout(this.#timer);
    if (event.isComposing || this.waits) return;
    const pause = Math.min(LONGEST, Math.max(SHORTEST, this.#duration / 2));
    this.#timer = setTimeout(() => this.#take(box), pause);
  }

  #pressed(event) {
    const box = this.#box(event);
    if (!box || !event.isTrusted || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (box instanceof HTMLTextAreaElement) event.preventDefault(); // no new line
    this.#dirty.add(box);
    this.#take(box);
    this.#sentenceIsWhole();
  }

  // Streamlit takes what is left by itself.
  #left(event) {
    const box = this.#box(event);
    if (!box) return;
    if (this.#dirty.delete(box)) this.#asked = performance.now();
    clearTimeout(this.#timer);
    this.#sentenceIsWhole();
  }

  #elsewhere(event) {
    this.#under = event.composedPath()[0];
    if (!this.#dirty.size || this.#dirty.has(this.#box(event))) return;
    this.takeAll();
    this.#taken = performance.now();
  }

  // A click without the tenth of a second that a finger takes: heard a moment later, after the sentence.
  #clicked(event) {
    if (!event.isTrusted || performance.now() - this.#taken > AT_ONCE) return;
    this.#taken = -Infinity;
    const target = event.composedPath()[0];
    event.stopImmediatePropagation();
    event.preventDefault();
    const { clientX, clientY, ctrlKey, metaKey, shiftKey, altKey, detail } = event;
    const same = { clientX, clientY, ctrlKey, metaKey, shiftKey, altKey, detail, view: window };
    const again = new MouseEvent("click", { ...same, bubbles: true, cancelable: true, composed: true });
    setTimeout(() => target.dispatchEvent(again), AT_ONCE);
  }

  // The answer to the sentence may come while the finger is down. The browser then hears no click, since what was
  // pressed is gone: what stands in its place gets it.
  #released(event) {
    if (!this.#under || this.#under.isConnected || event.button) return;
    this.#under = null;
    let there = document.elementFromPoint(event.clientX, event.clientY);
    while (there?.shadowRoot?.elementFromPoint(event.clientX, event.clientY)) {
      const inside = there.shadowRoot.elementFromPoint(event.clientX, event.clientY);
      if (inside === there) break;
      there = inside;
    }
    const { clientX, clientY } = event;
    there?.dispatchEvent(
      new MouseEvent("click", { clientX, clientY, bubbles: true, cancelable: true, composed: true, view: window }),
    );
  }

  #take(box) {
    clearTimeout(this.#timer);
    this.#dirty.delete(box);
    this.#asked = performance.now();
    const ctrlKey = box instanceof HTMLTextAreaElement;
    box.dispatchEvent(
      new KeyboardEvent("keydown", { key: "Enter", code: "Enter", ctrlKey, bubbles: true, cancelable: true }),
    );
  }

  #measure() {
    const app = document.querySelector("[data-testid=stApp]");
    let ran = false;
    new MutationObserver(() => {
      const runs = app.dataset.testScriptState === "running";
      if (runs) ran = true;
      if (runs || !ran || !this.#asked) return;
      this.#durations = [...this.#durations.slice(-1), performance.now() - this.#asked];
      this.#asked = 0;
      ran = false;
      this.say();
    }).observe(app, { attributeFilter: ["data-test-script-state"] });
  }

  #sentenceIsWhole() {
    if (this.#asked) this.#ending = true;
    else this.#entry = false;
  }

  // One entry for a sentence, not one for each pause while it was typed.
  #keepHistoryShort() {
    const push = history.pushState.bind(history);
    history.pushState = (state, unused, address) => {
      const here = new URL(address ?? "", location.href).pathname === location.pathname;
      if (this.#entry && here && this.#asked) history.replaceState(state, unused, address);
      else push(state, unused, address);
      this.#entry = here && this.#asked > 0 && !this.#ending;
      this.#ending = false;
    };
  }
}
