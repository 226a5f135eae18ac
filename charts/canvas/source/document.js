// Several drawings in one file on a disk (charts/documents/document.py): each in its <figure>, with what a click on one of its
// cells says; and parts of which one is seen at a time.

import { createDrawing } from "./drawings/kinds.js";
import { Stage } from "./frame/stage.js";
import { fromBase64 } from "./toolkit/base64.js";
import { make } from "./toolkit/elements.js";
import { decodePayload, withMetadata } from "./toolkit/payload.js";

const text = (bytes) => new TextDecoder().decode(bytes);

export async function showDocument() {
  const read = (id) => fromBase64(document.getElementById(id).textContent);
  const [script, { words, language, view }] = [read("script"), JSON.parse(text(read("shared")))];
  globalThis.glassformerView = view;
  for (const choice of document.querySelectorAll(".views")) choice.addEventListener("change", showChosen);
  const places = [...document.querySelectorAll("figure.drawing")];
  const stages = places.map((place) => new Stage(place.querySelector("div").attachShadow({ mode: "open" })));
  showAllOnPaper(stages);
  for (const [index, place] of places.entries()) await showFigure(place, stages[index], script, { words, language });
}

// What is hidden has no width and so no picture yet.
function showAllOnPaper(stages) {
  let hidden = [];
  addEventListener("beforeprint", () => {
    hidden = [...document.querySelectorAll(".view[hidden]")];
    for (const view of hidden) view.hidden = false;
    for (const stage of stages) stage.refresh();
  });
  addEventListener("afterprint", () => {
    for (const view of hidden) view.hidden = true;
  });
}

function showChosen({ currentTarget, target }) {
  const views = [...currentTarget.parentElement.children].filter((child) => child.classList.contains("view"));
  views.forEach((view, index) => (view.hidden = index !== Number(target.value)));
}

async function showFigure(place, stage, script, spoken) {
  const data = withMetadata(fromBase64(place.querySelector("script").textContent), spoken);
  const { arrays } = await decodePayload(data);
  const lines = arrays.lines && JSON.parse(text(arrays.lines.values));
  const setTriggerValue = (_, value) => {
    stage.drawing.choose?.(value);
    stage.refresh();
    if (lines) say(place.querySelector("output"), lines, stage.drawing.metadata.selected);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => stage.refresh());
  await stage.update({ data, script, setTriggerValue }, createDrawing);
}

// Of the cell that is chosen; a second click lets go of it.
function say(output, lines, selected) {
  output.hidden = !selected;
  output.replaceChildren(
    ...(selected ? lines[selected[0]][selected[1]] : []).map((line) => make("p", { textContent: line })),
  );
}
