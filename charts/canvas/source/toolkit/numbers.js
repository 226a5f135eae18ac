// How numbers are written.

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

let decimal = ".";

// From now on numbers are written as in this language, "en" or "fr" and the like. Files keep the point.
export function writeNumbersFor(language) {
  try {
    decimal = new Intl.NumberFormat(language || "en").formatToParts(0.5).find(({ type }) => type === "decimal").value;
  } catch {
    decimal = "."; // no language that the browser knows
  }
}

const withMinus = (text) => text.replace("-", "−").replace(".", decimal);

// Three significant digits: 0.873, 12.4, −0.00420, 4.20·10⁻⁵.
export function threeDigits(value) {
  if (Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 0.001 && size < 1e6) return withMinus(size >= 999.5 ? String(Math.round(value)) : value.toPrecision(3));
  const [digits, exponent] = value.toExponential(2).split("e");
  const power = [...String(Math.abs(Number(exponent)))].map((digit) => SUPERSCRIPTS[digit]).join("");
  return `${withMinus(digits)}·10${exponent.startsWith("-") ? "⁻" : ""}${power}`;
}

// The shortest decimal that gives back exactly this float32, as machines read it: for files.
export function shortest(value) {
  for (let digits = 6; digits < 10 && Number.isFinite(value); digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === Math.fround(value)) return String(Number(text));
  }
  return String(value);
}

// The same for the reader.
export const exactly = (value) => (Number.isFinite(value) ? withMinus(shortest(value)) : threeDigits(value));

// A weight that was sent in 1/255: two digits are all it has.
export function roughly(value) {
  if (value === 0) return "≈0 (below 0.002)";
  return withMinus(value < 0.1 ? `≈${value.toFixed(3)}` : `≈${value.toFixed(2)}`);
}

// What is written into a cell that has room for about `digits` decimals. Signed numbers of a map that ends at a small
// `limit` have more of them, or every cell would say 0.00.
export function shortNumber(value, digits, signed, limit = 1) {
  if (Number.isNaN(value)) return "NaN";
  if (!signed) return withMinus(value.toFixed(digits));
  const size = Math.abs(value);
  const decimals = size >= 100 ? 0 : size >= 10 ? 1 : smallDecimals(limit);
  return withMinus(Number(value.toFixed(decimals)) === 0 ? (0).toFixed(decimals) : value.toFixed(decimals));
}

// How many decimals numbers need that reach `limit`.
export const smallDecimals = (limit) => (limit >= 0.1 ? 2 : limit >= 0.01 ? 3 : 4);

export const decimals = (value, count) =>
  Number.isFinite(value) ? withMinus(value.toFixed(count)) : threeDigits(value);
