// The canvas writes English. For another language, Python sends what its captions are called there.

let words = {};

// Looked up between the dots of "layer 3 · head 1", with # in the place of whole numbers; unknown words stay as they are.
export function say(text) {
  const piece = (part) => {
    const numbers = part.match(/\d+/g) ?? [];
    return words[part.replace(/\d+/g, "#")]?.replace(/#/g, () => numbers.shift()) ?? part;
  };
  return text.split(" · ").map(piece).join(" · ");
}

// table: from what is written here to what it is called there
export function useWords(table) {
  words = table ?? {};
}

// What the payload says in words. Names of tokens are not among it.
export function speak(metadata) {
  useWords(metadata.words);
  for (const name of ["title", "row_title", "column_title", "legend", "value_name", "masked_text"])
    if (metadata[name]) metadata[name] = say(metadata[name]);
  if (metadata.phrase) metadata.phrase = metadata.phrase.map(say);
}
