// Streamlit disables its boxes while there is no server, opens a dialog that takes the keyboard, and the next server runs
// nothing by itself. Whoever types in that moment goes on: the box is enabled at once, keeps the keyboard or gets it back
// when the dialog closes, and what it holds is sent when a server is back.
// What is typed comes to the address when the server has answered; a reload before that brings it back (bringBack).
const BOX = ".st-key-sentence-row :is(input, textarea)";
const TYPED = "glassformer typed"; // in the tab's storage: the address while somebody types, and the text

let begun = false;

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
  document.addEventListener("focusin", focused);
  document.addEventListener("focusout", left);
  const observer = new MutationObserver((changes) => {
    for (const { target } of changes) if (target.disabled && target.matches(BOX)) target.disabled = false;
    if (box?.isConnected && document.activeElement === document.body) box.focus();
    const connected = app.dataset.testConnectionState === "CONNECTED";
    if (connected && lost) setTriggerValue("again", true);
    lost = !connected;
  });
  observer.observe(app, { subtree: true, attributeFilter: ["disabled", "data-test-connection-state"] });
  observer.observe(document.getElementById("root"), { attributeFilter: ["inert"] }); // while a dialog is open
  return () => {
    observer.disconnect();
    document.removeEventListener("input", keep);
    document.removeEventListener("focusin", focused);
    document.removeEventListener("focusout", left);
  };
}

function keep({ target }) {
  if (target.matches?.(BOX)) storage()?.setItem(TYPED, JSON.stringify([location.href, target.value]));
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
  const [address, text] = JSON.parse(storage()?.getItem(TYPED) ?? "[]");
  const [{ type }] = performance.getEntriesByType("navigation");
  if (type === "reload" && address === location.href) setTriggerValue("typed", text);
}
