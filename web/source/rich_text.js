// The few marks of lessons' texts: **bold**, *italic*, `code`. Everything else is text.

import { make } from "../../charts/canvas/source/toolkit/elements.js";

const MARKS = /(`[^`]+`)|(\*\*[^*]+\*\*)|(\*[^*]+\*)/g;

// -> the nodes of a text
export function rich(text = "") {
  const nodes = [];
  let done = 0;
  for (const { 0: whole, 1: code, 2: bold, index } of text.matchAll(MARKS)) {
    nodes.push(text.slice(done, index));
    if (code) nodes.push(make("code", { textContent: code.slice(1, -1) }));
    else if (bold) nodes.push(make("b", {}, ...rich(bold.slice(2, -2))));
    else nodes.push(make("i", {}, ...rich(whole.slice(1, -1))));
    done = index + whole.length;
  }
  nodes.push(text.slice(done));
  return nodes.filter((node) => node !== "");
}
