// The living picture: how a moment of the run is painted.

import { easeCubicInOut } from "d3-ease";
import { interpolateNumber } from "d3-interpolate";
import { curveBumpY, link } from "d3-shape";
import { brightness, cssOf, mix } from "../../toolkit/colour.js";
import { threeDigits } from "../../toolkit/numbers.js";
import { drawPatch } from "../../toolkit/patch.js";
import { drawText, drawToken, fontOf, shorten, wrap } from "../../toolkit/text.js";
import { colourOf, roomOf } from "../../toolkit/theme.js";
import { say } from "../../toolkit/words.js";
import { decisiveHere, isExpected, kindText, plainly } from "./captions.js";
import { layOutLanes, layOutStack, roomForBands, TAB } from "./layout.js";

const ABOVE = 12.2; // heights of letters above the picture on a page: its buttons, the caption and the page's title
const IN_A_LESSON = 8.3; // of these, without the title
const LESSON_BAR = 0.21; // of the window
const FAINT = 0.12; // a mean weight below it is left out of the lines of tokens that are not followed
const UNIT = [86, 180, 233]; // of feed-forward units, as in the diagram of the model
const LIT = [230, 159, 0]; // of words that are looked at
const [MANY, FEW] = [4, 3]; // candidates where the height is short
const OPEN = 5; // heights of letters that the layer that lies open should have
const [SHORTEST, LONGEST] = [4, 9]; // bars above the encoder, in heights of letters
const ABOVE_BARS = 0.4;
const OUTPUT = 2.9; // heights of letters between a column and its candidates: the token that is predicted

const part = (fraction, from, to) => Math.min(1, Math.max(0, (fraction - from) / (to - from)));
const readableOn = (ground, theme) =>
  brightness(ground) > 0.2 ? (theme.dark ? [20, 20, 20] : theme.ink) : theme.dark ? theme.ink : [250, 250, 250];
const box = (pen, x, y, width, height, radius) => {
  pen.beginPath();
  pen.roundRect(x, y, width, height, radius);
};

export class LivingPicture {
  // --- which moment -----------------------------------------------------------------------------------------------

  get beat() {
    return this.beats[this.at];
  }

  // The layer of a stack that lies open at a beat; null where it is a pack of closed cards.
  openLayer(name, beat) {
    if (!beat || this.speaksOf(beat) !== name) return null;
    if (beat.type === "step") return beat.layer;
    return beat.type === "word" || beat.type === "end" ? this.chosenLayer(name) : null;
  }

  // The stack that the caption is about: the one at work, or that of the token that was clicked.
  speaksOf(beat) {
    const clicked = (beat.type === "word" || beat.type === "end") && this.explored;
    return clicked ? clicked.stack : beat.stack;
  }

  chosenLayer(name) {
    return Math.min(this.model.stack(name).layers - 1, this.open[name] ?? 0);
  }

  // The token that is followed: of the beat, until somebody clicks another one.
  place(beat) {
    const { explored } = this;
    if (explored?.stack === beat.stack && explored.position < beat.shown) return explored;
    if (explored && beat.row !== null && explored.stack !== beat.stack) return explored;
    const position =
      beat.type === "word" && !this.model.metadata.classes
        ? this.model.written[beat.row].position
        : Math.min(this.follow[beat.stack] ?? 0, beat.shown - 1);
    return { stack: beat.stack, position };
  }
  followed(beat) {
    return this.place(beat).position;
  }

  // What came out behind the token that is followed; null where it was not asked.
  rowOf(beat) {
    const { metadata, written } = this.model;
    if (beat.row === null) return null;
    if (!metadata.writes && (metadata.asked || metadata.classes)) return written[beat.row];
    const { stack, position } = this.place(beat);
    return (stack === this.model.last.name && written.find((row) => row.position === position)) || null;
  }

  // --- layout -------------------------------------------------------------------------------------------------------

  layout(context, theme, width) {
    this.lay = layOutLanes(context, theme, this.model, { width });
    this.height = Math.round(26.4 * theme.size * roomOf(context, theme, { above: ABOVE, least: 0.9 }));
    // On a phone, the figure and the names below it fit on the first screen, unless the names need many rows.
    const many = Math.max(0, this.lay.chips - 5 * theme.size);
    if (!context.vector && this.lay.narrow)
      this.height = Math.min(this.height, Math.round(0.56 * window.innerHeight + many));
    // While a lesson speaks, its bar stands at the foot of the window, and the page's own title is out of sight.
    if (!context.vector && document.querySelector(".st-key-lesson-bar"))
      this.height = Math.min(this.height, Math.round((1 - LESSON_BAR) * window.innerHeight - IN_A_LESSON * theme.size));
    if (!context.vector && theme.room) this.height = Math.min(this.height, Math.floor(theme.room));
    this.lay.height = this.height;
    // Above the encoder there is space for the candidates, and the decoder can then be higher.
    for (const above of this.model.stacks.length > 1 ? [true, false] : [false])
      for (const most of above ? [Infinity, MANY, FEW, 1] : [Infinity, MANY, FEW]) {
        // Where the height is short, fewer candidates leave more of it for the layer that lies open.
        this.mostRows = this.model.metadata.classes ? Infinity : most;
        this.bars = above ? this.barsAboveEncoder(context, theme) : null;
        this.layOutHeights(theme);
        const low = this.lay.places[this.model.last.name].bands < OPEN * theme.size;
        if (above ? this.bars && this.clearsEncoder(theme) : !low) return this.height;
      }
    return this.height;
  }

  // Where the bars of the candidates begin above the encoder, and their greatest length; null without space for them.
  barsAboveEncoder(context, { size, ...theme }) {
    context.font = fontOf({ size, ...theme }, 0.95, 700);
    const widths = this.model.written.flatMap((row) => row.names.map((name) => context.measureText(name).width));
    const start = 4 + Math.max(...widths) + 0.6 * size;
    const wide = Math.min(LONGEST * size, this.lay.places[this.model.last.name].left - start - 4 * size);
    return wide < SHORTEST * size ? null : { start, wide };
  }

  // Whether the bars end above the names on top of the closed encoder, and the lines that go over these.
  clearsEncoder({ size }) {
    const [first] = this.model.stacks;
    const { closed } = this.lay.places[first.name];
    const { top } = layOutStack(this.lay, first, { opened: [], closed, bands: 0, top: 0 });
    return ABOVE_BARS * size + this.barsHeight(size) < top - this.lay.memory - 2.2 * size;
  }

