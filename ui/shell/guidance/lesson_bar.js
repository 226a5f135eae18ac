// Where the bar of a lesson and what it covers stand: the page keeps room for the bar below its end, and the cover of a
// whole page reaches from the tokens of the sentence down to the bar. And when its question can be answered: once the
// living picture, if the step stops it, has reached the stop that the question is about.
const PATIENCE = 20000; // milliseconds; where no picture comes, nobody waits for it longer

export default function ({ data }) {
  const root = document.documentElement;
  const find = (part) => document.querySelector(part);
  if (!find(".st-key-lesson-bar")) return; // the lesson was left while this script was loaded
  const measure = () => {
    const [bar, header, side] = [".st-key-lesson-bar", "[data-testid=stHeader]", "[data-testid=stSidebar]"].map(find);
    if (!bar) return;
    const above = Math.max(
      0,
      ...[".st-key-class-bar", ".st-key-page-head", ".st-key-token-strip"].map(
        (part) => find(part)?.getBoundingClientRect().bottom ?? 0,
      ),
    );
    beginAtTop(find(".st-key-lesson-hint") ? `${data.step} hint` : data.step, root);
    root.style.setProperty("--lesson-bar", `${bar.offsetHeight}px`);
    root.style.setProperty("--lesson-left", `${Math.max(0, side?.getBoundingClientRect().right ?? 0)}px`);
    root.style.setProperty("--lesson-veil-top", `${Math.max(above, header?.offsetHeight ?? 0) + 8}px`);
  };
  const changes = new ResizeObserver(measure);
  for (const part of [
    ".st-key-lesson-bar",
    "[data-testid=stMain]",
    "[data-testid=stMainBlockContainer]",
    ".st-key-token-strip",
  ])
    if (find(part)) changes.observe(find(part));
  const words = new MutationObserver(measure); // a hint may be as tall as what it replaces
  if (find(".st-key-lesson-bar")) words.observe(find(".st-key-lesson-bar"), { childList: true, subtree: true });
  const main = find("[data-testid=stMain]");
  main?.addEventListener("scroll", measure, { passive: true });
  measure();
  globalThis.glassformerEndWait?.(); // of a step that was left on another page
  const endWait = (globalThis.glassformerEndWait = data.waitsFor ? waitForPicture(data, root) : () => {});
  return () => {
    endWait();
    changes.disconnect();
    words.disconnect();
    main?.removeEventListener("scroll", measure);
    for (const name of ["--lesson-bar", "--lesson-left", "--lesson-veil-top"]) root.style.removeProperty(name);
  };
}

// In a narrow window a long bar is scrolled: each step, and the hint after a wrong guess, begins at the top.
function beginAtTop(step, root) {
  if (root.dataset.lessonStep === step) return;
  document.querySelector(".st-key-lesson-bar").scrollTop = 0;
  root.dataset.lessonStep = step;
}

// The picture says which step's stop it shows (living_picture/player.js). Until then the question is there to be read. A
// rerun may draw the question anew: what holds it back is set again.
function waitForPicture({ waitsFor, wait }, root) {
  const question = () => document.querySelector(".st-key-lesson-question");
  const hold = () => {
    if (root.dataset.pictureStep === waitsFor) return end();
    const there = question();
    if (there && !there.inert) there.inert = true;
    root.style.setProperty("--lesson-wait", JSON.stringify(wait));
  };
  const end = () => {
    watch.disconnect();
    clearTimeout(late);
    question()?.removeAttribute("inert");
    root.style.removeProperty("--lesson-wait");
  };
  const watch = new MutationObserver(hold);
  const late = setTimeout(end, PATIENCE);
  watch.observe(root, { attributes: true, attributeFilter: ["data-picture-step"] });
  const bar = document.querySelector(".st-key-lesson-bar"); // missing if the reader has left in the meantime
  if (bar) watch.observe(bar, { childList: true, subtree: true });
  hold();
  return end;
}
