// What Streamlit calls: the sheet, and what a reader changes, sent to Python once the hand rests.
//
// data: as in sheet.js, and brought: whether `state` comes from an address rather than from this sheet itself

import { Sheet } from "./sheet.js";

const PATIENCE = 350; // milliseconds
const sheets = new WeakMap();

export default function (component) {
  const { parentElement, data } = component;
  const held = sheets.get(parentElement);
  if (held && held.language === data.language && held.place.isConnected) {
    held.trigger = component.setTriggerValue;
    listen(held, data);
    return;
  }
  held?.place.remove();
  sheets.set(parentElement, mount(component));
}

function mount({ parentElement, data, setTriggerValue }) {
  const place = parentElement.appendChild(document.createElement("div"));
  const held = { place, language: data.language, trigger: setTriggerValue, known: JSON.stringify(data.state) };
  const events = {
    onChange(texts) {
      clearTimeout(held.timer);
      held.timer = setTimeout(() => {
        held.timer = null;
        held.known = JSON.stringify(texts);
        held.trigger("state", texts);
      }, PATIENCE);
    },
    onOpen: (page) => held.trigger("opened", page),
  };
  held.sheet = new Sheet(place, data, events);
  return held;
}

function listen(held, data) {
  const state = JSON.stringify(data.state);
  if (!data.brought || state === held.known || held.timer) return;
  held.known = state;
  held.sheet.show(data.state);
}
