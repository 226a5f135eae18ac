// A sentence on its way through a model: what is under the pointer, what is said about it, and how it plays.

import { exactly, threeDigits } from "../toolkit/numbers.js";
import { quoted } from "../toolkit/sentences.js";
import { say } from "../toolkit/words.js";
import { beatsOf, beginsAt } from "./living_picture/beats.js";
import { captionOf, describedStep, kindText, numbersOf, strongest } from "./living_picture/captions.js";
import { LivingPictureModel } from "./living_picture/model.js";
import { arithmeticOf, arithmeticPanel, candidateArithmetic } from "./living_picture/arithmetic.js";
import { LivingPicture } from "./living_picture/picture.js";
import { Player } from "./living_picture/player.js";
import { Unfolded } from "./living_picture/unfolded.js";

const LEAD = 3; // beats that are played on the way to a stop
const REST = 700; // milliseconds without another click, before Python is told where the reader is

export class LivingPictureDrawing extends LivingPicture {
  constructor(payload, previous, stage) {
    super();
    Object.assign(this, { stage, head: null, fraction: 1, explored: null, unfolded: null });
    this.take(payload);
    this.arrive();
    this.player = new Player(this, previous?.player);
  }

  // Where the picture opens; and again where a lesson goes on to its next stop.
  arrive() {
    const { begin } = this.metadata;
    this.open = Object.fromEntries(this.model.stacks.map(({ name }) => [name, begin.layer ?? 0]));
    this.follow = Object.fromEntries(
      this.model.stacks.map((stack) => [
        stack.name,
        begin.stack === stack.name && begin.token ? begin.token : this.opensAt(stack),
      ]),
    );
    this.at = beginsAt(this.beats, this.model, this.beginning());
    const kind = begin.stop?.match(/^unfold (\w+)$/)?.[1];
    if (!kind) return;
    this.head = begin.head;
    this.explored = { stack: begin.stack, position: begin.token };
    this.lookInto({ stack: begin.stack, layer: begin.layer, ...partOf(kind) });
  }

  // Where nothing is written, at the token that is followed; a lesson opens where it says.
  beginning() {
    const { begin, writes, classes } = this.metadata;
    const { name } = this.model.last;
    return !writes && !classes && !begin.stop ? { stop: "word", stack: name, token: this.follow[name] } : begin;
  }

  // Which token is followed at first where nobody chose one: the word that the class hangs on, the class token, the second
  // position from which the output is predicted, or the token after the first.
  opensAt(stack) {
    const { metadata, last, written } = this.model;
    const second = Math.min(1, stack.count - 1);
    if (stack !== last) return second;
    if (metadata.decisive && metadata.pooling === "mean") return metadata.decisive.positions[0];
    if (metadata.classes) return stack.pictures ? 0 : second;
    return (written[1] ?? written[0])?.position ?? second;
  }

  // The same run, sent anew: where the reader is, and whether it plays, stays.
  static renewed(payload, previous) {
    if (!(previous instanceof LivingPictureDrawing) || identity(payload.metadata) !== identity(previous.metadata))
      return null;
    const { step } = previous.metadata.begin;
    previous.take(payload);
    if (payload.metadata.begin.stop && payload.metadata.begin.step !== step) previous.goOn();
    return previous;
  }

  // To the next stop: what leads there is played, the last of it.
  goOn() {
    const { at } = this;
    this.leave();
    this.head = null;
    this.player.stop();
    this.arrive();
    this.player.path = null;
    if (!this.unfolded && this.at > at) this.player.begin(Math.max(at, this.at - LEAD), this.at);
  }

  take(payload) {
    this.metadata = payload.metadata;
    this.model = new LivingPictureModel(payload);
    this.sheets = new Map();
    for (const stack of this.model.stacks)
      stack.gutterTexts = [...new Set(stack.steps.map(({ kind }) => kind))].map(kindText);
    this.beats = beatsOf(this.model);
    this.label = `${this.metadata.title}. ${say("Space plays, left and right go from step to step, up and down open another layer.")}`;
    this.help = say("animation");
    if (this.unfolded) this.look();
  }

