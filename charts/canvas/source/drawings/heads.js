// Every head as a small map, layers down and heads across, a grid for each kind of attention; and one head large: the one
// that is chosen or pointed at.

import { cssOf } from "../toolkit/colour.js";
import { Matrix } from "../toolkit/matrix.js";
import { exactly, roughly, threeDigits } from "../toolkit/numbers.js";
import { colourOf } from "../toolkit/theme.js";
import { say } from "../toolkit/words.js";
import { hatched, knownBitmap } from "../scene/bitmap.js";
import { ruler, widthOf, wrap } from "../scene/letters.js";
import { inkOf, legend } from "../scene/parts.js";
import { Scene } from "../scene/scene.js";
import { describeCell, matrixColumns, matrixRecords, matrixTable } from "./describe.js";
import { mapScene } from "./map.js";
import { layOut } from "./map_layout.js";

const DIMMED = 0.4; // how much is left of a map that is there but not the point
const SMALL = 0.8; // letters of names and words
const [LARGEST, LEAST] = [8, 1.5]; // the width of a small map
const APART = 1.4; // between grids, and between them and the large map
const SMALLEST = 10; // there is at least such a height for the large map
const BESIDE = 40; // where a figure is as wide, the large map stands beside the small ones
const LARGE_SHARE = 0.6; // of the height, for a large map above the small ones
const TALL = 45; // the height of a figure where its box says none
const BAND = 5; // px between two bands of heads that share their keys and values
const WHOLE = { zoom: 1, x: 0, y: 0 };

export const eager = true;

export function read({ metadata, arrays }) {
  const parts = (metadata.parts ?? [metadata]).map((one, k) => {
    const suffix = metadata.parts ? k : "";
    return partOf(one, arrays[`weights${suffix}`], arrays[`masks${suffix}`]);
  });
  // With words, large maps say what their heads do.
  const data = { metadata, parts, hasLarge: !metadata.parts, hasWords: metadata.kind === "heads" };
  const [head, layer, attention, stack] = [...(metadata.selected ?? [])].reverse();
  return { ...data, selected: metadata.selected && targetOf(data, { stack, attention, layer, head }) };
}

function partOf(metadata, weights, masks) {
  const { tiles, rows, columns } = metadata;
  const cells = rows.length * columns.length;
  const most = weights.values instanceof Uint8Array ? 255 : 1;
  const matrices = tiles.map(({ mask, limit = 1 }, k) => {
    const values = weights.values.subarray(k * cells, (k + 1) * cells);
    const bits = masks.values.subarray(mask * masks.shape[1], (mask + 1) * masks.shape[1]);
    const divisor = most === 1 ? 1 : most / limit;
    return new Matrix({ values, rows: rows.length, columns: columns.length, bits, divisor });
  });
  const layers = [...new Set(tiles.map(({ layer }) => layer))];
  const heads = Math.max(...tiles.map(({ head }) => head)) + 1;
  // A table of layers × heads, or tiles one after the other, each of which then says which head it is.
  const listed = metadata.sorted || Boolean(metadata.per_line);
  const shared = listed ? 1 : (metadata.heads_a_key ?? 1); // as many heads in a row share their keys and values
  const slots = tiles.map(({ layer, head }, k) =>
    listed
      ? { line: Math.floor(k / (metadata.per_line ?? heads)), column: k % (metadata.per_line ?? heads) }
      : { line: layers.indexOf(layer), column: head },
  );
  const masked = matrices.some((matrix) => matrix.anyMasked());
  return {
    metadata,
    tiles,
    matrices,
    layers,
    heads,
    listed,
    shared,
    slots,
    masked,
    across: metadata.per_line ?? heads,
  };
}

function targetOf({ parts }, { stack, attention, layer, head }) {
  const part = parts.findIndex(({ metadata: own }) => !stack || (own.stack === stack && own.attention === attention));
  const tile = parts[part]?.tiles.findIndex((one) => one.layer === layer && one.head === head) ?? -1;
  return tile < 0 ? null : { part, tile };
}

const tileOf = ({ parts }, { part, tile }) => parts[part].tiles[tile];
const matrixOf = ({ parts }, { part, tile }) => parts[part].matrices[tile];
const nameOf = ({ layer, head }) => say("layer {layer}, head {head}", { layer, head });

