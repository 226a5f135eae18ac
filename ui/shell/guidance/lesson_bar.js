// Where the bar of a lesson and what it covers stand: the page keeps room for the bar below its end, and the cover of a
// whole page reaches from the tokens of the sentence down to the bar.
export default function () {
  const root = document.documentElement.style;
  const find = (part) => document.querySelector(part);
  const measure = () => {
    const [bar, header, side] = [".st-key-lesson-bar", "[data-testid=stHeader]", "[data-testid=stSidebar]"].map(find);
    if (!bar) return;
    const above = Math.max(
      0,
      ...[".st-key-page-head", ".st-key-token-strip"].map((part) => find(part)?.getBoundingClientRect().bottom ?? 0),
    );
    root.setProperty("--lesson-bar", `${bar.offsetHeight}px`);
    root.setProperty("--lesson-left", `${Math.max(0, side?.getBoundingClientRect().right ?? 0)}px`);
    root.setProperty("--lesson-veil-top", `${Math.max(above, header?.offsetHeight ?? 0) + 8}px`);
  };
  const changes = new ResizeObserver(measure);
  for (const part of [
    ".st-key-lesson-bar",
    "[data-testid=stMain]",
    "[data-testid=stMainBlockContainer]",
    ".st-key-token-strip",
  ])
    if (find(part)) changes.observe(find(part));
  const main = find("[data-testid=stMain]");
  main?.addEventListener("scroll", measure, { passive: true });
  measure();
  return () => {
    changes.disconnect();
    main?.removeEventListener("scroll", measure);
    for (const name of ["--lesson-bar", "--lesson-left", "--lesson-veil-top"]) root.removeProperty(name);
  };
}
