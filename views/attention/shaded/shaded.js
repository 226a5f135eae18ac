// A sentence whose words have the colours of one row of a map. All text goes through textContent: it is what a user typed.
export default function ({ parentElement, data, setTriggerValue }) {
  parentElement.querySelector(".shaded")?.remove();
  const box = element("div", data.wide ? "shaded wide" : "shaded");
  box.style.setProperty("--chosen", data.chosen);
  box.appendChild(element("div", "title", data.title));
  const words = box.appendChild(element("div", "words"));
  words.setAttribute("role", "group");
  if (data.across) {
    words.classList.add("patches");
    words.style.setProperty("--across", data.across);
    words.style.setProperty("--rows", data.words.filter((word) => word.patch).length / data.across);
    words.style.setProperty("--picture", `url("${data.picture}")`);
  }
  words.setAttribute("aria-label", data.title);
  const said = box.appendChild(element("div", "said", data.hint));
  let patches = 0;
  data.words.forEach((word, index) => {
    const made = (word.patch || !data.across ? words : before()).appendChild(
      element(
        data.clickable ? "button" : "span",
        word.patch ? "word patch" : "word",
        word.patch ? undefined : word.text,
      ),
    );
    if (word.patch) place(made, patches++);
    if (word.apart && index) made.classList.add("apart");
    if (index === data.followed) made.classList.add("followed");
    if (word.ground && word.patch) made.style.setProperty("--ground", word.ground);
    else if (word.ground) Object.assign(made.style, { background: word.ground, color: word.ink });
    else made.classList.add("masked");
    made.setAttribute("aria-label", word.says);
    if (data.clickable) {
      made.type = "button";
      made.setAttribute("aria-pressed", String(index === data.followed));
      made.onclick = () => setTriggerValue("chosen", index);
    } else made.setAttribute("role", "img"); // so that its label is read
    for (const event of ["pointerenter", "focus"])
      made.addEventListener(event, () => (said.textContent = word.says + word.by));
    for (const event of ["pointerleave", "blur"]) made.addEventListener(event, () => (said.textContent = data.hint));
  });
  parentElement.appendChild(box);
  if (words.scrollHeight > words.clientHeight) words.tabIndex = 0;

  // The row of what stands before the patches.
  function before() {
    return words.querySelector(".before") ?? words.appendChild(element("div", "before"));
  }

  // A patch shows its part of the image, under its colour.
  function place(patch, number) {
    patch.style.setProperty("--column", number % data.across);
    patch.style.setProperty("--row", Math.floor(number / data.across));
  }

  function element(tag, name, text) {
    const made = document.createElement(tag);
    made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  }
}
