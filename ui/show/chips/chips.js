// Tokens as cards. All text goes through textContent: it is what a user typed.
export default function ({ parentElement, data, setTriggerValue }) {
  parentElement.querySelector(".chips")?.remove();
  const untitled = data.rows.every((row) => !row.title);
  const root = element("div", untitled ? "chips untitled" : "chips");
  data.rows.forEach((row, rowIndex) => {
    const line = root.appendChild(element("div", "row"));
    line.appendChild(element("span", "title", row.title));
    const cards = line.appendChild(element("div", "cards"));
    cards.tabIndex = data.clickable ? -1 : 0; // a long row scrolls: the keyboard must reach it where no card can be
    row.chips.forEach((chip, index) => {
      const card = cards.appendChild(element(data.clickable ? "button" : "div", `chip ${chip.tone}`));
      card.title = chip.hint;
      card.appendChild(element("span", "text", chip.text));
      if (chip.below) card.appendChild(element("span", "below", chip.below));
      if (chip.share !== null) {
        const bar = card.appendChild(element("span", "bar"));
        bar.appendChild(element("i", "")).style.width = `${100 * Math.min(1, chip.share)}%`;
      }
      if (data.clickable) {
        card.type = "button";
        card.setAttribute("aria-pressed", String(index === row.chosen));
        card.setAttribute("aria-label", [chip.text, chip.below, `token ${index}`].filter(Boolean).join(", "));
        card.onclick = () => setTriggerValue("chosen", { row: rowIndex, card: index });
      }
    });
  });
  if (data.legend.length) {
    const legend = root.appendChild(element("div", "legend"));
    for (const entry of data.legend) {
      const item = legend.appendChild(element("span", ""));
      item.appendChild(element("i", entry.tone));
      item.appendChild(document.createTextNode(entry.text));
    }
  }
  parentElement.appendChild(root);

  function element(tag, name, text) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  }
}
