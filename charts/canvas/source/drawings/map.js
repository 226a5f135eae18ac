// One matrix as a heatmap: a head's attention weights, its scores, or any other labelled values.

import { cssOf, inkOn, mix } from "../toolkit/colour.js";
import { describeCell, matrixColumns, matrixRecords, matrixTable } from "./describe.js";
import { contrastAt } from "../toolkit/contrast.js";
import { Matrix } from "../toolkit/matrix.js";
import { exactly, shortNumber, smallDecimals, threeDigits } from "../toolkit/numbers.js";
import { colourOf } from "../toolkit/theme.js";
import { say } from "../toolkit/words.js";
import { bitmap, hatched, knownBitmap } from "../scene/bitmap.js";
import { shorten, ruler, widthOf } from "../scene/letters.js";
import { layOut, NAME } from "./map_layout.js";
import { inkOf, legend, outline, patch, twice } from "../scene/parts.js";
import { Scene } from "../scene/scene.js";

const NUMBERS_FROM = 34; // px: narrower cells carry no number
const SMALL = 5; // px: smaller cells are pixels of one image
const MOST_FOLLOWED = 300_000; // cells that are painted anew for every one that is pointed at
const [TALLEST, ASKED] = [45, 1.5 / 16]; // in letters: the height of a map, and of one that asks for so many pixels

export function read({ metadata, arrays }) {
  const size = { rows: metadata.rows.length, columns: metadata.columns.length };
  const matrix = new Matrix({ ...size, values: arrays.values.values, bits: arrays.allowed.values });
  const outlined = arrays.outlined && new Matrix({ ...size, bits: arrays.outlined.values });
  return { metadata, matrix, outlined, masked: matrix.anyMasked() };
}

export function labelOf(
  { metadata },
  name = metadata.title,
  keys = say("Move with the arrow keys, choose with Enter."),
) {
  const { rows, columns, row_title: rowTitle, column_title: columnTitle } = metadata;
  const size = `${say("{count} rows", { count: rows.length })} (${rowTitle}), ${say("{count} columns", { count: columns.length })} (${columnTitle})`;
  return `${name}: ${size}. ${keys} ${say("Plus, minus and 0 zoom.")}`;
}

export const help = () => say("heat map");

export function scene(data, theme, width, view) {
  const { metadata } = data;
  const wished = (metadata.height ? metadata.height * ASKED : TALLEST) * theme.size;
  const tallest = theme.file ? Math.min(wished, 1.2 * width) : Math.min(wished, theme.room ?? wished);
  // Twice: only a map that is laid out says where its legend begins, and so how many lines that takes.
  let [x, place] = [0, null];
  for (let again = 0; again < 2; again++) {
    const room = Math.max(120, tallest - legendOf(data, theme, [x, 0], width).height - 16);
    place = layOut(metadata, theme, { width, room, view });
    x = place.plot[0];
  }
  const key = legendOf(data, theme, [x, place.height + 12], width);
  const bare = mapScene(data, theme, place);
  const part = { ...data, theme, place };
  const below = { rect: [x - 1, place.height + 10, width, key.height + 6], fill: cssOf(theme.ground) };
  const followed = (target) => {
    const [share, value] = shareAt(data, target) ?? [];
    if (!share) return [];
    const other = legendOf(data, theme, [x, place.height + 12], width, value);
    return [...cellMarks(part, share), ...over(part), ...chosen(part), below, ...other.marks];
  };
  // In a file, no wider than what is drawn.
  const used = Math.max(place.plot[0] + place.plot[2] + place.leaning + 8, key.right);
  return new Scene({
    ...bare,
    size: [theme.file ? Math.min(width, Math.max(used, 15 * theme.size)) : width, place.height + 12 + key.height + 4],
    marks: [...bare.marks, ...key.marks],
    focus: (target, held) => [...(held ? followed(target) : []), ...bare.focus(target)],
  });
}

// What the colours mean; `value`: that the contrast follows now.
function legendOf({ metadata, masked }, theme, [x, y], width, value) {
  const { scale, limit, legend: said, masked_text: maskedText } = metadata;
  const following = () => say("contrast follows the pointer: the middle is {value}", { value: threeDigits(value) });
  const entries = [
    [value === undefined ? said : following()],
    [masked && (maskedText || say("masked: cannot be attended to")), "hatch"],
  ];
  return legend(theme, { scale, limit, entries }, [x, y], width - x);
}