export function labelOf({ metadata, parts }) {
  const size = say("{layers} layers, up to {heads} heads each.", {
    layers: parts[0].layers.length,
    heads: parts[0].heads,
  });
  const keys = say("Move with the arrow keys, choose with Enter.");
  const within = metadata.parts ? "" : ` ${say("Shift and an arrow key move within a head.")}`;
  return metadata.parts ? `${metadata.title}. ${keys}` : `${metadata.title}: ${size} ${keys}${within}`;
}

export const help = () => say("small heat maps");

// --- where everything is --------------------------------------------------------------------------------------------

export function scene(data, theme, width) {
  const { size } = theme;
  const key = legendOf(data, theme, 0, width);
  const room = (theme.room ?? TALL * size) - key.height - 12;
  const beside = data.hasLarge && width >= BESIDE * size;
  const share = beside ? Math.min(34 * size, width * 0.42) : width;
  const large = data.hasLarge && layOutLarge(data, theme, { width: share, room: beside ? room : LARGE_SHARE * room });
  const above = large && !beside ? large.height + 0.8 * size : 0;
  const grids = gridsOf(data, theme, {
    width: beside ? width - share - APART * size : width,
    top: above,
    room: room - above,
  });
  const x = beside ? Math.round(Math.min(grids.width + 2 * size, width - share)) : 0;
  // Beside a large map, the legend stands below the small ones whose colours it explains.
  const below = legendOf(data, theme, grids.bottom + 8, beside ? grids.width : width);
  const end = Math.max(grids.bottom + 8 + below.height, beside ? large.height : 0);
  const shown = data.selected ?? { part: 0, tile: 0 };
  const part = { ...data, theme, grids, made: new Map(), large: large && { ...large, x } };
  const map = large ? largeMap(part, shown) : new Scene({ marks: [] });
  const chosen = data.selected && !theme.unmarked ? [frame(grids.box(data.selected), cssOf(theme.chosen), 3)] : [];
  const cells = data.parts.flatMap(({ metadata }, part_) => tilePlaces(metadata, grids, part_));
  return new Scene({
    size: [width, end + 4],
    marks: [...grids.marks, ...chosen, ...below.marks, ...map.marks],
    places: [...cells, ...map.places],
    first: shown,
    focus: (target) => focus(part, target),
    step: (target, pressed, within) => step(data, target, pressed, within && data.hasLarge),
    box: (target) => boxOf(part, target),
    geometry: () => ({
      parts: data.parts.map(({ tiles }, k) => tiles.map((_, tile) => grids.box({ part: k, tile }))),
      large: large ? [{ ...map.places[0].grid, ...shown }] : [],
    }),
  });
}

function legendOf({ metadata, parts }, theme, y, width) {
  const stretched = metadata.stretched ? say("largest") : undefined;
  const text = stretched
    ? say("attention weight, each map scaled to its own maximum")
    : say("attention weight, fixed scale 0…1");
  const groups = (metadata.groups ?? []).map(([name, colour]) => [name, theme.heads[colour]]);
  const entries = [
    [text],
    ...groups,
    [metadata.faded],
    [parts.some(({ masked }) => masked) && say("masked: cannot be attended to"), "hatch"],
    [parts[0].shared > 1 && say("one band: the same keys and values"), cssOf(theme.primary, 0.22)],
  ];
  return legend(theme, { scale: "sequential", limit: 1, most: stretched, entries }, [0, y], width);
}

