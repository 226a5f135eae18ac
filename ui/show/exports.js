// Saves a figure of Plotly as a picture. charts/canvas/build.js bundles this file with what it imports.

import { fileName, make, saveAs } from "../../charts/canvas/source/toolkit/elements.js";
import { say, useWords } from "../../charts/canvas/source/toolkit/words.js";
import { picture } from "./plotly_picture.js";

const built = new WeakMap();
const TYPES = { png: "image/png", svg: "image/svg+xml" };

export default function ({ parentElement, data }) {
  useWords(data.words);
  const wanted = JSON.stringify(data);
  if (built.get(parentElement) === wanted) return;
  built.set(parentElement, wanted);
  const offer = (format, explanation) => {
    const made = make("button", {
      type: "button",
      textContent: format.toUpperCase(),
      title: say(explanation),
      "aria-label": say(explanation),
    });
    made.addEventListener("click", () => savePicture(data, format));
    return made;
  };
  const stage = make(
    "div",
    { className: "export" },
    offer("png", "Download this figure as PNG"),
    offer("svg", "Download this figure as SVG"),
  );
  parentElement.querySelector(".export")?.remove();
  parentElement.append(stage);
}

// As it is on the screen, without what the reader is at.
async function savePicture({ name, container }, format) {
  const graph = document.querySelector(`.${CSS.escape(container)} .js-plotly-plot`);
  const others = (parts) => parts?.filter((part) => part.name !== "focus");
  const { layout, data } = graph;
  const unmarked = { ...layout, shapes: others(layout.shapes), annotations: others(layout.annotations) };
  const blob = await picture(graph, { format, scale: format === "png" ? 2 : 1 }, { data, layout: unmarked });
  saveAs(blob, TYPES[format], fileName(name, format));
}