// The map alone, without its legend; other drawings have such maps, too. of: what all its targets hold
export function mapScene(data, theme, place, of) {
  const { metadata } = data;
  const part = { ...data, theme, place };
  const { plot, stepX, stepY, slanted, slant, rowRoom, labelRoom } = place;
  const [rows, columns] = [metadata.rows.length, metadata.columns.length];
  const grid = { x: place.columnX(0), y: place.rowY(0), stepX, stepY };
  return new Scene({
    size: [place.width, place.height],
    marks: [
      ...cellMarks(part),
      ...labels(part),
      ...(metadata.untitled ? [] : titles(part)),
      ...over(part),
      ...chosen(part),
    ],
    places: [
      { rect: plot, of, grid: { ...grid, rows, columns } },
      { rect: [plot[0] - rowRoom - 10, plot[1], rowRoom + 10, plot[3]], of, grid: { ...grid, rows } },
      {
        rect: [plot[0], plot[1] - labelRoom, plot[2], labelRoom],
        of,
        grid: { ...grid, columns },
        lean: slanted && slant,
      },
    ],
    focus: (target) => focus(part, target),
    view: place.view,
    window: plot,
    cell: [place.cellWidth, place.cellHeight],
    cellBox: place.cellBox,
    first: { row: metadata.selected?.[0] ?? 0, column: metadata.selected?.[1] ?? 0 },
  });
}

const cellMarks = (part, share) => [clipped(part.place.plot, 0.5, cells(part, share))];

// How the colours follow the value that is pointed at, or the smallest there is where that is 0: -> [share of the scale by
// value, the value]; null where they stay fixed.
function shareAt(data, { row, column }) {
  const { metadata, matrix } = data;
  if (!metadata.follows || row === undefined || column === undefined || !matrix.allowed(row, column)) return null;
  if (matrix.values.length > MOST_FOLLOWED) return null;
  const smallest = () =>
    matrix.values.reduce((least, value) => (value > 0 && value < least ? value : least), metadata.limit);
  const value = matrix.at(row, column) || (data.least ??= smallest());
  return [contrastAt(value, metadata.limit), value];
}

const clipped = ([x, y, width, height], more, marks) => ({
  marks,
  clip: [x - more, y - more, width + 2 * more, height + 2 * more],
});

// --- cells ----------------------------------------------------------------------------------------------------------

function* seenCells({ rowsSeen: [top, bottom], columnsSeen: [left, right] }) {
  for (let row = top; row <= bottom; row++) for (let column = left; column <= right; column++) yield [row, column];
}

function cells(part, share) {
  const { metadata, matrix, theme, place } = part;
  const small = Math.min(place.stepX, place.stepY);
  const paintOf = colourOf(theme, metadata.scale, share ? 1 : metadata.limit);
  const colour = share ? (value) => paintOf(share(value)) : paintOf;
  if (small < SMALL) return tinyCells(part, colour, share);
  const gap = small >= 9 ? Math.max(1, Math.round(small / 26)) : 0;
  const round = small >= 22 ? 3 : 0;
  const number = numbers(part);
  const marks = [];
  for (const [row, column] of seenCells(place)) {
    const [x, y, width, height] = place.cellBox(row, column);
    const [allowed, value] = [matrix.allowed(row, column), matrix.at(row, column)];
    const paint = Number.isNaN(value) ? theme.hatchGround : colour(value);
    const rect = [x + gap / 2, y + gap / 2, width - gap, height - gap];
    marks.push({ rect, round, fill: allowed ? cssOf(paint) : "hatch" });
    if (metadata.inks) marks.push(...inkOf(metadata.inks[row * matrix.columns + column], [x, y, width, height]));
    const said = allowed && !metadata.inks && number?.(row, column, value, paint);
    if (said) marks.push({ ...said, at: [x + width / 2, y + height / 2 + 0.5] });
  }
  return marks;
}

// -> what writes the number of a cell, or null where there is no room for it.
function numbers({ metadata, matrix, theme, place }) {
  const { scale, limit, numbered, whole } = metadata;
  const { stepX, stepY } = place;
  const digits = stepX >= 2.9 * theme.size && !matrix.rounded ? 3 : 2;
  const signed = scale === "diverging" || limit > 1;
  const signs = digits + (signed ? smallDecimals(limit) - 2 : 0) + 2;
  const size = Math.min(theme.size * 0.84, stepY * 0.5, stepX / signs / 0.54);
  if (stepX < NUMBERS_FROM || stepY < 17) return null;
  const wanted = numbered && new Set(numbered.map(String));
  return (row, column, value, paint) => {
    if (wanted && !wanted.has(`${row},${column}`)) return null;
    const number = whole ? exactly(Math.round(value) + 0) : shortNumber(value, digits, signed, limit);
    const isZero = !/[1-9N]/.test(number);
    const isSmall = Math.abs(value) < 0.05 * limit;
    // A number that rounds to zero is a dot, so that the eye finds those that do not.
    return {
      text: isZero ? "·" : number,
      size,
      weight: 500,
      align: "center",
      fill: cssOf(inkOn(paint), isSmall ? 0.5 : 1),
    };
  };
}