// As many grids side by side as give the largest maps that end in the box.
function gridsOf(data, theme, { width, top, room }) {
  const { parts, metadata } = data;
  const apart = APART * theme.size;
  const ways = parts.map((_, k) => {
    const across = k + 1;
    const share = (width - k * apart) / across;
    const head = metadata.parts ? 1.9 * theme.size : 0;
    const lines = Math.ceil(parts.length / across);
    let y = top;
    const laid = [];
    for (let line = 0; line < lines; line++) {
      const row = parts.slice(line * across, (line + 1) * across).map((part, column) => {
        const place = { x: column * (share + apart), y: y + head, width: share, room: room / lines - head };
        return { part, ...gridOf(part, theme, { ...place, isWordy: !data.hasWords }) };
      });
      laid.push(...row);
      y = Math.max(...row.map(({ bottom }) => bottom)) + apart;
    }
    return { laid, head, bottom: y - apart, smallest: Math.min(...laid.map(({ tileWidth }) => tileWidth)) };
  });
  const fits = ({ bottom }) => bottom - top <= room;
  const better = (one, other) => (fits(one) === fits(other) ? one.smallest > other.smallest : fits(one));
  const { laid, head, bottom } = ways.reduce((best, way) => (better(way, best) ? way : best));
  const box = ({ part, tile }) => laid[part].box(tile);
  const right = Math.max(...laid.map((grid) => grid.x + grid.width));
  const marks = laid.flatMap((grid) => {
    const at = [grid.x, grid.y - head + 0.7 * theme.size];
    const title = { text: grid.part.metadata.title, at, size: 0.875 * theme.size, weight: 600, room: width };
    return [...(head ? [{ ...title, fill: cssOf(theme.ink) }] : []), ...gridMarks(data, grid, theme)];
  });
  return { box, bottom, width: right, marks };
}

// One grid in a width: as large as the room allows, with its words where there are any and the maps are wide enough.
function gridOf(part, theme, { x, y, width, room, isWordy }) {
  const { metadata, tiles, layers, listed, shared, slots, across, heads } = part;
  const { size } = theme;
  const letter = SMALL * size;
  const names = [...layers.map((layer) => say("layer {layer}", { layer })), say("head")];
  const header = listed ? 0 : Math.max(...names.map((name) => widthOf(theme, name, letter))) + 12;
  const bands = shared > 1 ? BAND * (Math.ceil(heads / shared) - 1) : 0;
  const share = (width - header - bands) / across;
  const gap = share > 90 ? 10 : Math.max(2, Math.min(6, share / 6));
  const lines = Math.max(...slots.map(({ line }) => line)) + 1;
  const shape = Math.min(1.5, Math.max(0.6, metadata.rows.length / metadata.columns.length));
  const top = listed ? 2 : 1.9 * letter;
  const [least, most] = [LEAST * size, Math.min(LARGEST * size, share - gap)];
  const fitting = (words) => ((room - top) / lines - gap - (words ? 4 + words * letter * 1.2 : 0)) / shape;
  const wordsOf = (wide) =>
    tiles.map(({ caption, layer, head }) => {
      const name = layers.length > 1 ? `${layer}.${head}` : say("head {head}", { head });
      const said =
        caption && isWordy && wide >= least ? wrap(ruler(theme, 0.75 * size, 500), caption, wide + gap - 2) : [];
      return [...(listed ? [name] : []), ...said];
    });
  const longest = (words) => Math.max(...words.map(({ length }) => length));
  const widthFor = (words) => Math.max(8, Math.min(most, Math.max(least, fitting(words))));
  const words = wordsOf(widthFor(longest(wordsOf(most))));
  const tileWidth = widthFor(longest(words));
  const tileHeight = tileWidth * shape;
  const lineHeight = tileHeight + gap + (longest(words) ? 4 + longest(words) * letter * 1.2 : 0);
  const columnX = (column) => column * (tileWidth + gap) + (shared > 1 ? Math.floor(column / shared) * BAND : 0);
  const box = (tile) => {
    const { line, column } = slots[tile];
    return [x + header + columnX(column), y + top + line * lineHeight, tileWidth, tileHeight].map(Math.round);
  };
  const place = { x, y, width: header + across * (tileWidth + gap) + bands, bottom: y + top + lines * lineHeight };
  return { ...place, top, header, gap, tileWidth, tileHeight, lineHeight, words, columnX, box };
}

const tilePlaces = ({ tiles, rows, columns }, grids, part) =>
  tiles.map((_, tile) => {
    const rect = grids.box({ part, tile });
    const [x, y, width, height] = rect;
    const [stepX, stepY] = [width / columns.length, height / rows.length];
    return { rect, of: { part, tile }, grid: { x, y, stepX, stepY, rows: rows.length, columns: columns.length } };
  });

