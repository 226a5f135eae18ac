// Rows of tokens: small buttons ("strip"), cards ("chips") or the words of a coloured sentence ("shaded"). All text goes
// through textContent: it is what a user typed.
//
// data: { look, rows, hint, legend, wide }; a row: { title, tokens, chosen, clickable, picture, across, down }; a token: { text,
// sends: what a click tells Python, name: for a screen reader, title, kind, below, share, patch, ground, ink, says }

import { make } from "../../../charts/canvas/source/toolkit/elements.js";

const CLASSES = { strip: ["tokens", "token"], chips: ["cards", "chip"], shaded: ["words", "word"] };

export default function ({ parentElement, data, setTriggerValue }) {
  parentElement.querySelector(".rows")?.remove();
  const hint = make("div", { className: "hint", textContent: data.hint ?? "" });
  const rows = data.rows.map((row) => drawRow(row, data.look, hint, setTriggerValue));
  if (data.look === "strip") rows.at(-1).append(hint);
  const untitled = rows.length && data.rows.every(({ title }) => !title);
  const className = ["rows", data.look, data.wide && "wide", untitled && "untitled"].filter(Boolean).join(" ");
  const root = make("div", { className }, ...rows, ...drawLegend(data.legend));
  if (data.look === "shaded") root.append(hint);
  parentElement.append(root);
  for (const row of rows) scrollToChosen(row);
}

function drawRow(row, look, hint, setTriggerValue) {
  const [list, item] = CLASSES[look];
  const tokens = make("div", { className: list, role: "group", ariaLabel: row.title });
  const lead = make("div", { className: "before" }); // of what stands before the patches of an image
  if (row.picture) {
    tokens.classList.add("patches");
    tokens.style.setProperty("--across", row.across);
    tokens.style.setProperty("--down", row.down);
    tokens.style.setProperty("--picture", `url("${row.picture}")`);
    if (look === "shaded") tokens.append(lead);
  }
  const usual = hint.textContent;
  row.tokens.forEach((token, index) => {
    const made = drawToken(token, { row, item, look, pressed: index === row.chosen });
    const say = (text) => () => (hint.textContent = text);
    if (row.clickable) made.onclick = () => setTriggerValue("chosen", token.sends);
    if (token.says) Object.assign(made, { onpointerenter: say(token.says), onfocus: say(token.says) });
    if (token.says) Object.assign(made, { onpointerleave: say(usual), onblur: say(usual) });
    (look === "shaded" && row.picture && token.patch === undefined ? lead : tokens).append(made);
  });
  return make("div", { className: "row" }, make("span", { className: "title", textContent: row.title }), tokens);
}

function drawToken(token, { row, item, pressed, look }) {
  const { text, name, title = "", kind = "", below, share, patch, ground, ink } = token;
  const made = make(row.clickable ? "button" : "span", { className: `${item} ${kind}`.trim(), title });
  const shown = look === "shaded" && patch !== undefined ? "" : text;
  made.append(look === "chips" ? make("span", { className: "text", textContent: shown }) : shown);
  if (below) made.append(make("span", { className: "below", textContent: below }));
  if (share !== undefined && share !== null) {
    const part = make("i");
    part.style.width = `${100 * Math.min(1, share)}%`;
    made.append(make("span", { className: "bar" }, part));
  }
  if (patch !== undefined) {
    const picture = look === "shaded" ? made : made.appendChild(make("span"));
    picture.classList.add("patch");
    picture.style.setProperty("--column", patch % row.across);
    picture.style.setProperty("--line", Math.floor(patch / row.across));
  }
  for (const [property, value] of Object.entries({ "--ground": ground, "--ink": ink }))
    if (value) made.style.setProperty(property, value);
  if (name) made.ariaLabel = name;
  if (row.clickable) Object.assign(made, { type: "button", ariaPressed: String(pressed) });
  else if (name && look === "shaded") made.setAttribute("role", "img"); // so that its name is read
  return made;
}

function drawLegend(legend) {
  if (!legend?.length) return [];
  const entries = legend.map(({ tone, text }) => make("span", {}, make("i", { className: tone }), text));
  return [make("div", { className: "legend" }, ...entries)];
}

// What does not fit scrolls within its row: the keyboard reaches it, and the chosen token is in sight. Not by
// scrollIntoView, which would move the page as well.
function scrollToChosen(row) {
  const tokens = row.lastElementChild.matches(".hint") ? row.children[1] : row.lastElementChild;
  const scrolled = getComputedStyle(tokens).overflowY === "visible" ? row : tokens;
  if (scrolled.scrollHeight > scrolled.clientHeight || scrolled.scrollWidth > scrolled.clientWidth)
    scrolled.tabIndex = 0;
  const chosen = tokens.querySelector('[aria-pressed="true"]');
  if (!chosen) return;
  scrolled.scrollTop = chosen.offsetTop - scrolled.offsetTop - scrolled.clientHeight / 2;
  scrolled.scrollLeft = chosen.offsetLeft - scrolled.offsetLeft - scrolled.clientWidth / 2;
}
