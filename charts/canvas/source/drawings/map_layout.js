// Where the cells and labels of a labelled matrix are, zoomed and panned.

import { widthOf } from "../scene/letters.js";

const [SLANT, STEEP] = [Math.PI / 4, (Math.PI * 65) / 180]; // of the columns' labels; steep where columns are narrow
const LINE = 1.12; // the least height of a row, in heights of its letters
// Sizes of labels, as shares of the theme's: as large as there is room.
const [LARGEST, SMALLEST, SMALLER_BY] = [0.875, 0.65, 0.035];
const [WIDEST, TALLEST_CELL] = [76, 44]; // of a cell, at letters of 16
const PICTURE = 1.7; // in letters: the side of an image patch that stands for a label
export const NAME = 0.72; // of the letters: those of its name beside or above it, where there is room
const FULL_ROWS = 0.38; // of the width: the most that labels of rows take to be shown in full
const TALLEST = 30; // in letters: so tall a map becomes for the sake of its labels

// Fits a map into `width` × `room`. metadata: rows, columns, row_title, row_pictures, column_pictures, untitled; view: { zoom,
// x, y }
export function layOut(metadata, theme, { width, room, view }) {
  // While a map is zoomed or painted on, only what is seen of it changes.
  const key = [width, room, theme.size, theme.font, theme.loaded].join();
  const before = known.get(metadata);
  const place = before?.key === key ? before.place : wellPlaced(metadata, theme, { width, room });
  known.set(metadata, { key, place });
  return zoomed(theme, place, metadata, view);
}

const known = new WeakMap(); // of each map's metadata, where its cells and labels are

function wellPlaced(metadata, theme, { width, room }) {
  const widths = measure(metadata, theme);
  const fit = (titleLines) => fitted(metadata, theme, { width, room, widths, titleLines });
  if (metadata.untitled) return fit(0);
  const one = fit(1);
  // Few rows: the title beside them needs a second line.
  return widthOf(theme, `← ${metadata.row_title}`, 0.8 * theme.size) <= one.plot[3] ? one : fit(2);
}

// Widths of the labels, per pixel of their letters: measured once, although several sizes are tried.
function measure({ rows, columns, row_pictures: rowPictures, column_pictures: columnPictures }, theme) {
  const size = Math.round(LARGEST * theme.size * 10) / 10; // as `fontOf` rounds it
  const [plain, bold] = [400, 600].map((weight) => (label) => widthOf(theme, label, size, weight) / size);
  const rowWidths = rows.map((label, row) => (rowPictures?.[row] ? PICTURE + NAME * bold(label) : bold(label)));
  // A patch is as small as its column.
  const columnWidths = columns.map((label, column) => (columnPictures?.[column] ? 0 : plain(label)));
  const widest = Math.max(...rowWidths);
  const row = rowWidths.indexOf(widest);
  return { rows: widest, columns: columnWidths, widestRow: rowPictures?.[row] ? "" : rows[row] };
}

// Before a label is left out, all become smaller, and then the rows taller.
function fitted(metadata, theme, options) {
  const tries = [];
  for (let scale = LARGEST; scale > SMALLEST; scale -= SMALLER_BY) tries.push({ scale });
  const lowest = LINE * SMALLEST * theme.size * metadata.rows.length;
  if (lowest <= TALLEST * theme.size)
    tries.push(...[SLANT, STEEP].map((slant) => ({ scale: SMALLEST, lowest, slant })));
  for (const one of tries) {
    const place = placed(metadata, theme, { ...options, ...one });
    const [rows, columns] = everys(theme, place, place.cellWidth, place.cellHeight, metadata);
    if (rows === 1 && (place.counted || columns === 1)) return place;
  }
  return placed(metadata, theme, options);
}

// Labels that have no room are left out at regular steps: -> [of the rows, of the columns].
function everys(theme, { letter, slanted, slant, longest }, stepX, stepY, metadata) {
  const across = slanted ? (letter * 0.95) / Math.sin(slant) : longest + 8;
  const every = (step, needed) => [1, 2, 5, 10, 20, 50, 100].find((count) => count * step >= needed - 0.01) ?? 200;
  const fits = metadata.column_pictures || (!slanted && longest <= stepX - 6);
  return [metadata.row_pictures ? 1 : every(stepY, letter * LINE), fits ? 1 : every(stepX, across)];
}

