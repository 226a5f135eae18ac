// A text while it is written: at every step the candidates with their probabilities, and where the model looked meanwhile.

import { cssOf } from "../toolkit/colour.js";
import { Walk } from "./walk.js";
import { exactly, shortest, shortNumber, threeDigits } from "../toolkit/numbers.js";
import { quoted } from "../toolkit/sentences.js";
import { say } from "../toolkit/words.js";
import { ruler, widthOf, wrap } from "../scene/letters.js";
import { Scene } from "../scene/scene.js";

const SLOPE = 0.9; // of long names below the columns, in radians

export const read = ({ metadata, arrays }) => ({ metadata, arrays, masked: false });
export const labelOf = ({ metadata }) =>
  `${metadata.title}: ${say("candidates and their probabilities, then attention weights.")}`;
export const help = () => say("bar charts");

export function controls(data, panel) {
  data.walk = new Walk(data.metadata, panel, () => {
    nameFiles(data);
    panel.changed();
  });
  nameFiles(data);
  return data.walk.controls();
}

// Files are called after the step that they show.
function nameFiles({ walk, metadata }) {
  metadata.title = `${walk.place} · ${metadata.tokens[walk.step].text}`;
}

function rows({ metadata: { candidates, chosen, ranks, tokens }, arrays }, step) {
  const at = step * arrays.probabilities.shape[1];
  const all = candidates[step].map((name, k) => ({
    name,
    value: arrays.probabilities.values[at + k],
    rank: k === chosen[step] ? ranks[step] : 0, // 0: no candidate before it is missing
    state: k !== chosen[step] ? "" : tokens[step].given ? say("given") : say("chosen"),
  }));
  return [...all, { name: say("all others"), value: arrays.rest.values[step], others: true, state: "" }];
}

function keys({ metadata: { columns, counts }, arrays }, step) {
  return columns.slice(0, counts[step]).map((name, column) => {
    const index = step * columns.length + column;
    const masked = !((arrays.allowed.values[index >> 3] >> (index & 7)) & 1);
    return { name, value: arrays.weights.values[index] / 65535, masked };
  });
}

const stepOf = ({ walk, metadata }) => walk?.step ?? metadata.begin[1];

// The same places at every step, so that nothing jumps.
export function scene(data, theme, width) {
  const { size } = theme;
  const beside = width >= 36 * size;
  const left = beside ? (width - 2 * size) / 2 : width;
  const count = data.arrays.probabilities.shape[1] + 1;
  const row = Math.min(1.5 * size, Math.max(size, ((theme.room ?? Infinity) - 4.9 * size) / count));
  const tall = row * count;
  const below = 1.9 * size + tall + 3 * size;
  const bars = barsOf(data, theme, { y: 1.9 * size, row, tall, width: left });
  const place = beside
    ? { x: left + 2 * size, y: 0, width: width - left - 2 * size, height: below }
    : { x: 0, y: below + size, width, height: 19 * size };
  const columns = columnsOf(data, theme, place);
  const places = [...bars.places, ...columns.places];
  const tallest = beside ? below : below + 20 * size;
  // What the buttons and the line above say, in a file.
  const sentence = theme.file ? wrap(ruler(theme, size), data.metadata.said[stepOf(data)].join(""), width) : [];
  const said = sentence.map((text, k) => ({
    text,
    at: [0, tallest + (1 + 1.35 * k) * size],
    size,
    fill: cssOf(theme.ink),
  }));
  return new Scene({
    size: [width, tallest + 1.5 * sentence.length * size],
    marks: [...bars.marks, ...columns.marks, ...said],
    places,
    sequence: [0, bars.places.length],
    first: { row: 0 },
    geometry: () => ({ step: stepOf(data) }),
    focus: (target) => {
      const box = places.find((one) => one.target.row === target.row && one.target.column === target.column)?.rect;
      return box ? [{ rect: box, round: 4, stroke: cssOf(theme.primary), thick: 2 }] : [];
    },
  });
}

