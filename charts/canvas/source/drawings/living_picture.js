// A sentence on its way through a model: where the reader is, what is said about it, and how it plays.

import { exactly, threeDigits } from "../toolkit/numbers.js";
import { quoted } from "../toolkit/sentences.js";
import { colourOf } from "../toolkit/theme.js";
import { say } from "../toolkit/words.js";
import { bitmap } from "../scene/bitmap.js";
import { Scene } from "../scene/scene.js";
import { arithmeticOf, arithmeticPanel, candidateArithmetic } from "./living_picture/arithmetic.js";
import { beatsOf, beginsAt } from "./living_picture/beats.js";
import { captionOf, describedStep, kindText, numbersOf, strongest } from "./living_picture/captions.js";
import { layOutLanes } from "./living_picture/layout.js";
import { LivingPictureModel } from "./living_picture/model.js";
import { Picture } from "./living_picture/picture.js";
import { Player } from "./living_picture/player.js";
import { channelsOf, Unfolded } from "./living_picture/unfolded.js";

const LEAD = 3; // beats that are played on the way to a stop
const REST = 700; // milliseconds without another click, before Python is told where the reader is
const [TALL, LEAST] = [33, 17]; // letters: the height of a picture whose box says none, and the least one

// The run of a sentence, and where the reader is in it.
class Run {
  constructor(payload, panel) {
    Object.assign(this, { panel, head: null, fraction: 1, explored: null, unfolded: null });
    this.take(payload);
    this.arrive();
    this.player = new Player(this, panel);
  }

  take({ metadata, arrays }) {
    this.metadata = metadata;
    this.model = new LivingPictureModel({ metadata, arrays });
    this.sheets = new Map();
    for (const stack of this.model.stacks)
      stack.gutterTexts = [...new Set(stack.steps.map(({ kind }) => kind))].map(kindText);
    this.beats = beatsOf(this.model);
    this.laid = null;
    if (this.unfolded) this.look();
  }

  // Where the picture opens; and again where a lesson goes on to its next stop. Python says which token is followed.
  arrive() {
    const { begin, follow = {}, writes, classes } = this.metadata;
    const { stacks, last } = this.model;
    const byStack = (of) => Object.fromEntries(stacks.map((stack) => [stack.name, of(stack)]));
    this.open = byStack(() => begin.layer ?? 0);
    const opens = ({ name, count }) => follow[name] ?? Math.min(1, count - 1);
    this.follow = byStack((stack) => (begin.stack === stack.name && begin.token) || opens(stack));
    // Where nothing is written, at the token that is followed; a lesson opens where it says.
    const isRead = !writes && !classes && !begin.stop;
    const from = isRead ? { stop: "word", stack: last.name, token: this.follow[last.name] } : begin;
    this.at = beginsAt(this.beats, this.model, from);
    const kind = begin.stop?.match(/^unfold (\w+)$/)?.[1];
    if (!kind) return;
    this.head = begin.head;
    this.explored = { stack: begin.stack, position: begin.token };
    this.lookInto({ stack: begin.stack, layer: begin.layer, ...partOf(kind) });
  }

  // To the next stop of a lesson: what leads there is played, the last of it.
  goOn() {
    const { at } = this;
    this.leave();
    this.head = null;
    this.player.stop();
    this.arrive();
    this.player.path = null;
    if (!this.unfolded && this.at > at) this.player.begin(Math.max(at, this.at - LEAD), this.at);
  }

  // --- which moment -------------------------------------------------------------------------------------------------

  get beat() {
    return this.beats[this.at];
  }
  get caption() {
    return captionOf(this, this.beat);
  }
  get numbers() {
    return numbersOf(this, this.beat);
  }

  // The layer of a stack that lies open at a beat; null where it is a pack of closed cards.
  openLayer(name, beat) {
    if (!beat || this.speaksOf(beat) !== name) return null;
    if (beat.type === "step") return beat.layer;
    return isAnswer(beat) ? this.chosenLayer(name) : null;
  }

