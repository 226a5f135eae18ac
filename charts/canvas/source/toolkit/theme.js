// The colours and letters of the page around a drawing, or of a printed one.

import { SCALES, brightness, cssOf, mix, rgbOf, visible } from "./colour.js";

export const PAPER_FONT = "Helvetica, Arial"; // what every program that opens an SVG has, or has something as wide for
// Streamlit hands its theme down as --st-* variables; they change when the reader switches to dark.
export function readTheme(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  const ground = rgbOf(read("--st-background-color"), "#ffffff");
  const ink = rgbOf(read("--st-text-color"), "#31333f");
  const dark = brightness(ground) < 0.2;
  const listed = read("--st-chart-categorical-colors")
    .split(",")
    .filter((css) => css.startsWith("#"));
  // The root's own size, not the theme's: the presenter switch enlarges it.
  const size = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
  const font = read("--st-font");
  return {
    dark,
    ground,
    ink,
    size,
    font: font && font !== "unset" ? font : "sans-serif",
    primary: rgbOf(read("--st-primary-color"), "#ff4b4b"),
    chosen: rgbOf(COLOURS.chosen, "#d55e00"),
    muted: mix(ink, ground, 0.34),
    faint: mix(ink, ground, 0.8),
    hatchGround: mix(ground, ink, dark ? 0.1 : 0.075),
    hatchLine: mix(ground, ink, dark ? 0.27 : 0.24),
    // The theme's colours for kinds of things (Okabe & Ito's set, safe for every kind of colour vision).
    heads: (listed.length >= 6 ? listed : COLOURS.categorical).map((css) =>
      cssOf(visible(rgbOf(css, "#888888"), ground, ink)),
    ),
    ...SCALES,
    stripes: dark ? SCALES.diverging_on_dark : SCALES.diverging,
  };
}

// -> function from a value to [red, green, blue]
export function colourOf(theme, scale, limit) {
  const colours = theme[scale];
  const last = colours.length - 1;
  if (scale === "diverging" || scale === "stripes")
    return (value) => colours[Math.min(last, Math.max(0, Math.round(((value / limit + 1) / 2) * last)))];
  return (value) => colours[Math.min(last, Math.max(0, Math.round((value / limit) * last)))];
}

// Black on white. White stands for 0, so that a printer spends no ink on it and grey says the same.
export function printTheme(theme) {
  const [ground, ink] = [
    [255, 255, 255],
    [0, 0, 0],
  ];
  return {
    ...theme,
    dark: false,
    ground,
    ink,
    primary: ink,
    muted: ink,
    faint: mix(ink, ground, 0.75),
    hatchGround: [240, 240, 240],
    hatchLine: [170, 170, 170],
    heads: COLOURS.categorical.map((css) => cssOf(visible(rgbOf(css, "#888888"), ground, ink))),
    stripes: SCALES.diverging,
    sequential: SCALES.print,
  };
}
