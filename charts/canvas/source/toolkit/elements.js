// Elements of the page, made without markup, and files that are saved from it.

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria-") || name === "role" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

// A sign is named after what it does, a word by itself.
export function button(textContent, title, action, more = {}) {
  const name = /\p{L}{2}/u.test(textContent) ? {} : { ariaLabel: title };
  const made = make("button", { type: "button", textContent, title, ...name, ...more });
  made.addEventListener("click", action);
  return made;
}

export function saveAs(content, type, name) {
  const link = make("a", {
    href: URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type })),
    download: name,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const fileName = (title, extension) =>
  `${title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "") || "figure"}.${extension}`;