  // The stack that the caption is about: the one at work, or that of the token that was clicked.
  speaksOf(beat) {
    return isAnswer(beat) && this.explored ? this.explored.stack : beat.stack;
  }

  chosenLayer(name) {
    return Math.min(this.model.stack(name).layers - 1, this.open[name] ?? 0);
  }

  // The token that is followed: of the beat, until somebody clicks another one.
  place(beat) {
    const { explored, model } = this;
    if (explored?.stack === beat.stack && explored.position < beat.shown) return explored;
    if (explored && beat.row !== null && explored.stack !== beat.stack) return explored;
    const isWritten = beat.type === "word" && !model.metadata.classes;
    const follow = Math.min(this.follow[beat.stack] ?? 0, beat.shown - 1);
    return { stack: beat.stack, position: isWritten ? model.written[beat.row].position : follow };
  }
  followed(beat) {
    return this.place(beat).position;
  }

  // What came out behind the token that is followed; null where it was not asked.
  rowOf(beat) {
    const { metadata, written, last } = this.model;
    if (beat.row === null) return null;
    if (!metadata.writes && (metadata.asked || metadata.classes)) return written[beat.row];
    const { stack, position } = this.place(beat);
    return (stack === last.name && written.find((row) => row.position === position)) || null;
  }

  // Which candidate the model predicts: the chosen one, or the most likely one where the text goes on by itself.
  saidIn(row) {
    const { metadata, last } = this.model;
    return !metadata.writes && !metadata.asked && last.name === "decoder" ? 0 : row.chosen;
  }

  // The word without which the predicted class is least probable, where the picture ends on it.
  decisiveHere(beat) {
    const { decisive, pooling } = this.metadata;
    if (!decisive || beat.type === "step" || beat.type === "embedding") return null;
    const position = this.followed(beat);
    return decisive.positions.includes(position) || (pooling === "first" && position === 0) ? decisive : null;
  }

  // Which attention, layer and query the sentence speaks of.
  shownAttention(beat) {
    const { stack, position } = this.place(beat);
    const layer = beat.layer ?? this.openLayer(stack, beat);
    if (layer === null || (beat.type === "step" && !beat.kind.endsWith("_attention"))) return null;
    const cross = this.model.attention(stack, "cross");
    const attention = cross && beat.kind !== "self_attention" ? cross : this.model.attention(stack, "self");
    return { attention, layer, position, keys: this.model.stack(attention.kind === "cross" ? "encoder" : stack) };
  }

  // Whether each head has a line of its own; otherwise one line stands for the mean of all heads.
  showsHeads(beat) {
    return beat.type === "step" || this.head !== null;
  }

  // All strips of one kind as one image, a pixel a number.
  sheet(stack, what, theme) {
    const key = `${stack.name} ${what}`;
    if (this.sheets.get(key)?.theme !== theme) {
      const { values } = stack.arrays(what);
      const columns = stack.count * stack.threads;
      const at = (row, column) => values[row * columns + column];
      const colour = colourOf(theme, "stripes", what === "final" ? stack.finalLimit : stack.limit);
      const paint = (value) => (Number.isFinite(value) ? colour(value) : theme.muted);
      const image = bitmap({ rows: values.length / columns, columns, at, allowed: () => true }, theme, paint);
      this.sheets.set(key, { theme, image });
    }
    return this.sheets.get(key).image;
  }

  // --- unfolding ----------------------------------------------------------------------------------------------------

  // { stack, layer, part, kind }: part is "embedding", "attention" or "feed_forward"; kind is "self" or "cross".
  unfold(where) {
    this.player.stop();
    this.closePanel();
    this.lookInto(where);
    this.changed();
  }

  lookInto(where) {
    this.unfolded = where;
    this.look();
    if (where.layer !== null && !this.model.inside(where.stack, where.layer))
      this.panel.trigger("inside", { stack: where.stack, layer: where.layer });
  }