// Cells of a few pixels: one pixel each in an image, and the masked ones hatched on top.
function tinyCells({ metadata, matrix, theme, place }, colour, share) {
  const { columnX, rowY, stepX, stepY } = place;
  const rect = [columnX(0), rowY(0), matrix.columns * stepX, matrix.rows * stepY];
  const { scale, limit } = metadata;
  const image = share ? bitmap(matrix, theme, colour) : knownBitmap(matrix, theme, colour, scale, limit);
  return [{ image, rect }, ...hatched(matrix, rect)];
}

// --- labels ---------------------------------------------------------------------------------------------------------

function labels(part) {
  const { metadata, place } = part;
  const { rowsSeen, columnsSeen, everyRow, everyColumn, stepX, stepY } = place;
  const shown = ([from, to], every, pictures, step) => {
    // Of the names before many patches, those that would lie upon each other are left out.
    const apart = Math.ceil(place.letter / step);
    const all = Array.from({ length: to - from + 1 }, (_, k) => from + k).filter((index) => index % every === 0);
    return all.filter((index) => !pictures || pictures[index] || index % apart === 0);
  };
  return [
    ...shown(rowsSeen, everyRow, metadata.row_pictures, stepY).flatMap((row) => rowLabel(part, row)),
    ...shown(columnsSeen, everyColumn, metadata.column_pictures, stepX).flatMap((column) => columnLabel(part, column)),
  ];
}

function letters({ theme }, special, tint) {
  const colour = tint ? theme.ink : special ? theme.muted : mix(theme.ink, theme.ground, 0.1);
  return { fill: cssOf(colour), paler: cssOf(mix(colour, theme.ground, 0.4)), weight: tint ? 600 : 400 };
}

// A highlighted label (it has a tint) stands on a pill, which also hides the neighbours that were there.
const pill = (theme, tint, rect) => [
  { rect, fill: cssOf(theme.ground) },
  { rect, round: 5, fill: cssOf(tint, theme.dark ? 0.34 : 0.17) },
];

function rowLabel(part, row, tint) {
  const { metadata, theme, place } = part;
  const { plot, letter, stepY, rowRoom } = place;
  const [x, y] = [plot[0] - 8, place.rowY(row) + stepY / 2];
  if (y < plot[1] || y > plot[1] + plot[3]) return [];
  const style = letters(part, metadata.special_rows?.includes(row), tint);
  const [text, pixels] = [metadata.rows[row], metadata.row_pictures?.[row]];
  if (pixels) {
    const side = place.pictureSide(stepY);
    const name = { text, at: [x - side - 4, y], size: letter * NAME, align: "right", ...letters(part, true, tint) };
    return [...picture(theme, tint, pixels, [x - side / 2, y], side), ...(stepY > letter * NAME ? [name] : [])];
  }
  const half = Math.min(theme.size * 0.66, Math.max(stepY, letter) / 2);
  const width = Math.min(rowRoom, widthOf(theme, text, letter, style.weight));
  return [
    ...(tint
      ? [...hiddenNeighbours(part, row, x), ...pill(theme, tint, [x - width - 5, y - half, width + 10, 2 * half])]
      : []),
    { text, at: [x, y], size: letter, align: "right", room: rowRoom, ...style },
  ];
}

// A name that a highlighted one would cover in part is left out whole.
function hiddenNeighbours({ metadata, theme, place }, row, x) {
  const { everyRow: step, rowRoom, stepY, letter } = place;
  const before = Math.floor((row - 1) / step) * step;
  return Array.from({ length: Math.ceil((row + step - before) / step) + 1 }, (_, k) => before + k * step)
    .filter((near) => near !== row && !metadata.row_pictures?.[near] && Math.abs(near - row) * stepY < letter)
    .map((near) => ({
      rect: [x - rowRoom, place.rowY(near) + (stepY - theme.size) / 2, rowRoom, theme.size],
      fill: cssOf(theme.ground),
    }));
}

// A label that is an image patch, with a frame where it is highlighted.
function picture(theme, tint, pixels, [x, y], side) {
  const rect = [x - side / 2 - 0.5, y - side / 2 - 0.5, side + 1, side + 1];
  return [...patch(theme, pixels, [x, y], side), ...(tint ? [{ rect, stroke: cssOf(tint), thick: 3 }] : [])];
}