function boxOf(part, { row, column, ...target }) {
  if (!part.large || (row === undefined && column === undefined)) return part.grids.box(target);
  return largeMap(part, target).box({ ...target, row, column });
}

// --- small maps -----------------------------------------------------------------------------------------------------

function gridMarks(data, grid, theme) {
  const { part, gap, tileHeight, words, box } = grid;
  const [letter, muted] = [SMALL * theme.size, cssOf(theme.muted)];
  const tiles = part.tiles.flatMap((tile, k) => {
    const [x, y, width, height] = box(k);
    const shown = tileMarks(part, theme, k, [x, y, width, height], data.hasWords && !tile.clear ? DIMMED : 1);
    const said = words[k].map((text, line) => ({
      ...{ text, at: [x + width / 2, y + tileHeight + 5 + letter * (0.6 + 1.2 * line)], align: "center" },
      ...{ size: 0.75 * theme.size, weight: 500, room: width + gap - 2 },
      fill: tile.clear || (line === 0 && part.listed) ? cssOf(theme.ink) : muted,
    }));
    const colour = theme.heads[tile.colour];
    const group = colour ? [frame([x, y, width, height], colour, 2, -1)] : [];
    return [...shown, ...group, ...said];
  });
  return [...(part.listed ? [] : gridNames(grid, theme)), ...(part.shared > 1 ? bandMarks(grid, theme) : []), ...tiles];
}

function tileMarks({ metadata, matrices, tiles, shared }, theme, tile, rect, alpha) {
  const [x, y, width, height] = rect;
  const matrix = matrices[tile];
  const { limit = 1 } = tiles[tile];
  const [tall, wide] = [height, width].map((side) => Math.round(side * theme.ratio));
  // More cells than points: a point is as bright as the brightest of its cells, which a mean would let vanish.
  const image = knownBitmap(matrix.shrunk(tall, wide), theme, colourOf(theme, "sequential", limit), limit, theme.file);
  const [stepX, stepY] = [width / matrix.columns, height / matrix.rows];
  const inks = (metadata.inks ?? []).flatMap((pixels, at) => {
    const [row, column] = [Math.floor(at / matrix.columns), at % matrix.columns];
    return inkOf(pixels, [x + column * stepX, y + row * stepY, stepX, stepY]);
  });
  return [
    ...(shared > 1 ? [{ rect, fill: cssOf(theme.ground) }] : []), // a pale map has no tint of its band
    { image, rect, alpha },
    ...hatched(matrix, rect).map((mark) => ({ ...mark, alpha })),
    ...inks,
    { rect: [x - 0.5, y - 0.5, width + 1, height + 1], round: 3, stroke: cssOf(theme.faint) },
  ];
}

// Of the layers and of the heads; of many thin lines or narrow columns some are named.
function gridNames({ part, x, y, top, header, gap, tileWidth, tileHeight, lineHeight, columnX }, theme) {
  const look = { size: SMALL * theme.size, fill: cssOf(theme.muted) };
  const wide = tileWidth >= widthOf(theme, "head 10", look.size);
  const left = x + header;
  const above = y + top - look.size * 1.1;
  const every = Math.ceil((look.size * 1.1) / lineHeight);
  const number = widthOf(theme, String(part.heads - 1), look.size);
  const stride = wide ? 1 : Math.max(1, Math.ceil((number + 4) / (tileWidth + gap)));
  const layers = part.layers.flatMap((layer, line) => {
    const at = [left - 10, y + top + line * lineHeight + tileHeight / 2];
    return line % every ? [] : [{ text: say("layer {layer}", { layer }), at, align: "right", ...look }];
  });
  const heads = Array.from({ length: part.heads }, (_, head) => head).filter((head) => head % stride === 0);
  const named_ = heads.map((head) => {
    const text = wide ? say("head {head}", { head }) : String(head);
    return { text, at: [left + columnX(head) + tileWidth / 2, above], align: "center", ...look };
  });
  return [
    ...layers,
    ...named_,
    ...(wide ? [] : [{ text: say("head"), at: [left - 10, above], align: "right", ...look }]),
  ];
}

