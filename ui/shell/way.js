// The way to what a click has opened: the keyboard goes on there, and the window moves if it must.
const PATIENCE = 3000; // milliseconds; a place that is new comes after this script
const known = new WeakMap(); // how often it was opened, as far as was seen here

export default function ({ parentElement, data }) {
  const place = () => document.querySelector(`.st-key-${data.place}`);
  if (data.aloud) return void setTimeout(() => place()?.setAttribute("aria-live", "polite"), 50);
  const before = known.get(parentElement);
  known.set(parentElement, data.opened);
  if (before === undefined || before === data.opened) return; // what an address opens moves nobody
  const end = Date.now() + PATIENCE;
  const arrive = () => {
    const there = place();
    if (there?.checkVisibility()) {
      there.tabIndex = -1;
      there.focus({ preventScroll: true });
      const { top, bottom } = there.getBoundingClientRect();
      const begins = top >= 0 && top < window.innerHeight / 2; // what is long is read from its beginning
      there.style.scrollMargin = "4rem 0 1rem"; // below the row of pages
      if (!begins && (top < 0 || bottom > window.innerHeight)) there.scrollIntoView({ block: "nearest" });
    } else if (Date.now() < end) setTimeout(arrive, 50);
  };
  setTimeout(arrive, 50); // when this run's elements are there
}
