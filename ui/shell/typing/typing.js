// What is typed into one of Streamlit's boxes is taken after a pause, at once on Enter (Shift+Enter: a new line), and
// before a click elsewhere does what it does. The box keeps its draft; this only presses the keys that Streamlit waits for.
// In its other boxes what is typed is taken before such a click as well, or the page that was clicked would not open.
// Where the server goes away, what it has not answered is kept, and so is what is typed until the next one is there.
const SHORTEST = 300; // milliseconds of a pause
const LONGEST = 1500;
const SLOW = 4000; // a page that takes longer than this waits for Enter
const AT_ONCE = 50; // Streamlit sends what was typed a moment later; a click that is heard before would overtake it
const OTHERS = ["stTextInput", "stTextArea", "stNumberInput"].map((name) => `[data-testid=${name}]`).join();

export default function ({ parentElement, data, setTriggerValue }) {
  const typing = (globalThis.glassformerTyping ??= new Typing());
  typing.boxes = data.boxes;
  typing.runAgain = () => setTriggerValue("again", true);
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

// As a key does it: behind the back of React, which hears of it by an event.
function show(box, text) {
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(box), "value").set.call(box, text);
}

class Typing {
  boxes = [];
  say = () => {};
  runAgain = () => {};
  #dirty = new Set(); // boxes whose draft has not been taken
  #others = new Set(); // boxes that are not followed, and hold what has not been taken
  #drafts = new Map(); // by the name of a box: its text and where the caret is, until that has been answered
  #writes = ""; // the name of the box that is written in
  #lost = false; // whether the server has gone before it answered
  #timer = 0;
  #taken = -Infinity; // when a draft was last taken before a click
  #durations = []; // of the last answers, in milliseconds
  #asked = 0;
  #under = null; // what the pointer went down on
  #entry = false; // whether the address of a half typed sentence is the newest entry of the browser's history
  #whole = false; // whether the sentence that was taken last is complete

