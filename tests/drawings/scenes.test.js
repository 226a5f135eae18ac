// Pointer, keyboard, words and files of every drawing, on its marks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { layOutLanes } from "../../charts/canvas/source/drawings/living_picture/layout.js";
import { plainText } from "../../charts/canvas/source/toolkit/sentences.js";
import { drawing, names, theme } from "./harness.js";

const middle = ([x, y, width, height]) => [x + width / 2, y + height / 2];
const flat = (marks) => marks.flatMap((mark) => (mark.marks ? flat(mark.marks) : [mark]));
const texts = (marks) => flat(marks).flatMap(({ text }) => text ?? []);

for (const name of names)
  test(`${name}: what the cursor is on is where the pointer finds it, and is described`, async () => {
    const { kind, data, scene } = await drawing(name);
    const drawn = scene();
    let target = drawn.first;
    for (const key of target
      ? ["", "ArrowDown", "ArrowRight", "End", "PageDown", "Home", "ArrowUp", "ArrowLeft"]
      : []) {
      if (key) target = drawn.step(target, key);
      const found = drawn.hit(...middle(drawn.box(target)));
      for (const [part, value] of Object.entries(target)) assert.equal(found[part], value, `${name} ${key}`);
      assert.ok(plainText(kind.describe(data, target)).length > 5);
      assert.ok(drawn.focus(target).length > 0);
    }
    for (const { target: own } of drawn.places.filter((place) => place.target))
      assert.ok(plainText(kind.describe(data, own)).length > 1);
  });

for (const name of names)
  test(`${name}: its SVG holds every text once, and nothing that is not a number`, async () => {
    const { scene } = await drawing(name);
    const drawn = scene(800, { file: true, unmarked: true });
    const svg = drawn.svg(theme, "<title>");
    assert.ok(svg.includes("&#60;title&#62;") && !svg.includes("NaN") && !svg.includes("undefined"));
    const shown = new Set(texts(drawn.marks).filter((text) => /^\p{L}+$/u.test(text)));
    for (const text of shown) assert.ok(svg.includes(`>${text}<`), text);
  });

for (const name of names)
  test(`${name}: everything lies within its picture`, async () => {
    const { scene } = await drawing(name);
    for (const width of [1200, 700, 360]) {
      const drawn = scene(width);
      assert.ok(drawn.size[0] >= width && drawn.size[1] > 0);
      for (const { rect, lean } of drawn.places)
        assert.ok(lean || (rect[0] >= -1 && rect[0] + rect[2] <= drawn.size[0] + 40), JSON.stringify(rect));
    }
  });

test("a cell of a map tells its weight, a masked one that it is masked, a row its largest", async () => {
  const { kind, data } = await drawing("map");
  const said = (target) => plainText(kind.describe(data, target));
  assert.match(said({ row: 3, column: 1 }), /^‘·man’ looks at ‘·The’: 0\.\d+\. exactly 0\.\d{5,}/);
  assert.match(said({ row: 1, column: 4 }), /masked.*cannot be attended to/);
  assert.match(said({ row: 3 }), /^‘·man’ looks at .*1 masked$/);
  assert.deepEqual(kind.click(data, { row: 3, column: 1 }), { event: "click", value: { query: 3, key: 1 } });
  assert.equal(kind.click(data, { row: 3 }), null);
});

test("the file of numbers of a map and of all heads holds every digit", async () => {
  for (const [name, weights] of [
    ["map", "values"],
    ["heads", "weights"],
  ]) {
    const { kind, data } = await drawing(name);
    const [columns, ...rows] = kind.records(data);
    assert.equal(columns.at(-1), "value");
    const matrices = data.parts?.[0].matrices ?? [data.matrix];
    const exact = matrices.flatMap((matrix) =>
      Array.from(matrix.values, (value, k) => (matrix.allowed(Math.floor(k / 5), k % 5) ? value : null)),
    );
    rows.forEach((row, k) => {
      if (exact[k] === null) assert.equal(row.at(-1), "", weights);
      else assert.equal(Math.fround(Number(row.at(-1))), exact[k], weights);
    });
  }
});

test("the contrast of a map follows the value that is pointed at while Shift is held", async () => {
  const { scene } = await drawing("map");
  const drawn = scene();
  const target = { row: 4, column: 0 };
  const said = texts(drawn.focus(target, true)).join(" ");
  assert.match(said, /contrast follows the pointer: the middle is 0\.\d+/);
  assert.ok(!texts(drawn.focus(target, false)).join(" ").includes("contrast"));
});