  look() {
    this.view = new Unfolded(this);
    if (this.panelAt) this.openPanel(this.panelAt);
  }

  fold() {
    this.closePanel();
    this.unfolded = this.view = null;
    this.changed();
  }

  // The run goes on: nothing is unfolded, and the token of the beat is followed.
  leave() {
    this.closePanel();
    this.unfolded = this.view = this.explored = null;
  }

  // The stop of a lesson's step is on the screen, whole.
  get hasArrived() {
    const { unfolded } = this;
    return !unfolded || unfolded.layer === null || Boolean(this.model.inside(unfolded.stack, unfolded.layer));
  }

  // The parts of the model that can be unfolded where the reader is, in the order of the forward pass.
  parts() {
    const { stack: name } = this.unfolded ?? this.place(this.beat);
    const layer = this.unfolded?.layer ?? this.beat.layer ?? this.chosenLayer(name);
    const steps = this.model.stack(name).steps.filter((step) => step.layer === layer);
    return [
      { stack: name, layer: null, part: "embedding" },
      ...steps.map(({ kind }) => ({ stack: name, layer, ...partOf(kind) })),
    ];
  }

  // What a click on the picture, or Enter, unfolds: the step of the beat, or the attention that the caption speaks of.
  partOf(beat) {
    const parts = this.parts();
    if (beat.type === "embedding") return parts[0];
    if (beat.type === "step" && beat.kind === "feed_forward") return parts.at(-1);
    const kind = beat.kind === "self_attention" || !this.model.attention(parts[0].stack, "cross") ? "self" : "cross";
    return parts.find((one) => one.part === "attention" && one.kind === kind);
  }

  shownIn(stack) {
    if (this.beat.stack === stack.name) return this.beat.shown;
    return stack === this.model.last ? 1 : stack.count;
  }
  queryIn(stack) {
    const { stack: name, position } = this.place(this.beat);
    return name === stack.name ? position : Math.min(this.follow[stack.name] ?? 0, this.shownIn(stack) - 1);
  }
  headOf(attention, layer, query) {
    this.headNow = this.head ?? strongest(attention, layer, null, query)?.head ?? 0;
    return this.headNow;
  }

  openPanel(target) {
    const found = arithmeticOf(this.view, target);
    this.closePanel();
    if (!found) return;
    this.showPanel(found);
    this.panelAt = target;
  }
  showPanel(found) {
    this.closePanel();
    this.arithmetic = arithmeticPanel(found, () => this.closePanel());
    this.panel.picture.append(this.arithmetic);
  }
  closePanel() {
    this.arithmetic?.remove();
    this.arithmetic = this.panelAt = null;
  }

  // --- what the reader does -----------------------------------------------------------------------------------------

  act(target) {
    if (!this.canClick(target)) return false;
    this.player.stop();
    if (target.what === "cell") this.openPanel(target);
    else if (target.what === "answer")
      this.showPanel(candidateArithmetic(this.rowOf(this.beat), this.metadata.vocabulary));
    else if (target.what === "band") {
      const { layer, kind } = this.model.stack(target.stack).steps[target.step];
      this.unfold({ stack: target.stack, layer, ...partOf(kind) });
    } else {
      this.closePanel();
      if (target.what === "layer") this.openOne(target.stack, target.layer);
      else this.explored = { stack: target.stack, position: target.position };
      this.changed();
    }
    return true;
  }

  canClick(target) {
    return target.what !== "cell" || Boolean(this.view && arithmeticOf(this.view, target));
  }

  // Another layer of a stack: at the end of the run it opens, on the way the run goes there.
  openOne(name, layer) {
    const { beat } = this;
    this.open[name] = Math.max(0, Math.min(this.model.stack(name).layers - 1, layer));
    if (beat.stack === name && beat.type !== "step" && this.openLayer(name, beat) !== null) return;
    const kind = beat.type === "step" && beat.stack === name ? beat.kind : null;
    const at = this.beats.findIndex(
      (one) => one.stack === name && one.layer === this.open[name] && (kind === null || one.kind === kind),
    );
    if (at >= 0) this.at = at;
  }

