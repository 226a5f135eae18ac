// The living picture: one moment of the run as marks.

import { cssOf, brightness, mix } from "../../toolkit/colour.js";
import { threeDigits } from "../../toolkit/numbers.js";
import { colourOf } from "../../toolkit/theme.js";
import { say } from "../../toolkit/words.js";
import { ruler, widthOf, wrap } from "../../scene/letters.js";
import { patch } from "../../scene/parts.js";
import { kindText, plainly } from "./captions.js";
import { layOutStack, OUTPUT, TAB } from "./layout.js";

const FAINT = 0.12; // a mean weight below it is left out of the lines of tokens that are not followed
const UNIT = [86, 180, 233]; // of feed-forward units, as in the diagram of the model
const LIT = [230, 159, 0]; // of words that are looked at
const [ANSWER, SMALL_ANSWER] = [0.95, 0.72]; // letters of candidates

const part = (fraction, from, to) => Math.min(1, Math.max(0, (fraction - from) / (to - from)));
const between = (from, to, share) => from + (to - from) * share;
const easeInOut = (t) => (t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2); // cubic
const readableOn = (ground, theme) =>
  brightness(ground) > 0.2 ? (theme.dark ? [20, 20, 20] : theme.ink) : theme.dark ? theme.ink : [250, 250, 250];

// A line that leaves and arrives upright.
export const bump = (x, y, toX, toY) => [x, y, x, (y + toY) / 2, toX, (y + toY) / 2, toX, toY];

export class Picture {
  // run: where the reader is (../living_picture.js); lay: where everything is, apart from what lies open
  constructor(run, lay, theme) {
    Object.assign(this, { run, lay, theme, model: run.model, marks: [], places: [], now: {} });
    this.size = lay.size;
    this.muted = cssOf(theme.muted);
  }

  // --- marks --------------------------------------------------------------------------------------------------------

  add(...marks) {
    this.marks.push(...marks);
  }
  text(text, x, y, more = {}) {
    this.add({ text, at: [x, y], size: 0.82 * this.size, fill: this.muted, ...more });
  }
  // What is made meanwhile, in a group.
  group(options, make) {
    const before = this.marks;
    this.marks = [];
    make();
    if (this.marks.length) before.push({ marks: this.marks, ...options });
    this.marks = before;
  }
  widthOf(text, letters, weight) {
    return widthOf(this.theme, text, letters * this.size, weight);
  }
  place(rect, target) {
    this.places.push({ rect, target });
  }

  // --- the whole ----------------------------------------------------------------------------------------------------

  stackAt(stack, before, beat, fraction) {
    const { run } = this;
    const moved = easeInOut(part(fraction, 0, 0.3));
    const [was, is] = [run.openLayer(stack.name, before), run.openLayer(stack.name, beat)];
    const opened = Array.from({ length: stack.layers }, (_, layer) =>
      between(Number(layer === was), Number(layer === is), moved),
    );
    return layOutStack(this.lay, stack, opened);
  }

  // One moment: a beat, and how much of it has passed.
  drawRun() {
    const { run, model } = this;
    const { beat, fraction } = run;
    const before = fraction < 1 ? (run.beats[run.at - 1] ?? null) : beat;
    for (const stack of model.stacks) this.now[stack.name] = this.stackAt(stack, before, beat, fraction);
    for (const stack of model.stacks) this.drawStack(stack, beat, fraction);
    this.drawCross(beat, fraction);
    this.drawAnswer(beat, fraction);
    this.drawImage(beat);
    this.drawLegend(this.marksLegend(beat));
  }

  // One sub-layer in the place of the picture: the tokens stay where they are.
  drawUnfolded(view) {
    const { run, model } = this;
    for (const stack of model.stacks) {
      const now = this.stackAt(stack, null, { type: "folded" }, 1);
      this.now[stack.name] = now;
      const shown = run.shownIn(stack);
      const follow = stack.name === run.unfolded.stack ? run.queryIn(stack) : null;
      this.lay.places[stack.name].lanes.forEach((lane, position) =>
        this.drawChip(stack, position, lane, now.chips, { shown, follow, beat: run.beat, view }),
      );
    }
    view.draw(this);
    this.drawLegend(view.legend(), view.limit);
  }

