// The few marks of lessons' texts: **bold**, *italic*, `code`. Everything else is text, also in a value for a {name}.

import { make } from "../../charts/canvas/source/toolkit/elements.js";
import { fill } from "../../charts/canvas/source/toolkit/words.js";

const MARKS = /(`[^`]+`)|(\*\*[^*]+\*\*)|(\*[^*]+\*)/g;

// -> the nodes of a text
export function rich(text = "", values = {}) {
  const nodes = [];
  let done = 0;
  for (const { 0: whole, 1: code, 2: bold, index } of text.matchAll(MARKS)) {
    nodes.push(fill(text.slice(done, index), values));
    if (code) nodes.push(make("code", { textContent: fill(code.slice(1, -1), values) }));
    else if (bold) nodes.push(make("b", {}, ...rich(bold.slice(2, -2), values)));
    else nodes.push(make("i", {}, ...rich(whole.slice(1, -1), values)));
    done = index + whole.length;
  }
  nodes.push(fill(text.slice(done), values));
  return nodes.filter((node) => node !== "");
}