  changed() {
    if (this.unfolded) this.look();
    this.panel.changed();
    this.player.show();
    this.panel.live.textContent = this.caption.join("");
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.panel.trigger("place", this.focus()), REST);
  }

  // Where the reader is, as all pages know it.
  focus() {
    if (this.unfolded) {
      const { stack, layer, kind } = this.unfolded;
      const token = this.queryIn(this.model.stack(stack));
      return { stack, kind: kind ?? "self", layer: layer ?? 0, head: this.headNow ?? this.head ?? 0, token };
    }
    const { stack, position } = this.place(this.beat);
    const cross = this.model.attention(stack, "cross") && this.beat.kind !== "self_attention";
    return {
      stack,
      kind: cross ? "cross" : "self",
      layer: this.beat.layer ?? this.chosenLayer(stack),
      head: this.head ?? this.metadata.begin.head ?? 0,
      token: position,
    };
  }

  keydown({ key, shiftKey }) {
    const { beat } = this;
    const { stack, position } = this.place(beat);
    const by = { ArrowUp: 1, ArrowDown: -1 }[key];
    if (key === "Escape") return this.goBack();
    if (key === "Enter") this.unfolded ?? this.unfold(this.partOf(beat));
    else if (shiftKey && (key === "ArrowLeft" || key === "ArrowRight")) {
      const next = position + (key === "ArrowLeft" ? -1 : 1); // one token on is followed
      this.explored = { stack, position: Math.max(0, Math.min(beat.shown - 1, next)) };
      this.changed();
    } else if (shiftKey) return false;
    else if (by && this.unfolded) this.unfoldNext(by);
    else if (by) {
      this.player.stop();
      this.openOne(stack, (beat.layer ?? this.chosenLayer(stack)) + by);
      this.changed();
    } else if (key === "h") {
      const { heads } = this.model.attention(stack, "self");
      this.head = this.head === null ? 0 : this.head + 1 < heads ? this.head + 1 : null;
      this.changed();
    } else return this.player.key(key);
    return true;
  }

  // One step out; -> whether there was one.
  goBack() {
    const isInside = this.arithmetic || this.unfolded || this.explored || this.head !== null;
    if (this.arithmetic) this.closePanel();
    else if (this.unfolded) this.fold();
    else if (isInside) {
      this.explored = this.head = null;
      this.changed();
    }
    return Boolean(isInside);
  }

  // Up and down, sub-layer by sub-layer and layer by layer.
  unfoldNext(by) {
    const { stack } = this.unfolded;
    const { steps } = this.model.stack(stack);
    const name = this.unfolded.part === "feed_forward" ? "feed_forward" : `${this.unfolded.kind}_attention`;
    const to = steps.findIndex(({ layer, kind }) => layer === this.unfolded.layer && kind === name) + by;
    if (to < 0) this.unfold({ stack, layer: null, part: "embedding" });
    else if (to < steps.length) this.unfold({ stack, layer: steps[to].layer, ...partOf(steps[to].kind) });
  }
}

const isAnswer = ({ type }) => type === "word" || type === "end";

const partOf = (kind) =>
  kind === "embedding"
    ? { part: kind, layer: null }
    : kind === "feed_forward"
      ? { part: kind }
      : { part: "attention", kind: kind.replace("_attention", "") };

const identity = ({ checkpoint, stacks, written, text, edited }) =>
  JSON.stringify([checkpoint, stacks, written, text, edited]);

// --- the drawing ----------------------------------------------------------------------------------------------------

