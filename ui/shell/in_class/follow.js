// Before the page of a student turns to the instructor's view, what the student is typing is taken; the server then knows
// it and can bring it back.
const TAKEN = 150; // milliseconds; Streamlit sends what was typed a moment after the key that takes it

export default function ({ data, setTriggerValue }) {
  clearTimeout(globalThis.glassformerFollow);
  if (!data.view) return;
  globalThis.glassformerTyping?.takeAll();
  globalThis.glassformerFollow = setTimeout(() => setTriggerValue("ready", data.view), TAKEN);
}
