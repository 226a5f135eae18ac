// Where everything stands. Sentences lie as one reads them, layers go up, as in figure 1 of the paper.
//
// A layer is a card as long as it is closed; of one stack about one layer lies open. How far each is open comes in as a number
// from 0 to 1, so that a card can be seen opening.

import { fontOf, widest } from "../../toolkit/text.js";

export const TAB = 0.6; // heights of a letter: the dot from which a slanted name hangs
const SMALLER = 0.86;
export const ROW = 1.4; // heights of a letter: one of two rows of names
const ANGLES = [Math.PI / 4, Math.PI / 3];
const NARROW = 40; // letters: a phone

const MOST = 8; // rows of names on a phone
const BESIDE = 0.75; // heights of a letter: what a chip needs beside its name
const LEVEL = [
  { rows: 1, scale: 1 },
  { rows: 1, scale: SMALLER },
  { rows: 2, scale: 1 },
  { rows: 2, scale: SMALLER },
  { rows: 3, scale: SMALLER },
];

const SHARES = { self_attention: 0.34, cross_attention: 0.42, feed_forward: 0.24, convolution: 0.14 };

// How wide the lanes are: as wide as their words as long as there is room, otherwise the long ones give way.
function laneWidths(wanted, room) {
  const total = wanted.reduce((sum, width) => sum + width, 0);
  if (total <= room) {
    const more = Math.min(48, (room - total) / wanted.length);
    return wanted.map((width) => width + more);
  }
  let [low, high] = [0, Math.max(...wanted)];
  for (let round = 0; round < 30; round++) {
    const cap = (low + high) / 2;
    if (wanted.reduce((sum, width) => sum + Math.min(cap, width), 0) > room) high = cap;
    else low = cap;
  }
  return wanted.map((width) => Math.min(low, width));
}

// How names are written: { letters, angle, rows, tall }. Level where they fit, in one row or in two or three by turns, at worst in
// slightly smaller letters; else slanted, the steeper the narrower the lanes. No name is cut.
function nameStyle({ level, pitch, longest, size, letter }) {
  if (level) {
    const { rows, scale } = level;
    return { letters: letter * scale, angle: 0, rows, tall: rows === 1 ? 1.6 * size : rows * ROW * size };
  }
  const high = letter * size * 1.2;
  const angle = ANGLES.find((one) => pitch * Math.sin(one) >= high) ?? Math.PI / 2;
  // Upright names of very narrow lanes are as high as a lane is wide.
  const letters = angle < Math.PI / 2 ? letter : Math.max(0.5, Math.min(letter, pitch / size / 1.05));
  const long = Math.min((longest * letters) / letter, 10 * size);
  return {
    letters,
    angle,
    rows: 1,
    crowded: angle === Math.PI / 2,
    tall: TAB * size + long * Math.sin(angle) + letters * size * Math.cos(angle) + 0.5 * size,
  };
}

// Horizontal names of lanes that are too narrow for upright ones, in enough rows that no two names of a row touch. The first and
// the last names stay within the ends of their stack. Sets `row` and `at`, the middle, of each lane; null if MOST rows are too few.
function crowdedNames(stacks, size, letter) {
  for (let rows = 3; rows <= MOST; rows++) {
    const fits = stacks.every(({ lanes, chips, ends: [left, right] }) =>
      lanes.every((lane, k) => {
        const before = k < rows ? -Infinity : lanes[k - rows].at + (chips[k - rows] + chips[k]) / 2;
        lane.row = k % rows;
        lane.at = Math.min(right - chips[k] / 2, Math.max(left + chips[k] / 2, lane.x));
        return lane.at > before;
      }),
    );
    if (fits) return { letters: letter * SMALLER, angle: 0, rows, crowded: true, tall: rows * 1.2 * size };
  }
  return null;
}

// How wide lanes are whose names take turns in several rows: no name reaches another one of its row, or beyond the ends.
function lanesOfRows(chips, rows, least) {
  const lanes = chips.map(() => least);
  const grow = (from, to, missing) => {
    for (let k = from; k < to; k++) lanes[k] += Math.max(0, missing) / (to - from);
  };
  const between = (from, to) => lanes.slice(from, to).reduce((sum, lane) => sum + lane, 0);
  const last = chips.length - 1;
  const half = (count) => count / (count - 0.5); // half of the first or last lane lies beyond the name's middle
  chips.forEach((chip, at) => {
    if (at < rows) grow(0, at + 1, half(at + 1) * (chip / 2 - between(0, at) - lanes[at] / 2));
    const other = at + rows;
    if (other <= last)
      grow(at + 1, other, (chip + chips[other]) / 2 - between(at + 1, other) - (lanes[at] + lanes[other]) / 2);
  });
  for (let at = Math.max(0, last + 1 - rows); at <= last; at++)
    grow(at, last + 1, half(last + 1 - at) * (chips[at] / 2 - between(at + 1, last + 1) - lanes[at] / 2));
  return lanes;
}

