// Below an attention map: which row, what is lost without the head, its seven steps or how far to trust the map.

import { createDrawing } from "../../charts/canvas/source/drawings/kinds.js";
import { Stage } from "../../charts/canvas/source/frame/stage.js";
import { make } from "../../charts/canvas/source/toolkit/elements.js";
import { exactly, threeDigits } from "../../charts/canvas/source/toolkit/numbers.js";
import { fill } from "../../charts/canvas/source/toolkit/words.js";
import { rich } from "./rich_text.js";

const CELLS = [2, 3, 4]; // steps whose maps have the cells of the attention map

// Canvas drawings, one below or beside another.
export class Maps {
  constructor(className) {
    this.element = make("div", { className });
    this.stages = [];
  }

  // drawn: [bytes]; `chosen(event, value)` hears clicks
  async show(drawn, script, chosen = () => {}) {
    while (this.stages.length > drawn.length) this.remove();
    while (this.stages.length < drawn.length) {
      const place = make("div");
      this.element.append(place);
      this.stages.push(new Stage(place.attachShadow({ mode: "open" })));
    }
    for (const [k, data] of drawn.entries())
      await this.stages[k].update({ data, script: await script, setTriggerValue: chosen }, createDrawing);
  }

  remove() {
    this.stages.pop().destroy();
    this.element.lastChild.remove();
  }

  refresh() {
    for (const stage of this.stages) stage.refresh();
  }
}

export class HeadPanel {
  // page: { state, texts, script(), set(changes), chosen(event, value) }
  constructor(page) {
    this.page = page;
    this.effect = make("p", { className: "effect", role: "status" });
    this.rows = make("div", { className: "strip", role: "group" });
    this.choices = make("div", { className: "row controls" });
    this.said = make("p", {});
    this.maps = new Maps("maps");
    this.drawn = make("div");
    this.part = make("section", { className: "steps" }, this.choices, this.said, this.maps.element, this.drawn);
    this.element = make("div", { hidden: true }, this.effect, this.rows, this.part);
  }

  // data: what the worker found; said: the model's texts of it
  async show(data, said) {
    const { state } = this.page;
    this.element.hidden = false;
    const { effect, headStep, trust } = data;
    this.effect.hidden = !effect; // the head is removed already
    this.effect.replaceChildren(
      make("b", { textContent: `${effect?.label} ` }),
      make("span", { textContent: effect?.value ?? "" }), // a bare text would show through a lesson's cover
      make("small", { textContent: ` ${effect?.below ?? ""}` }),
    );
    this.effect.title = said.effect_help.replace("{answer}", data.text);
    this.strip(data.stacks[state.stack]);
    this.choose(said);
    const found = trust ?? headStep;
    this.said.replaceChildren(...rich(found.said));
    const cells = headStep && CELLS.includes(state.headStep);
    await this.maps.show(
      headStep?.maps ?? [],
      this.page.script(),
      cells ? (event, value) => this.page.chosen(event, value) : undefined,
    );
    this.drawn.replaceChildren(
      ...(trust ? [trustTable(trust, said)] : []),
      ...(headStep?.table ? [softmaxTable(headStep.table)] : []),
      ...(headStep?.mix ? [mixPicture(headStep.mix)] : []),
    );
  }

  hide() {
    this.element.hidden = true;
  }

  strip(tokens) {
    const { state, texts, set } = this.page;
    this.rows.setAttribute("aria-label", texts.row);
    const row = Math.min(state.token, tokens.length - 1);
    const held = this.rows.contains(document.activeElement);
    const buttons = tokens.map(({ text }, k) => {
      const button = make("button", { type: "button", textContent: text, "aria-pressed": String(k === row) });
      button.addEventListener("click", () => set({ token: k, cell: null, isPlaced: true, opens: false }));
      return button;
    });
    this.rows.replaceChildren(make("span", { textContent: texts.row }), ...buttons);
    if (held) buttons[row].focus();
  }

  choose(said) {
    const { state, set } = this.page;
    const press = (text, pressed, changes) => {
      const button = make("button", { type: "button", textContent: text, "aria-pressed": String(pressed) });
      button.addEventListener("click", () => set(changes));
      return button;
    };
    const held = [...this.choices.querySelectorAll("button")].indexOf(document.activeElement);
    const sections = state.stack === "decoder" ? ["path", "trust"] : [];
    const steps = state.section === "trust" && sections.length ? [] : said.steps;
    this.choices.replaceChildren(
      ...sections.map((name) => press(said[`section_${name}`], state.section === name, { section: name })),
      ...steps.map((name, k) => press(name, state.headStep === k + 1, { headStep: k + 1 })),
    );
    this.choices.querySelectorAll("button")[held]?.focus();
  }
}

const cells = (tag, texts) => texts.map((text) => make(tag, { textContent: text, scope: tag === "th" ? "col" : "" }));

