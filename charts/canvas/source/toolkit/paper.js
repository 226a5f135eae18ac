// Measures of a printed page.

export const PAPER_FONT = "Helvetica, Arial"; // what every program that opens an SVG has, or has something as wide for
export const PER_MILLIMETRE = 96 / 25.4; // CSS pixels
export const PER_POINT = 96 / 72;