// Everything that does not depend on which layer lies open.
export function layOutLanes(context, theme, model, { width }) {
  const { size } = theme;
  const letter = 0.875;
  context.font = fontOf(theme, letter, 500);
  const lengths = model.stacks.map((stack) =>
    stack.tokens.map(({ text }) => (stack.pictures ? 0 : context.measureText(text).width)),
  );
  const least = (stack) => (stack.pictures ? 2.2 : 1.7) * size;
  const wantedAt = ({ rows, scale }) =>
    model.stacks.map((stack, index) => {
      const chips = lengths[index].map((length) => length * scale + BESIDE * size);
      return rows === 1
        ? chips.map((chip) => Math.max(least(stack), chip))
        : lanesOfRows(chips, rows, (rows === 2 ? 1.2 : 0.8) * size);
    });
  context.font = fontOf(theme, 0.78);
  // Beside each stack its layers and sub-layers are named; on a phone, the layers by their numbers alone.
  const narrow = width < NARROW * size;
  const gutters = model.stacks.map((stack) =>
    narrow ? 1.4 * size : Math.min(width * 0.13, widest(context, stack.gutterTexts) + 0.9 * size),
  );
  const room = width - 4 - gutters.reduce((sum, one) => sum + one, 0);
  const needs = (lanes) => lanes.flat().reduce((sum, one) => sum + one, 0);
  const level = LEVEL.find((one) => needs(wantedAt(one)) <= room);
  // Slanted names need no wider lanes than others: all are alike.
  const wanted = wantedAt(level ?? { rows: 1, scale: 0 });
  const widths = laneWidths(wanted.flat(), room);
  const used = widths.reduce((sum, one) => sum + one, 0);
  const pitch = Math.min(...widths);
  let names = nameStyle({ level, pitch, longest: Math.max(...lengths.flat()), size, letter });
  // Patches do not take turns: they are as narrow as their lanes.
  if (names.rows > 1 && model.stacks.every(({ pictures }) => pictures))
    names = nameStyle({ level: { rows: 1, scale: 0.7 }, size, letter });
  const ribbon = Math.min(2.9 * size, pitch * (narrow ? 0.66 : pitch > 12 ? 0.8 : 0.92));
  const places = {};
  let at = 0;
  let left = 4 + (model.stacks.length === 1 ? Math.max(0, (room - used) / 2) : 0);
  // What is over goes between the stacks.
  const spare = model.stacks.length > 1 ? Math.max(0, room - used) : 0;
  model.stacks.forEach((stack, index) => {
    if (index) left += spare;
    const lanes = wanted[index].map((_, place) => {
      const lane = { x: left + widths[at] / 2, left, width: widths[at], row: place % names.rows };
      left += widths[at++];
      return lane;
    });
    places[stack.name] = { lanes, left: lanes[0].left, right: left, gutter: gutters[index] };
    left += gutters[index];
  });
  if (narrow && names.crowded && !model.stacks.some(({ pictures }) => pictures)) {
    const stacks = model.stacks.map(({ name }, index) => ({
      lanes: places[name].lanes,
      chips: lengths[index].map((length) => length * SMALLER + 0.4 * size),
      ends: [places[name].left - 4, places[name].right + gutters[index] - 2],
    }));
    names = crowdedNames(stacks, size, letter) ?? names;
  }
  // The names are repeated above the encoder, or only that of the token with the largest weight.
  const memory = names.crowded ? (TAB + 1.9) * size : names.tall;
  return { places, ribbon, width, size, narrow, names, chips: names.tall, memory };
}

// The heights of one stack, from the bottom up: { chips, levels: [y at which level k begins], bands: [{ top, bottom, open }],
// cards: [{ top, bottom }], top }. opened: by layer, 0 … 1.
export function layOutStack(layout, stack, { opened, closed, bands, top }) {
  const { size, height } = layout;
  const chips = { top: height - layout.chips - 1.5 * size, bottom: height - 1.5 * size }; // the legend is below
  let y = chips.top - 0.35 * size;
  const levels = [y];
  const parts = [];
  const cards = [];
  const kinds = stack.steps.filter(({ layer }) => layer === 0).map(({ kind }) => kind);
  const whole = kinds.reduce((sum, kind) => sum + SHARES[kind], 0);
  let layer = -1;
  for (const step of stack.steps) {
    if (step.layer !== layer) {
      layer = step.layer;
      if (layer) y -= closed > 6 ? 0.18 * size : 0;
      cards.push({ bottom: y, top: y, open: opened[layer] ?? 0 });
    }
    const open = opened[layer] ?? 0;
    const share = (SHARES[step.kind] / whole) * bands;
    const tall = closed + open * (Math.max(closed, share) - closed);
    const solid = levels.length === 1 ? 0.6 * size : open * 0.6 * size; // of the stream, before the sub-layer
    const strip = open * 0.5 * size; // the update, where it comes in
    parts.push({ solid, bottom: y - solid, top: y - solid - tall, strip, open });
    y -= solid + tall + strip;
    levels.push(y);
    cards[cards.length - 1].top = y;
  }
  const end = y - 0.5 * size; // of the last level; behind it is what the last norm makes of it
  return { chips, levels, bands: parts, cards, end, top: end - (stack.arrays("final") ? 0.5 * size : 0) - top };
}

// How much of the height is left for the one open layer of a stack.
export function roomForBands(layout, stack, closed, above) {
  const { size, height } = layout;
  const layers = stack.layers;
  const each = stack.steps.length / layers;
  const gaps = (layers - 1) * (closed > 6 ? 0.18 * size : 0);
  const fixed =
    layout.chips +
    1.5 * size +
    0.35 * size +
    0.8 * size +
    (layers - 1) * each * closed +
    gaps +
    each * 1.1 * size +
    1.3 * size;
  return height - fixed - above;
}
