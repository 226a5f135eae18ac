// What Streamlit calls: once when the component appears, again at every rerun with new data and every change of theme.

import { KINDS } from "./drawings/kinds.js";
import { Panel } from "./scene/panel.js";
import { fromBase64 } from "./toolkit/base64.js";
import { withMetadata } from "./toolkit/payload.js";

const panels = new WeakMap();

export default async function draw(component) {
  const { parentElement } = component;
  if (!panels.has(parentElement)) panels.set(parentElement, new Panel(parentElement, KINDS));
  const panel = panels.get(parentElement);
  const updated = panel.update(component);
  const { generation } = panel;
  await updated;
  return () => {
    // Streamlit also cleans up a call that was overtaken by a newer one: only the newest may take the panel down.
    if (generation !== panel.generation) return;
    panels.delete(parentElement);
    panel.destroy();
  };
}

const read = (id) => fromBase64(document.getElementById(id).textContent);

// A drawing without Streamlit: in a file on a disk, or in a notebook (page.html). What a click would tell Python, it does itself.
async function showAlone(place, data, script) {
  const panel = new Panel(place.attachShadow({ mode: "open" }), KINDS);
  const setTriggerValue = (_, value) => {
    panel.kind.choose?.(panel.data, value);
    panel.refresh();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => panel.refresh());
  addEventListener("beforeprint", () => panel.refresh());
  await panel.update({ data, script, setTriggerValue });
  return panel;
}

export async function showPage() {
  const panel = await showAlone(document.querySelector("main"), read("payload"), read("script"));
  globalThis.glassformerView = panel.metadata.view;
}

// Several drawings in one file (charts/documents/document.py), each in its <figure>.
export async function showDocument() {
  const [script, { words, language }] = [read("script"), JSON.parse(new TextDecoder().decode(read("shared")))];
  for (const figure of document.querySelectorAll("figure.drawing")) {
    const bytes = fromBase64(figure.querySelector("script").textContent);
    await showAlone(figure.querySelector("div"), withMetadata(bytes, { words, language }), script);
  }
}
