// What Streamlit calls: once when the component appears, again at every rerun with new data and every change of theme.

import { createDrawing } from "./drawings/kinds.js";
import { Stage } from "./frame/stage.js";

export { showDocument } from "./document.js";
export { showPage } from "./page.js";

const stages = new WeakMap();

export default async function draw(component) {
  const { parentElement } = component;
  if (!stages.has(parentElement)) stages.set(parentElement, new Stage(parentElement));
  const stage = stages.get(parentElement);
  const setTriggerValue = (event, value) => {
    // At once: Python's answer comes a tenth of a second later. A drawing may ask for something while it is being made.
    if (stage.drawing?.outline?.(value)) stage.schedule(true);
    component.setTriggerValue(event, value);
  };
  const updated = stage.update({ ...component, setTriggerValue }, createDrawing);
  const generation = stage.generation;
  await updated;
  return () => {
    // Streamlit also cleans up a call that was overtaken by a newer one: only the newest may take the stage down.
    if (generation !== stage.generation) return;
    stages.delete(parentElement);
    stage.destroy();
  };
}
