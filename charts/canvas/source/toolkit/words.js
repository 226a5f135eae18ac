// The canvas writes English. For another language, Python sends what its texts are called there.

let words = {};

// A text in the reader's language, with its values in its {…}: say("layer {layer}", { layer: 3 }).
export function say(template, values = {}) {
  return (words[template] ?? template).replace(/\{(\w+)\}/g, (placeholder, name) => values[name] ?? placeholder);
}

// table: from what is written here to what it is called there
export function useWords(table) {
  words = table ?? {};
}
