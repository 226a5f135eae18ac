// A button that copies a text and says so for two seconds; a screen reader hears it.
export default function ({ parentElement, data }) {
  const button = parentElement.querySelector("button") ?? document.createElement("button");
  button.type = "button";
  button.textContent = button.title = data.label;
  button.setAttribute("aria-live", "polite");
  button.onclick = async () => {
    await copy(data.text, button);
    button.textContent = data.done;
    setTimeout(() => (button.textContent = data.label), 2000);
  };
  if (!button.isConnected) parentElement.appendChild(button);
}

// Browsers keep the clipboard from a page that came over plain HTTP from another machine, as in a class; what is
// selected they copy all the same.
async function copy(text, button) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = document.createElement("textarea");
  box.value = text;
  button.after(box);
  box.select();
  document.execCommand("copy");
  box.remove();
  button.focus();
}