test("a map below 5 pixels a cell is one image, with its masked cells as one path", async () => {
  const marks = flat((await drawing("dense")).scene().marks);
  assert.equal(marks.filter(({ image }) => image).length, 1);
  assert.equal(marks.filter(({ fill, path }) => fill === "hatch" && path).length, 1);
});

test("a zoomed map shows its part, and the place under the pointer stays", async () => {
  const { kind, data, scene } = await drawing("dense");
  const whole = scene();
  const zoomed = kind.scene(data, theme, 800, { zoom: 4, x: 100, y: 50 });
  const [x, y] = zoomed.window;
  assert.deepEqual(whole.hit(x + 1, y + 1), { row: 0, column: 0 });
  const { row, column } = zoomed.hit(x + 1, y + 1);
  assert.ok(row > 0 && column > 0);
  assert.deepEqual(zoomed.window, whole.window);
});

test("a stroke blocks cells of a mask, and what differs from the model's own is framed", async () => {
  const { kind, data, scene } = await drawing("mask");
  const before = flat(scene().marks).length;
  assert.equal(kind.isOn(data, { row: 2, column: 0 }), true);
  kind.set(data, { row: 2, column: 0 }, false);
  assert.equal(kind.isOn(data, { row: 2, column: 0 }), false);
  assert.equal(flat(scene().marks).length - before, 1); // a frame of two lines, and no number in a hatched cell
  const stroke = kind.strokeEvent([{ row: 2, column: 0 }], false);
  assert.deepEqual(stroke, { event: "edit", value: { cells: [2, 0], allowed: false } });
});

test("heads: a click selects one, which is then large; keys go from map to map and into one", async () => {
  const { kind, data, scene } = await drawing("heads");
  const target = { part: 0, tile: 4 };
  assert.deepEqual(kind.click(data, target), { event: "click", value: { layer: 1, head: 1 } });
  assert.ok(!texts(scene().marks).includes("Role of 1.1"));
  kind.choose(data, { layer: 1, head: 1 });
  const drawn = scene();
  assert.ok(texts(drawn.marks).includes("Role of 1.1"));
  const inside = drawn.step(target, "ArrowDown", true);
  assert.deepEqual(inside, { part: 0, tile: 4, row: 0, column: 0 });
  assert.notDeepEqual(drawn.box(inside), drawn.box(target));
  assert.ok(texts(drawn.focus({ part: 0, tile: 0 })).includes("Role of 0.0"));
});

test("every head of every kind: beyond one grid lies the next, and a click names the kind", async () => {
  const { kind, data, scene } = await drawing("overview");
  const last = { part: 0, tile: 5 };
  assert.deepEqual(scene().step(last, "ArrowRight"), { part: 1, tile: 0 });
  const { value } = kind.click(data, last);
  assert.deepEqual(value, { stack: "decoder", attention: "self", layer: 1, head: 2 });
});

test("lines: heads are switched by number keys, left and right change the side", async () => {
  const { kind, data, scene } = await drawing("lines");
  assert.deepEqual(kind.state(data), { heads: [0, 2] });
  assert.ok(kind.keydown(data, { key: "0" }) && !kind.keydown(data, { key: "7" }));
  assert.deepEqual(kind.state(data), { heads: [2] });
  const drawn = scene();
  const token = { side: "query", row: 3 };
  assert.deepEqual(drawn.step(token, "ArrowRight"), { side: "key", row: 3 });
  assert.match(plainText(kind.describe(data, token)), /^‘·man’ looks most at\. head 2: ‘.+’ 0\.\d+$/);
  assert.deepEqual(kind.click(data, token), { event: "click", value: { token: 3 } });
});

test("steps: there is room for the name of every candidate, and of all others", async () => {
  const { scene } = await drawing("steps");
  const named = flat(scene().marks).filter(({ align, room }) => align === "right" && room);
  for (const { text, room } of named) assert.ok(room >= 7 * text.length, `${text} ${room}`);
});

test("steps: every step is in the file of numbers", async () => {
  const { kind, data } = await drawing("steps");
  const rows = kind.records(data).slice(1);
  assert.equal(rows.filter(([, , what]) => what === "probability").length, 6);
  assert.equal(rows.filter((row) => row.at(-1) === "chosen").length, 2);
});

