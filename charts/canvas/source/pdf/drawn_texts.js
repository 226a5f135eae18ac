// Letters that the embedded font has not (Arabic, Chinese, emoji …) become pictures, drawn with the browser's own fonts: they
// look as on the screen, whatever program opens the file.

const TIMES = 8; // pixels of such a picture for one of the figure: 600 dpi and more at 8 pt

const splitter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

// Replaces every text of `picture`, which is part of the document, that has a letter for which `known` is false.
export function drawnTexts(picture, known) {
  for (const text of picture.querySelectorAll("text")) {
    const strange = [...splitter.segment(text.textContent)].some(({ segment }) => segment.trim() && !known(segment));
    if (strange) text.replaceWith(drawn(text));
  }
}

function drawn(text) {
  const group = document.createElementNS(text.namespaceURI, "g");
  if (text.hasAttribute("transform")) group.setAttribute("transform", text.getAttribute("transform"));
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  let at = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const count = node.data.length;
    if (node.data.trim() && text.getNumberOfChars() >= at + count) group.append(image(text, node, at, count));
    at += count;
  }
  return group;
}

function image(text, node, at, count) {
  const places = Array.from({ length: count }, (_, i) => text.getExtentOfChar(at + i));
  const left = Math.min(...places.map(({ x }) => x));
  const right = Math.max(...places.map(({ x, width }) => x + width));
  const base = text.getStartPositionOfChar(at).y;
  const style = getComputedStyle(node.parentElement);
  const size = parseFloat(style.fontSize);
  const [above, below, beside] = [1.2 * size, 0.45 * size, 0.2 * size];
  const canvas = document.createElement("canvas");
  const [width, height] = [right - left + 2 * beside, above + below];
  [canvas.width, canvas.height] = [Math.ceil(width * TIMES), Math.ceil(height * TIMES)];
  const pen = canvas.getContext("2d");
  pen.scale(TIMES, TIMES);
  pen.font = `${style.fontWeight} ${size}px ${style.fontFamily}`;
  pen.fillStyle = style.fill;
  pen.fillText(node.data, beside, above);
  const made = document.createElementNS(text.namespaceURI, "image");
  const box = { x: left - beside, y: base - above, width: canvas.width / TIMES, height: canvas.height / TIMES };
  for (const [name, value] of Object.entries(box)) made.setAttribute(name, value);
  made.setAttribute("href", canvas.toDataURL());
  return made;
}