  layOutHeights({ size }) {
    for (const stack of this.model.stacks) {
      const last = stack === this.model.last;
      const bars = this.barsHeight(size);
      const above = last ? OUTPUT * size + (this.bars ? ABOVE_BARS * size : bars) : this.lay.memory + 1.3 * size;
      // Closed, the encoder is lower than the decoder's cross-attention: the lines go up.
      const most = (last ? 0.55 : this.bars && this.height > 20 * size ? 0.5 : 0.34) * size;
      const closed = Math.min(most, (0.2 * this.height) / stack.steps.length);
      this.lay.places[stack.name].closed = closed;
      this.lay.places[stack.name].bands = roomForBands(this.lay, stack, closed, above);
    }
  }

  // The candidates of a prediction that are drawn, by index: the first ones, and the chosen one in any case.
  candidatesOf({ names, chosen }) {
    const drawn = names.map((_, k) => k).slice(0, this.mostRows);
    if (!drawn.includes(chosen)) drawn[drawn.length - 1] = chosen;
    return drawn;
  }

  barsHeight(size) {
    const rows = Math.max(1, ...this.model.written.map((row) => this.candidatesOf(row).length));
    this.answerRow = Math.min(1.25 * size, (7.2 * size) / rows);
    return rows * this.answerRow;
  }

  stackAt(stack, before, beat, fraction) {
    const place = this.lay.places[stack.name];
    const moved = easeCubicInOut(part(fraction, 0, 0.3));
    const [was, is] = [this.openLayer(stack.name, before), this.openLayer(stack.name, beat)];
    const opened = Array.from({ length: stack.layers }, (_, layer) =>
      interpolateNumber(Number(layer === was), Number(layer === is))(moved),
    );
    return layOutStack(this.lay, stack, { opened, closed: place.closed, bands: place.bands, top: 0 });
  }

  // --- painting -------------------------------------------------------------------------------------------------------

  paintBase(pen, theme) {
    const beat = this.beat;
    const fraction = this.fraction;
    const before = fraction < 1 ? (this.beats[this.at - 1] ?? null) : beat;
    this.theme = theme;
    this.now = {};
    for (const stack of this.model.stacks) this.now[stack.name] = this.stackAt(stack, before, beat, fraction);
    for (const stack of this.model.stacks) this.paintStack(pen, theme, stack, beat, fraction);
    this.paintCross(pen, theme, beat, fraction);
    this.paintAnswer(pen, theme, beat, fraction);
    this.paintImage(pen, theme, beat);
    this.paintHeads(pen, theme, beat);
    this.paintLegend(pen, theme);
  }

  // One sub-layer in the place of the picture: the tokens stay where they are.
  paintUnfolded(pen, theme) {
    this.theme = theme;
    this.now = {};
    this.rows = [];
    this.heads = [];
    this.output = null;
    const { beat } = this;
    const { stack: own } = this.unfolded;
    for (const stack of this.model.stacks) {
      const now = this.stackAt(stack, null, { type: "folded" }, 1);
      this.now[stack.name] = now;
      const shown = this.shownIn(stack);
      const reach = { from: shown, shown, front: now.top };
      const follow = stack.name === own ? this.queryIn(stack) : null;
      this.lay.places[stack.name].lanes.forEach((lane, position) =>
        this.paintChip(pen, theme, stack, position, lane, now.chips, { reach, follow, beat }),
      );
    }
    this.view.paint(pen, theme);
    this.paintLegend(pen, theme);
  }

  // What a thread, its colour, a line and a bar stand for.
  paintLegend(pen, theme) {
    const { size } = theme;
    const stack = this.model.stack(this.beat.stack);
    const y = this.height - 0.5 * size;
    pen.font = fontOf(theme, 0.76);
    const each = stack.channels / stack.threads;
    const long =
      each > 1
        ? say("Each stripe is the mean of {each} of a token’s {count} numbers,", {
            count: stack.channels,
            each: Number.isInteger(each) ? each : `${Math.floor(each)}–${Math.ceil(each)}`,
          })
        : say("Stripes: a token’s vector, {count} numbers,", { count: stack.channels });
    const colour = cssOf(theme.muted);
    const limit = threeDigits(Number((this.view?.limit ?? stack.limit).toPrecision(2)));
    const scale = 4 + 5.2 * size + pen.measureText(`−${limit}${limit}   `).width; // the colours and their ends
    const fitting = (texts, room) => texts.find((one) => pen.measureText(one).width <= room) ?? "";
    const room = this.lay.width - scale;
    const short = [say("Stripes: a token’s vector,"), say("Stripes: vectors,")];
    // Without them, the numbers of the scale mean nothing: the lines are left out first.
    const shown =
      fitting([long, ...short], room - pen.measureText(say("Lines: attention")).width) || fitting(short, room);
    drawText(pen, shown, 4, y, { colour });
    let x = 4 + pen.measureText(shown).width + 0.6 * size;
    drawText(pen, `−${limit}`, x, y, { colour });
    x += pen.measureText(`−${limit}`).width + 0.3 * size;
    const wide = 4 * size;
    for (let k = 0; k < 32; k++) {
      pen.fillStyle = cssOf(theme.stripes[Math.round((k / 31) * 255)]);
      pen.fillRect(x + (k * wide) / 32, y - 0.35 * size, wide / 32 + 0.3, 0.7 * size);
    }
    x += wide + 0.3 * size;
    drawText(pen, String(limit), x, y, { colour });
    x += pen.measureText(`${limit}   `).width;
    drawText(pen, fitting(this.legendOfMarks(stack), this.lay.width - x), x, y, { colour });
  }

  // What lines and bars stand for, if there are any, the fullest text first.
  legendOfMarks(stack) {
    const units = { count: stack.shown, units: stack.units };
    const lines = [say("Lines: attention weights."), say("Lines: attention")];
    const opened = this.unfolded?.part;
    const drawn = this.unitsDrawn;
    this.unitsDrawn = false; // for the next frame
    if (opened === "embedding") return [];
    if (opened === "feed_forward") return [say("Bars: the {count} strongest of {units} units.", units)];
    if (opened) return lines;
    if (decisiveHere(this, this.beat)) {
      const amber = say("Amber: without it, the predicted class is less probable.");
      return [`${amber} ${lines[0]}`, amber, say("Amber: speaks for the class.")];
    }
    if (!drawn) return lines;
    // The bars at the top are probabilities.
    return [
      say("Lines: attention weights. Bars in the columns: the {count} strongest of {units} units.", units),
      say("Lines: attention. Bars in the columns: {count} of {units} units.", units),
      ...lines,
    ];
  }

  paintFocus() {}