function columnLabel(part, column, tint) {
  const { metadata, theme, place } = part;
  const { plot, letter, stepX, slanted, slant, width } = place;
  const x = place.columnX(column) + stepX / 2;
  if (x < plot[0] || x > plot[0] + plot[2]) return [];
  const style = letters(part, metadata.special_columns?.includes(column), tint);
  const [text, pixels] = [metadata.columns[column], metadata.column_pictures?.[column]];
  const wide = widthOf(theme, text, letter, style.weight);
  const side = place.pictureSide(stepX);
  if (pixels) {
    const name = { text, at: [x, plot[1] - side - 7 - (letter * NAME) / 2], size: letter * NAME, align: "center" };
    const fits = widthOf(theme, text, letter * NAME) < stepX;
    const named = fits ? [{ ...name, ...letters(part, true, tint) }] : [];
    return [...picture(theme, tint, pixels, [x, plot[1] - side / 2 - 5], side), ...named];
  }
  // A name before a row of image patches would lie on the first of them if it were slanted: it ends above its cell.
  if (column === 0 && metadata.column_pictures?.[1]) {
    const [right, y] = [x + stepX / 2 - 1, plot[1] - side / 2 - 5];
    const under = tint ? pill(theme, tint, [right - wide - 4, y - letter * 0.7, wide + 8, letter * 1.4]) : [];
    return [...under, { text, at: [right, y], size: letter, align: "right", room: right, ...style }];
  }
  const half = Math.min(theme.size * 0.66, Math.max(slanted ? stepX * Math.sin(slant) : Infinity, letter) / 2);
  const room = slanted || tint ? 130 * (theme.size / 16) : Math.max(stepX * place.everyColumn - 4, 8);
  const shown = Math.min(room, wide);
  // The last of the labels that stand alone may be wider than its cell.
  const shift = slanted
    ? [x, plot[1] - theme.size * 0.45]
    : [Math.min(x, width - shown / 2), plot[1] - theme.size * 0.78];
  const label = { text, at: [0, 0], size: letter, align: slanted ? "left" : "center", room, ...style };
  const under = tint ? pill(theme, tint, [slanted ? -5 : -shown / 2 - 5, -half, shown + 10, 2 * half]) : [];
  return [{ shift, turn: slanted ? -slant : 0, marks: [...under, label] }];
}

function titles({ metadata, theme, place }) {
  const { plot, width, titleLines, labelRoom } = place;
  const size = 0.8 * theme.size;
  const look = { size, fill: cssOf(theme.muted) };
  // From the first column on, from before it where a narrow map leaves too little room beside it.
  const above = shorten(ruler(theme, size), `${metadata.column_title} →`, width);
  const start = Math.min(plot[0], width - widthOf(theme, above, size));
  // Turned to read upwards beside the rows; a map with few rows gets it in two lines.
  const title = `← ${metadata.row_title}`;
  const at = title.indexOf(": ") + 1;
  const [first, second] = [title.slice(0, at), title.slice(at + 1)];
  const fits = first && widthOf(theme, second, size) <= plot[3] + labelRoom;
  const lines =
    titleLines === 1
      ? [{ text: title, at: [plot[3], 0], align: "right" }]
      : [first || title.slice(0, at), ...(fits ? [second] : [])].map((text, k) => ({ text, at: [0, k * size * 1.2] }));
  const turned = { shift: [size * 0.7, plot[1] + plot[3]], turn: -Math.PI / 2 };
  return [
    { text: above, at: [start, size * 0.7], ...look },
    { ...turned, marks: lines.map((line) => ({ ...line, ...look })) },
  ];
}

// --- above the cells ------------------------------------------------------------------------------------------------

function over(part) {
  const { metadata, theme, place } = part;
  const { plot, stepX, stepY } = place;
  const [x, y, width, height] = plot;
  const [ground, faint] = [cssOf(theme.ground), cssOf(theme.faint)];
  const breaks = (metadata.breaks ?? []).flatMap((row) => {
    const [at, thick] = [place.rowY(row), Math.min(8, stepY * 0.2)];
    // Between names of rows that stand closer than letters are high, it would cross one.
    const left = stepY < theme.size * 1.1 ? 8 : place.rowRoom + 8;
    return [
      { rect: [x, at - thick / 2, width, thick], fill: ground },
      { rect: [x - left, at - 0.5, width + left, 1], fill: faint },
    ];
  });
  const columnBreaks = (metadata.column_breaks ?? []).flatMap((column) => {
    const [at, thick] = [place.columnX(column), Math.min(8, stepX * 0.2)];
    return [
      { rect: [at - thick / 2, y, thick, height], fill: ground },
      { rect: [at - 0.5, y - 8, 1, height + 8], fill: faint },
    ];
  });
  // What was taken away.
  const crosses = (metadata.crossed ?? []).flatMap((cell) => {
    const [left, top, wide, tall] = place.cellBox(...cell);
    const [right, bottom] = [left + wide - 5, top + tall - 5];
    const path = `M${left + 5} ${top + 5}L${right} ${bottom}M${right} ${top + 5}L${left + 5} ${bottom}`;
    return twice(theme, path, "round");
  });
  return [...breaks, ...columnBreaks, ...crosses, ...border(part)];
}

