// What a page needs of the browser itself: the language of the document, a way past everything to the figure, and the
// figure in sight at every step of a lesson; and what it shows, for the files of its figures.
const FIGURE = "canvas, .js-plotly-plot, svg.marks, .diagram, .chips";
const COMES_LATE = 60000; // milliseconds; a part of a page may wait for long computations
const PATIENCE = 20000; // milliseconds; a figure comes after this script, and a class of thirty keeps a laptop busy

const COMES_AFTER = 100; // milliseconds; a box that is left has sent by then what it holds
const LINKS = "a:is([data-testid=stTopNavLink], [data-testid=stTopNavDropdownLink], [data-testid^=stPageLink])";
const LOOK_AGAIN = 300; // milliseconds; no event tells of every change of the address in all browsers

export default function ({ data, setTriggerValue }) {
  const root = document.documentElement;
  root.lang = data.language;
  root.style.setProperty("--other-pages", JSON.stringify(data.others)); // page.css
  globalThis.glassformerView = data.view; // what files of its figures say (charts/canvas/source/scene/exports.js)
  (globalThis.glassformerPdf ??= {}).ask = () => setTriggerValue("pdf", true); // charts/canvas/source/scene/pdf.js
  makeOneEntry(data.pages);
  turnPages(data.presents);
  letBoxesSpeakFirst();
  showWhatIsSaid();
  const skip = document.querySelector(".skip-to-figure") ?? document.createElement("button");
  skip.className = "skip-to-figure";
  skip.type = "button";
  skip.textContent = data.skip;
  skip.onclick = () => whenThere(focus);
  if (document.body.firstChild !== skip) document.body.prepend(skip);
  if (root.dataset.step !== data.step) globalThis.glassformerInSight?.(); // that of the previous step
  if (root.dataset.step !== data.step && data.step) keepInSight(data);
  else if (root.dataset.step && !data.step) document.querySelector("[data-testid=stMain]").scrollTo({ top: 0 });
  root.dataset.step = data.step;
}

// A chart that is wider than a phone begins at the part that its page is about (`show_figure` in ui/show/figures.py).
function showWhatIsSaid() {
  clearInterval(globalThis.glassformerWide); // of the run before
  const end = Date.now() + PATIENCE;
  globalThis.glassformerWide = setInterval(() => {
    for (const chart of document.querySelectorAll("[class*=st-key-chart-]")) {
      const about = Number(getComputedStyle(chart).getPropertyValue("--about"));
      if (!about || chart.dataset.about === String(about) || chart.scrollWidth <= chart.clientWidth) continue;
      chart.scrollLeft = about * chart.scrollWidth - chart.clientWidth / 2;
      chart.dataset.about = String(about);
    }
    if (Date.now() > end) clearInterval(globalThis.glassformerWide);
  }, LOOK_AGAIN);
}

// Opening another page makes one entry in the history (ui/shell/address.py). Its address is sent before the navigation,
// and names the page: on that message, and on it alone, the browser turns to the page. Streamlit would do so when React
// draws, which in a busy browser is after the page's final address has come, or after it has turned to the next page. The
// entry carries the name until the final address takes the place of it. `pages`: their names; the first lives at "/".
// Typing a sentence makes one entry, too, not one per pause: the next pause replaces it.
function makeOneEntry(pages) {
  if (globalThis.glassformerPush) return;
  const push = (globalThis.glassformerPush = history.pushState.bind(history));
  const replace = history.replaceState.bind(history);
  const opened = ({ search }) => pages.find((name) => name === new URLSearchParams(search).get("opening"));
  const sentenceOf = ({ search }) => new URLSearchParams(search).get("sentence");
  let typed = ""; // the address of the entry that typing has made last
  const pathOf = (name) => {
    const parts = location.pathname.replace(/\/$/, "").split("/");
    if (pages.includes(parts.at(-1))) parts.pop();
    return [...parts, name === pages[0] ? "" : name].join("/");
  };
  const write = (usually) => (state, unused, address) => {
    const next = new URL(address ?? location.href, location.href);
    if (next.pathname !== location.pathname) return;
    const name = opened(next);
    if (name) next.pathname = pathOf(name);
    const here = !name && !opened(location);
    const types = here && sentenceOf(next) !== sentenceOf(location);
    const goesOn = types && location.href === typed;
    if (next.pathname !== location.pathname) {
      push(state, unused, next);
      document.querySelector("[data-testid=stMain]").scrollTo({ top: 0 }); // the sentence stands at the top
    } else if (!name) (here && !goesOn ? usually : replace)(state, unused, next);
    if (types) typed = location.href;
  };
  history.pushState = write(push);
  history.replaceState = write(replace);
}

