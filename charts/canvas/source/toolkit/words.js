// The canvas writes English. For another language, Python sends what its texts are called there.

let words = {};

// A template with its values in its {…}; a place without a value stays.
export const fill = (template, values) => template.replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);

// A text in the reader's language, with its values in its {…}: say("layer {layer}", { layer: 3 }).
export function say(template, values = {}) {
  return fill(words[template] ?? template, values);
}

// table: from what is written here to what it is called there
export function useWords(table) {
  words = table ?? {};
}
