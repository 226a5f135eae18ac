// The word that a model which fills in blanks cannot read, chosen as transformer/runs/masked_word.py does.

export const NONE = "none"; // the choice of no word

const WORD = /[\p{L}\p{N}_]+(?:['’-][\p{L}\p{N}_]+)*/gu;
const BLANK = /\[MASK\]|_{3,}/;
const LETTERS = 3; // of a word that is worth guessing

// The words of a typed sentence, each of which can be masked; none if it has a blank.
export const wordsIn = (sentence) => (BLANK.test(sentence) ? [] : [...sentence.matchAll(WORD)].map(([word]) => word));

// Whether the choice also holds for an edited sentence: it has the same word at that number.
export const isKept = (masked, before, after) =>
  !/^\d+$/.test(masked) || wordsIn(before)[masked] === wordsIn(after)[masked];

// -> { number, text, sentence }, the word and the sentence that is read; null if the model reads all of it
export function maskedWord(text, sentence, chosen = "") {
  if (chosen === NONE || BLANK.test(sentence)) return null;
  const words = [...sentence.matchAll(WORD)].map(({ 0: word, index }, number) => ({
    number,
    text: word,
    sentence: `${sentence.slice(0, index)}___${sentence.slice(index + word.length)}`,
  }));
  if (/^\d+$/.test(chosen) && words[chosen]) return words[chosen];
  const whole = text.encodeWithBlanks(sentence);
  const isWorthGuessing = (word) => {
    if ([...word.text].length < LETTERS || !/^\p{L}+$/u.test(word.text)) return false;
    const read = text.encodeWithBlanks(word.sentence);
    const changed = read.filter((id, k) => id !== whole[k]);
    return read.length === whole.length && changed.length === 1 && text.role(changed[0]) === "mask";
  };
  return words.reverse().find(isWorthGuessing) ?? null;
}
