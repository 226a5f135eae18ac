// Streamlit disables its boxes while there is no server, and the next server runs nothing by itself. Whoever types in that
// moment goes on: the box is enabled at once, keeps the keyboard, and what it holds is sent when a server is back.
const BOX = ".st-key-sentence-row :is(input, textarea)";

export default function ({ setTriggerValue }) {
  const app = document.querySelector("[data-testid=stApp]");
  let box = null; // what has the keyboard
  const focused = ({ target }) => (box = target.matches?.(BOX) ? target : null);
  const left = ({ target }) => !target.disabled && (box = null);
  document.addEventListener("focusin", focused);
  document.addEventListener("focusout", left);
  let lost = false;
  const observer = new MutationObserver((changes) => {
    for (const { target } of changes)
      if (target.disabled && target.matches(BOX)) {
        target.disabled = false;
        if (target === box) target.focus();
      }
    const connected = app.dataset.testConnectionState === "CONNECTED";
    if (connected && lost) setTriggerValue("again", true);
    lost = !connected;
  });
  observer.observe(app, { subtree: true, attributeFilter: ["disabled", "data-test-connection-state"] });
  return () => {
    observer.disconnect();
    document.removeEventListener("focusin", focused);
    document.removeEventListener("focusout", left);
  };
}
