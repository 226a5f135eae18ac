// What is said about a drawing, as elements of the page: tooltips and tables.

import { make } from "./elements.js";
import { say } from "./words.js";

const PATCH = /^r\d+c\d+$/; // transformer/pictures/patch_tokenizer.py

// The words of a tooltip are strings and { token } pieces; tokens are isolated so that Arabic keeps its order.
// A patch of an image is named by its place.
export const quoted = (label) => {
  return PATCH.test(label) ? [say("patch {name}", { name: label })] : [say("‘"), { token: label }, say("’")];
};

export const plainText = (lines) =>
  lines.map(({ parts }) => parts.map((part) => part.token ?? part).join("")).join(". ");

export function tooltipContent(lines) {
  return lines.map(({ parts, muted, swatch }) => {
    const line = make("div", { className: muted ? "muted" : "" });
    if (swatch) {
      const dot = make("span", { className: "swatch" });
      dot.style.background = swatch;
      line.append(dot);
    }
    line.append(...parts.map((part) => (part.token === undefined ? part : make("bdi", { textContent: part.token }))));
    return line;
  });
}

// tables: [{ caption, columns, rows: [{ label, cells }] }]
export function tableContent(tables) {
  return tables.map(({ caption, columns, rows }) => {
    const heading = (text, scope) => make("th", { scope }, make("bdi", { textContent: text }));
    const head = make("tr", {}, make("td"), ...columns.map((label) => heading(label, "col")));
    const body = rows.map(({ label, cells }) =>
      make("tr", {}, heading(label, "row"), ...cells.map((cell) => make("td", { textContent: cell }))),
    );
    return make(
      "table",
      {},
      make("caption", { textContent: caption }),
      make("thead", {}, head),
      make("tbody", {}, ...body),
    );
  });
}