function colourOf(theme, { state, others }) {
  return others ? COLOURS.categorical[7] : state ? cssOf(theme.chosen) : theme.heads[0];
}

function swatches(theme, entries, x, y, room = Infinity) {
  const size = 0.8 * theme.size;
  let at = x;
  return entries
    .filter(([text]) => text)
    .flatMap(([text, fill]) => {
      const from = at;
      at += widthOf(theme, text, size) + 2.6 * size;
      const swatch = fill ? [{ rect: [from, y - size / 2, size, size], round: 2, fill }] : [];
      return [...swatch, { text, at: [from + (fill ? 1.5 * size : 0), y], size, room, fill: cssOf(theme.muted) }];
    });
}

function axis(theme, { x, y, width, height, upright = false, title, foot = 0 }) {
  const [fill, faint, size] = [cssOf(theme.muted), cssOf(theme.faint), 0.8 * theme.size];
  const ticks = [0, 0.25, 0.5, 0.75, 1].flatMap((tick) => {
    const [lx, ly] = [x + tick * width, y + (1 - tick) * height];
    const line = { rect: upright ? [x, ly - 0.5, width, 1] : [lx - 0.5, y, 1, height], fill: faint };
    if (tick % 0.5) return [line];
    const at = upright ? [x - 6, ly] : [lx, y + height + 0.75 * theme.size];
    return [line, { text: exactly(tick), at, size, align: upright ? "right" : "center", fill }];
  });
  const at = [x + width / 2, y + height + foot + (upright ? 0.7 : 2.1) * theme.size];
  return [...ticks, { text: title, at, size, align: "center", room: width + 3 * theme.size, fill }];
}

const labelled = ({ rank, name }) => (rank ? `${rank}. ${name}` : name);

function barsOf(data, theme, { y, row, tall, width }) {
  const { size } = theme;
  const [muted, ink] = [cssOf(theme.muted), cssOf(theme.ink)];
  const all = data.metadata.tokens.flatMap((_, step) => rows(data, step));
  const widest = Math.max(...all.map((one) => widthOf(theme, labelled(one), 0.875 * size, 600))); // the chosen one is bold
  const names = Math.min(widest + 10, width * 0.36);
  const long = width - names - 4.5 * size;
  const shown = rows(data, stepOf(data));
  const state = shown.find((one) => one.state)?.state;
  const entries = [
    [say("candidate"), theme.heads[0]],
    [state, cssOf(theme.chosen)],
  ];
  const marks = shown.flatMap((one, k) => {
    const middle = y + (k + 0.5) * row;
    const [weight, fill] = [one.state ? 600 : 400, one.others ? muted : ink];
    const bar = [names, middle - 0.36 * row, Math.max(one.value * long, one.value > 0), 0.72 * row];
    const end = [names + one.value * long + 6, middle];
    return [
      { rect: bar, round: 2, fill: colourOf(theme, one) },
      { text: threeDigits(one.value), at: end, size: 0.8 * size, weight, fill: one.state ? ink : muted },
      {
        text: labelled(one),
        at: [names - 8, middle],
        size: 0.875 * size,
        align: "right",
        room: names - 10,
        weight,
        fill,
        paler: muted,
      },
    ];
  });
  return {
    marks: [
      ...swatches(theme, entries, names, 0.7 * size),
      ...axis(theme, { x: names, y, width: long, height: tall, title: say("next-token probability") }),
      ...marks,
    ],
    places: shown.map((_, k) => ({ rect: [1, y + k * row, width - 1, row], target: { row: k } })),
  };
}

