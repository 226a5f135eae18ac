// What a page needs of the browser itself: the language of the document, a way past everything to the figure, and the
// figure in sight at every step of a lesson.
const FIGURE = "canvas, .js-plotly-plot, svg.marks, .diagram, .chips";
const PATIENCE = 8000; // milliseconds; a figure comes after this script

export default function ({ data }) {
  const root = document.documentElement;
  root.lang = data.language;
  const skip = document.querySelector(".skip-to-figure") ?? document.createElement("button");
  skip.className = "skip-to-figure";
  skip.type = "button";
  skip.textContent = data.skip;
  skip.onclick = () => whenThere(focus);
  if (document.body.firstChild !== skip) document.body.prepend(skip);
  if (root.dataset.step !== data.step && data.step) whenThere(show);
  root.dataset.step = data.step;
}

function figure() {
  const large = (node) => {
    const box = node.getBoundingClientRect();
    return node.checkVisibility() && box.width > 250 && box.height > 110;
  };
  const found = (node) => {
    if (node.matches?.(FIGURE) && large(node)) return node;
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

function show(there) {
  const bar = document.querySelector(".st-key-lesson-bar")?.getBoundingClientRect();
  const top = (bar?.bottom ?? 0) + 8;
  const box = there.getBoundingClientRect();
  const main = document.querySelector("[data-testid=stMain]");
  // Its lower edge, unless its upper edge would go out of sight.
  const by = Math.min(box.top - top, box.bottom + 12 - window.innerHeight);
  if (by > 0) main.scrollBy({ top: by });
}
