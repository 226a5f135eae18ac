// The reader's sentence in a box on a phone: taken on Enter, by its button, or when the reader taps elsewhere. A model that
// reads no sentence has a button instead, which unfolds the sidebar.
const UNFOLDS = 400; // milliseconds that the sidebar takes

export default function ({ parentElement, data, setTriggerValue }) {
  const { sentence, words } = data;
  parentElement.querySelector(sentence === null ? ".box" : ".opens")?.remove();
  if (sentence === null) return offerSidebar(parentElement, words.box);
  const line = parentElement.querySelector(".box") ?? parentElement.appendChild(element("div", "box"));
  if (!line.firstChild) line.append(element("span", "pencil", "✎"), element("textarea", ""), element("button", "run"));
  const [, box, run] = line.children;
  const edited = () => box.value !== line.dataset.taken;
  const fit = () => {
    run.hidden = !edited();
    if (CSS.supports("field-sizing", "content")) return;
    box.style.height = "0";
    box.style.height = `${box.scrollHeight}px`;
  };
  const take = () => {
    if (!edited()) return;
    line.dataset.taken = box.value;
    fit();
    setTriggerValue("sentence", box.value);
  };
  // A draft stays when a rerun for something else ends.
  const draft = line.dataset.taken !== undefined && edited();
  if (!draft) box.value = sentence;
  line.dataset.taken = sentence;
  box.rows = 1;
  box.spellcheck = false;
  box.enterKeyHint = "go";
  box.placeholder = words.box;
  box.setAttribute("aria-label", words.name);
  run.type = "button";
  run.textContent = words.run;
  run.onclick = take;
  box.oninput = fit;
  box.onblur = take;
  box.onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    box.blur(); // closes the phone's keyboard, which covers the figure
  };
  fit();
}

function offerSidebar(parentElement, text) {
  const button = parentElement.querySelector(".opens") ?? parentElement.appendChild(element("button", "opens"));
  button.type = "button";
  button.textContent = `✎ ${text}`;
  button.onclick = () => {
    document.querySelector("[data-testid=stExpandSidebarButton]")?.click();
    // Past the list of pages.
    setTimeout(() => document.querySelector("[data-testid=stSidebarUserContent]")?.scrollIntoView(), UNFOLDS);
  };
}

function element(name, kind, text = "") {
  const made = document.createElement(name);
  made.className = kind;
  made.textContent = text;
  return made;
}
