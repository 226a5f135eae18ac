// Several drawings in one file on a disk (charts/documents/document.py): each in its <figure>.

import { createDrawing } from "./drawings/kinds.js";
import { Stage } from "./frame/stage.js";
import { fromBase64 } from "./toolkit/base64.js";
import { withMetadata } from "./toolkit/payload.js";

export async function showDocument() {
  const read = (id) => fromBase64(document.getElementById(id).textContent);
  const [script, { words, language }] = [read("script"), JSON.parse(new TextDecoder().decode(read("shared")))];
  const places = [...document.querySelectorAll("figure.drawing")];
  const stages = places.map((place) => new Stage(place.querySelector("div").attachShadow({ mode: "open" })));
  addEventListener("beforeprint", () => stages.forEach((stage) => stage.refresh()));
  for (const [index, place] of places.entries()) await showFigure(place, stages[index], script, { words, language });
}

async function showFigure(place, stage, script, spoken) {
  const data = withMetadata(fromBase64(place.querySelector("script").textContent), spoken);
  const setTriggerValue = (_, value) => {
    stage.drawing.choose?.(value);
    stage.refresh();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => stage.refresh());
  await stage.update({ data, script, setTriggerValue }, createDrawing);
}
