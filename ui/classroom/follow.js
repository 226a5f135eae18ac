// Before the page of a student turns to the instructor's view, it waits for a pause in typing: the box sends what is typed by
// itself, so that the server then knows it and can bring it back.
const PAUSE = 1000; // milliseconds without a key
const PATIENCE = 10000; // nobody is waited for longer
const AGAIN = 3000; // the page may have been too busy to hear it

export default function ({ data, setTriggerValue }) {
  const following = (globalThis.glassformerFollowing ??= begin());
  if (following.view !== data.view) Object.assign(following, { view: data.view, since: performance.now() });
  following.report = () => setTriggerValue("ready", data.view);
  clearTimeout(following.timer);
  if (data.view) following.timer = setTimeout(() => turn(following), Math.max(0, following.next - performance.now()));
}

function begin() {
  const following = { view: 0, since: 0, typed: -Infinity, next: 0, timer: 0, report: () => {} };
  document.addEventListener("input", () => (following.typed = performance.now()), { capture: true });
  return following;
}

function turn(following) {
  const now = performance.now();
  const left = following.typed + PAUSE - now;
  if (left > 0 && now - following.since < PATIENCE) {
    following.timer = setTimeout(() => turn(following), left);
    return;
  }
  following.next = now + AGAIN;
  following.report();
}