// `scale`, `slant`: of the labels; `lowest`: the least height of all rows.
function placed({ rows, columns, column_pictures: pictures }, theme, options) {
  const { width, room, widths, titleLines, scale = LARGEST, slant = SLANT, lowest = 0 } = options;
  const [unit, letter] = [theme.size / 16, theme.size * scale];
  const [widestCell, tallestCell] = [WIDEST * unit, TALLEST_CELL * unit];
  // Small letters are a little wider than their share of large ones.
  const wanted = Math.max(widths.rows * letter, widthOf(theme, widths.widestRow, letter, 600)) + 2;
  // A little more than its share, if that shows every label in full.
  const rowRoom = Math.min(wanted, wanted <= width * FULL_ROWS ? wanted : width * 0.3, 190 * unit);
  const labels = widths.columns.map((wide) => Math.min(wide * letter, 130 * unit));
  const longest = Math.max(...labels);
  const left = (titleLines ? Math.round((10 + 16 * titleLines) * unit) : 0) + rowRoom + 10;
  const cellFor = (overhang) =>
    Math.max(1, Math.min(Math.max(widestCell, longest + 12), (width - left - 6 - overhang) / columns.length));
  let cellWidth = cellFor(0);
  // Short numbers (of channels) of which not all have room stay horizontal, too: every second, every fifth. A word that
  // is left out cannot be counted off.
  const counted = columns.every((label) => /^\d+$/.test(label));
  const everySome = counted && cellWidth < 1.5 * LARGEST * theme.size && longest < 3 * letter;
  const slanted = longest > cellWidth - 6 && !everySome;
  // The last slanted labels lean out over the right edge: leave them room.
  const overhang = (label, c) => label * Math.cos(slant) + letter * 0.5 - (columns.length - c - 0.5) * cellWidth;
  for (let again = 0; slanted && again < 3; again++) cellWidth = cellFor(Math.max(0, ...labels.map(overhang)));
  let labelRoom = slanted ? longest * Math.sin(slant) + letter * 1.1 : letter * 1.7;
  if (slanted) cellWidth = Math.min(cellWidth, widestCell);
  if (pictures) labelRoom = Math.max(labelRoom, (PICTURE + NAME) * letter + 6);
  const top = (titleLines ? Math.round(24 * unit) : 4) + labelRoom;
  // Few tokens: wide cells, room for words and numbers. Many: squares, as long as the height allows.
  // Up to twelve rows each keeps its label in full size; of more, some are left out, and rows may be lower.
  const tall = Math.max(lowest, (rows.length > 12 ? 10 : 12) * theme.size);
  const fitting = Math.max((room - top) / rows.length, Math.min(18 * unit, tall / rows.length));
  const cellHeight = Math.max(1, Math.min(tallestCell, Math.max(cellWidth, 1.2 * letter), fitting));
  const widest = Math.max(cellHeight / 0.55, slanted ? letter / Math.sin(slant) : longest + 12);
  cellWidth = Math.min(cellWidth, widest);
  const plot = [left, top, cellWidth * columns.length, cellHeight * rows.length];
  const labelled = { letter, slant, slanted, longest, counted, rowRoom, labelRoom, titleLines };
  const leaning = slanted ? Math.max(0, ...labels.map(overhang)) : 0; // of the labels, over the right edge
  return { ...labelled, width, cellWidth, cellHeight, plot, leaning, height: top + plot[3] };
}

function zoomed(theme, place, metadata, { zoom, x, y }) {
  const [left, top, width, height] = place.plot;
  const inside = (pan, extent) => Math.min(Math.max(0, pan), extent * (zoom - 1));
  const view = { zoom, x: inside(x, width), y: inside(y, height) };
  const [stepX, stepY] = [place.cellWidth * zoom, place.cellHeight * zoom];
  const seen = (pan, step, extent, count) => [
    Math.max(0, Math.floor(pan / step)),
    Math.min(count - 1, Math.ceil((pan + extent) / step) - 1),
  ];
  const [everyRow, everyColumn] = everys(theme, place, stepX, stepY, metadata);
  const snap = (value) => Math.round(value * theme.ratio) / theme.ratio;
  const columnX = (column) => left + column * stepX - view.x;
  const rowY = (row) => top + row * stepY - view.y;
  return {
    ...place,
    ...{ view, stepX, stepY, everyRow, everyColumn, columnX, rowY },
    rowsSeen: seen(view.y, stepY, height, metadata.rows.length),
    columnsSeen: seen(view.x, stepX, width, metadata.columns.length),
    pictureSide: (step) => Math.max(2, Math.min(PICTURE * place.letter, step - 2)),
    // Edges on whole device pixels, so that equal cells look equal.
    cellBox(row, column) {
      const [atX, atY] = [snap(columnX(column)), snap(rowY(row))];
      return [atX, atY, snap(columnX(column + 1)) - atX, snap(rowY(row + 1)) - atY];
    },
  };
}
