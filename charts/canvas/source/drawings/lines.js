// Tokens that look on the left, tokens that are looked at on the right, and a line for every weight between them.

import { cssOf, mix } from "../toolkit/colour.js";
import { button, make } from "../toolkit/elements.js";
import { Matrix } from "../toolkit/matrix.js";
import { shortNumber, threeDigits } from "../toolkit/numbers.js";
import { quoted } from "../toolkit/sentences.js";
import { say } from "../toolkit/words.js";
import { ruler, widthOf, wrap } from "../scene/letters.js";
import { Scene } from "../scene/scene.js";
import { matrixColumns, matrixRecords, matrixTable } from "./describe.js";

const FAINTEST = 1 / 256; // a screen has 256 steps: a fainter line cannot be seen

export function read({ metadata, arrays }, before, panel) {
  const [heads, rows, columns] = arrays.weights.shape;
  const matrices = Array.from({ length: heads }, (_, head) => {
    const values = arrays.weights.values.subarray(head * rows * columns, (head + 1) * rows * columns);
    return new Matrix({ values, rows, columns, bits: arrays.allowed.values, divisor: 65535 });
  });
  // What the reader switched on stays on, unless the page now asks for other heads.
  const asked = String(metadata.heads);
  const on = before?.asked === asked && before.matrices.length === heads ? before.on : new Set(metadata.heads);
  return { metadata, matrices, asked, on, panel };
}

export function labelOf({ metadata: { title, rows, columns } }) {
  const lines = say("lines from {rows} query tokens to {columns} key tokens.", {
    rows: rows.length,
    columns: columns.length,
  });
  return `${title}: ${lines} ${say("Up and down change the token, left and right the side; choose with Enter.")} ${say("The number keys switch the first ten heads on and off.")}`;
}

export const help = () => say("token graph");

// --- which heads ----------------------------------------------------------------------------------------------------

const shownHeads = ({ matrices, on }) => matrices.map((_, head) => head).filter((head) => on.has(head));

// Eight colours; further heads repeat them with broken lines.
const colourOf = (theme, head) => theme.heads[head % theme.heads.length];

// Buttons that switch heads on and off, in the browser only.
export function controls(data) {
  const heads = data.matrices.map((_, head) => head);
  data.chips = heads.map((head) => {
    const more = { className: "chip", ariaLabel: say("head {head}", { head }) };
    const chip = button("", say("Show or hide head {head}", { head }), () => toggle(data, head), more);
    chip.append(make("span", { className: "swatch" }), String(head));
    return chip;
  });
  const some = (text, title, on) => button(text, title, () => show(data, on), { ariaLabel: title });
  const all = some(say("all"), say("Show all heads"), heads);
  const none = some(say("none"), say("Hide all heads"), []);
  const name = make("span", { textContent: say("heads") });
  const group = { className: "chips", role: "group", "aria-label": say("heads") };
  return [make("span", group, name, ...data.chips, all, none)];
}

function toggle(data, head) {
  const on = new Set(data.on);
  if (!on.delete(head)) on.add(head);
  show(data, on);
}

function show(data, heads) {
  data.on = new Set(heads);
  data.panel.changed();
}

export function keydown(data, { key }) {
  if (!/^[0-9]$/.test(key) || Number(key) >= data.matrices.length) return false;
  toggle(data, Number(key));
  return true;
}

export const state = (data) => ({ heads: shownHeads(data) });

// --- marks ----------------------------------------------------------------------------------------------------------

export function scene(data, theme, width) {
  const { metadata } = data;
  const { rows, columns, selected } = metadata;
  const { size } = theme;
  data.chips?.forEach((chip, head) => {
    chip.setAttribute("aria-pressed", String(data.on.has(head)));
    chip.firstChild.style.background = colourOf(theme, head);
  });
  const wish = (labels) =>
    Math.min(Math.max(...labels.map((label) => widthOf(theme, label, 0.95 * size))) + 18, 11 * size, width * 0.24);
  const [leftRoom, rightRoom] = [wish(rows), wish(columns)];
  // Where nothing is under the pointer and never will be, there are no bars.
  const barRoom = theme.file && selected === null ? 0 : Math.min(4.75 * size, width * 0.1);
  const most = Math.max(rows.length, columns.length);
  const line = Math.max(1.06 * size, Math.min(2 * size, (56 * size) / most));
  const between = Math.max(60, Math.min(35 * size, width - leftRoom - rightRoom - 2 * barRoom - 4));
  const leftX = barRoom + leftRoom;
  const rightX = leftX + between;
  const end = rightX + rightRoom + barRoom;
  const top = 1.9 * size;
  const place = { leftRoom, rightRoom, barRoom, line, between, leftX, rightX, end, top, most };
  const part = { ...data, theme, place };
  const key = keyOf(part, width, top + most * line + size);
  const of = (token) => [...tokens(part, token), ...edges(part, token), ...(token ? bars(part, token) : [])];
  const all = [0, top - 4, end + 8, most * line + 4];
  const side = (name, rect, count) => ({
    rect: [rect[0], top, rect[1], count * line],
    of: { side: name },
    grid: { y: top, stepY: line, rows: count },
  });
  const places = [side("query", [0, leftX], rows.length), side("key", [rightX, rightRoom + barRoom], columns.length)];
  return new Scene({
    size: [width, key.bottom],
    marks: [...headings(part), ...of(selected === null ? null : { side: "query", row: selected }), ...key.marks],
    places,
    first: { side: "query", row: selected ?? 0 },
    focus: (token) => [{ rect: all, fill: cssOf(theme.ground) }, ...of(token)],
    step: (token, pressed) => step(metadata, token, pressed),
    geometry: () => ({ leftX, rightX, top, line }),
  });
}