  // What a thread, its colour, a line and a bar stand for; `texts`: the fullest first.
  drawLegend(texts, limitOfRows) {
    const { size, model, run } = this;
    const stack = model.stack(run.beat.stack);
    const y = this.lay.height - 0.5 * size;
    const letters = 0.76;
    const look = { size: letters * size };
    const each = stack.channels / stack.threads;
    const count = {
      count: stack.channels,
      each: Number.isInteger(each) ? each : `${Math.floor(each)}–${Math.ceil(each)}`,
    };
    const long =
      each > 1
        ? say("Each stripe is the mean of {each} of a token’s {count} numbers,", count)
        : say("Stripes: a token’s vector, {count} numbers,", count);
    const limit = threeDigits(Number((limitOfRows ?? stack.limit).toPrecision(2)));
    const scale = 4 + 5.2 * size + this.widthOf(`−${limit}${limit}   `, letters); // the colours and their ends
    const fitting = (all, room) => all.find((one) => this.widthOf(one, letters) <= room) ?? "";
    const room = this.lay.width - scale;
    const short = [say("Stripes: a token’s vector,"), say("Stripes: vectors,")];
    // Without them, the numbers of the scale mean nothing: the lines are left out first.
    const lines = this.widthOf(say("Lines: attention"), letters);
    const shown = fitting([long, ...short], room - lines) || fitting(short, room);
    this.text(shown, 4, y, look);
    let x = 4 + this.widthOf(shown, letters) + 0.6 * size;
    this.text(`−${limit}`, x, y, look);
    x += this.widthOf(`−${limit}`, letters) + 0.3 * size;
    const wide = 4 * size;
    const across = Array.from({ length: 33 }, (_, k) => cssOf(this.theme.stripes[Math.round((k / 32) * 255)]));
    this.add({ rect: [x, y - 0.35 * size, wide, 0.7 * size], fill: { across } });
    x += wide + 0.3 * size;
    this.text(String(limit), x, y, look);
    x += this.widthOf(`${limit}   `, letters);
    this.text(fitting(texts, this.lay.width - x), x, y, look);
  }

  marksLegend(beat) {
    const lines = [say("Lines: attention weights."), say("Lines: attention")];
    if (this.run.decisiveHere(beat)) return [say("Amber: raises the class’s probability."), ...lines];
    if (!this.unitsDrawn) return lines;
    // The bars at the top are probabilities.
    const { shown: count, units } = this.model.stack(beat.stack);
    return [say("Lines: attention. Bars in the columns: {count} of {units} units.", { count, units }), ...lines];
  }

  // --- stacks -------------------------------------------------------------------------------------------------------

  // How far up the lanes of a stack are computed at a beat: { from: the first lane that is not complete, shown: how many hold
  // a token, front: y of the front }
  progress(stack, beat, fraction) {
    const now = this.now[stack.name];
    const order = this.model.stacks;
    if (beat.stack !== stack.name)
      return order.indexOf(stack) < order.findIndex(({ name }) => name === beat.stack)
        ? { from: stack.count, shown: stack.count, front: now.top }
        : { from: 0, shown: 0, front: now.levels[0] };
    const up = (level) => (level > stack.steps.length ? now.top : (now.levels[level] ?? now.top));
    let [low, high] = [up(beat.level - 1), up(beat.level)];
    if (beat.type === "word")
      [low, high] = beat.row === 0 || !this.model.metadata.writes ? [now.top, now.top] : [now.levels[0], now.top];
    if (beat.type === "step")
      [low, high] = [now.levels[beat.step], now.levels[beat.step + 1] - (now.bands[beat.step + 1]?.solid ?? 0)];
    if (beat.type === "step" && beat.step === stack.steps.length - 1) high = now.top;
    if (beat.type === "embedding") [low, high] = [now.levels[0], now.bands[0].bottom];
    const rises = beat.type === "word" ? part(fraction, 0.1, 0.6) : part(fraction, 0.25, 0.9);
    return { from: beat.from, shown: beat.shown, front: low + (high - low) * rises };
  }

