// Streamlit disables its boxes while there is no server, opens a dialog that takes the keyboard, and the next server runs
// nothing by itself. Whoever types in that moment goes on: the box is enabled at once, keeps the keyboard or gets it back
// when the dialog closes, and what it holds is sent when a server is back.
// What is typed comes to the address when the server has answered. Until then the tab's storage holds it, also through Back
// and Forward, and a page that is loaded again begins with it (bringBack).
const BOX = ".st-key-sentence-row :is(input, textarea)";
const TYPED = "glassformer typed"; // in the tab's storage: the current address, and the text that was typed
const BOX_FOLLOWS = 100; // milliseconds; React sets a box after the run that changes it

let begun = false;
let brought; // the text that the page began with

export default function ({ setTriggerValue }) {
  const app = document.querySelector("[data-testid=stApp]");
  let box = null; // what has the keyboard, or had it when the server was lost
  let lost = false;
  const focused = ({ target }) => {
    if (target.matches?.(BOX)) box = target;
    else if (!lost) box = null;
  };
  const left = ({ target }) => target === box && !target.disabled && !lost && (box = null);
  if (!begun) bringBack(setTriggerValue);
  document.addEventListener("input", keep);
  window.addEventListener("popstate", follow);
  document.addEventListener("focusin", focused);
  document.addEventListener("focusout", left);
  const observer = new MutationObserver((changes) => {
    for (const { target } of changes) if (target.disabled && target.matches(BOX)) target.disabled = false;
    if (box?.isConnected && document.activeElement === document.body) box.focus();
    const connected = app.dataset.testConnectionState === "CONNECTED";
    if (connected && lost) setTriggerValue("again", true);
    lost = !connected;
    if (app.dataset.testScriptState === "notRunning") setTimeout(forgetAnswered, BOX_FOLLOWS);
  });
  const states = ["data-test-connection-state", "data-test-script-state"];
  observer.observe(app, { subtree: true, attributeFilter: ["disabled", ...states] });
  observer.observe(document.getElementById("root"), { attributeFilter: ["inert"] }); // while a dialog is open
  return () => {
    observer.disconnect();
    document.removeEventListener("input", keep);
    window.removeEventListener("popstate", follow);
    document.removeEventListener("focusin", focused);
    document.removeEventListener("focusout", left);
  };
}

function keep({ target }) {
  if (target.matches?.(BOX)) hold(target.value);
}

function hold(text) {
  storage()?.setItem(TYPED, JSON.stringify([location.href, text]));
}

function held() {
  return JSON.parse(storage()?.getItem(TYPED) ?? "[]");
}

// The box holds a text that nobody has answered on the page of Back, too.
function follow() {
  const [, text] = held();
  if (text !== undefined) hold(text);
}

function forgetAnswered() {
  const [, text] = held();
  if (text === undefined) return;
  const isRead = new URLSearchParams(location.search).get("sentence") === text;
  // by an example, or by the address of Back
  const isReplaced = text !== brought && document.querySelector(BOX)?.value !== text;
  if (isRead || isReplaced) storage()?.removeItem(TYPED);
  else hold(text); // only its beginning was answered, and the address has changed
}

function storage() {
  try {
    return sessionStorage;
  } catch {
    return null; // the browser refuses it to a page in a frame of another site
  }
}

function bringBack(setTriggerValue) {
  begun = true;
  const [address, text] = held();
  const [{ type }] = performance.getEntriesByType("navigation");
  if (type !== "navigate" && address === location.href) setTriggerValue("typed", (brought = text));
}