// The same run, sent anew: where the reader is, and whether it plays, stays.
export function read(payload, before, panel) {
  if (!before || identity(payload.metadata) !== identity(before.metadata)) {
    before?.leave();
    before?.player.destroy();
    return new Run(payload, panel);
  }
  const { step } = before.metadata.begin;
  before.take(payload);
  if (payload.metadata.begin.stop && payload.metadata.begin.step !== step) before.goOn();
  return before;
}

export const labelOf = ({ metadata }) =>
  `${metadata.title}. ${say("Space plays, left and right go from step to step, up and down open another layer.")}`;
export const help = () => say("animation");
export const controls = (run) => run.player.controls();
export const keydown = (run, event) => run.keydown(event);
export const act = (run, target) => run.act(target);
export const click = (run, target) => (run.canClick(target) ? target : null);

export function scene(run, theme, width) {
  const height = theme.room ? Math.max(LEAST * theme.size, Math.floor(theme.room)) : TALL * theme.size;
  if (run.laid?.theme !== theme || run.laid.width !== width)
    run.laid = { theme, width, lay: layOutLanes(theme, run.model, { width, height }) };
  const { lay } = run.laid;
  const picture = new Picture(run, lay, theme);
  if (run.unfolded) picture.drawUnfolded(run.view);
  else picture.drawRun();
  const { marks, places } = picture;
  const followed = run.place(run.beat);
  return new Scene({
    size: [lay.width, lay.height],
    marks,
    places,
    first: null,
    step: (target) => target,
    output: picture.output,
    about: lay.places[followed.stack].lanes[followed.position].x,
  });
}

// For tests.
export const state = (run) => ({
  beat: run.at,
  beats: run.beats.length,
  head: run.unfolded ? run.headNow : run.head,
  unfolded: run.unfolded,
  place: run.place(run.beat),
});

export function describe(run, target) {
  const { what, layer, k } = target;
  const stack = target.stack && run.model.stack(target.stack);
  const exact = (value) => ({ parts: [`${say("exactly")} ${exactly(value)}`], muted: true });
  if (what === "cell") return run.view ? run.view.describe(target) : [];
  if (what === "layer") return [{ parts: [say("Click to open layer {layer}.", { layer })] }];
  if (what === "strip") {
    const { position, kind, level, thread } = target;
    const value = stack.row(kind, level, position)[thread];
    const channels = channelsOf(thread, stack.channels, stack.threads);
    const name = [...quoted(stack.tokens[position].label), `, ${describedStep(stack, kind, level)}`];
    return [{ parts: name }, { parts: [`${channels}: ${threeDigits(value)}`] }, exact(value)];
  }
  if (what === "lane") {
    const hint = { parts: [say("Click to follow this token.")], muted: true };
    return [{ parts: quoted(stack.tokens[target.position].label) }, hint];
  }
  if (what === "answer") {
    const { names, probabilities } = run.rowOf(run.beat);
    return [{ parts: [...quoted(names[k]), `${say(": ")}${threeDigits(probabilities[k])}`] }, exact(probabilities[k])];
  }
  const step = stack.steps[target.step];
  const name = [say("layer {layer}", { layer: step.layer }), `, ${kindText(step.kind)}`];
  return [{ parts: name }, { parts: [say("Click to unfold it.")], muted: true }];
}

const captionAt = (run, beat) => captionOf(run, beat).join("");

export function tables(run) {
  if (run.unfolded) return run.view.tables();
  const beats = run.beats.map((beat, at) => ({ label: String(at + 1), cells: [captionAt(run, beat)] }));
  const said = { caption: run.metadata.title, columns: [say("what happens")], rows: beats };
  const row = run.rowOf(run.beat);
  if (!row) return [said];
  const rows = row.names.map((name, k) => ({ label: name, cells: [threeDigits(row.probabilities[k])] }));
  return [said, { caption: say("Candidates"), columns: [say("probability")], rows }];
}

export const records = (run) => [["step", "text"], ...run.beats.map((beat, at) => [at + 1, captionAt(run, beat)])];