  drawStack(stack, beat, fraction) {
    const { run, size, lay } = this;
    const { lanes } = lay.places[stack.name];
    const now = this.now[stack.name];
    const reach = this.progress(stack, beat, fraction);
    const place = run.place(beat);
    const follow = place.stack === stack.name ? place.position : null;
    this.drawCards(stack, now);
    // Complete lanes, then those on their way, cut off at the front.
    const computed = (from) => ({ clip: [0, from, lay.width, lay.height - from] });
    this.drawLanes(stack, now, 0, reach.from, { reach, follow });
    if (reach.shown > reach.from)
      this.group(computed(reach.front), () => this.drawLanes(stack, now, reach.from, reach.shown, { reach, follow }));
    if (run.speaksOf(beat) === stack.name)
      this.group(computed(reach.from > 0 ? 0 : reach.front), () => this.drawSelf(stack, now, reach, follow));
    // The followed token last: nothing covers its name.
    const isArriving = (position) =>
      fraction >= 1 && beat.type === "word" && stack === this.model.last && run.rowOf(beat)?.position + 1 === position;
    for (const position of this.drawingOrder(lanes, follow)) {
      const shown = isArriving(position) ? position + 1 : reach.shown;
      this.drawChip(stack, position, lanes[position], now.chips, { shown, follow, beat });
    }
    if (stack === this.model.last) return;
    // The names are repeated on top of the encoder, where the decoder looks at them.
    const chips = { top: now.top - lay.names.tall - 0.15 * size, bottom: now.top - 0.25 * size };
    this.memory = chips;
    if (reach.front > now.top + 1) return;
    for (const position of this.drawingOrder(lanes)) {
      const light = this.crossLight(position, beat);
      const ground = mix(this.theme.ground, LIT, Math.min(1, light));
      const look = {
        ground,
        ink: readableOn(ground, this.theme),
        marked: light > 0.1,
        weight: light > 0.3 ? 600 : 400,
      };
      this.drawName(stack.tokens[position], lanes[position], chips, { ...look, edge: this.theme.faint });
      const { left, width } = lanes[position];
      this.place([left, chips.top, width, chips.bottom - chips.top], { what: "lane", stack: stack.name, position });
    }
  }

  // Names of the second row first, since those of the first lie over their stems; the followed one last.
  drawingOrder(lanes, follow = null) {
    return [...lanes.keys()].sort((a, b) => Number(a === follow) - Number(b === follow) || lanes[b].row - lanes[a].row);
  }

  drawCards(stack, now) {
    const { size, theme, lay } = this;
    const { left, right, gutter } = lay.places[stack.name];
    const ground = cssOf(mix(theme.ground, theme.ink, theme.dark ? 0.09 : 0.045));
    let lowest = Infinity; // of the names so far
    now.cards.forEach((card, layer) => {
      const tall = card.bottom - card.top;
      const rect = [left - 3, card.top, right - left + 6, tall];
      this.add({ rect, round: 5, fill: ground });
      if (card.open > 0.02)
        this.add({ rect, round: 5, stroke: cssOf(theme.primary), alpha: 0.55 * card.open, thick: 1.2 });
      const open = card.open > 0.5;
      if (!open)
        this.place([left - 4, card.top, right + gutter - left + 4, tall], { what: "layer", stack: stack.name, layer });
      const y = open ? card.top + 0.5 * size : (card.top + card.bottom) / 2;
      lowest = Math.min(y, lowest - 0.95 * size); // beside its card, or above the name of the one below
      const name = lay.narrow ? String(layer) : say("layer {layer}", { layer });
      const look = { size: 0.78 * size, weight: open ? 600 : 400, fill: open ? cssOf(theme.primary) : this.muted };
      this.text(name, right + 0.55 * size, lowest, look);
    });
    stack.steps.forEach((step, index) => {
      const band = now.bands[index];
      if (band.open < 0.5) return;
      const rect = [left - 4, band.top - band.strip, right + gutter - left + 4, band.bottom - band.top + band.strip];
      this.place(rect, { what: "band", stack: stack.name, step: index });
      if (band.open < 0.6 || lay.narrow) return;
      const y = Math.max((band.top + band.bottom) / 2, now.cards[step.layer].top + 1.5 * size);
      this.text(kindText(step.kind), right + 0.55 * size, y, { size: 0.78 * size, room: gutter - 0.6 * size });
    });
  }

  // The stream of the lanes from … to, and what each sub-layer adds to it.
  drawLanes(stack, now, from, to, { reach, follow }) {
    const { lanes } = this.lay.places[stack.name];
    for (let position = from; position < to; position++) {
      const x = lanes[position].x - this.lay.ribbon / 2;
      const strip = (what, level, y, height, alpha) => this.strip(stack, what, level, position, x, y, height, alpha);
      for (let level = 0; level <= stack.steps.length; level++) {
        const band = now.bands[level];
        const bottom = now.levels[level];
        const solid = band ? bottom - band.solid : now.end;
        if (bottom > solid) strip("stream", level, solid, bottom - solid);
        if (!band) continue;
        strip("stream", level, band.top, band.bottom - band.top, 1 - band.open * (position === follow ? 0.62 : 0.78));
        if (band.strip > 0.5) strip("update", level, band.top - band.strip, band.strip);
        if (stack.steps[level].kind === "feed_forward" && band.open > 0.3)
          this.drawUnits(stack, stack.steps[level].layer, position, band, position === follow);
        if (band.open > 0.3)
          this.unitsDrawn ||= stack.steps[level].kind === "feed_forward" && band.bottom > reach.front;
      }
      if (stack.arrays("final")) strip("final", 0, now.top, now.end - now.top);
      const top = position >= reach.from ? Math.max(now.top, reach.front) : now.top;
      const rect = [x, top, this.lay.ribbon, now.levels[0] - top];
      this.places.push({ rect, at: (atX, y) => this.stripAt(stack, now, position, atX - x, y) });
    }
  }

