// Tokens as small buttons. All text goes through textContent: it is what a user typed.
export default function ({ parentElement, data, setTriggerValue }) {
  parentElement.querySelector(".strip")?.remove();
  const strip = element("div", "strip");
  for (const row of data.rows) {
    const line = strip.appendChild(element("div", "row"));
    line.appendChild(element("span", "title", row.title));
    const patches = Boolean(row.picture);
    const tokens = line.appendChild(element("div", patches ? "tokens patches" : "tokens"));
    row.tokens.forEach((token, place) => {
      const index = row.first + place;
      const kind = token.special ? "token special" : "token";
      const chip = tokens.appendChild(element(row.clickable ? "button" : "span", kind, token.text));
      if (token.patch !== undefined) chip.appendChild(patch(row, token.patch));
      chip.title = `token ${index + row.ahead}, id ${token.id}`;
      if (row.clickable) {
        chip.type = "button";
        chip.setAttribute("aria-pressed", String(index === row.chosen));
        chip.setAttribute("aria-label", `${token.text}, token ${index + row.ahead}`);
        chip.onclick = () => setTriggerValue("chosen", { stack: row.stack, token: index });
      }
    });
  }
  if (data.hint) strip.lastElementChild.appendChild(element("div", "hint", data.hint));
  parentElement.appendChild(strip);
  for (const row of strip.querySelectorAll(".row")) {
    const tokens = row.querySelector(".tokens");
    const scrolled = getComputedStyle(tokens).overflowY === "visible" ? row : tokens; // strip.css
    if (scrolled.scrollHeight > scrolled.clientHeight || scrolled.scrollWidth > scrolled.clientWidth)
      scrolled.tabIndex = 0;
    const chosen = tokens.querySelector('[aria-pressed="true"]');
    // Not scrollIntoView, which would move the page as well.
    if (!chosen) continue;
    scrolled.scrollTop = chosen.offsetTop - scrolled.offsetTop - scrolled.clientHeight / 2;
    scrolled.scrollLeft = chosen.offsetLeft - scrolled.offsetLeft - scrolled.clientWidth / 2;
  }

  // A patch as it looks: its part of the image.
  function patch({ picture, across, down }, number) {
    const made = element("span", "patch");
    const share = (place, count) => `${(100 * place) / Math.max(1, count - 1)}%`;
    made.style.backgroundImage = `url("${picture}")`;
    made.style.backgroundSize = `${100 * across}% ${100 * down}%`;
    made.style.backgroundPosition = `${share(number % across, across)} ${share(Math.floor(number / across), down)}`;
    return made;
  }

  function element(tag, name, text) {
    const made = document.createElement(tag);
    made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  }
}