  constructor() {
    const capture = { capture: true };
    document.addEventListener("input", (event) => this.#typed(event), capture);
    document.addEventListener("keydown", (event) => this.#pressed(event), capture);
    document.addEventListener("focusout", (event) => this.#left(event), capture);
    window.addEventListener("pointerdown", (event) => this.#elsewhere(event), capture);
    window.addEventListener("click", (event) => this.#clicked(event), capture);
    window.addEventListener("pointerup", (event) => this.#released(event), capture);
    this.#measure();
    window.addEventListener("popstate", () => (this.#entry = false)); // Back leads to another entry
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
    for (const box of this.#others) this.#enter(box);
    this.#others.clear();
    for (const box of [...this.#dirty]) this.#take(box);
    this.#sentenceIsWhole();
  }

  #box(event) {
    const box = event.composedPath?.()[0];
    if (!(box instanceof HTMLTextAreaElement || box instanceof HTMLInputElement)) return null;
    return this.#name(box) ? box : null;
  }

  #name(box) {
    return this.boxes.find((name) => box.closest(`.${CSS.escape(name)}`));
  }

  #named(name) {
    return document.querySelector(`.${CSS.escape(name)} :is(textarea, input)`);
  }

  #note(box) {
    this.#drafts.set(this.#name(box), { text: box.value, caret: box.selectionEnd });
  }

  #typed(event) {
    const box = this.#box(event);
    if (!box) return this.#typedInAnother(event.composedPath()[0]);
    this.#dirty.add(box);
    this.#writes = this.#name(box);
    this.#note(box);
    clearTimeout(this.#timer);
    if (event.isComposing || this.waits) return;
    const pause = Math.min(LONGEST, Math.max(SHORTEST, this.#duration / 2));
    this.#timer = setTimeout(() => this.#take(box), pause);
  }

  #typedInAnother(box) {
    if (box.closest?.(OTHERS) && !box.closest("[data-testid=stForm]")) this.#others.add(box);
  }

  #pressed(event) {
    if (this.#lost) return this.#writeOn(event);
    const box = this.#box(event);
    if (!box || !event.isTrusted || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (box instanceof HTMLTextAreaElement) event.preventDefault(); // no new line
    this.#take(box);
    this.#sentenceIsWhole();
  }

  // Streamlit takes what is left by itself.
  #left(event) {
    this.#others.delete(event.composedPath()[0]);
    const box = this.#box(event);
    if (!box) return;
    if (this.#dirty.delete(box)) this.#asked = performance.now();
    if (!box.disabled) this.#writes = "";
    clearTimeout(this.#timer);
    this.#sentenceIsWhole();
  }

  #elsewhere(event) {
    this.#under = event.composedPath()[0];
    if (![...this.#dirty, ...this.#others].some((box) => box !== this.#under)) return;
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
    if (box.disabled) return; // there is no server
    if (this.#dirty.delete(box)) this.#asked = performance.now(); // an unchanged sentence gets no answer
    this.#whole = false;
    this.#enter(box);
  }

  #enter(box) {
    const ctrlKey = box instanceof HTMLTextAreaElement;
    box.dispatchEvent(
      new KeyboardEvent("keydown", { key: "Enter", code: "Enter", ctrlKey, bubbles: true, cancelable: true }),
    );
  }

  #measure() {
    const app = document.querySelector("[data-testid=stApp]");
    let ran = false;
    new MutationObserver(() => {
      const { testScriptState: state, testConnectionState: connection } = app.dataset;
      if (connection !== "CONNECTED") {
        const box = this.#writes && this.#named(this.#writes);
        if (box && !this.#drafts.has(this.#writes)) this.#note(box);
        this.#lost ||= this.#drafts.size > 0;
        ran = false;
        return;
      }
      if (state === "running") ran = true;
      if (state === "running" || (!ran && !this.#lost)) return;
      if (this.#lost) {
        if (ran)
          setTimeout(() => this.#putBack(), SHORTEST); // Streamlit draws what it was sent a moment later
        else this.runAgain(); // a new server knows no box before its first run
      } else if (this.#asked) {
        this.#durations = [...this.#durations.slice(-1), performance.now() - this.#asked];
        this.#asked = 0;
        const open = [...this.#dirty].map((box) => this.#name(box));
        for (const name of this.#drafts.keys()) if (!open.includes(name)) this.#drafts.delete(name);
        this.say();
      }
      ran = false;
    }).observe(app, { attributeFilter: ["data-test-script-state", "data-test-connection-state"] });
  }

  // The keys of who goes on typing while no box takes them.
  #writeOn(event) {
    const draft = this.#drafts.get(this.#writes);
    const erases = event.key === "Backspace";
    if (!draft || event.ctrlKey || event.metaKey || event.altKey || !(erases || event.key.length === 1)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const before = draft.text.slice(0, draft.caret);
    const written = erases ? before.slice(0, -1) : before + event.key;
    draft.text = written + draft.text.slice(draft.caret);
    draft.caret = written.length;
    const box = this.#named(this.#writes);
    if (box) show(box, draft.text);
  }

  #putBack() {
    this.#lost = false;
    for (const [name, { text, caret }] of [...this.#drafts]) {
      const box = this.#named(name);
      if (!box) continue;
      show(box, text);
      box.dispatchEvent(new Event("input", { bubbles: true }));
      if (name === this.#writes) {
        box.focus();
        box.setSelectionRange(caret, caret);
      }
      this.#take(box);
    }
  }

  #sentenceIsWhole() {
    this.#whole = true;
    if (!this.#asked) this.#entry = false;
  }

  // Whether an address replaces the newest entry of the history: a sentence makes one entry, not one per pause in typing.
  // frame.js asks for every address; `here`: it is an address of the page that is shown, not of one that is being opened.
  takesPlace(here) {
    const half = this.#entry && this.#asked > 0;
    this.#entry = here && this.#asked > 0 && !this.#whole;
    return half && here;
  }
}