  // How far up the lanes of a stack are computed at a beat: [first lane that is not complete, lanes shown, y of the front]
  progress(stack, beat, fraction) {
    const now = this.now[stack.name];
    const order = this.model.stacks;
    if (beat.stack !== stack.name)
      return order.indexOf(stack) < order.findIndex(({ name }) => name === beat.stack)
        ? { from: stack.count, shown: stack.count, front: now.top }
        : { from: 0, shown: 0, front: now.levels[0] };
    const up = (level) => (level > stack.steps.length ? now.top : (now.levels[level] ?? now.top));
    const { from } = beat;
    let [low, high] = [up(beat.level - 1), up(beat.level)];
    if (beat.type === "word")
      [low, high] = beat.row === 0 || !this.model.metadata.writes ? [now.top, now.top] : [now.levels[0], now.top];
    if (beat.type === "step")
      [low, high] = [now.levels[beat.step], now.levels[beat.step + 1] - (now.bands[beat.step + 1]?.solid ?? 0)];
    if (beat.type === "step" && beat.step === stack.steps.length - 1) high = now.top;
    if (beat.type === "embedding") [low, high] = [now.levels[0], now.bands[0].bottom];
    const rises = beat.type === "word" ? part(fraction, 0.1, 0.6) : part(fraction, 0.25, 0.9);
    return { from, shown: beat.shown, front: low + (high - low) * rises };
  }

  paintStack(pen, theme, stack, beat, fraction) {
    const { lanes, left, right } = this.lay.places[stack.name];
    const now = this.now[stack.name];
    const { size } = theme;
    const reach = this.progress(stack, beat, fraction);
    const active = this.speaksOf(beat) === stack.name;
    this.paintCards(pen, theme, stack, now, { left, right });
    const place = this.place(beat);
    const follow = place.stack === stack.name ? place.position : null;
    this.reach = reach;
    // Complete lanes, then those on their way, cut off at the front.
    this.paintLanes(pen, theme, stack, now, 0, reach.from, follow);
    if (reach.shown > reach.from) {
      pen.save();
      pen.beginPath();
      pen.rect(0, reach.front, this.lay.width, this.height - reach.front);
      pen.clip();
      this.paintLanes(pen, theme, stack, now, reach.from, reach.shown, follow);
      pen.restore();
    }
    if (active) {
      pen.save();
      pen.beginPath();
      pen.rect(0, reach.from > 0 ? 0 : reach.front, this.lay.width, this.height);
      pen.clip();
      this.paintSelf(pen, theme, stack, now, reach, follow);
      pen.restore();
    }
    // The followed token last: nothing covers its name.
    for (const position of this.paintingOrder(lanes, follow))
      this.paintChip(pen, theme, stack, position, lanes[position], now.chips, { reach, follow, beat });
    if (stack !== this.model.last) {
      const chips = { top: now.top - this.lay.memory - 0.15 * size, bottom: now.top - 0.25 * size };
      if (reach.front <= now.top + 1 && this.lay.names.crowded)
        this.paintMemoryWord(pen, theme, stack, lanes, chips, beat);
      else if (reach.front <= now.top + 1)
        for (const position of this.paintingOrder(lanes))
          this.paintMemoryChip(pen, theme, stack, position, lanes[position], chips, beat);
      this.memory = chips;
    }
  }

  // Names of the second row first, since those of the first lie over their stems; the followed one last.
  paintingOrder(lanes, follow = null) {
    return [...lanes.keys()].sort((a, b) => Number(a === follow) - Number(b === follow) || lanes[b].row - lanes[a].row);
  }

  paintCards(pen, theme, stack, now, { left, right }) {
    const { size } = theme;
    const ground = mix(theme.ground, theme.ink, theme.dark ? 0.09 : 0.045);
    let lowest = Infinity; // of the names so far
    now.cards.forEach((card, layer) => {
      const tall = card.bottom - card.top;
      pen.fillStyle = cssOf(ground);
      box(pen, left - 3, card.top, right - left + 6, tall, 5);
      pen.fill();
      if (card.open > 0.02) {
        pen.strokeStyle = cssOf(theme.primary, 0.55 * card.open);
        pen.lineWidth = 1.2;
        box(pen, left - 3, card.top, right - left + 6, tall, 5);
        pen.stroke();
      }
      const open = card.open > 0.5;
      const y = open ? card.top + 0.5 * size : (card.top + card.bottom) / 2;
      lowest = Math.min(y, lowest - 0.95 * size); // beside its card, or above the name of the one below
      pen.font = fontOf(theme, 0.78, open ? 600 : 400);
      const name = say("layer {layer}", { layer });
      const colour = cssOf(open ? theme.primary : theme.muted);
      const length = pen.measureText(name).width;
      // On a phone, the open layer is named along its card, and the closed ones by their numbers.
      if (this.lay.narrow && open && length < tall) {
        pen.save();
        pen.translate(right + 0.85 * size, card.top + length);
        pen.rotate(-Math.PI / 2);
        drawText(pen, name, 0, 0, { colour });
        pen.restore();
      } else drawText(pen, this.lay.narrow ? String(layer) : name, right + 0.55 * size, lowest, { colour });
    });
    pen.font = fontOf(theme, 0.78);
    stack.steps.forEach((step, index) => {
      const band = now.bands[index];
      if (band.open < 0.6 || this.lay.narrow) return;
      const text = shorten(pen, kindText(step.kind), this.lay.places[stack.name].gutter - 0.6 * size);
      const y = Math.max((band.top + band.bottom) / 2, now.cards[step.layer].top + 1.5 * size);
      drawText(pen, text, right + 0.55 * size, y, { colour: cssOf(theme.muted) });
    });
    if (now.top < now.end) return;
  }

  // The stream of the lanes from … to, and what each sub-layer adds to it.
  paintLanes(pen, theme, stack, now, from, to, follow) {
    const { lanes } = this.lay.places[stack.name];
    for (let position = from; position < to; position++) {
      const x = lanes[position].x - this.lay.ribbon / 2;
      for (let level = 0; level <= stack.steps.length; level++) {
        const band = now.bands[level];
        const bottom = now.levels[level];
        const solid = band ? bottom - band.solid : now.end;
        if (bottom > solid) this.strip(pen, stack, "stream", level, position, x, solid, bottom - solid);
        if (!band) continue;
        pen.globalAlpha = 1 - band.open * (position === follow ? 0.62 : 0.78);
        this.strip(pen, stack, "stream", level, position, x, band.top, band.bottom - band.top);
        pen.globalAlpha = 1;
        if (band.strip > 0.5) this.strip(pen, stack, "update", level, position, x, band.top - band.strip, band.strip);
        if (stack.steps[level].kind === "feed_forward" && band.open > 0.3)
          this.paintUnits(pen, theme, stack, stack.steps[level].layer, position, band, position === follow);
      }
      if (stack.arrays("final")) {
        const top = now.top;
        this.strip(pen, stack, "final", 0, position, x, top, now.end - top);
      }
    }
  }

