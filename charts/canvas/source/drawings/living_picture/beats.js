// The run of a sentence, beat by beat: what has been computed at each of them, and which layer lies open.

// -> [{ type, stack, level, shown, … }]; level: how many levels of the stream the active lanes have, embedding included;
// shown: how many lanes of the stack hold a token; from: the first lane that is computed in this beat.
export function beatsOf(model) {
  const beats = [];
  const { metadata, stacks, last, written } = model;
  for (const stack of stacks) {
    const writes = metadata.writes && stack === last;
    const first = writes && written.length ? written[0].position : stack.count - 1;
    const shared = { stack: stack.name, shown: first + 1, from: 0, row: null };
    beats.push({ ...shared, type: "embedding", level: 1, layer: null });
    stack.steps.forEach(({ layer, kind }, step) =>
      beats.push({ ...shared, type: "step", step, layer, kind, level: step + 2 }),
    );
    if (stack !== last) beats.push({ ...shared, type: "memory", level: stack.steps.length + 2, layer: null });
  }
  written.forEach(({ position }, row) => {
    const shown = metadata.writes ? position + 1 : last.count;
    const from = metadata.writes && row > 0 ? position : 0;
    beats.push({ type: "word", stack: last.name, shown, from, row, level: last.steps.length + 2, layer: null });
  });
  if (metadata.writes && written.length)
    beats.push({
      type: "end",
      stack: last.name,
      shown: Math.min(last.count, written[written.length - 1].position + 1),
      from: last.count,
      row: written.length - 1,
      level: last.steps.length + 2,
      layer: null,
    });
  return beats;
}

// The beat at which the picture opens: the whole run, of which everything can be looked at; or a stop of a lesson, which is
// "embedding", a kind of sub-layer, "memory", "word" (behind the token of `begin`), "end", or "unfold" and a kind.
export function beginsAt(beats, { written }, { stop = "", stack, layer, token }) {
  const kind = stop.replace("unfold ", "");
  const place = (wanted) => beats.findIndex((beat) => beat.stack === stack && wanted(beat));
  const word = place(({ type, row }) => type === "word" && written[row].position === token);
  const step = place((beat) => beat.type === kind || (beat.kind === kind && beat.layer === layer));
  const found = stop === "word" || (stop !== kind && word >= 0) ? word : step;
  return found < 0 ? beats.length - 1 : found;
}

// How long a beat lasts, in milliseconds: many layers go by faster.
export function durationOf(beat, beats) {
  if (beat.type === "end") return 1200;
  const steps = beats.filter(({ type }) => type === "step").length;
  if (beat.type === "step") return Math.max(420, Math.min(2000, 30000 / steps));
  const words = beats.filter(({ type }) => type === "word").length;
  if (beat.type === "word") return Math.max(700, Math.min(2400, 26000 / words));
  return 1600;
}