  controls() {
    return this.player.controls();
  }

  get caption() {
    return captionOf(this, this.beat);
  }
  get numbers() {
    return numbersOf(this, this.beat);
  }

  // --- unfolding ------------------------------------------------------------------------------------------------------

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
      this.stage.trigger("inside", { stack: where.stack, layer: where.layer });
  }

  fold() {
    this.closePanel();
    this.unfolded = null;
    this.view = null;
    this.changed();
  }

  // The stop of a lesson's step is on the screen, whole.
  get hasArrived() {
    const { unfolded } = this;
    return !unfolded || unfolded.layer === null || Boolean(this.model.inside(unfolded.stack, unfolded.layer));
  }

  // The run goes on: nothing is unfolded, and the token of the beat is followed.
  leave() {
    this.closePanel();
    this.unfolded = this.view = this.explored = null;
  }

  look() {
    this.view = new Unfolded(this);
    if (this.panelAt) this.openPanel(this.panelAt);
  }

  // The parts of the model that can be unfolded where the reader is, in the order of the forward pass.
  parts() {
    const { stack: name } = this.unfolded ?? this.place(this.beat);
    const stack = this.model.stack(name);
    const layer = this.unfolded?.layer ?? this.beat.layer ?? this.chosenLayer(name);
    const steps = stack.steps.filter((step) => step.layer === layer && step.kind !== "convolution");
    return [
      { stack: name, layer: null, part: "embedding" },
      ...steps.map(({ kind }) => ({ stack: name, layer, ...partOf(kind) })),
    ];
  }

  // What a click on the picture, or Enter, unfolds: the step of the beat, or the attention that the caption speaks of.
  partOf(beat) {
    const parts = this.parts();
    if (beat.type === "embedding") return parts[0];
    if (beat.type === "step" && beat.kind === "feed_forward") return parts[parts.length - 1];
    const kind = beat.kind === "self_attention" || !this.model.attention(parts[0].stack, "cross") ? "self" : "cross";
    return parts.find((one) => one.part === "attention" && one.kind === kind);
  }

  shownIn(stack) {
    const beat = this.beat;
    if (beat.stack === stack.name) return beat.shown;
    return stack === this.model.last ? 1 : stack.count;
  }
  queryIn(stack) {
    const { stack: name, position } = this.place(this.beat);
    return name === stack.name ? position : Math.min(this.follow[stack.name] ?? 0, this.shownIn(stack) - 1);
  }
  headOf(attention, layer, query) {
    this.headNow = this.head ?? strongest(attention, layer, null, query, attention.kind === "cross")?.head ?? 0;
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
    this.panel = arithmeticPanel(found, () => this.closePanel());
    this.stage.picture.append(this.panel);
  }
  closePanel() {
    this.panel?.remove();
    this.panel = this.panelAt = null;
  }

  paintBase(pen, theme) {
    if (this.unfolded) this.paintUnfolded(pen, theme);
    else super.paintBase(pen, theme);
  }

  layout(context, theme, width) {
    this.sheets.clear(); // the theme may have changed
    return super.layout(context, theme, width);
  }

  // One moment of the run: a beat, and how much of it has passed.
  show(at, fraction) {
    this.leave();
    Object.assign(this, { at, fraction });
    this.stage.repaint();
    this.player.show();
  }

  // --- pointer --------------------------------------------------------------------------------------------------------

  hit(x, y) {
    if (this.unfolded) return this.laneAt(x, y) ?? this.view.hit(x, y);
    const head = this.heads?.find((one) => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height);
    if (head) return { what: "head", head: head.head };
    const row = this.rows.find(
      (one) => y >= one.y && y < one.y + one.height && x >= one.x - one.before && x < one.x + one.width,
    );
    if (row) return { what: "answer", k: row.k };
    for (const stack of this.model.stacks) {
      const { lanes, left, right, gutter } = this.lay.places[stack.name];
      const now = this.now[stack.name];
      if (x < left - 4 || x > right + gutter) continue;
      const position = lanes.findIndex((lane) => x >= lane.left && x < lane.left + lane.width);
      const chip = y >= now.chips.top && y < now.chips.bottom;
      const memory = stack !== this.model.last && y >= this.memory.top && y < this.memory.bottom;
      if ((chip || memory) && position >= 0) return { what: "lane", stack: stack.name, position };
      const strip = position >= 0 ? this.stripAt(stack, position, x, y) : null;
      if (strip) return strip;
      const layer = now.cards.findIndex((card) => y <= card.bottom && y > card.top);
      if (layer < 0) continue;
      if (now.cards[layer].open < 0.5) return { what: "layer", stack: stack.name, layer };
      const step = now.bands.findIndex((band) => y <= band.bottom && y > band.top - band.strip);
      if (step >= 0) return { what: "band", stack: stack.name, step };
    }
    return null;
  }

  laneAt(x, y) {
    for (const stack of this.model.stacks) {
      const { chips } = this.now[stack.name];
      if (y < chips.top || y >= chips.bottom) continue;
      const { lanes } = this.lay.places[stack.name];
      const position = lanes.findIndex((lane) => x >= lane.left && x < lane.left + lane.width);
      if (position >= 0) return { what: "lane", stack: stack.name, position };
    }
    return null;
  }

  // A thread of the stream, or of what is added to it.
  stripAt(stack, position, x, y) {
    const { lanes } = this.lay.places[stack.name];
    const thread = Math.floor(((x - lanes[position].x) / this.lay.ribbon + 0.5) * stack.threads);
    if (thread < 0 || thread >= stack.threads) return null;
    const now = this.now[stack.name];
    const reach = this.progress(stack, this.beat, this.fraction);
    if (position >= reach.shown || (position >= reach.from && y < reach.front)) return null;
    const named = (kind, level) => ({ what: "strip", stack: stack.name, position, kind, level, thread });
    if (y < now.end && y >= now.top && stack.arrays("final")) return named("final", 0);
    for (let level = 0; level <= stack.steps.length; level++) {
      const band = now.bands[level];
      if (y <= now.levels[level] && y > (band ? band.bottom : now.end)) return named("stream", level);
      if (band && band.strip > 1 && y <= band.top && y > band.top - band.strip) return named("update", level);
      if (band && band.open < 0.5 && y <= band.bottom && y > band.top) return null;
    }
    return null;
  }

  describe(target) {
    if (target.what === "cell") return this.view ? this.view.describe(target) : [];
    const stack = target.stack && this.model.stack(target.stack);
    if (target.what === "strip") {
      const { position, kind, level, thread } = target;
      const value = stack.row(kind, level, position)[thread];
      const [from, to] = [0, 1].map((one) => Math.floor(((thread + one) * stack.channels) / stack.threads));
      const channels =
        to - from > 1 ? say("mean of channels {from} to {to}", { from, to: to - 1 }) : say("channel {from}", { from });
      return [
        { parts: [...quoted(stack.tokens[position].label), `, ${describedStep(stack, kind, level)}`] },
        { parts: [`${channels}: ${threeDigits(value)}`] },
        { parts: [`${say("exactly")} ${exactly(value)}`], muted: true },
      ];
    }
    if (target.what === "lane")
      return [
        { parts: [...quoted(stack.tokens[target.position].label)] },
        { parts: [say("Click to follow this token.")], muted: true },
      ];
    if (target.what === "layer") return [{ parts: [say("Click to open layer {layer}.", { layer: target.layer })] }];
    if (target.what === "head")
      return [
        {
          parts: [
            this.head === target.head
              ? say("Click to see all heads.")
              : say("Click to see head {head} alone.", { head: target.head }),
          ],
        },
      ];
    if (target.what === "answer") {
      const row = this.rowOf(this.beat);
      const value = row.probabilities[target.k];
      return [
        { parts: [...quoted(row.names[target.k]), `${say(": ")}${threeDigits(value)}`] },
        { parts: [`${say("exactly")} ${exactly(value)}`], muted: true },
      ];
    }
    if (target.what === "band") {
      const { layer, kind } = stack.steps[target.step];
      return [
        { parts: [say("layer {layer}", { layer }), `, ${kindText(kind)}`] },
        { parts: [say("Click to unfold it.")], muted: true },
      ];
    }
    return [];
  }

  click(target) {
    if (target.what === "cell") return this.view && arithmeticOf(this.view, target) ? target : null;
    return ["lane", "strip", "layer", "head", "band", "answer"].includes(target.what) ? target : null;
  }

  // What the reader clicks is done here and now.
  act(target) {
    if (!this.click(target)) return false;
    this.player.stop();
    if (target.what === "cell") {
      this.openPanel(target);
      return true;
    }
    if (target.what === "answer") {
      this.showPanel(candidateArithmetic(this.rowOf(this.beat), this.metadata.vocabulary));
      return true;
    }
    this.closePanel();
    if (target.what === "band") {
      const { layer, kind } = this.model.stack(target.stack).steps[target.step];
      if (kind !== "convolution") this.unfold({ stack: target.stack, layer, ...partOf(kind) });
      return true;
    }
    if (target.what === "head") this.head = this.head === target.head ? null : target.head;
    else if (target.what === "layer") this.openOne(target.stack, target.layer);
    else this.explored = { stack: target.stack, position: target.position };
    this.changed();
    return true;
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

  // One token to the left or to the right is followed.
  followNext(by) {
    const { stack, position } = this.place(this.beat);
    this.explored = { stack, position: Math.max(0, Math.min(this.beat.shown - 1, position + by)) };
    this.changed();
  }

  changed() {
    if (this.unfolded) this.look();
    this.stage.repaint();
    this.player.show();
    this.stage.live.textContent = this.caption.join("");
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.stage.trigger("place", this.focus()), REST);
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

  // --- keyboard -------------------------------------------------------------------------------------------------------

  keydown({ key, shiftKey }) {
    if (key === "Escape") {
      if (this.panel) this.closePanel();
      else if (this.unfolded) this.fold();
      else if (this.explored || this.head !== null) {
        this.explored = this.head = null;
        this.changed();
      } else return false;
      return true;
    }
    if (key === "Enter") {
      if (!this.unfolded) this.unfold(this.partOf(this.beat));
      return true;
    }
    const { stack } = this.place(this.beat);
    if (shiftKey && (key === "ArrowLeft" || key === "ArrowRight")) this.followNext(key === "ArrowLeft" ? -1 : 1);
    else if (shiftKey) return false;
    else if (key === "ArrowUp" || key === "ArrowDown") {
      const by = key === "ArrowUp" ? 1 : -1;
      if (this.unfolded) return this.unfoldNext(by);
      const layer = this.beat.layer ?? this.chosenLayer(stack);
      this.player.stop();
      this.openOne(stack, layer + by);
      this.changed();
    } else if (key === "n") this.player.listHeads();
    else if (key === "h") {
      const count = this.model.attention(stack, "self").heads;
      this.head = this.head === null ? 0 : this.head + 1 < count ? this.head + 1 : null;
      this.changed();
    } else return this.player.key(key);
    return true;
  }

  // Up and down, sub-layer by sub-layer and layer by layer.
  unfoldNext(by) {
    const { stack } = this.unfolded;
    const steps = this.model.stack(stack).steps.filter(({ kind }) => kind !== "convolution");
    const name = this.unfolded.part === "feed_forward" ? "feed_forward" : `${this.unfolded.kind}_attention`;
    const at = steps.findIndex(({ layer, kind }) => layer === this.unfolded.layer && kind === name);
    const to = at + by;
    if (to < 0) this.unfold({ stack, layer: null, part: "embedding" });
    else if (to < steps.length) {
      const { layer, kind } = steps[to];
      this.unfold({ stack, layer, ...partOf(kind) });
    }
    return true;
  }

  first() {
    return null;
  }
  holds() {
    return true;
  }
  step() {
    return null;
  }
  anchor() {
    return [0, 0];
  }

  // --- as text --------------------------------------------------------------------------------------------------------

  geometry() {
    return {
      beat: this.at,
      beats: this.beats.length,
      head: this.head,
      open: this.open,
      unfolded: this.unfolded,
      place: this.place(this.beat),
      shownHead: this.unfolded ? this.headNow : null,
      rows: this.view?.rows.map((row) => ({
        name: row.name,
        label: row.label,
        shown: row.shown,
        written: row.written,
        box: this.view.box(row, row.cells[row.cells.length - 1]),
      })),
      output: this.output,
      heads: this.heads?.map(({ head }) => head),
      names: { rows: this.lay.names.rows, angle: this.lay.names.angle },
      places: this.targets(),
    };
  }

  // Where what can be clicked lies, for tests.
  targets() {
    const found = {};
    for (const stack of this.model.stacks) {
      const { lanes, left } = this.lay.places[stack.name];
      const now = this.now[stack.name];
      const y = (now.chips.top + now.chips.bottom) / 2;
      found[stack.name] = {
        lanes: lanes.map((lane) => [Math.round(lane.x), Math.round(y)]),
        layers: now.cards.map((card) => [Math.round(left + 2), Math.round((card.top + card.bottom) / 2)]),
        bands: now.bands.map((band) => [Math.round(left - 1), Math.round((band.top + band.bottom) / 2)]),
      };
    }
    found.answer = this.rows.map(({ x, y, height }) => [Math.round(x + 3), Math.round(y + height / 2)]).reverse();
    return found;
  }

  tables() {
    if (this.unfolded) return this.view.tables();
    const beats = this.beats.map((beat, at) => ({ label: String(at + 1), cells: [this.captionAt(at)] }));
    const tables = [{ caption: this.metadata.title, columns: [say("what happens")], rows: beats }];
    const shown = this.shownAttention(this.beat);
    if (shown) tables.push(this.headTable(shown));
    const row = this.rowOf(this.beat);
    if (row)
      tables.push({
        caption: say("Candidates"),
        columns: [say("probability")],
        rows: row.names.map((name, k) => ({ label: name, cells: [threeDigits(row.probabilities[k])] })),
      });
    return tables;
  }

  // From which token each head takes most, as beside the picture.
  headTable({ attention, layer, position, keys }) {
    const rows = Array.from({ length: attention.heads }, (_, head) => {
      const best = attention.strongest(layer, head, position);
      const cells = best ? [keys.tokens[best.key].label, this.model.says(attention, best.weight)] : [say("masked"), ""];
      return { label: say("head {head}", { head }), cells };
    });
    return { caption: this.headTitle(attention, layer, position), columns: [say("token"), say("weight")], rows };
  }

  captionAt(at) {
    return captionOf(this, this.beats[at]).join("");
  }

  records() {
    return [["step", "text"], ...this.beats.map((_, at) => [at + 1, this.captionAt(at)])];
  }
}

const partOf = (kind) =>
  kind === "embedding"
    ? { part: kind, layer: null }
    : kind === "feed_forward"
      ? { part: kind }
      : { part: "attention", kind: kind.replace("_attention", "") };

const identity = ({ checkpoint, stacks, written, text, edited }) =>
  JSON.stringify([checkpoint, stacks, written, text, edited]);