  strip(pen, stack, what, level, position, x, y, height) {
    if (height < 0.3) return;
    const sheet = this.sheet(stack, what);
    const { threads } = stack;
    const { ribbon } = this.lay;
    if (!pen.vector) {
      pen.imageSmoothingEnabled = false;
      pen.drawImage(sheet, position * threads, level, threads, 1, x, y, ribbon, height);
      return;
    }
    const values = stack.row(what, level, position);
    const colour = colourOf(this.theme, "stripes", this.limitOf(stack, what));
    values.forEach((value, k) => {
      pen.fillStyle = cssOf(Number.isFinite(value) ? colour(value) : this.theme.muted);
      pen.fillRect(x + (k * ribbon) / threads, y, ribbon / threads + 0.2, height);
    });
  }

  limitOf(stack, what) {
    return what === "final" ? stack.finalLimit : stack.limit;
  }

  // All strips of one kind as one bitmap, a pixel a number.
  sheet(stack, what) {
    const key = `${stack.name} ${what}`;
    this.sheets ??= new Map();
    if (this.sheets.has(key)) return this.sheets.get(key);
    const { values } = stack.arrays(what);
    const columns = stack.count * stack.threads;
    const rows = values.length / columns;
    const sheet = document.createElement("canvas");
    [sheet.width, sheet.height] = [columns, rows];
    const pen = sheet.getContext("2d");
    const pixels = pen.createImageData(columns, rows);
    const colour = colourOf(this.theme, "stripes", this.limitOf(stack, what));
    values.forEach((value, at) => {
      const [red, green, blue] = Number.isFinite(value) ? colour(value) : this.theme.muted;
      pixels.data.set([red, green, blue, 255], at * 4);
    });
    pen.putImageData(pixels, 0, 0);
    this.sheets.set(key, sheet);
    return sheet;
  }

  // --- attention ------------------------------------------------------------------------------------------------------

  paintSelf(pen, theme, stack, now, reach, follow) {
    const attention = this.model.attention(stack.name, "self");
    stack.steps.forEach((step, index) => {
      const band = now.bands[index];
      if (step.kind !== "self_attention" || band.open < 0.3) return;
      const { lanes } = this.lay.places[stack.name];
      const [bottom, top] = [band.bottom, band.top];
      for (let query = 0; query < reach.shown; query++)
        if (query !== follow) this.faintLines(pen, theme, attention, step.layer, query, lanes, bottom, lanes, top);
      if (follow !== null) this.strongLines(pen, theme, attention, step.layer, follow, lanes, bottom, lanes, top);
    });
  }

  paintCross(pen, theme, beat, fraction) {
    const attention = this.model.attention(beat.stack, "cross");
    if (!attention || !this.memory) return;
    const stack = this.model.stack(beat.stack);
    const now = this.now[stack.name];
    const reach = this.progress(stack, beat, fraction);
    const place = this.place(beat);
    const follow = place.stack === stack.name ? place.position : null;
    stack.steps.forEach((step, index) => {
      const band = now.bands[index];
      if (step.kind !== "cross_attention" || band.open < 0.3) return;
      if (beat.type === "step" && index > beat.step) return; // still to come
      const keys = this.lay.places[this.model.stacks[0].name].lanes;
      const { lanes } = this.lay.places[stack.name];
      pen.save();
      pen.beginPath();
      // The lines grow with the front, from the memory on.
      const grown = part(reach.front, band.bottom, band.top);
      const end = lanes[follow ?? 0].x + this.lay.ribbon;
      pen.rect(0, 0, fraction < 1 ? end * Math.max(0, grown) : this.lay.width, this.height);
      pen.clip();
      if (beat.type === "end" || beat.type === "step")
        for (let query = 0; query < reach.shown; query++)
          if (query !== follow)
            this.faintLines(
              pen,
              theme,
              attention,
              step.layer,
              query,
              keys,
              this.memory.top,
              lanes,
              band.top,
              follow === null ? place.position : null,
            );
      if (follow !== null)
        this.strongLines(pen, theme, attention, step.layer, follow, keys, this.memory.top, lanes, band.top);
      pen.restore();
    });
  }

  // Whether each head has a line of its own: where a sub-layer is at work, a head is chosen, or the reader asked for it.
  // Otherwise one line stands for the mean of all heads.
  showsHeads(beat) {
    return beat.type === "step" || this.head !== null || Boolean(this.listsHeads);
  }

  // The lines of the token that is followed, as wide as their weights.
  strongLines(pen, theme, attention, layer, query, keys, from, queries, to) {
    const { ribbon } = this.lay;
    if (!this.showsHeads(this.beat)) {
      const isNamed = this.shownAttention(this.beat)?.attention === attention; // in the sentence above
      pen.strokeStyle = cssOf(theme.chosen);
      for (let key = 0; key < attention.keys; key++) {
        const weight = attention.mean(layer, null, query, key);
        if (!(weight >= 0.04)) continue;
        pen.globalAlpha = Math.min(1, 0.3 + weight);
        pen.lineWidth = Math.max(1, weight * Math.max(0.5 * ribbon, isNamed ? this.lay.size : 0));
        this.bundled(pen, [keys[key].x, from], [queries[query].x, to], 0);
      }
      pen.globalAlpha = 1;
      return;
    }
    const heads = this.head === null ? [...Array(attention.heads).keys()] : [this.head];
    const room = heads.length > 1 ? ribbon / heads.length : ribbon * 0.5;
    for (let key = 0; key < attention.keys; key++) {
      heads.forEach((head, index) => {
        const weight = attention.weight(layer, head, query, key);
        if (!(weight >= 0.02)) return;
        const shift = heads.length > 1 ? (index + 0.5 - heads.length / 2) * room : 0;
        pen.strokeStyle = theme.heads[head % theme.heads.length];
        pen.globalAlpha = Math.min(1, 0.35 + weight);
        const cut = attention.isCut(layer, head);
        if (cut) pen.setLineDash([5, 5]);
        // Lines of large weights are wide in narrow lanes, too.
        pen.lineWidth = Math.max(0.6, weight * (heads.length > 1 ? Math.max(1.15 * room, 0.45 * this.lay.size) : room));
        this.bundled(pen, [keys[key].x + shift, from], [queries[query].x + shift, to], shift);
        if (cut) pen.setLineDash([]);
      });
    }
    pen.globalAlpha = 1;
  }

  // A line of a bundle: where it runs level, those beside each other lie below each other. One that does not rise goes
  // over the names between its ends.
  bundled(pen, [x, y], [toX, toY], shift) {
    const most = 0.4 * Math.abs(toY - y);
    const apart = Math.sign(toX - x) * Math.max(-most, Math.min(most, shift)) * Math.min(1, Math.abs(toX - x) / 120);
    const middle = (this.rises(y, toY) ? (y + toY) / 2 : Math.min(y, toY) - 2 * this.lay.size) + apart;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.bezierCurveTo(x, middle, toX, middle, toX, toY);
    pen.stroke();
  }

