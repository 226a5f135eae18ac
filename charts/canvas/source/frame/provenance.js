// Where a figure comes from, written into its files: title, checkpoint and fingerprint, sentence, target, address of the view.

import { escapeXml } from "./svg_pen.js";

const SIGNATURE = 8; // bytes of a PNG before its first chunk, which has 25

// The page says what it shows (ui/shell/frame.js); a page that was saved says it of itself (../page.js).
export function provenance(title) {
  const { checkpoint, fingerprint, sentence, target, view } = globalThis.glassformerView ?? {};
  const here = checkpoint && !view ? address({ checkpoint, fingerprint }) : view;
  const said = { title, checkpoint, fingerprint, sentence, target, view: here, software: "Glassformer" };
  return Object.fromEntries(Object.entries(said).filter(([, text]) => text));
}

const PICTURE = /^[0-9a-g]{64}$/; // the text of a picture says nothing to a reader

const SHORT_DIGITS = 12; // of a fingerprint, for the eye
const UPLOADED = /^(received-[0-9a-f]{12})[0-9a-f]{52}$/;

// What stands below a picture: the sentence, what was given or answered, and the model.
export function caption() {
  const { checkpoint, fingerprint, sentence, target } = globalThis.glassformerView ?? {};
  const read = [sentence, target].filter((text) => text && !PICTURE.test(text)).join(" → ");
  const model = checkpoint && `${checkpoint.replace(UPLOADED, "$1")} (${fingerprint.slice(0, SHORT_DIGITS)})`;
  return [read, model, "Glassformer"].filter(Boolean).join(" · ");
}

// As “Share” writes it (ui/shell/share.py): the address leaves out what is as it is at the start.
function address(always) {
  const url = new URL(location.href);
  const others = [...url.searchParams].filter(([name]) => !(name in always) && name !== "note");
  url.search = new URLSearchParams([...Object.entries(always), ...others]);
  return url.href;
}

// For people as a description, for programs as JSON.
export function svgWith(svg, said) {
  const lines = Object.entries(said).map(([name, text]) => `${name}: ${text}`);
  const parts = `<desc>${escapeXml(lines.join("\n"))}</desc>\n<metadata>${escapeXml(JSON.stringify(said))}</metadata>`;
  return svg.replace(/<svg\b[^>]*>(\s*<title>[^<]*<\/title>)?/, (head) => `${head}\n${parts}\n`);
}

export const metaTags = (said) =>
  Object.entries(said)
    .map(([name, text]) => `<meta name="glassformer:${name}" content="${escapeXml(text)}">`)
    .join("\n");

// A chunk of international text for each (PNG specification, section 11.3.3.4), before the picture itself.
export async function pngWith(blob, said) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const chunks = Object.entries(said).map(([name, text]) => chunk("iTXt", `${keyword(name)}\0\0\0\0\0`, text));
  const first = SIGNATURE + 25;
  return new Blob([bytes.subarray(0, first), ...chunks, bytes.subarray(first)], { type: "image/png" });
}

const keyword = (name) => name[0].toUpperCase() + name.slice(1);

function chunk(type, ...texts) {
  const body = new TextEncoder().encode(type + texts.join(""));
  const made = new Uint8Array(body.length + 8);
  const view = new DataView(made.buffer);
  view.setUint32(0, body.length - 4); // its type does not count
  made.set(body, 4);
  view.setUint32(body.length + 4, checksum(body));
  return made;
}

// CRC-32, as PNG wants it.
function checksum(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