function tableOf(columns, rows) {
  const head = make("thead", {}, make("tr", {}, ...cells("th", columns)));
  return make("div", { className: "scrolled", tabIndex: 0 }, make("table", {}, head, make("tbody", {}, ...rows)));
}

// A number over a bar from 0: as long as its share of the largest, blue below 0.
function barCell(value, most, write = threeDigits) {
  if (value === null) return make("td", { textContent: "–" });
  const share = most ? Math.abs(value) / most : 0;
  const cell = make("td", { className: value < 0 ? "bar negative" : "bar", title: exactly(value) });
  cell.style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
  cell.append(write(value));
  return cell;
}

const largest = (values) => Math.max(0, ...values.map((value) => Math.abs(value ?? 0)));

function softmaxTable({ columns, rows, below }) {
  const most = columns.map((_, k) => largest(rows.map(({ values }) => values[k])));
  const ends = [most[0], 1, 1]; // powers end at 1, weights too
  const lines = rows.map(({ label, values }) =>
    make("tr", {}, make("th", { scope: "row", textContent: label }), ...values.map((v, k) => barCell(v, ends[k]))),
  );
  return make("div", {}, tableOf(["", ...columns], lines), make("p", { className: "hint", textContent: below }));
}

function trustTable({ labels, rows }, said) {
  const lines = rows.map(({ name, values, rho, signed }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", textContent: name }),
      ...values.map((value) => barCell(value, signed ? largest(values) : 1)),
      make("td", { textContent: rho }),
    ),
  );
  return tableOf([said.words["token that is read"], ...labels, "ρ"], lines);
}

// Weight × value of every key, stacked channel by channel; diamonds are the sum.
function mixPicture({ parts, sum, words }) {
  const [width, height, left, foot] = [Math.max(900, 28 * sum.length), 300, 44, 40];
  const svg = (tag, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    return element;
  };
  const ends = [1, -1].map((sign) =>
    largest(sum.map((_, c) => parts.reduce((all, { values }) => all + Math.max(0, sign * values[c]), 0))),
  );
  const [high, low] = [Math.max(ends[0], ...sum), Math.max(ends[1], ...sum.map((value) => -value))];
  const scale = (height - foot - 10) / (high + low || 1);
  const y = (value) => 5 + (high - value) * scale;
  const step = (width - left) / sum.length;
  const colours = parts.map(({ others }, k) => (others ? "#8A8F98" : COLOURS.categorical[k]));
  const title = words["weight × value"];
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  const said = (channel, name, template, value) =>
    svg(
      "title",
      {},
      `${fill(words["channel {channel}"], { channel })} · ${name} · ${fill(words[template], { value })}`,
    );
  sum.forEach((_, channel) => {
    const [up, down] = [{ at: 0 }, { at: 0 }];
    parts.forEach(({ name, values }, k) => {
      const value = values[channel];
      const pile = value < 0 ? down : up;
      const [from, to] = [pile.at, (pile.at += value)];
      const bar = svg("rect", {
        x: left + channel * step + 0.075 * step,
        y: y(Math.max(from, to)),
        width: 0.85 * step,
        height: Math.abs(value) * scale,
        fill: colours[k],
      });
      bar.append(said(channel, name, "adds {value}", exactly(value)));
      picture.append(bar);
    });
  });
  sum.forEach((value, channel) => {
    const [x, at] = [left + (channel + 0.5) * step, y(value)];
    const diamond = svg("path", {
      d: `M${x} ${at - 6}l6 6l-6 6l-6 -6z`,
      fill: "#fff",
      stroke: "#000",
      "stroke-width": 2,
    });
    diamond.append(said(channel, words["sum = output of the head"], "output {value}", exactly(value)));
    picture.append(diamond);
    if (channel % 5 === 0)
      picture.append(svg("text", { x, y: height - foot + 18, "text-anchor": "middle" }, String(channel)));
  });
  for (const value of [high, 0, -low])
    if (value === 0 || Math.abs(value) > 0.08 * (high + low))
      picture.append(svg("text", { x: left - 4, y: y(value) + 5, "text-anchor": "end" }, threeDigits(value)));
  picture.append(
    svg("line", { x1: left, x2: width, y1: y(0), y2: y(0), stroke: "currentColor" }),
    svg(
      "text",
      { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" },
      fill(words["channel of the head (d_v = {n})"], { n: sum.length }),
    ),
  );
  const legend = make("p", { className: "legend" });
  parts.forEach(({ name }, k) => {
    const sign = make("i");
    sign.style.background = colours[k];
    legend.append(make("span", {}, sign, name));
  });
  legend.append(make("span", {}, make("i", { className: "diamond" }), words["sum = output of the head"]));
  const scrolled = make("div", { className: "scrolled", tabIndex: 0, role: "region", "aria-label": title });
  scrolled.append(picture);
  return make("figure", {}, legend, scrolled);
}