function step({ rows, columns }, { side, row }, key) {
  const count = { query: rows.length, key: columns.length };
  const other = { ArrowLeft: "query", ArrowRight: "key" }[key];
  if (other) return { side: other, row: Math.min(row, count[other] - 1) };
  const last = count[side] - 1;
  const moves = { ArrowUp: row - 1, ArrowDown: row + 1, Home: 0, PageUp: 0, End: last, PageDown: last };
  return { side, row: Math.min(last, Math.max(0, moves[key])) };
}

const tokenY = ({ top, line }, index) => top + (index + 0.5) * line;

// What the lines mean; on an exported picture, where the buttons above are missing, which colour is which head.
function keyOf(data, width, y) {
  const { theme, place } = data;
  const [size, letter] = [theme.size, 0.8 * theme.size];
  const text = say("the wider and stronger a line, the larger its weight; masked pairs have no line");
  const lines = wrap(ruler(theme, letter), text, place.end);
  const marks = lines.map((said, k) => ({
    ...{ text: said, at: [0, y + (0.2 + 1.15 * k) * size] },
    ...{ size: letter, fill: cssOf(theme.muted) },
  }));
  let [x, atY] = [0, y + 1.15 * lines.length * size];
  if (!theme.file) return { marks, bottom: atY };
  const radius = 0.27 * size;
  for (const head of shownHeads(data)) {
    const label = say("head {head}", { head });
    const long = widthOf(theme, label, letter) + 1.6 * size;
    if (x > 0 && x + long > width) [x, atY] = [0, atY + 1.4 * size];
    const middle = atY + 0.7 * size;
    marks.push(
      { rect: [x, middle - radius, 2 * radius, 2 * radius], round: radius, fill: colourOf(theme, head) },
      { text: label, at: [x + 3 * radius, middle], size: letter, fill: cssOf(theme.ink) },
    );
    x += long;
  }
  return { marks, bottom: atY + (x ? 1.4 * size : 0) };
}

// Each title ends or begins where its tokens do, if it fits there; else at the picture's edge, or cut to one word.
function headings({ metadata, theme, place }) {
  const letter = 0.8 * theme.size;
  const title = (text, align, inner, edge) => {
    const shown = widthOf(theme, text, letter) > place.end / 2 - 8 ? text.split(":")[0] : text;
    const fits = widthOf(theme, shown, letter) <= Math.abs(inner - edge);
    const side = fits === (align === "right") ? "right" : "left";
    const at = [fits ? inner : edge, 0.6 * theme.size];
    return { text: shown, at, size: letter, align: side, fill: cssOf(theme.muted) };
  };
  return [
    title(metadata.row_title, "right", place.leftX - 8, 0),
    title(metadata.column_title, "left", place.rightX + 8, place.end),
  ];
}

function tokens({ metadata, theme, place }, token) {
  const { rows, columns, special_rows: specialRows, special_columns: specialColumns, selected } = metadata;
  const { size } = theme;
  const sides = [
    ["query", rows, specialRows, place.leftX, place.leftRoom, "right"],
    ["key", columns, specialColumns, place.rightX, place.rightRoom, "left"],
  ];
  return sides.flatMap(([side, labels, special, x, room, align]) =>
    labels.flatMap((text, index) => {
      const strong = token?.side === side && token.row === index;
      const colour = !strong && special.includes(index) ? theme.muted : theme.ink;
      const [y, weight] = [tokenY(place, index), strong ? 600 : 400];
      const look = { fill: cssOf(colour), paler: cssOf(mix(colour, theme.ground, 0.4)), weight };
      const at = [align === "right" ? x - 8 : x + 8, y];
      const label = { text, at, size: 0.95 * size, align, room: room - 10, ...look };
      if (!strong || theme.unmarked) return [label];
      const width = Math.min(room - 10, widthOf(theme, text, 0.95 * size, weight));
      const tint = side === "query" && index === selected ? theme.chosen : theme.primary;
      const rect = [align === "right" ? x - width - 14 : x + 2, y - 0.7 * size, width + 12, 1.4 * size];
      return [{ rect, round: 5, fill: cssOf(tint, theme.dark ? 0.34 : 0.17) }, label];
    }),
  );
}

