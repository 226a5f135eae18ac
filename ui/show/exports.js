// Saves a figure of Plotly or Altair as a picture, or as a vector picture for a printed column. Altair's pictures are made
// on the server: data.kind says which it is. charts/canvas/build.js bundles this file with what it imports.

import { paperForm } from "../../charts/canvas/source/frame/paper_form.js";
import { canWritePdf } from "../../charts/canvas/source/frame/pdf.js";
import { pngWith, provenance } from "../../charts/canvas/source/frame/provenance.js";
import { saveVector } from "../../charts/canvas/source/frame/vector_file.js";
import { fileName, make, saveAs } from "../../charts/canvas/source/toolkit/elements.js";
import { PAPER_FONT, PER_MILLIMETRE } from "../../charts/canvas/source/toolkit/paper.js";
import { say, useWords } from "../../charts/canvas/source/toolkit/words.js";
import { paperPicture, withoutMarks } from "./plotly_paper.js";
import { picture } from "./plotly_picture.js";

const built = new WeakMap();

export default function ({ parentElement, data, setTriggerValue }) {
  useWords(data.words);
  const wanted = JSON.stringify([data.title, data.words]);
  if (built.get(parentElement) === wanted) return; // keeps what is being typed
  built.set(parentElement, wanted);
  const button = (text, explanation, action) => {
    const made = make("button", {
      type: "button",
      textContent: say(text),
      title: say(explanation),
      "aria-label": say(explanation),
    });
    made.addEventListener("click", action);
    return made;
  };
  const graph = () => document.querySelector(`.${CSS.escape(data.container)} .js-plotly-plot`);
  const save = (format) =>
    data.kind === "plotly" ? savePicture(graph(), data, format) : setTriggerValue("wish", { format });
  const print = (paper) =>
    data.kind === "plotly"
      ? savePaper(graph(), data, paper)
      : setTriggerValue("wish", { ...paper, format: "paper", as: paper.format });
  const pictures = make(
    "div",
    { className: "pictures" },
    button("PNG", "Download this figure as PNG", () => save("png")),
    button("SVG", "Download this figure as SVG", () => save("svg")),
    ...(canWritePdf() ? [button("PDF", "Download this figure as PDF", () => save("pdf"))] : []),
  );
  const stage = make("div", { className: "export" }, pictures, paperForm(data.title, button, print));
  // Letters typed here are not for the app's own keys.
  stage.addEventListener("keydown", (event) => event.stopPropagation());
  parentElement.querySelector(".export")?.remove();
  parentElement.append(stage);
}

// As it is on the screen; what is embedded in a PDF is a font as wide as PAPER_FONT.
async function savePicture(graph, { name, title }, format) {
  const layout = withoutMarks(graph.layout);
  const said = provenance(title);
  if (format === "png") {
    const blob = await picture(graph, { format, scale: 2 }, { data: graph.data, layout });
    return saveAs(await pngWith(blob, said), "image/png", `${name}.png`);
  }
  if (format === "pdf") layout.font = { ...layout.font, family: PAPER_FONT };
  const svg = await (await picture(graph, { format: "svg" }, { data: graph.data, layout })).text();
  return saveVector(svg, format, said, `${name}.${format}`);
}

// Laid out anew for a column; its size is then written in millimetres.
async function savePaper(graph, { name, title: proposed, scales }, { title, millimetres, points, format }) {
  const width = millimetres * PER_MILLIMETRE;
  const { svg, height } = await paperPicture(graph, { title, width, points, scales });
  const size = `width="${millimetres}mm" height="${((millimetres * height) / width).toFixed(2)}mm"`;
  const sized = svg.replace(/<svg\b[^>]*>/, (head) =>
    head
      .replace(/ width="[^"]*"/, "")
      .replace(/ height="[^"]*"/, "")
      .replace("<svg", `<svg ${size}`),
  );
  return saveVector(sized, format, provenance(title || proposed), fileName(`${name} ${millimetres} mm`, format));
}