  // A thread of the stream, or of what is added to it; of a sub-layer that is not open, its layer.
  stripAt(stack, now, position, x, y) {
    const thread = Math.min(stack.threads - 1, Math.floor((x / this.lay.ribbon) * stack.threads));
    const named = (kind, level) => ({ what: "strip", stack: stack.name, position, kind, level, thread });
    if (y < now.end) return stack.arrays("final") ? named("final", 0) : null;
    for (let level = 0; level <= stack.steps.length; level++) {
      const band = now.bands[level];
      if (y <= now.levels[level] && y > (band ? band.bottom : now.end)) return named("stream", level);
      if (!band || y > band.bottom || y <= band.top - band.strip) continue;
      if (band.strip > 1 && y <= band.top) return named("update", level);
      const { layer } = stack.steps[level];
      return band.open < 0.5
        ? { what: "layer", stack: stack.name, layer }
        : { what: "band", stack: stack.name, step: level };
    }
    return null;
  }

  strip(stack, what, level, position, x, y, height, alpha = 1) {
    if (height < 0.3 || alpha < 0.01) return;
    const { threads } = stack;
    const { ribbon } = this.lay;
    if (!this.theme.file) {
      const from = [position * threads, level, threads, 1];
      this.add({ image: this.run.sheet(stack, what, this.theme), from, rect: [x, y, ribbon, height], alpha });
      return;
    }
    const colour = colourOf(this.theme, "stripes", what === "final" ? stack.finalLimit : stack.limit);
    stack.row(what, level, position).forEach((value, k) => {
      const fill = cssOf(Number.isFinite(value) ? colour(value) : this.theme.muted);
      this.add({ rect: [x + (k * ribbon) / threads, y, ribbon / threads + 0.2, height], fill, alpha });
    });
  }

  drawUnits(stack, layer, position, band, followed) {
    const units = stack.units_(layer, position);
    const { lanes } = this.lay.places[stack.name];
    const width = this.lay.ribbon / units.length;
    const tall = (band.bottom - band.top) * 0.92;
    const left = lanes[position].x - this.lay.ribbon / 2;
    units.forEach(({ after }, k) => {
      const known = Number.isFinite(after);
      const height = known ? Math.min(1, Math.abs(after) / stack.unitLimit) * tall : tall;
      const colour = known ? (after < 0 ? mix(UNIT, this.theme.ground, 0.55) : UNIT) : this.theme.muted;
      const rect = [left + k * width, band.bottom - height, Math.max(0.5, width - 0.5), height];
      this.add({ rect, fill: cssOf(colour), alpha: followed ? 1 : 0.45 });
    });
  }

  // --- attention ----------------------------------------------------------------------------------------------------

  drawSelf(stack, now, reach, follow) {
    const attention = this.model.attention(stack.name, "self");
    const { lanes } = this.lay.places[stack.name];
    stack.steps.forEach((step, index) => {
      const { open, bottom, top } = now.bands[index];
      if (step.kind !== "self_attention" || open < 0.3) return;
      const ends = { keys: lanes, from: bottom, queries: lanes, to: top };
      for (let query = 0; query < reach.shown; query++)
        if (query !== follow) this.faintLines(attention, step.layer, query, ends);
      if (follow !== null) this.strongLines(attention, step.layer, follow, ends);
    });
  }

  drawCross(beat, fraction) {
    const attention = this.model.attention(beat.stack, "cross");
    if (!attention || !this.memory) return;
    const stack = this.model.stack(beat.stack);
    const reach = this.progress(stack, beat, fraction);
    const place = this.run.place(beat);
    const follow = place.stack === stack.name ? place.position : null;
    const { lanes } = this.lay.places[stack.name];
    const keys = this.lay.places[this.model.stacks[0].name].lanes;
    stack.steps.forEach((step, index) => {
      const band = this.now[stack.name].bands[index];
      if (step.kind !== "cross_attention" || band.open < 0.3) return;
      if (beat.type === "step" && index > beat.step) return; // still to come
      // The lines grow with the front, from the memory on.
      const grown = part(reach.front, band.bottom, band.top);
      const end = (lanes[follow ?? 0].x + this.lay.ribbon) * Math.max(0, grown);
      const ends = { keys, from: this.memory.top, queries: lanes, to: band.top };
      this.group({ clip: [0, 0, fraction < 1 ? end : this.lay.width, this.lay.height] }, () => {
        if (beat.type === "end" || beat.type === "step")
          for (let query = 0; query < reach.shown; query++)
            if (query !== follow)
              this.faintLines(attention, step.layer, query, ends, follow === null ? place.position : null);
        if (follow !== null) this.strongLines(attention, step.layer, follow, ends);
      });
    });
  }

