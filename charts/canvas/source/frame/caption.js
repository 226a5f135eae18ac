// What stands below an exported figure: the sentence, what was given or predicted, and the model.

const PICTURE = /^[0-9a-g]{64}$/; // the text of an image says nothing to a reader
const SHORT_DIGITS = 12; // of a fingerprint, for the eye
const UPLOADED = /^(received-[0-9a-f]{12})[0-9a-f]{52}$/;

// The page says what it shows (ui/shell/frame.js); a page that was saved says it of itself (../page.js).
export function caption() {
  const { checkpoint, fingerprint, sentence, target } = globalThis.glassformerView ?? {};
  const read = [sentence, target].filter((text) => text && !PICTURE.test(text)).join(" → ");
  const model = checkpoint && `${checkpoint.replace(UPLOADED, "$1")} (${fingerprint.slice(0, SHORT_DIGITS)})`;
  return [read, model, "Glassformer"].filter(Boolean).join(" · ");
}