// Under the heads that share their keys and values.
function bandMarks({ part, box, tileWidth, gap }, theme) {
  return part.tiles.flatMap(({ head }, tile) => {
    if (head % part.shared) return [];
    const [x, y, width, height] = box(tile);
    const last = Math.min(part.heads - head, part.shared) - 1;
    const rect = [x - 3, y - 2, width + last * (tileWidth + gap) + 6, height + 4];
    return [{ rect, round: 4, fill: cssOf(theme.primary, 0.22) }];
  });
}

function frame([x, y, width, height], stroke, thick, out = thick / 2 + 1) {
  return { rect: [x - out, y - out, width + 2 * out, height + 2 * out], round: 4, stroke, thick };
}

// --- the large map -----------------------------------------------------------------------------------------------------

// Where the large map is, with room for what it says.
function layOutLarge({ parts, selected, hasWords }, theme, { width, room }) {
  const { size } = theme;
  const said = selected ? sentence(tileOf({ parts }, selected), theme, width).length : 0;
  const head = Math.round((hasWords ? 1.3 + 1.15 * said : 2.1) * size);
  const map = mapOf(parts[0].metadata);
  const place = layOut(map, theme, { width, room: Math.max(SMALLEST * size, room - head), view: WHOLE });
  return { width, head, place, height: head + place.height };
}

const maps = new WeakMap();

// The metadata of a large map, one for each grid, for which its layout is kept.
function mapOf(metadata) {
  if (!maps.has(metadata)) {
    const { rows, columns, special_rows, special_columns, row_pictures, column_pictures, inks } = metadata;
    const look = { scale: "sequential", limit: 1, untitled: true };
    maps.set(metadata, { rows, columns, special_rows, special_columns, row_pictures, column_pictures, inks, ...look });
  }
  return maps.get(metadata);
}

const sentence = (tile, theme, width) =>
  wrap(ruler(theme, 0.875 * theme.size), tile.sentence ? `${nameOf(tile)}. ${tile.sentence}` : "", width, 3);

// Kept as long as the figure is laid out like this: moving over a map draws no other one.
function largeMap(data, { part, tile }) {
  const key = `${part} ${tile}`;
  if (!data.made.has(key)) data.made.set(key, drawLarge(data, { part, tile }));
  return data.made.get(key);
}

// With the cell framed that its sentence names.
function drawLarge(data, target) {
  const { theme, parts, hasWords } = data;
  const { size } = theme;
  const { x, width, head, place } = data.large;
  const tile = tileOf(data, target);
  const { title = nameOf(tile), limit = 1, edge: selected = null } = tile;
  const metadata = { ...mapOf(parts[target.part].metadata), limit, selected };
  const map = mapScene({ metadata, matrix: matrixOf(data, target) }, theme, place, target).at([x, head]);
  const colour = theme.heads[tile.colour];
  const box = colour ? size : 0;
  const used = hasWords ? 0 : widthOf(theme, title, size, 600) + 12;
  const look = { size: 0.875 * size, fill: cssOf(theme.muted) };
  const said = sentence(tile, theme, width).map((text, k) => ({ text, at: [x, (1.75 + 1.15 * k) * size], ...look }));
  const caption =
    hasWords || !tile.caption ? [] : [{ text: tile.caption, at: [x + used, 0.7 * size], room: width - used }];
  map.marks.push(
    ...(box ? [{ rect: [x, 0.3 * size, 0.7 * box, 0.7 * box], fill: colour }] : []),
    { text: title, at: [x + box, 0.7 * size], size, weight: 600, room: width - box, fill: cssOf(theme.ink) },
    ...said,
    ...caption.map((mark) => ({ ...mark, ...look })),
  );
  return map;
}

// The frame of the head that is pointed at; it is shown large, and there with what is pointed at in it.
function focus(data, target) {
  const { theme, large, grids } = data;
  const around = frame(grids.box(target), cssOf(theme.ink), 2);
  if (!large) return [around];
  const map = largeMap(data, target);
  const ground = { rect: [large.x - 1, 0, large.width + 6, large.height + 4], fill: cssOf(theme.ground) };
  const inside = target.row === undefined && target.column === undefined ? [] : map.focus(target);
  return [ground, ...map.marks, around, ...inside];
}

// --- keyboard, words, events ----------------------------------------------------------------------------------------

