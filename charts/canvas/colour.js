// Colours. The scales are those of every other figure: COLOURS comes from charts/toolkit/style.py, see ui/show/canvas.py.

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

const cssOf = ([red, green, blue], alpha = 1) => (alpha === 1 ? `rgb(${red},${green},${blue})` : `rgba(${red},${green},${blue},${alpha})`);
const mix = (from, to, share) => from.map((channel, k) => Math.round(channel + (to[k] - channel) * share));
const brightness = ([red, green, blue]) => (0.2126 * (red / 255) ** 2.2 + 0.7152 * (green / 255) ** 2.2 + 0.0722 * (blue / 255) ** 2.2);

const SCALES = { sequential: colourScale(COLOURS.sequential), diverging: colourScale(COLOURS.diverging) };

// How well two colours are told apart, 1 … 21 (WCAG).
const contrast = (a, b) => (Math.max(brightness(a), brightness(b)) + 0.05) / (Math.min(brightness(a), brightness(b)) + 0.05);

// A thin line in yellow would be lost on white: pull it towards the text's colour until it shows.
function visible(colour, ground, ink) {
  let shown = colour;
  for (let share = 0.1; share < 0.8 && contrast(shown, ground) < 2; share += 0.1) shown = mix(colour, ink, share);
  return shown;
}

// Any CSS colour as [red, green, blue]: let the browser draw one pixel of it.
const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
function rgbOf(css, fallback) {
  probe.clearRect(0, 0, 1, 1);
  probe.fillStyle = fallback;
  if (css && css !== "unset") probe.fillStyle = css;
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
}

// Streamlit hands its theme down as --st-* variables; they change when the reader switches to dark.
function readTheme(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  const ground = rgbOf(read("--st-background-color"), "#ffffff");
  const ink = rgbOf(read("--st-text-color"), "#31333f");
  const dark = brightness(ground) < 0.2;
  const listed = read("--st-chart-categorical-colors").split(",").filter((css) => css.startsWith("#"));
  // The root's own size, not the theme's: the presenter switch enlarges it.
  const size = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
  const font = read("--st-font");
  return {
    dark, ground, ink, size,
    font: font && font !== "unset" ? font : "sans-serif",
    primary: rgbOf(read("--st-primary-color"), "#ff4b4b"),
    chosen: rgbOf(COLOURS.chosen, "#d55e00"),
    muted: mix(ink, ground, 0.34),
    faint: mix(ink, ground, 0.8),
    hatchGround: mix(ground, ink, dark ? 0.1 : 0.075),
    hatchLine: mix(ground, ink, dark ? 0.27 : 0.24),
    // The theme's colours for kinds of things (Okabe & Ito's set, safe for every kind of colour vision).
    heads: (listed.length >= 6 ? listed : COLOURS.categorical).map((css) => cssOf(visible(rgbOf(css, "#888888"), ground, ink))),
    ...SCALES,
  };
}

// -> function from a value to [red, green, blue]
function colourOf(theme, scale, limit) {
  const colours = theme[scale];
  const last = colours.length - 1;
  if (scale === "diverging") return (value) => colours[Math.min(last, Math.max(0, Math.round(((value / limit + 1) / 2) * last)))];
  return (value) => colours[Math.min(last, Math.max(0, Math.round((value / limit) * last)))];
}

// Diagonal lines on grey: what may not be looked at, in a colour that no value has.
function hatch(context, theme, ratio) {
  if (context.vector) return context.hatching(cssOf(theme.hatchGround), cssOf(theme.hatchLine), Math.round(theme.size * 0.36));
  const size = Math.round(6 * ratio);
  const tile = new OffscreenCanvas(size, size);
  const pen = tile.getContext("2d");
  pen.fillStyle = cssOf(theme.hatchGround);
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = cssOf(theme.hatchLine);
  pen.lineWidth = ratio;
  pen.beginPath();
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift - 1, size + 1);
    pen.lineTo(shift + size + 1, -1);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}