  // The lines of the token that is followed, as wide as their weights: where a sub-layer is at work or a head is chosen, one
  // for each head; otherwise one stands for the mean of all heads.
  strongLines(attention, layer, query, { keys, from, queries, to }) {
    const { run, theme, size } = this;
    const { ribbon } = this.lay;
    const line = (key, shift, weight, thick, more) => {
      const curve = this.bundled(keys[key].x + shift, from, queries[query].x + shift, to, shift);
      this.add({ curve, thick, alpha: Math.min(1, 0.35 + weight), ...more });
    };
    if (!run.showsHeads(run.beat)) {
      const isNamed = run.shownAttention(run.beat)?.attention === attention; // in the sentence above
      for (let key = 0; key < attention.keys; key++) {
        const weight = attention.mean(layer, null, query, key);
        const thick = Math.max(1, weight * Math.max(0.5 * ribbon, isNamed ? size : 0));
        if (weight >= 0.04) line(key, 0, weight, thick, { stroke: cssOf(theme.chosen) });
      }
      return;
    }
    const heads = run.head === null ? [...Array(attention.heads).keys()] : [run.head];
    const room = heads.length > 1 ? ribbon / heads.length : ribbon * 0.5;
    for (let key = 0; key < attention.keys; key++)
      heads.forEach((head, index) => {
        const weight = attention.weight(layer, head, query, key);
        if (!(weight >= 0.02)) return;
        const shift = heads.length > 1 ? (index + 0.5 - heads.length / 2) * room : 0;
        // Lines of large weights are wide in narrow lanes, too.
        const thick = Math.max(0.6, weight * (heads.length > 1 ? Math.max(1.15 * room, 0.45 * size) : room));
        const dash = attention.isCut(layer, head) ? [5, 5] : [];
        line(key, shift, weight, thick, { stroke: theme.heads[head % theme.heads.length], dash });
      });
  }

  // A line of a bundle: where it runs level, those beside each other lie below each other. One that does not rise goes
  // over the names between its ends.
  bundled(x, y, toX, toY, shift = 0) {
    const most = 0.4 * Math.abs(toY - y);
    const apart = Math.sign(toX - x) * Math.max(-most, Math.min(most, shift)) * Math.min(1, Math.abs(toX - x) / 120);
    const middle = (y - toY > this.size ? (y + toY) / 2 : Math.min(y, toY) - 2 * this.size) + apart;
    return [x, y, x, middle, toX, middle, toX, toY];
  }

  // only: the one key that is followed.
  faintLines(attention, layer, query, { keys, from, queries, to }, only = null) {
    const { theme, run } = this;
    const others = run.head === null ? this.muted : theme.heads[run.head % theme.heads.length];
    const stroke = only === null ? others : cssOf(theme.primary);
    for (let key = only ?? 0; key <= (only ?? attention.keys - 1); key++) {
      const weight = attention.mean(layer, run.head, query, key);
      if (!(weight >= FAINT)) continue;
      const thick = Math.max(0.6, weight * this.lay.ribbon * (only === null ? 0.22 : 0.4));
      const curve = this.bundled(keys[key].x, from, queries[query].x, to);
      this.add({ curve, stroke, thick, alpha: (only === null ? 0.3 : 0.9) * weight });
    }
  }

  // --- tokens -------------------------------------------------------------------------------------------------------

