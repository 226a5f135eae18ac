// What is asked before a figure is saved for a printed column.

import { make } from "../toolkit/elements.js";
import { say } from "../toolkit/words.js";
import { canWritePdf } from "./pdf.js";

const WIDTHS = [
  [84, "84 mm, one column"],
  [174, "174 mm, two columns"],
];
const POINTS = [8, 9, 10];

// save({ title, millimetres, points, format }) is called by its buttons, which makeButton(text, explanation, action) make.
export function paperForm(figureTitle, makeButton, save) {
  const choice = (options) =>
    make("select", {}, ...options.map(([value, text]) => make("option", { value, textContent: text })));
  const field = (text, control) => make("label", {}, make("span", { textContent: say(text) }), control);
  const title = make("input", { type: "text", value: figureTitle });
  const width = choice(WIDTHS.map(([value, text]) => [value, say(text)]));
  const points = choice(POINTS.map((value) => [value, `${value} pt`]));
  const wanted = (format) => ({
    title: title.value.trim(),
    millimetres: Number(width.value),
    points: Number(points.value),
    format,
  });
  const buttons = [
    makeButton(
      "Save for a paper",
      "Save for a paper: shapes and black letters on white, as wide as a printed column",
      () => save(wanted("svg")),
    ),
    makeButton("PDF", "Save for a paper as PDF, with its letters embedded", () => save(wanted("pdf"))),
  ];
  return make(
    "fieldset",
    {},
    make("legend", { textContent: say("For a paper") }),
    field("Title", title),
    field("Width", width),
    field("Letters", points),
    make("span", { className: "buttons" }, ...buttons.slice(0, canWritePdf() ? 2 : 1)),
  );
}
