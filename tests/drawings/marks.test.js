// The marks of fixed data, as files: `UPDATE=1 node --test tests/drawings/` writes them anew.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { drawing, names } from "./harness.js";

const rounded = (_, value) => (typeof value === "number" ? Math.round(value * 10) / 10 : value);
const line = ({ marks, image, ...mark }, indent = "") =>
  marks
    ? [`${indent}${JSON.stringify(mark, rounded)}`, ...marks.map((one) => line(one, `${indent}  `))].join("\n")
    : `${indent}${JSON.stringify({ ...(image && { image: "" }), ...mark }, rounded)}`;
const written = ({ size, marks }) =>
  `${JSON.stringify(size, rounded)}\n${marks.map((mark) => line(mark)).join("\n")}\n`;

for (const name of names)
  for (const width of [800, 360])
    test(`marks of ${name} at ${width}`, async () => {
      const { scene } = await drawing(name);
      const file = new URL(`marks/${name}-${width}.txt`, import.meta.url);
      const found = written(scene(width));
      if (process.env.UPDATE || !existsSync(file)) writeFileSync(file, found);
      assert.equal(found, readFileSync(file, "utf8"));
    });