  // shown: how many tokens are there so far
  drawChip(stack, position, lane, chips, { shown, follow, beat, view }) {
    const { theme, run, lay } = this;
    const token = stack.tokens[position];
    const width = lane.width - Math.min(4, lane.width * 0.12);
    const [x, y, tall] = [lane.x - width / 2, chips.top, chips.bottom - chips.top];
    this.place([lane.left, y, lane.width, tall], { what: "lane", stack: stack.name, position });
    if (position >= shown) {
      const rect = [x, y, width, lay.names.angle ? TAB * theme.size : tall];
      if (width > 6) this.add({ rect, round: 5, stroke: cssOf(theme.faint) });
      return;
    }
    // What a predicting column reads is framed: filled is what it predicts, and what it looks at.
    const reads = position === follow && this.isRead(stack, position, beat);
    const decides = Boolean(run.decisiveHere(beat)) && stack === this.model.last;
    const chosen = position === follow && !reads && !decides;
    const light = chosen ? 0 : view ? view.lightOf(stack, position) : this.lightOf(stack, position, beat);
    const ground = chosen ? theme.primary : mix(mix(theme.ground, theme.ink, 0.07), LIT, Math.min(1, light));
    const pixels = stack.pictures?.[position];
    if (pixels) {
      this.tab(ground, lane, { top: y, bottom: y + tall });
      return this.add(...patch(theme, pixels, [lane.x, y + tall / 2], Math.min(width, tall) - 4));
    }
    const look = { ground, marked: chosen || light > 0.1, weight: token.special ? 400 : 500 };
    const ink = chosen ? theme.ground : readableOn(ground, theme);
    this.drawName(token, lane, chips, { ...look, ink, ...(reads && { edge: theme.chosen, framed: true }) });
  }

  // Whether the column of a token predicts the output that is shown.
  isRead(stack, position, beat) {
    const { last, metadata } = this.model;
    const row = !this.run.unfolded && stack === last && !metadata.classes && this.run.rowOf(beat);
    return Boolean(row) && row.position === position;
  }

  tab(ground, { x, width: wide }, { top, bottom }, edge = null) {
    const width = wide - Math.min(4, wide * 0.12);
    const rect = [x - width / 2, top, width, bottom - top];
    this.add({ rect, round: Math.min(5, width / 3), fill: cssOf(ground), ...(edge && { stroke: cssOf(edge) }) });
  }

  // A token's chip with its name in it, as wide as its lane or, in one of several rows, as its name; a slanted name hangs
  // from a dot, and has the chip's colour where it is `marked`.
  drawName({ text }, lane, { top, bottom }, { ground, ink, marked, weight, edge = null, framed }) {
    const { size, theme } = this;
    const { letters, angle, rows } = this.lay.names;
    const inks = (colour, behind) => ({ fill: cssOf(colour), paler: cssOf(mix(colour, behind, 0.4)) });
    const look = { size: letters * size, weight };
    const wide = this.widthOf(text, letters, weight);
    if (!angle) {
      const tall = (bottom - top) / rows;
      const chip =
        rows === 1
          ? { ...lane, top, bottom }
          : {
              x: lane.x,
              width: wide + 0.7 * size,
              top: top + lane.row * tall + 1,
              bottom: top + (lane.row + 1) * tall - 1,
            };
      if (lane.row) this.add({ rect: [lane.x - 0.5, top, 1, chip.top - top], fill: this.muted, alpha: 0.6 });
      this.tab(ground, chip, chip, edge);
      const at = (chip.top + chip.bottom) / 2 + 0.5;
      return this.text(text, chip.x, at, { ...look, align: "center", ...inks(ink, ground) });
    }
    const dot = { x: lane.x, width: TAB * size };
    this.tab(marked ? ground : mix(ink, ground, 0.6), dot, { top, bottom: top + TAB * size });
    const high = letters * size * 1.15;
    const long = (bottom - top - (TAB + 0.2) * size - high * Math.cos(angle)) / Math.sin(angle) + 2;
    const shift = [lane.x, top + (TAB + 0.2) * size + (high / 2) * Math.cos(angle)];
    this.group({ shift, turn: angle }, () => {
      const rect = [-3, -high / 2, Math.min(long, wide) + 6, high];
      if (marked || framed)
        this.add({ rect, round: 4, fill: cssOf(ground), ...(framed && { stroke: cssOf(edge), thick: 1.2 }) });
      this.text(text, 0, 0.5, { ...look, room: long, ...(marked ? inks(ink, ground) : inks(theme.ink, theme.ground)) });
    });
  }

  // How much a word is looked at by the followed one, where attention lies open.
  lightOf(stack, position, beat) {
    const { run, model } = this;
    const place = run.place(beat);
    if (place.stack !== stack.name) return place.stack === beat.stack ? 0 : this.lookedFrom(position, place, beat);
    const decisive = run.decisiveHere(beat);
    if (decisive) return decisive.effects[position] ?? 0;
    if (run.speaksOf(beat) !== stack.name || (beat.type === "step" && beat.kind !== "self_attention")) return 0;
    const attention = model.attention(stack.name, "self");
    const layer = run.openLayer(stack.name, beat);
    if (layer === null || !attention || (beat.type !== "step" && model.attention(stack.name, "cross"))) return 0;
    return attention.mean(layer, run.head, run.followed(beat), position);
  }