function step({ parts }, { part, tile, row, column }, key, within) {
  const { slots, across, metadata } = parts[part];
  if (within) {
    const inside = (value, count) => Math.min(count - 1, Math.max(0, value));
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key] ?? [
      0, 0,
    ];
    if (row === undefined) return { part, tile, row: 0, column: 0 };
    return {
      ...{ part, tile },
      row: inside(row + down, metadata.rows.length),
      column: inside(column + right, metadata.columns.length),
    };
  }
  const { line, column: at } = slots[tile];
  const moves = {
    ArrowUp: [line - 1, at],
    ArrowDown: [line + 1, at],
    ArrowLeft: [line, at - 1],
    ArrowRight: [line, at + 1],
    Home: [line, 0],
    End: [line, across - 1],
    PageUp: [0, at],
  };
  const to = moves[key] ?? [Infinity, at];
  const found = slots.findIndex((slot) => slot.line === to[0] && slot.column === to[1]);
  if (found >= 0) return { part, tile: found };
  // Beyond the edge of a grid lies the next one.
  const other = part + ({ ArrowRight: 1, ArrowDown: 1, PageDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key] ?? 0);
  return other !== part && parts[other] ? { part: other, tile: 0 } : { part, tile };
}

export function describe(data, target) {
  const { metadata } = data.parts[target.part];
  const tile = tileOf(data, target);
  const kind = data.metadata.parts ? `${metadata.title}, ` : "";
  const words = tile.title ?? tile.caption;
  const title = { parts: [`${kind}${nameOf(tile)}${words ? ` · ${words}` : ""}`] };
  const matrix = matrixOf(data, target);
  const cell = target.row === undefined && target.column === undefined ? matrix.strongest() : target;
  const said = cell ? describeCell(metadata, matrix, cell) : [{ parts: [say("everything is masked")] }];
  return [title, ...said];
}

export function click(data, target) {
  const { stack, attention } = data.parts[target.part].metadata;
  const { layer, head } = tileOf(data, target);
  return { event: "click", value: { ...(stack && { stack, attention }), layer, head } };
}

export function choose(data, value) {
  data.selected = targetOf(data, value);
}

export function records({ metadata, parts }) {
  const rows = parts.flatMap(({ metadata: own, tiles, matrices }) =>
    tiles.flatMap(({ layer, head }, tile) => {
      const name = metadata.parts ? [own.title] : [];
      return [...matrixRecords(own, matrices[tile], ...name, layer, head)];
    }),
  );
  const columns = matrixColumns(...parts.flatMap(({ matrices }) => matrices));
  return [[...(metadata.parts ? ["attention"] : []), "layer", "head", ...columns], ...rows];
}

// The largest weight of every head, and the head that is chosen.
export function tables(data) {
  const every = data.parts.map((part) => largestTable(part));
  if (data.metadata.parts) return every;
  const shown = data.selected ?? { part: 0, tile: 0 };
  const matrix = matrixOf(data, shown);
  const name = nameOf(tileOf(data, shown));
  const title = matrix.rounded ? `${name} (${say("rounded to 1/255")})` : name;
  return [...every, matrixTable(title, data.parts[0].metadata, matrix, matrix.rounded ? roughly : exactly)];
}

function largestTable({ metadata, tiles, matrices, layers, heads }) {
  const names = Array.from({ length: heads }, (_, head) => say("head {head}", { head }));
  const summary = (layer, head) => {
    const tile = tiles.findIndex((one) => one.layer === layer && one.head === head);
    if (tile < 0) return "";
    const matrix = matrices[tile];
    const best = matrix.strongest();
    const weight = best && (matrix.rounded ? roughly : threeDigits)(matrix.at(best.row, best.column));
    const edge = best ? `${metadata.rows[best.row]} → ${metadata.columns[best.column]} ${weight}` : say("all masked");
    return [tiles[tile].title ?? tiles[tile].caption, edge].filter(Boolean).join(": ");
  };
  const rows = [...layers]
    .sort((a, b) => a - b)
    .map((layer) => ({
      label: say("layer {layer}", { layer }),
      cells: names.map((_, head) => summary(layer, head)),
    }));
  return { caption: `${metadata.title}: ${say("the strongest edge of every head")}`, columns: names, rows };
}