test("the living picture goes from beat to beat, follows, opens, unfolds and goes back", async () => {
  const { kind, data: run, scene, told } = await drawing("living_picture");
  const press = (key, more = {}) => kind.keydown(run, { key, ...more });
  assert.equal(run.at, run.beats.length - 1);
  assert.match(run.caption.join(""), /^To write .+, the model looks at /);
  press("Home");
  assert.equal(kind.state(run).beat, 0);
  const lane = scene().places.find(({ target }) => target?.what === "lane" && target.position === 1);
  kind.act(run, scene().hit(...middle(lane.rect)));
  assert.equal(kind.state(run).place.position, 1);
  press("Enter");
  assert.equal(run.unfolded.part, "embedding");
  press("ArrowUp");
  assert.deepEqual(told.at(-1), ["inside", { stack: "encoder", layer: 0 }]);
  run.unfold({ stack: "decoder", layer: 1, part: "attention", kind: "cross" });
  const weights = run.view.rows.find(({ name }) => name === "weight").cells;
  assert.ok(Math.abs(weights.reduce((sum, { value }) => sum + value, 0) - 1) < 1e-5);
  assert.ok(press("Escape") && run.unfolded === null);
  clearTimeout(run.rest);
});

for (const [stop, place] of [
  ["self_attention", { stack: "encoder", layer: 1, head: 0, token: 2 }],
  ["unfold cross_attention", { stack: "decoder", kind: "cross", layer: 1, head: 1, token: 1 }],
  ["end", { stack: "decoder", kind: "cross", layer: 1, head: 0, token: 1 }],
])
  test(`a lesson finds the living picture at its stop, ${stop}`, async () => {
    const { kind, data } = await drawing("living_picture", { begin: { ...place, stop } });
    const { beat, beats, unfolded, head, place: at } = kind.state(data);
    assert.deepEqual(at, { stack: place.stack, position: place.token });
    assert.equal(beat === beats - 1, stop === "end");
    const inside = unfolded && [unfolded.layer, unfolded.kind, head];
    assert.deepEqual(inside, stop.startsWith("unfold") ? [1, "cross", 1] : null);
  });

test("a picture in a file has stripes as shapes, and one on the page as parts of an image", async () => {
  const { scene } = await drawing("living_picture");
  assert.ok(flat(scene().marks).some(({ from }) => from));
  assert.ok(!flat(scene(800, { file: true }).marks).some(({ image }) => image));
});

test("columns become narrower, with names of at least 11 pixels, before the living picture is wider than its box", async () => {
  const { data, scene } = await drawing("living_picture");
  const names = new Set(data.model.stacks.flatMap(({ tokens }) => tokens.map(({ text }) => text)));
  for (const width of [1200, 500, 360, 240, 150]) {
    const drawn = scene(width, { room: 600 });
    const sizes = flat(drawn.marks).flatMap(({ text, size }) => (names.has(text) ? size : []));
    assert.ok(sizes.length >= 10 && Math.min(...sizes) >= 11, `${width}: ${Math.min(...sizes)}`);
    // There is a bar to scroll only if it is wider; what it is about can be scrolled to.
    assert.deepEqual(drawn.size, width > 200 ? [width, 600] : [202, 584]);
    assert.ok(drawn.about > 0 && drawn.about < drawn.size[0]);
  }
});

test("a long sentence leaves layers their numbers before the living picture is wider than its box", () => {
  const steps = [0, 1, 2].map((layer) => ({ layer, kind: "self_attention" }));
  const stack = (name, count) => {
    const tokens = Array.from({ length: count }, () => ({ text: "·words" }));
    return { name, tokens, steps, layers: 3, gutterTexts: ["cross-attention"] };
  };
  const layOut = (...counts) => {
    const stacks = [stack("encoder", counts[0]), stack("decoder", counts[1])];
    const model = { stacks, last: stacks[1], written: [], metadata: {} };
    return layOutLanes(theme, model, { width: 932, height: 422 });
  };
  for (const [counts, narrow, isWider] of [
    [[10, 12], false, false],
    [[23, 30], true, false],
    [[40, 50], true, true],
  ]) {
    const lay = layOut(...counts);
    assert.deepEqual([lay.narrow, lay.width > 932], [narrow, isWider], String(counts));
  }
});

test("the candidates of the living picture are in it, however low it is", async () => {
  const { scene } = await drawing("living_picture");
  for (const room of [272, 288, 300, 340, 420]) {
    const { places } = scene(800, { room });
    const tops = places.filter(({ target }) => target?.what === "answer").map(({ rect }) => rect[1]);
    assert.ok(tops.length > 0 && Math.min(...tops) >= -0.5, `${room}: ${Math.min(...tops)}`);
  }
});