  // How much a word of the answer looks at the word of the sentence that is followed.
  lookedFrom(position, place, beat) {
    const attention = this.model.attention(beat.stack, "cross");
    const layer = beat.layer ?? this.run.chosenLayer(beat.stack);
    return attention ? attention.mean(layer, this.run.head, position, place.position) : 0;
  }

  crossLight(position, beat) {
    const { run } = this;
    const attention = this.model.attention(beat.stack, "cross");
    if (!attention || (beat.type === "step" && beat.kind !== "cross_attention")) return 0;
    const layer = run.openLayer(beat.stack, beat);
    if (layer === null) return 0;
    return attention.mean(layer, run.head, run.followed(beat), position) * part(run.fraction, 0.2, 0.5);
  }

  // --- the answer ---------------------------------------------------------------------------------------------------

  drawAnswer(beat, fraction) {
    const { run, size, theme, lay, model } = this;
    const row = run.rowOf(beat);
    if (!row) return;
    const { metadata } = model;
    const { lanes, left, right } = lay.places[model.last.name];
    const now = this.now[model.last.name];
    const first = beat.row === 0 || !metadata.writes;
    const grow = beat.type === "end" ? 1 : first ? part(fraction, 0, 0.5) : part(fraction, 0.55, 0.8);
    const pooled = metadata.classes && metadata.pooling !== "first";
    const x = pooled ? (left + right) / 2 : lanes[row.position].x;
    const step = lay.answerRow;
    const letters = step < 0.9 * size ? SMALL_ANSWER : ANSWER;
    const candidates = candidatesOf(row, lay.mostRows);
    const bottom = now.top - (OUTPUT - 0.4) * size;
    const names = Math.max(...row.names.map((name) => this.widthOf(name, letters)));
    const wide = Math.min(11 * size, lay.width * 0.24);
    const start = Math.max(names + 0.6 * size, Math.min(x, lay.width - wide - 3.4 * size));
    this.answer = [start - names - 0.4 * size, start + wide + 3 * size];
    if (grow > 0) this.drawOutput(row, { x, pooled, bottom });
    const said = run.saidIn(row);
    candidates.reverse().forEach((k, up) => {
      const y = bottom - (up + 0.5) * step;
      const [chosen, value] = [k === said, row.probabilities[k]];
      const paler = cssOf(mix(theme.ink, theme.ground, 0.5));
      const look = { size: letters * size, weight: chosen ? 700 : 400, align: "right", fill: cssOf(theme.ink), paler };
      this.text(row.names[k], start - 0.4 * size, y, look);
      const length = Number.isFinite(value) ? Math.max(1, value * wide * grow) : 0;
      const fill = cssOf(chosen ? theme.chosen : [0, 114, 178]);
      this.add({ rect: [start, y - step * 0.36, length, step * 0.72], round: 3, fill });
      const typed = said !== row.chosen && k === row.chosen ? `  ${say("in your text")}` : "";
      if (grow >= 1)
        this.text(`${threeDigits(value)}${typed}`, start + length + 0.35 * size, y, { size: letters * size });
      this.place([this.answer[0], y - step / 2, this.answer[1] - this.answer[0], step], { what: "answer", k });
      if (chosen && metadata.writes && beat.type === "word") this.drawFlight(row, k, [start, y], fraction);
    });
  }

  // What is predicted, at the head of the column that predicts it, with what that column reads; a class, above all columns
  // where it is read from their mean.
  drawOutput(row, { x, pooled, bottom }) {
    const { size, theme, lay, run } = this;
    const { lanes } = lay.places[this.model.last.name];
    const now = this.now[this.model.last.name];
    const name = plainly(row.names[run.saidIn(row)]);
    const width = this.widthOf(name, ANSWER, 700) + 0.9 * size;
    const tall = 1.45 * size;
    const left = Math.max(2, Math.min(x - width / 2, lay.width - width - 2));
    const top = now.top - 0.35 * size - tall;
    const line = { stroke: cssOf(theme.chosen), thick: 2 };
    const half = lay.ribbon / 2;
    if (pooled) {
      const [from, to, y] = [lanes[0].x - half, lanes.at(-1).x + half, now.top - 0.25 * size];
      this.add({ path: `M${from} ${now.top - 1}V${y}H${to}V${now.top - 1}`, ...line });
    } else {
      const rect = [x - half - 3, now.top - 3, lay.ribbon + 6, now.levels[0] - now.top + 6];
      this.add({ rect, round: 4, ...line });
    }
    const end = bottom + 0.1 * size;
    this.add({ path: `M${x} ${top}V${end}M${x - 4} ${end + 5}L${x} ${end}L${x + 4} ${end + 5}`, ...line });
    this.add({ rect: [left, top, width, tall], round: 5, fill: cssOf(theme.chosen) });
    const y = top + tall / 2;
    const look = { size: ANSWER * size, weight: 700, align: "center", fill: "rgb(255,255,255)" };
    this.text(name, left + width / 2, y + 0.5, look);
    this.output = { name, x, y, reads: pooled ? null : row.position };
    this.drawReads(row, { left, right: left + width, y: y + 0.5, pooled });
  }

