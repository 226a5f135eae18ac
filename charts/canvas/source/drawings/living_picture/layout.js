// Where everything stands. Sentences lie as one reads them, layers go up, as in figure 1 of the paper.
//
// A layer is a card as long as it is closed; of one stack about one layer lies open. How far each is open comes in as a number
// from 0 to 1, so that a card can be seen opening.

import { widthOf } from "../../scene/letters.js";

export const TAB = 0.6; // heights of a letter: the dot from which a slanted name hangs
export const ROW = 1.4; // heights of a letter: one of two rows of names
export const OUTPUT = 2.9; // heights of letters between a column and its candidates: the token that is predicted
const [NAME, LEAST_NAME] = [0.875, 0.6875]; // letters: those of names, and the smallest of them, 11 of 16 pixels
const [SMALLER, SMALLEST, STEEP] = [0.86, LEAST_NAME / NAME, Math.PI / 3];
const LINE = 1.2; // heights of its letters: what a slanted name needs
const NARROW = 40; // letters: beside so narrow a picture, layers have numbers in place of names
const [CANDIDATE, LEAST_CANDIDATE] = [1.25, 0.72]; // heights of a letter: the row of a candidate
const BESIDE = 0.75; // heights of a letter: what a chip needs beside its name
const LEAST_LANE = (LEAST_NAME * LINE) / Math.sin(STEEP); // letters: in narrower lanes slanted names would lie upon each other
const LEVEL = [
  { rows: 1, scale: 1 },
  { rows: 1, scale: SMALLER },
  { rows: 2, scale: 1 },
  { rows: 2, scale: SMALLER },
  { rows: 3, scale: SMALLER },
  { rows: 3, scale: SMALLEST },
];
const SHARES = { self_attention: 0.34, cross_attention: 0.42, feed_forward: 0.24 };

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
// smaller letters; else slanted, the steeper and the smaller the narrower the lanes. No name is cut.
function nameStyle({ level, pitch, longest, size }) {
  if (level) {
    const { rows, scale } = level;
    return { letters: NAME * scale, angle: 0, rows, tall: rows === 1 ? 1.6 * size : rows * ROW * size };
  }
  const angle = pitch * Math.sin(Math.PI / 4) >= NAME * size * LINE ? Math.PI / 4 : STEEP;
  const letters = Math.min(NAME, Math.max(LEAST_NAME, (pitch * Math.sin(angle)) / (LINE * size)));
  const long = Math.min((longest * letters) / NAME, 10 * size);
  const tall = TAB * size + long * Math.sin(angle) + letters * size * Math.cos(angle) + 0.5 * size;
  return { letters, angle, rows: 1, tall };
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

// Everything that does not depend on which layer lies open. A sentence that is too long for the width leaves layers their
// numbers alone; one that is longer still makes the picture wider, and lower: the bar by which it is scrolled is below.
export function layOutLanes(theme, model, { width, height }) {
  const { size } = theme;
  const { stacks } = model;
  const lengths = stacks.map(({ tokens, pictures }) =>
    tokens.map(({ text }) => (pictures ? 0 : widthOf(theme, text, NAME * size, 500))),
  );
  const least = (stack) => (stack.pictures ? 2.2 : 1.7) * size;
  const wantedAt = ({ rows, scale }) =>
    stacks.map((stack, index) => {
      const chips = lengths[index].map((length) => length * scale + BESIDE * size);
      return rows === 1
        ? chips.map((chip) => Math.max(least(stack), chip))
        : lanesOfRows(chips, rows, (rows === 2 ? 1.2 : 0.8) * size);
    });
  // Beside each stack its layers and sub-layers are named.
  const widest = (texts) => Math.max(...texts.map((text) => widthOf(theme, text, 0.78 * size)));
  const named = stacks.map(({ gutterTexts }) => Math.min(width * 0.13, widest(gutterTexts) + 0.9 * size));
  const besideOf = (gutters) => 4 + gutters.reduce((sum, one) => sum + one, 0);
  const leastOfLanes = lengths.flat().length * LEAST_LANE * size;
  const narrow = width < NARROW * size || besideOf(named) + leastOfLanes > width;
  const gutters = narrow ? stacks.map(() => 1.4 * size) : named;
  const beside = besideOf(gutters);
  const wide = Math.max(width, Math.ceil(beside + leastOfLanes));
  const room = wide - beside;
  const needs = (lanes) => lanes.flat().reduce((sum, one) => sum + one, 0);
  const level = LEVEL.find((one) => needs(wantedAt(one)) <= room);
  // Slanted names need no wider lanes than others: all are alike.
  const widths = laneWidths(wantedAt(level ?? { rows: 1, scale: 0 }).flat(), room);
  const used = widths.reduce((sum, one) => sum + one, 0);
  const pitch = Math.min(...widths);
  // Patches do not take turns: they are as narrow as their lanes.
  const taking = level?.rows > 1 && stacks.every(({ pictures }) => pictures) ? { rows: 1, scale: 0.7 } : level;
  const names = nameStyle({ level: taking, pitch, longest: Math.max(...lengths.flat()), size });
  const ribbon = Math.min(2.9 * size, pitch * (narrow ? 0.66 : 0.8));
  const spare = Math.max(0, room - used); // goes around one stack, or between two
  const places = {};
  let left = 4 + (stacks.length === 1 ? spare / 2 : 0);
  let at = 0;
  stacks.forEach((stack, index) => {
    if (index) left += spare;
    const lanes = stack.tokens.map((_, place) => {
      const lane = { x: left + widths[at] / 2, left, width: widths[at], row: place % names.rows };
      left += widths[at++];
      return lane;
    });
    places[stack.name] = { lanes, left: lanes[0].left, right: left, gutter: gutters[index] };
    left += gutters[index];
  });
  const lay = { places, ribbon, width: wide, height: wide > width ? height - size : height, size, narrow, names };
  layOutHeights(lay, model);
  return lay;
}

// How high a closed sub-layer of each stack is, and the one layer that lies open; how many candidates are drawn.
function layOutHeights(lay, { stacks, last, written, metadata }) {
  const { size, height, names } = lay;
  for (const stack of stacks) {
    const above = stack === last ? OUTPUT * size : names.tall + 1.3 * size;
    // Closed, the encoder is lower than the decoder's cross-attention: the lines go up.
    const closed = Math.min((stack === last ? 0.55 : 0.34) * size, (0.22 * (height - names.tall)) / stack.steps.length);
    const each = stack.steps.length / stack.layers;
    const gaps = (stack.layers - 1) * (closed > 6 ? 0.18 * size : 0);
    const fixed = names.tall + 1.5 * size + 0.35 * size + 0.8 * size + (stack.layers - 1) * each * closed + gaps;
    const bands = height - fixed - each * 1.1 * size - 1.3 * size - above;
    Object.assign(lay.places[stack.name], { closed, bands, least: each * closed });
  }
  // Candidates are lower, then fewer, where the open layer would push them out of the picture; 0.9 is what the heights above
  // leave free at the top.
  const answering = lay.places[last.name];
  const left = answering.bands - answering.least + 0.9 * size;
  const listed = Math.max(1, ...written.map((row) => row.names.length));
  const most = metadata.classes ? listed : Math.min(listed, Math.max(3, Math.round(height / (7 * size))));
  const rows = Math.max(1, Math.min(most, Math.floor(left / (LEAST_CANDIDATE * size))));
  const row = Math.min(CANDIDATE * size, (7.2 * size) / rows, Math.max(LEAST_CANDIDATE * size, left / rows));
  answering.bands -= rows * row;
  Object.assign(lay, { mostRows: rows, answerRow: row });
}

// The heights of one stack, from the bottom up: { chips, levels: [y at which level k begins], bands: [{ top, bottom, open }],
// cards: [{ top, bottom }], top }. opened: by layer, 0 … 1.
export function layOutStack(lay, stack, opened) {
  const { size, height, names } = lay;
  const { closed, bands } = lay.places[stack.name];
  const bottom = height - 1.5 * size; // the legend is below
  const chips = { top: bottom - names.tall, bottom };
  let y = chips.top - 0.35 * size;
  const levels = [y];
  const parts = [];
  const cards = [];
  const kinds = stack.steps.filter(({ layer }) => layer === 0).map(({ kind }) => kind);
  const whole = kinds.reduce((sum, kind) => sum + SHARES[kind], 0);
  let layer = -1;
  for (const step of stack.steps) {
    const open = opened[step.layer] ?? 0;
    if (step.layer !== layer) {
      layer = step.layer;
      if (layer) y -= closed > 6 ? 0.18 * size : 0;
      cards.push({ bottom: y, top: y, open });
    }
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
  return { chips, levels, bands: parts, cards, end, top: end - (stack.arrays("final") ? 0.5 * size : 0) };
}