// Of the outlined cells.
function border({ outlined, theme, place }) {
  if (!outlined) return [];
  const inside = (row, column) =>
    row >= 0 && row < outlined.rows && column >= 0 && column < outlined.columns && outlined.allowed(row, column);
  let path = "";
  for (const [row, column] of seenCells(place)) {
    if (!inside(row, column)) continue;
    const [x, y, width, height] = place.cellBox(row, column);
    if (!inside(row - 1, column)) path += `M${x} ${y}h${width}`;
    if (!inside(row + 1, column)) path += `M${x} ${y + height}h${width}`;
    if (!inside(row, column - 1)) path += `M${x} ${y}v${height}`;
    if (!inside(row, column + 1)) path += `M${x + width} ${y}v${height}`;
  }
  return [clipped(place.plot, 0.5, twice(theme, path, "square"))];
}

// What the reader has chosen; in a file nobody points at anything.
function chosen(part) {
  const { metadata, theme, place } = part;
  if (theme.unmarked) return [];
  const rows = metadata.chosen_row ?? null;
  const marked = rows === null ? [] : rowLabel(part, rows, theme.chosen);
  if (!metadata.selected) return marked;
  const [row, column] = metadata.selected;
  const frame = clipped(place.plot, 3, outline(theme, place.cellBox(row, column), theme.chosen, 3));
  return [...marked, frame, ...rowLabel(part, row, theme.chosen), ...columnLabel(part, column, theme.chosen)];
}

// What the pointer or the cursor is on: a crosshair, or everything else stepping back.
function focus(part, { row, column }) {
  const { theme, place } = part;
  const [x, y, width, height] = place.plot;
  const named = [
    ...(row === undefined ? [] : rowLabel(part, row, theme.primary)),
    ...(column === undefined ? [] : columnLabel(part, column, theme.primary)),
  ];
  if (row === undefined || column === undefined) {
    const [left, top] = [column === undefined ? x : place.columnX(column), row === undefined ? y : place.rowY(row)];
    const [right, bottom] = [
      column === undefined ? x + width : left + place.stepX,
      row === undefined ? y + height : top + place.stepY,
    ];
    const aside = [
      [x, y, width, top - y],
      [x, bottom, width, y + height - bottom],
      [x, y, left - x, height],
      [right, y, x + width - right, height],
    ];
    const fill = cssOf(theme.ground, 0.8);
    const shown = aside.filter((rect) => rect[2] > 0 && rect[3] > 0).map((rect) => ({ rect, fill }));
    return [clipped(place.plot, 0.5, shown), ...named];
  }
  const box = place.cellBox(row, column);
  const lines = [
    [x - 4, box[1], width + 8, box[3]],
    [box[0], y - 4, box[2], height + 8],
  ];
  const cross = [
    { stroke: cssOf(theme.ground, 0.8), thick: 3 },
    { stroke: cssOf(theme.ink, 0.75), thick: 1 },
  ].flatMap((style) => lines.map((rect) => ({ rect, ...style })));
  return [clipped(place.plot, 0.5, [...cross, ...outline(theme, box, theme.ink, 2)]), ...named];
}

// --- what is said and told ------------------------------------------------------------------------------------------

export const describe = ({ metadata, matrix }, target) => describeCell(metadata, matrix, target);
export const tables = ({ metadata, matrix }) => [matrixTable(metadata.title, metadata, matrix, threeDigits)];
export const records = ({ metadata, matrix }) => [matrixColumns(matrix), ...matrixRecords(metadata, matrix)];

export function click({ metadata }, { row, column }) {
  if (metadata.still || row === undefined || column === undefined) return null;
  return { event: "click", value: { query: row, key: column } };
}

// A second click on the chosen cell lets go of it.
export function choose({ metadata }, { query, key }) {
  const [row, column] = metadata.selected ?? [];
  metadata.selected = row === query && column === key ? null : [query, key];
}