// A box sends what it holds when it is left, in a task of its own, and names its page. Where a click on another page came
// first, that message would lead back.
function letBoxesSpeakFirst() {
  if (globalThis.glassformerLeft !== undefined) return;
  globalThis.glassformerLeft = -Infinity;
  document.addEventListener("focusout", ({ target }) => {
    if (target.matches("input, textarea")) globalThis.glassformerLeft = performance.now();
  });
  const click = (event) => {
    const link = event.target.closest(LINKS);
    const isPlain = event.isTrusted && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (!link || !isPlain || performance.now() - globalThis.glassformerLeft > COMES_AFTER) return;
    event.preventDefault();
    event.stopPropagation();
    setTimeout(() => link.click(), COMES_AFTER);
  };
  document.addEventListener("click", click, { capture: true });
}

// Page Up and Page Down, which a presenter's remote sends: a step of the picture that plays (player.js), as long as it has
// one, then a step of the lesson, or else a page.
function turnPages(presents) {
  window.removeEventListener("keydown", globalThis.glassformerTurn, { capture: true });
  const ways = { PageUp: [-1, ".st-key-lesson-back button", ".st-key-page-before a"] };
  ways.PageDown = [1, ".st-key-lesson-next button", ".st-key-page-after a"];
  globalThis.glassformerTurn = (event) => {
    const [by, step, page] = ways[event.key] ?? [];
    if (
      !by ||
      event.composedPath()[0].closest?.("input:not([type=range], [type=checkbox], [type=radio]), textarea, select")
    )
      return;
    event.stopPropagation();
    event.preventDefault(); // or the page would scroll
    if (document.dispatchEvent(new CustomEvent("glassformer-step", { detail: by, cancelable: true })))
      (document.querySelector(step) ?? document.querySelector(page))?.click();
  };
  if (presents) window.addEventListener("keydown", globalThis.glassformerTurn, { capture: true });
}

function figure() {
  const large = (node) => {
    const box = node.getBoundingClientRect();
    return node.checkVisibility() && box.width > 250 && box.height > 110;
  };
  const found = (node) => {
    if (node.matches?.(FIGURE) && large(node)) return node;
    if (node.matches?.("[data-testid=stDataFrame]")) return null; // a table draws on a canvas, too
    for (const child of [...(node.shadowRoot?.children ?? []), ...node.children]) {
      const inside = found(child);
      if (inside) return inside;
    }
    return null;
  };
  const main = document.querySelector("[data-testid=stMain]");
  return main && found(main);
}

function whenThere(act, end = Date.now() + PATIENCE) {
  const there = figure();
  if (there) act(there);
  else if (Date.now() < end) setTimeout(() => whenThere(act, end), 100);
}

function focus(there) {
  if (there.tabIndex < 0) there.tabIndex = -1;
  there.focus();
}

// Until everything has its place, or the reader takes over. `figure`: a part of the page; "" for its first figure.
// `lights`: the controls that the step names, on the page or in the sidebar.
function keepInSight({ figure: part, lights }) {
  let bar = null;
  const main = document.querySelector("[data-testid=stMain]");
  main.style.overflowAnchor = "none"; // the browser would follow what the page draws above the figure
  const stop = (globalThis.glassformerInSight = () => {
    growth.disconnect();
    main.style.removeProperty("overflow-anchor");
  });
  const growth = new ResizeObserver(() => {
    const there = document.querySelector(".st-key-lesson-bar");
    if (there && there !== bar) growth.observe((bar = there)); // it comes and grows after the page
    if (bar && !there) return; // while another page opens
    show(part, lights);
  });
  growth.observe(document.querySelector("[data-testid=stMainBlockContainer]"));
  for (const what of ["wheel", "pointerdown", "keydown"]) window.addEventListener(what, stop, { once: true });
  setTimeout(stop, COMES_LATE);
}

// Between the row of pages and the lesson's bar at the foot; the upper edge counts most. Where the part that is named
// stands above the figure, both; and the controls that are lit, as far as they fit with it.
function show(name, lights) {
  const first = figure();
  const there = name ? document.querySelector(`.st-key-${name}`) : first;
  if (!there) return;
  const place = (node) => (node.getRootNode().host ?? node).getBoundingClientRect(); // a picture with its controls
  const [row, bar] = ["[data-testid=stHeader]", ".st-key-lesson-bar"].map((part) => document.querySelector(part));
  const upper = row.offsetHeight + (document.querySelector(".st-key-class-bar")?.offsetHeight ?? 0) + 8;
  const lower = (bar?.getBoundingClientRect().top ?? window.innerHeight) - 8;
  const main = document.querySelector("[data-testid=stMain]");
  let { top, bottom } = place(there);
  if (first && place(first).top > top) bottom = Math.max(bottom, place(first).bottom);
  for (const lit of lights.map((key) => document.querySelector(`.st-key-${key}`))) {
    if (lit?.closest("[data-testid=stSidebar]")) lit.scrollIntoView({ block: "nearest" });
    else if (lit?.checkVisibility()) {
      const box = lit.getBoundingClientRect();
      const [highest, lowest] = [Math.min(top, box.top), Math.max(bottom, box.bottom)];
      if (lower - upper - (top - highest) < 0.75 * (bottom - top)) continue; // the figure is what counts
      [top, bottom] = [highest, lowest];
    }
  }
  const by = Math.min(top - upper, Math.max(0, bottom - lower));
  if (by) main.scrollBy({ top: by });
}