  // In small letters, beside the output: what it is read from.
  drawReads(row, { left, right, y, pooled }) {
    const { metadata, last } = this.model;
    const token = plainly(last.tokens[row.position].label);
    let texts = [metadata.asked ? say("fills the blank with") : say("in place of {token}", { token })];
    if (last.name === "decoder") texts = [say("reads {token}, predicts", { token }), say("after {token}", { token })];
    if (metadata.classes) texts = [say("read from the column of {token}", { token })];
    if (pooled) texts = [say("read from the mean of all columns")];
    const gap = 0.5 * this.size;
    const [before, after] = [texts[0], texts.at(-1)];
    if (this.widthOf(before, 0.82) + gap <= left) this.text(before, left - gap, y, { align: "right" });
    else if (right + gap + this.widthOf(after, 0.82) <= this.lay.width) this.text(after, right + gap, y);
  }

  // The image that is read, with the edges of its patches; the followed one is framed, as its column is.
  drawImage(beat) {
    const { model, size, theme, lay } = this;
    const { last } = model;
    const patches = (last.pictures ?? [])
      .map((pixels, position) => ({ pixels, position }))
      .filter(({ pixels }) => pixels);
    const across = Math.round(Math.sqrt(patches.length));
    if (!patches.length || across * across !== patches.length) return;
    const sideAbove = (below) => Math.floor((this.now[last.name].top - below * size) / across);
    const [from, to] = this.answer ?? [lay.width, 0];
    // To the left of the answer or, where that begins at the edge, to the right of it, above what the class is read from.
    const isLeft = from > across * sideAbove(1.2) + 4 + size;
    const side = sideAbove(isLeft ? 1.2 : 2.4);
    const whole = side * across;
    const begin = isLeft ? 4 : to + size;
    if (side < 6 || begin + whole > lay.width) return;
    const corner = (at) => [begin + (at % across) * side, 3 + Math.floor(at / across) * side];
    patches.forEach(({ pixels }, at) => {
      const [x, y] = corner(at);
      this.add(...patch(theme, pixels, [x + side / 2, y + side / 2], side));
    });
    const at = patches.findIndex(({ position }) => position === this.run.followed(beat));
    if (at >= 0)
      this.add({ rect: [...corner(at), side, side], stroke: cssOf(theme.primary), thick: Math.max(3, 0.12 * side) });
    const left = begin + whole + 0.7 * size;
    const room = (from > begin ? from : lay.width) - left - 0.5 * size;
    if (room < 6 * size) return;
    const values = { count: patches.length, token: last.tokens[0].label };
    const text =
      patches.length === last.count - 1
        ? say("{count} patches: each is a column below, after the column of {token}", values)
        : say("{count} patches: each is a column below", values);
    wrap(ruler(theme, 0.88 * size), text, Math.min(room, 14 * size), 4).forEach((line, k) =>
      this.text(line, left, (1 + 1.3 * k) * size, { size: 0.88 * size }),
    );
  }

  // The word that was chosen flies to where it is read next.
  drawFlight(row, k, from, fraction) {
    const { size, theme, lay, model } = this;
    const way = part(fraction, 0.8, 1);
    const lane = lay.places[model.last.name].lanes[row.position + 1];
    if (!lane || way <= 0 || way >= 1) return;
    const { chips } = this.now[model.last.name];
    const moved = easeInOut(way);
    const [x, y] = [between(from[0], lane.x, moved), between(from[1], (chips.top + chips.bottom) / 2, moved)];
    const width = this.widthOf(row.names[k], ANSWER, 700) + size;
    this.add({ rect: [x - width / 2, y - 0.75 * size, width, 1.5 * size], round: 5, fill: cssOf(theme.chosen) });
    const look = { size: ANSWER * size, weight: 700, align: "center", fill: "rgb(255,255,255)" };
    this.text(row.names[k], x, y, look);
  }
}

// The candidates of a prediction that are drawn, by index: the first ones, and the chosen one in any case.
function candidatesOf({ names, chosen }, most) {
  const drawn = names.map((_, k) => k).slice(0, most);
  if (!drawn.includes(chosen)) drawn[drawn.length - 1] = chosen;
  return drawn;
}
