// What the page shows of an address, and where the app shows the rest.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readState, restInApp } from "../../web/source/state.js";

globalThis.navigator ??= {}; // older versions of node have none
const SITE = { models: [{ checkpoint: "tiny", examples: [] }], lessons: [{ name: "00-short" }] };

for (const [query, shown, inApp] of [
  ["page=masks&mask=word+1", "attention", "?page=masks&mask=word+1"],
  ["page=by_hand&hand_words=0.1", "overview", "?page=by_hand&hand_words=0.1"],
  ["page=attention&second=A+dog.", "attention", "?page=compare&second=A+dog."],
  ["page=attention&attention_section=trust", "attention", "?page=attention&attention_section=trust"],
  ["edit=drop%3Adecoder.0.cross", "overview", "?edit=drop%3Adecoder.0.cross&page=surgery"],
  ["lesson=03-one-head&lesson_step=2", "overview", "?lesson=03-one-head&lesson_step=2"],
  ["lesson=00-short&lesson_step=2", "overview", ""],
  ["page=heads&edit=zero%3Adecoder.0.cross.1", "heads", ""],
])
  test(`?${query} opens the nearest page`, () => {
    const state = readState(`?${query}`, SITE, ["en"]);
    assert.deepEqual([state.page, state.lesson], [shown, inApp || !query.includes("lesson") ? "" : "00-short"]);
    assert.equal(restInApp(`?${query}`, SITE.lessons), inApp);
  });