  rises(from, to) {
    return from - to > this.lay.size;
  }

  // only: the one key that is followed.
  faintLines(pen, theme, attention, layer, query, keys, from, queries, to, only = null) {
    const draw = link(curveBumpY).context(pen);
    pen.strokeStyle =
      only !== null
        ? cssOf(theme.primary)
        : this.head === null
          ? cssOf(theme.muted)
          : theme.heads[this.head % theme.heads.length];
    for (let key = only ?? 0; key <= (only ?? attention.keys - 1); key++) {
      const weight = attention.mean(layer, this.head, query, key);
      if (!(weight >= FAINT)) continue;
      pen.globalAlpha = (only === null ? 0.3 : 0.9) * weight;
      pen.lineWidth = Math.max(0.6, weight * this.lay.ribbon * (only === null ? 0.22 : 0.4));
      const [source, target] = [
        [keys[key].x, from],
        [queries[query].x, to],
      ];
      if (!this.rises(from, to)) {
        this.bundled(pen, source, target, 0);
        continue;
      }
      pen.beginPath();
      draw({ source, target });
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  // --- feed-forward -----------------------------------------------------------------------------------------------------

  paintUnits(pen, theme, stack, layer, position, band, followed) {
    this.unitsDrawn ||= position < this.reach.from || band.bottom > this.reach.front;
    const units = stack.units_(layer, position);
    const { lanes } = this.lay.places[stack.name];
    const limit = stack.unitLimit;
    const width = this.lay.ribbon / units.length;
    const tall = (band.bottom - band.top) * 0.92;
    const left = lanes[position].x - this.lay.ribbon / 2;
    const [down, up] = [mix(UNIT, theme.ground, 0.55), UNIT];
    units.forEach(({ after }, k) => {
      const height = Number.isFinite(after) ? Math.min(1, Math.abs(after) / limit) * tall : tall;
      pen.fillStyle = cssOf(Number.isFinite(after) ? (after < 0 ? down : up) : theme.muted, followed ? 1 : 0.45);
      pen.fillRect(left + k * width, band.bottom - height, Math.max(0.5, width - 0.5), height);
    });
  }

  // --- tokens -----------------------------------------------------------------------------------------------------------

  paintChip(pen, theme, stack, position, lane, chips, { reach, follow, beat }) {
    const token = stack.tokens[position];
    const width = lane.width - Math.min(4, lane.width * 0.12);
    const [x, y, tall] = [lane.x - width / 2, chips.top, chips.bottom - chips.top];
    const written = this.arriving;
    const shown =
      position < reach.shown ||
      (written &&
        written.position + 1 === position &&
        this.fraction >= 1 &&
        stack === this.model.last &&
        beat.type === "word");
    if (!shown) {
      if (width > 6) {
        pen.strokeStyle = cssOf(theme.faint);
        pen.lineWidth = 1;
        box(pen, x, y, width, this.lay.names.angle || this.lay.names.crowded ? TAB * theme.size : tall, 5);
        pen.stroke();
      }
      return;
    }
    // What a predicting column reads is framed: filled is what it predicts, and what it looks at.
    const reads = position === follow && this.isRead(stack, position, beat);
    const decides = Boolean(decisiveHere(this, beat)) && stack === this.model.last;
    const chosen = position === follow && !reads && !decides;
    const light = chosen ? 0 : this.lightOf(stack, position, beat);
    const ground = chosen ? theme.primary : mix(mix(theme.ground, theme.ink, 0.07), LIT, Math.min(1, light));
    const pixels = stack.pictures?.[position];
    if (pixels) {
      this.paintTab(pen, ground, lane, { top: y, bottom: y + tall });
      return drawPatch(pen, theme, pixels, lane.x, y + tall / 2, Math.min(width, tall) - 4);
    }
    const ink = chosen ? theme.ground : readableOn(ground, theme);
    const marked = chosen || light > 0.1;
    const look = { ground, ink, marked, weight: token.special ? 400 : 500 };
    this.paintName(pen, theme, token, lane, chips, reads ? { ...look, edge: theme.chosen, framed: true } : look);
  }

  // Whether the column of a token predicts the output that is shown.
  isRead(stack, position, beat) {
    const { last, metadata } = this.model;
    const row = !this.unfolded && stack === last && !metadata.classes && this.rowOf(beat);
    return Boolean(row) && row.position === position;
  }

  paintTab(pen, ground, lane, { top, bottom }, edge = null) {
    const width = lane.width - Math.min(4, lane.width * 0.12);
    pen.fillStyle = cssOf(ground);
    box(pen, lane.x - width / 2, top, width, bottom - top, Math.min(5, width / 3));
    pen.fill();
    if (!edge) return;
    pen.strokeStyle = cssOf(edge);
    pen.lineWidth = 1;
    pen.stroke();
  }

  // Where the chip of a name lies: as wide as its lane or, in one of two rows, as its name.
  chipOf(pen, text, lane, { top, bottom }) {
    const { size, names } = this.lay;
    if (names.rows === 1) return { ...lane, top, bottom };
    const tall = (bottom - top) / names.rows;
    const from = top + lane.row * tall;
    return {
      x: lane.at ?? lane.x,
      width: pen.measureText(text).width + (lane.at ? 0.35 : 0.7) * size,
      top: from + 1,
      bottom: from + tall - 1,
    };
  }

  // From a column down to its name in the second row; the chips of the first row lie over it.
  paintStem(pen, x, top, bottom) {
    pen.strokeStyle = cssOf(this.theme.muted, 0.6);
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, top);
    pen.lineTo(x, bottom);
    pen.stroke();
  }

  // A token's chip with its name in it; a slanted name hangs from a dot, and has the chip's colour where it is `marked`.
  paintName(pen, theme, { text }, lane, { top, bottom }, { ground, ink, marked, weight, edge = null, framed }) {
    const { size, names } = this.lay;
    const { letters, angle } = names;
    const colours = (colour, behind) => ({ colour: cssOf(colour), paler: cssOf(mix(colour, behind, 0.4)) });
    pen.font = fontOf(theme, letters, weight);
    if (!angle) {
      const chip = this.chipOf(pen, text, lane, { top, bottom });
      if (lane.row) this.paintStem(pen, lane.x, top, chip.top);
      this.paintTab(pen, ground, chip, chip, edge);
      drawToken(pen, text, chip.x, (chip.top + chip.bottom) / 2 + 0.5, { align: "center", ...colours(ink, ground) });
      return;
    }
    const dot = { ...lane, width: TAB * size };
    this.paintTab(pen, marked ? ground : mix(ink, ground, 0.6), dot, { top, bottom: top + TAB * size });
    const high = letters * size * 1.15;
    const room = bottom - top - TAB * size - 0.2 * size;
    pen.save();
    pen.translate(lane.x, top + (TAB + 0.2) * size + (high / 2) * Math.cos(angle));
    pen.rotate(angle);
    const long = (room - high * Math.cos(angle)) / Math.sin(angle) + 2;
    if (marked || framed) {
      pen.fillStyle = cssOf(ground);
      pen.strokeStyle = cssOf(edge ?? ground);
      pen.lineWidth = 1.2;
      box(pen, -3, -high / 2, Math.min(long, pen.measureText(text).width) + 6, high, 4);
      pen.fill();
      if (framed) pen.stroke();
    }
    const shown = marked ? colours(ink, ground) : colours(theme.ink, theme.ground);
    drawToken(pen, text, 0, 0.5, { room: long, ...shown });
    pen.restore();
  }

  paintMemoryChip(pen, theme, stack, position, lane, chips, beat) {
    const light = this.crossLight(position, beat);
    const ground = mix(theme.ground, LIT, Math.min(1, light));
    const look = { ground, ink: readableOn(ground, theme), marked: light > 0.1, weight: light > 0.3 ? 600 : 400 };
    this.paintName(pen, theme, stack.tokens[position], lane, chips, { ...look, edge: theme.faint });
  }

  // On a phone, where names are upright and small, only the word that is looked at most is named again: level, and large.
  paintMemoryWord(pen, theme, stack, lanes, { top, bottom }, beat) {
    const { size } = theme;
    const lights = lanes.map((_, position) => this.crossLight(position, beat));
    const groundOf = (light) => mix(mix(theme.ground, theme.ink, 0.25), LIT, Math.min(1, light));
    lanes.forEach((lane, position) =>
      this.paintTab(pen, groundOf(lights[position]), { ...lane, width: TAB * size }, { top, bottom: top + TAB * size }),
    );
    const most = lights.indexOf(Math.max(...lights));
    if (!(lights[most] > 0.1)) return;
    pen.font = fontOf(theme, 0.95, 600);
    const { text } = stack.tokens[most];
    const width = pen.measureText(text).width + 0.7 * size;
    const left = Math.max(2, Math.min(lanes[most].x - width / 2, this.lay.width - width - 2));
    const [from, ground] = [top + (TAB + 0.15) * size, mix(theme.ground, LIT, Math.min(1, lights[most]))];
    pen.fillStyle = cssOf(ground);
    box(pen, left, from, width, bottom - from, 5);
    pen.fill();
    const colour = readableOn(ground, theme);
    drawToken(pen, text, left + width / 2, (from + bottom) / 2 + 0.5, {
      align: "center",
      colour: cssOf(colour),
      paler: cssOf(mix(colour, ground, 0.4)),
    });
  }

  // How much a word is looked at by the followed one, where attention lies open.
  lightOf(stack, position, beat) {
    if (this.unfolded) {
      const cell = this.view.rows
        .find(({ name }) => name === "weight")
        ?.cells.find((one) => one.stack === stack.name && one.position === position);
      return cell?.value ?? 0;
    }
    const place = this.place(beat);
    if (place.stack !== stack.name) return place.stack === beat.stack ? 0 : this.lookedFrom(position, place, beat);
    const decisive = decisiveHere(this, beat);
    if (decisive) return decisive.effects[position] ?? 0;
    if (this.speaksOf(beat) !== stack.name || (beat.type === "step" && beat.kind !== "self_attention")) return 0;
    const attention = this.model.attention(stack.name, "self");
    const layer = this.openLayer(stack.name, beat);
    if (layer === null || !attention || (beat.type !== "step" && this.model.attention(stack.name, "cross"))) return 0;
    return attention.mean(layer, this.head, this.followed(beat), position);
  }

  // How much a word of the answer looks at the word of the sentence that is followed.
  lookedFrom(position, place, beat) {
    const attention = this.model.attention(beat.stack, "cross");
    const layer = beat.layer ?? this.chosenLayer(beat.stack);
    return attention ? attention.mean(layer, this.head, position, place.position) : 0;
  }

  crossLight(position, beat) {
    const attention = this.model.attention(beat.stack, "cross");
    if (!attention || (beat.type === "step" && beat.kind !== "cross_attention")) return 0;
    const layer = this.openLayer(beat.stack, beat);
    return layer === null
      ? 0
      : attention.mean(layer, this.head, this.followed(beat), position) * part(this.fraction, 0.2, 0.5);
  }

  // --- the answer -------------------------------------------------------------------------------------------------------

  paintAnswer(pen, theme, beat, fraction) {
    this.rows = [];
    this.answerAt = this.output = null;
    const row = this.rowOf(beat);
    if (!row) return;
    const { size } = theme;
    const { model } = this;
    const { lanes, left, right } = this.lay.places[model.last.name];
    const now = this.now[model.last.name];
    const grow =
      beat.type === "end"
        ? 1
        : beat.row === 0 || !model.metadata.writes
          ? part(fraction, 0, 0.5)
          : part(fraction, 0.55, 0.8);
    const pooled = model.metadata.classes && model.metadata.pooling !== "first";
    const x = pooled ? (left + right) / 2 : lanes[row.position].x;
    const step = this.answerRow;
    const candidates = this.candidatesOf(row);
    const bottom = this.bars ? ABOVE_BARS * size + candidates.length * step : now.top - (OUTPUT - 0.4) * size;
    const said = this.saidIn(row);
    pen.font = fontOf(theme, step < 0.9 * size ? 0.72 : 0.95);
    const names = Math.max(...row.names.map((name) => pen.measureText(name).width));
    const wide = this.bars?.wide ?? Math.min(11 * size, this.lay.width * 0.24);
    const start = this.bars?.start ?? Math.max(names + 0.6 * size, Math.min(x, this.lay.width - wide - 3.4 * size));
    this.answerAt = [start - names - 0.4 * size, start + wide + 3 * size];
    if (grow > 0) this.paintOutput(pen, theme, row, { x, pooled, bottom });
    if (this.bars && this.isEncoderOpen()) return; // it takes their place
    candidates.reverse().forEach((k, up) => {
      const y = bottom - (up + 0.5) * step;
      const chosen = k === said;
      const value = row.probabilities[k];
      pen.font = fontOf(theme, step < 0.9 * size ? 0.72 : 0.95, chosen ? 700 : 400);
      drawToken(pen, row.names[k], start - 0.4 * size, y, {
        align: "right",
        colour: cssOf(theme.ink),
        paler: cssOf(mix(theme.ink, theme.ground, 0.5)),
      });
      pen.fillStyle = cssOf(chosen ? theme.chosen : [0, 114, 178]);
      const length = Number.isFinite(value) ? Math.max(1, value * wide * grow) : 0;
      box(pen, start, y - step * 0.36, length, step * 0.72, 3);
      pen.fill();
      const typed = said !== row.chosen && k === row.chosen ? `  ${say("in your text")}` : "";
      const text = `${threeDigits(value)}${typed}`;
      if (grow >= 1) drawText(pen, text, start + length + 0.35 * size, y, { colour: cssOf(theme.muted) });
      this.rows.push({
        k,
        x: start,
        before: names + 0.4 * size,
        width: wide + 3 * size,
        y: y - step / 2,
        height: step,
      });
      if (chosen) this.arriving = { position: row.position, name: row.names[k], x: start, y };
    });
    if (model.metadata.writes && beat.type === "word") this.paintFlight(pen, theme, row, fraction);
  }

  isEncoderOpen() {
    return this.now[this.model.stacks[0].name].cards.some(({ open }) => open > 0);
  }

  // Which candidate the model predicts: the chosen one, or the most likely one where the text goes on by itself.
  saidIn(row) {
    return isExpected(this.model) ? 0 : row.chosen;
  }

  // What is predicted, at the head of the column that predicts it, with what that column reads; a class, above all columns
  // where it is read from their mean.
  paintOutput(pen, theme, row, { x, pooled, bottom }) {
    const { size } = theme;
    const { lanes } = this.lay.places[this.model.last.name];
    const now = this.now[this.model.last.name];
    const name = plainly(row.names[this.saidIn(row)]);
    pen.font = fontOf(theme, 0.95, 700);
    const width = pen.measureText(name).width + 0.9 * size;
    const tall = 1.45 * size;
    const left = Math.max(2, Math.min(x - width / 2, this.lay.width - width - 2));
    const top = now.top - 0.35 * size - tall;
    pen.strokeStyle = cssOf(theme.chosen);
    pen.lineWidth = 2;
    pen.beginPath();
    if (pooled) {
      const [from, to] = [lanes[0], lanes[lanes.length - 1]].map((lane) => lane.x);
      const [y, half] = [now.top - 0.25 * size, this.lay.ribbon / 2];
      pen.moveTo(from - half, now.top - 1);
      pen.lineTo(from - half, y);
      pen.lineTo(to + half, y);
      pen.lineTo(to + half, now.top - 1);
    } else box(pen, x - this.lay.ribbon / 2 - 3, now.top - 3, this.lay.ribbon + 6, now.levels[0] - now.top + 6, 4);
    pen.moveTo(x, top);
    if (this.bars && !this.isEncoderOpen()) {
      const [end, y] = [this.answerAt[1] + 0.5 * size, ABOVE_BARS * size + 0.5 * this.answerRow];
      pen.lineTo(x, y);
      pen.lineTo(end, y);
      pen.moveTo(end + 5, y - 4);
      pen.lineTo(end, y);
      pen.lineTo(end + 5, y + 4);
    } else if (!this.bars) {
      const y = bottom + 0.1 * size;
      pen.lineTo(x, y);
      pen.moveTo(x - 4, y + 5);
      pen.lineTo(x, y);
      pen.lineTo(x + 4, y + 5);
    }
    pen.stroke();
    pen.fillStyle = cssOf(theme.chosen);
    box(pen, left, top, width, tall, 5);
    pen.fill();
    drawText(pen, name, left + width / 2, top + tall / 2 + 0.5, { align: "center", colour: "rgb(255,255,255)" });
    this.output = { name, x, y: top + tall / 2, reads: pooled ? null : row.position };
    this.paintReads(pen, theme, row, { left, right: left + width, y: top + tall / 2 + 0.5, pooled });
  }

  // In small letters, beside the output: what it is read from.
  paintReads(pen, theme, row, { left, right, y, pooled }) {
    const { size } = theme;
    const { metadata, last } = this.model;
    const token = plainly(last.tokens[row.position].label);
    const texts = pooled
      ? [say("read from the mean of all columns")]
      : metadata.classes
        ? [say("read from the column of {token}", { token })]
        : last.name === "decoder"
          ? [say("reads {token}, predicts", { token }), say("after {token}", { token })]
          : [metadata.asked ? say("fills the blank with") : say("in place of {token}", { token })];
    pen.font = fontOf(theme, 0.82);
    const colour = cssOf(theme.muted);
    const gap = 0.5 * size;
    const before = texts[0];
    const from = this.bars ? this.answerAt[1] : 0;
    if (from + pen.measureText(before).width + gap <= left)
      drawText(pen, before, left - gap, y, { align: "right", colour });
    else {
      const after = texts[texts.length - 1];
      if (right + gap + pen.measureText(after).width <= this.lay.width)
        drawText(pen, after, right + gap, y, { colour });
    }
  }

  // The image that is read, with the edges of its patches; the followed one is framed, as its column is.
  paintImage(pen, theme, beat) {
    const { last } = this.model;
    this.imageEnds = 0;
    const patches = (last.pictures ?? [])
      .map((pixels, position) => ({ pixels, position }))
      .filter(({ pixels }) => pixels);
    const across = Math.round(Math.sqrt(patches.length));
    if (!patches.length || across * across !== patches.length) return;
    const { size } = theme;
    const sideAbove = (below) => Math.floor((this.now[last.name].top - below * size) / across);
    const [from, to] = this.answerAt ?? [this.lay.width, 0];
    // To the left of the answer or, where that begins at the edge, to the right of it, above what the class is read from.
    const isLeft = from > across * sideAbove(1.2) + 4 + size;
    const side = sideAbove(isLeft ? 1.2 : 2.4);
    const whole = side * across;
    const begin = isLeft ? 4 : to + size;
    if (side < 6 || begin + whole > this.lay.width) return;
    const corner = (at) => [begin + (at % across) * side, 3 + Math.floor(at / across) * side];
    patches.forEach(({ pixels }, at) => {
      const [x, y] = corner(at);
      drawPatch(pen, theme, pixels, x + side / 2, y + side / 2, side);
    });
    const at = patches.findIndex(({ position }) => position === this.followed(beat));
    if (at >= 0) {
      const [x, y] = corner(at);
      pen.strokeStyle = cssOf(theme.primary);
      pen.lineWidth = Math.max(3, 0.12 * side);
      pen.strokeRect(x, y, side, side);
    }
    this.imageEnds = begin + whole;
    pen.font = fontOf(theme, 0.88);
    const left = this.imageEnds + 0.7 * size;
    const room = (from > begin ? from : this.lay.width) - left - 0.5 * size;
    if (room < 6 * size || this.showsHeads(beat)) return; // the list of heads takes this space
    const first = { count: patches.length, token: last.tokens[0].label };
    const text =
      patches.length === last.count - 1
        ? say("{count} patches: each is a column below, after the column of {token}", first)
        : say("{count} patches: each is a column below", first);
    wrap(pen, text, Math.min(room, 14 * size), 4).forEach((line, k) =>
      drawText(pen, line, left, (1 + 1.3 * k) * size, { colour: cssOf(theme.muted) }),
    );
  }

  // The heads of the attention that lies open: which colour they have, and from which token each takes most.
  paintHeads(pen, theme, beat) {
    this.heads = [];
    const shown = this.showsHeads(beat) && this.shownAttention(beat);
    if (!shown) return;
    const { attention, layer, position, keys } = shown;
    const { size } = theme;
    const [left, right] = this.roomForHeads(beat);
    const column = 10.6 * size;
    const columns = Math.min(4, Math.floor((right - left) / column));
    if (columns < 1) return;
    const step = 1.22 * size;
    // No lower than the lanes below begin: fewer rows, and then the heads that take most.
    const below = this.model.stacks.filter(({ name }) => {
      const place = this.lay.places[name];
      return place.left < left + columns * column && place.right + place.gutter > left;
    });
    const above = (name) => (name === this.model.last.name ? 2 * size : 0); // what its column reads
    const floor = Math.min(this.height, ...below.map(({ name }) => this.now[name].top - above(name)));
    const fitting = Math.max(1, Math.floor((floor - 1.75 * size) / step + 0.4));
    const rows = Math.min(8, fitting, Math.ceil(attention.heads / columns));
    const found = Array.from({ length: attention.heads }, (_, head) => ({
      head,
      best: attention.strongest(layer, head, position),
    }));
    const listed =
      found.length > rows * columns
        ? [...found]
            .sort((a, b) => (b.best?.weight ?? 0) - (a.best?.weight ?? 0))
            .slice(0, rows * columns)
            .sort((a, b) => a.head - b.head)
        : found;
    pen.font = fontOf(theme, 0.82);
    const title = this.headTitle(attention, layer, position);
    drawText(pen, shorten(pen, title, right - left), left, 0.6 * size, { colour: cssOf(theme.muted) });
    listed.forEach(({ head, best }, index) => {
      const x = left + Math.floor(index / rows) * column;
      const y = 1.75 * size + (index % rows) * step;
      const on = this.head === null || this.head === head;
      pen.globalAlpha = on ? 1 : 0.4;
      pen.fillStyle = theme.heads[head % theme.heads.length];
      box(pen, x, y - 0.32 * size, 0.64 * size, 0.64 * size, 3);
      pen.fill();
      pen.font = fontOf(theme, 0.82, this.head === head ? 700 : 400);
      drawText(pen, say("head {head}", { head }), x + size, y, { colour: cssOf(theme.muted) });
      if (attention.isCut(layer, head)) {
        pen.strokeStyle = cssOf(theme.ink);
        pen.lineWidth = 1;
        pen.beginPath();
        pen.moveTo(x + size, y);
        pen.lineTo(x + 3.6 * size, y);
        pen.stroke();
      }
      if (best) {
        const token = keys.tokens[best.key].label;
        pen.font = fontOf(theme, 0.82, 600);
        const width = drawToken(pen, token, x + 4.1 * size, y, {
          colour: cssOf(theme.ink),
          paler: cssOf(mix(theme.ink, theme.ground, 0.5)),
          room: 3.4 * size,
        });
        pen.font = fontOf(theme, 0.82);
        drawText(pen, this.model.says(attention, best.weight), x + 4.1 * size + width + 0.4 * size, y, {
          colour: cssOf(theme.ink),
        });
      } else drawText(pen, say("masked"), x + 4.1 * size, y, { colour: cssOf(theme.muted) });
      pen.globalAlpha = 1;
      this.heads.push({ head, x, y: y - step / 2, width: column - 0.5 * size, height: step });
    });
  }

  headTitle(attention, layer, position) {
    return say("{what} of layer {layer}: {token} looks most at", {
      what: attention.kind === "cross" ? say("Cross-attention") : say("Attention"),
      layer,
      token: this.model.stack(attention.stack).tokens[position].label,
    });
  }

  // Of which attention, layer and query the heads are listed.
  shownAttention(beat) {
    const { stack, position } = this.place(beat);
    const layer = beat.layer ?? this.openLayer(stack, beat);
    if (layer === null || (beat.type === "step" && !beat.kind.endsWith("_attention"))) return null;
    const cross = this.model.attention(stack, "cross");
    const attention = cross && beat.kind !== "self_attention" ? cross : this.model.attention(stack, "self");
    return { attention, layer, position, keys: this.model.stack(attention.kind === "cross" ? "encoder" : stack) };
  }

  // Beside the answer, or above the stack that is not at work.
  roomForHeads(beat) {
    const { places, width } = this.lay;
    if (this.model.stacks.length > 1) {
      const second = places[this.model.last.name];
      if (beat.stack === this.model.stacks[0].name) return [second.left, width];
      const from = this.bars && this.answerAt ? this.answerAt[1] + this.lay.size : 4;
      return [from, this.bars ? second.left - 6 : Math.min(second.left - 6, this.answerAt?.[0] ?? width)];
    }
    const left = this.imageEnds ? this.imageEnds + 12 : 4;
    if (!this.answerAt || left > this.answerAt[0]) return [left, width];
    const [from, to] = this.answerAt;
    return from - left > width - to ? [left, from - 12] : [to + 12, width];
  }

  // The word that was chosen flies to where it is read next.
  paintFlight(pen, theme, row, fraction) {
    const way = part(fraction, 0.8, 1);
    const lane = this.lay.places[this.model.last.name].lanes[row.position + 1];
    if (!lane || way <= 0 || way >= 1) return;
    const chips = this.now[this.model.last.name].chips;
    const moved = easeCubicInOut(way);
    const [x, y] = [
      interpolateNumber(this.arriving.x, lane.x)(moved),
      interpolateNumber(this.arriving.y, (chips.top + chips.bottom) / 2)(moved),
    ];
    pen.font = fontOf(theme, 0.95, 700);
    const width = pen.measureText(this.arriving.name).width + theme.size;
    pen.fillStyle = cssOf(theme.chosen);
    box(pen, x - width / 2, y - 0.75 * theme.size, width, 1.5 * theme.size, 5);
    pen.fill();
    drawText(pen, this.arriving.name, x, y, { align: "center", colour: "rgb(255,255,255)" });
  }
}