function columnsOf(data, theme, { x, y, width, height }) {
  const { axis: title, columns, of } = data.metadata;
  const { size } = theme;
  const muted = cssOf(theme.muted);
  const left = 3 * size;
  const step = Math.min((width - left) / columns.length, 5 * size);
  const longest = Math.max(...columns.map((name) => widthOf(theme, name, 0.875 * size)));
  const sloped = longest + 6 > step;
  const names = sloped ? Math.min(longest, 6.5 * size) * Math.sin(SLOPE) + size : 1.5 * size;
  const plot = { x: x + left, y: y + 1.9 * size, width: step * columns.length, height: height - 3.4 * size - names };
  const every = Math.max(1, Math.ceil((1.05 * size) / step));
  const shown = keys(data, stepOf(data));
  const note = shown.some(({ masked }) => masked) ? [[say("masked"), "hatch"]] : [];
  const marks = shown.flatMap(({ name, value, masked }, k) => {
    const middle = plot.x + (k + 0.5) * step;
    const long = masked ? plot.height : value * plot.height;
    const from = plot.y + plot.height - long;
    const bar = { rect: [middle - 0.36 * step, from, 0.72 * step, long], fill: masked ? "hatch" : theme.heads[0] };
    const number = { text: threeDigits(value), at: [middle, from - 0.6 * size], size: 0.75 * size, align: "center" };
    const label = { text: name, at: [0, 0], size: 0.875 * size, align: sloped ? "right" : "center", room: 6.5 * size };
    const below = {
      shift: [middle, plot.y + plot.height + 0.8 * size],
      turn: sloped ? -SLOPE : 0,
      marks: [{ ...label, fill: cssOf(theme.ink), paler: muted }],
    };
    return [bar, ...(step > 3 * size && !masked ? [{ ...number, fill: muted }] : []), ...(k % every ? [] : [below])];
  });
  return {
    marks: [
      ...swatches(theme, [[`${say("attention weight")}, ${of}`], ...note], x, y + 0.7 * size, width),
      ...axis(theme, { ...plot, upright: true, title, foot: names }),
      ...marks,
    ],
    places: shown.map((_, k) => ({
      rect: [plot.x + k * step, plot.y, step, plot.height],
      target: { column: k },
    })),
  };
}

export function describe(data, { row, column }) {
  const step = stepOf(data);
  if (row !== undefined) {
    const { name, value, state, others } = rows(data, step)[row];
    return [
      { parts: [...(others ? [name] : quoted(name)), `${say(": ")}${threeDigits(value)}`] },
      { parts: [[`${say("exactly")} ${exactly(value)}`, state].filter(Boolean).join(" · ")], muted: true },
    ];
  }
  const { name, value, masked } = keys(data, step)[column];
  const token = quoted(data.metadata.tokens[step].text);
  const pair = [say("predicting "), ...token, say(" looks at "), ...quoted(name)];
  return [
    { parts: [...pair, `${say(": ")}${masked ? say("masked") : threeDigits(value)}`] },
    {
      parts: [masked ? say("cannot be attended to") : `${shortNumber(value, 6, false)} · ${say("rounded to 1/65535")}`],
      muted: true,
    },
  ];
}

export const click = () => null;
export const state = (data) => ({ begin: [data.metadata.begin[0], stepOf(data)] });

export function tables(data) {
  const table = (caption, column, all) => ({
    caption,
    columns: [column],
    rows: all.map(({ name, value, masked }) => ({ label: name, cells: [masked ? say("masked") : threeDigits(value)] })),
  });
  return [
    table(data.metadata.title, say("next-token probability"), rows(data, stepOf(data))),
    table(data.metadata.of, say("attention weight"), keys(data, stepOf(data))),
  ];
}

// Of all steps.
export function records(data) {
  const lines = data.metadata.tokens.flatMap(({ text }, step) => [
    ...rows(data, step).map(({ name, value, state: chosen }, k) => [
      step,
      text,
      "probability",
      k,
      name,
      shortest(value),
      chosen && "chosen",
    ]),
    ...keys(data, step).map(({ name, value, masked }, k) => [
      step,
      text,
      "attention weight",
      k,
      name,
      masked ? "" : value.toFixed(6),
      masked ? "masked" : "",
    ]),
  ]);
  return [["step", "token", "what", "place", "label", "value", "note"], ...lines];
}
