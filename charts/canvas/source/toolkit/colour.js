// Colours. The scales are those of every other figure: COLOURS comes from charts/toolkit/style.py:
// charts/canvas/module.py writes it in front of the bundle.

const STEPS = 256;

// Hex colours in equal steps -> STEPS colours as [red, green, blue].
function colourScale(stops) {
  const anchors = stops.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Array.from({ length: STEPS }, (_, step) => {
    const place = (step / (STEPS - 1)) * (anchors.length - 1);
    const below = Math.min(anchors.length - 2, Math.floor(place));
    return mix(anchors[below], anchors[below + 1], place - below);
  });
}

export const cssOf = ([red, green, blue], alpha = 1) =>
  alpha === 1 ? `rgb(${red},${green},${blue})` : `rgba(${red},${green},${blue},${alpha})`;
export const mix = (from, to, share) => from.map((channel, k) => Math.round(channel + (to[k] - channel) * share));
export const brightness = ([red, green, blue]) =>
  0.2126 * (red / 255) ** 2.2 + 0.7152 * (green / 255) ** 2.2 + 0.0722 * (blue / 255) ** 2.2;

export const SCALES = Object.fromEntries(
  ["sequential", "diverging", "diverging_on_dark", "print"].map((name) => [name, colourScale(COLOURS[name])]),
);

// How well two colours are told apart, 1 … 21 (WCAG).
const contrast = (a, b) =>
  (Math.max(brightness(a), brightness(b)) + 0.05) / (Math.min(brightness(a), brightness(b)) + 0.05);

// A thin line in yellow would be lost on white: pull it towards the text's colour until it shows.
export function visible(colour, ground, ink) {
  let shown = colour;
  for (let share = 0.1; share < 0.8 && contrast(shown, ground) < 2; share += 0.1) shown = mix(colour, ink, share);
  return shown;
}

// Any CSS colour as [red, green, blue]: let the browser draw one pixel of it.
let probe = null;
export function rgbOf(css, fallback) {
  probe ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  probe.clearRect(0, 0, 1, 1);
  probe.fillStyle = fallback;
  if (css && css !== "unset") probe.fillStyle = css;
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
}

// What can be read on a colour: dark on a bright one.
export const inkOn = (colour) => (brightness(colour) > 0.3 ? [24, 28, 38] : [255, 255, 255]);