function edges(data, token) {
  const { metadata, matrices, theme, place } = data;
  const { leftX, rightX, between, line } = place;
  const heads = shownHeads(data);
  const spread = Math.min(5, (line * 0.62) / heads.length); // side by side, so that one does not hide another
  const counts = { query: metadata.rows.length, key: metadata.columns.length };
  const range = (side) => (token?.side === side ? [token.row] : Array.from({ length: counts[side] }, (_, k) => k));
  const [rows, columns] = [range("query"), range("key")];
  const steepness = between * 0.45;
  return heads.flatMap((head, k) => {
    const shift = (k - (heads.length - 1) / 2) * spread;
    const dash = head < theme.heads.length ? [] : [6, 4];
    const style = { stroke: colourOf(theme, head), cap: "round", dash };
    return rows.flatMap((row) =>
      columns.flatMap((column) => {
        const weight = matrices[head].at(row, column);
        const alpha = Math.min(1, weight ** 0.7);
        if (!matrices[head].allowed(row, column) || alpha < FAINTEST) return [];
        const [from, to] = [tokenY(place, row) + shift, tokenY(place, column) + shift];
        const curve = [leftX, from, leftX + steepness, from, rightX - steepness, to, rightX, to];
        const thick = 0.75 + Math.max(1.5, line / (4 + 0.7 * heads.length)) * weight;
        return [{ curve, thick, alpha, ...style }];
      }),
    );
  });
}

// Beside every token at the other end: a bar for each head, as long as its weight; a number if there is one head only.
function bars(data, { side, row: index }) {
  const { metadata, matrices, theme, place } = data;
  const heads = shownHeads(data);
  const single = heads.length === 1;
  const others = side === "query" ? metadata.columns : metadata.rows;
  const outward = side === "query" ? 1 : -1;
  const start = side === "query" ? place.rightX + place.rightRoom : place.leftX - place.leftRoom;
  const tall = Math.min(place.line - 4, single ? place.line * 0.5 : place.line - 4) / Math.max(1, heads.length);
  return others.flatMap((_, other) => {
    const cell = side === "query" ? [index, other] : [other, index];
    return heads.flatMap((head, k) => {
      if (!matrices[head].allowed(...cell)) return [];
      const weight = matrices[head].at(...cell);
      const long = weight * place.barRoom * (single ? 0.5 : 1);
      const y = tokenY(place, other);
      const rect = [
        outward > 0 ? start : start - long,
        y + (k - heads.length / 2) * tall,
        long,
        Math.max(1, tall - 0.5),
      ];
      const bar = { rect, fill: colourOf(theme, head) };
      if (!single || weight < 0.01) return [bar];
      const at = [start + outward * (long + 4), y];
      const look = { size: 0.78 * theme.size, align: outward > 0 ? "left" : "right", fill: cssOf(theme.muted) };
      return [bar, { text: shortNumber(weight, 2, false), at, ...look }];
    });
  });
}

// --- what is said and told ------------------------------------------------------------------------------------------

export function describe(data, { side, row: index }) {
  const { rows, columns } = data.metadata;
  const looks = side === "query";
  const title = {
    parts: [...quoted((looks ? rows : columns)[index]), say(looks ? " looks most at" : " is looked at most by")],
  };
  const others = looks ? columns : rows;
  const lines = shownHeads(data).map((head) => {
    const matrix = data.matrices[head];
    const cell = (other) => (looks ? [index, other] : [other, index]);
    const open = others.map((_, other) => other).filter((other) => matrix.allowed(...cell(other)));
    const best = open.reduce(
      (one, other) => (one !== null && matrix.at(...cell(one)) >= matrix.at(...cell(other)) ? one : other),
      null,
    );
    const said = best === null ? [say("everything is masked")] : quoted(others[best]);
    const weight = best === null ? [] : [` ${threeDigits(matrix.at(...cell(best)))}`];
    const swatch = colourOf(data.panel.theme, head);
    return { parts: [`${say("head {head}", { head })}${say(": ")}`, ...said, ...weight], swatch };
  });
  return [title, ...(lines.length ? lines : [{ parts: [say("no head is switched on")], muted: true }])];
}

// In cross-attention the right-hand tokens belong to another sentence: only the left ones are a choice.
export const click = ({ metadata }, { side, row }) =>
  side === "query" || metadata.same_tokens ? { event: "click", value: { token: row } } : null;

export function choose({ metadata }, { token }) {
  metadata.selected = token === metadata.selected ? null : token;
}

export function records({ metadata, matrices }) {
  const rows = matrices.flatMap((matrix, head) => [...matrixRecords(metadata, matrix, head)]);
  return [["head", ...matrixColumns()], ...rows];
}

export function tables(data) {
  const { metadata, matrices } = data;
  return shownHeads(data).map((head) =>
    matrixTable(`${metadata.title}, ${say("head {head}", { head })}`, metadata, matrices[head], threeDigits),
  );
}
