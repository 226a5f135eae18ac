// The bytes that charts/toolkit/payload_bytes.py packs, and how numbers are written.

const ARRAY_TYPES = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array };

// -> { metadata, arrays: { name: { values, shape } } }
async function decodePayload(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = String.fromCharCode(...bytes.subarray(0, 4));
  if (magic !== "GLAS") throw new Error(`this is no canvas payload: it begins with ${magic}`);
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const rest = bytes.subarray(8 + length);
  const body = header.deflated ? await inflate(rest) : rest;
  const arrays = {};
  for (const [name, { type, shape, offset }] of Object.entries(header.arrays)) {
    const Type = ARRAY_TYPES[type];
    const size = shape.reduce((product, extent) => product * extent, 1);
    // A copy of its own, because a typed array must begin at a multiple of its element size.
    const part = body.slice(offset, offset + size * Type.BYTES_PER_ELEMENT);
    arrays[name] = { values: new Type(part.buffer), shape };
  }
  return { metadata: header.metadata, arrays };
}

// The same bytes with `more` in their metadata.
function withMetadata(bytes, more) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  Object.assign(header.metadata, more);
  const written = new TextEncoder().encode(JSON.stringify(header));
  const changed = new Uint8Array(bytes.length - length + written.length);
  changed.set(bytes.subarray(0, 4));
  new DataView(changed.buffer).setUint32(4, written.length, true);
  changed.set(written, 8);
  changed.set(bytes.subarray(8 + length), 8 + written.length);
  return changed;
}

// One labelled matrix: numbers, divided by `divisor` if they were sent as whole numbers, and its mask as bits.
class Matrix {
  constructor({ values, rows, columns, bits, divisor = 1 }) {
    Object.assign(this, { values, rows, columns, bits, divisor });
  }
  at(row, column) {
    return this.values[row * this.columns + column] / this.divisor;
  }
  allowed(row, column) {
    const index = row * this.columns + column;
    return !this.bits || ((this.bits[index >> 3] >> (index & 7)) & 1) === 1;
  }
  anyMasked() {
    for (let row = 0; row < this.rows; row++)
      for (let column = 0; column < this.columns; column++) if (!this.allowed(row, column)) return true;
    return false;
  }
  // The same picture with at most so many cells: each the largest allowed value of a block, masked where all of it is.
  shrunk(mostRows, mostColumns) {
    if (this.rows <= mostRows && this.columns <= mostColumns) return this;
    const [rows, columns] = [Math.max(1, Math.min(this.rows, mostRows)), Math.max(1, Math.min(this.columns, mostColumns))];
    const [values, bits] = [new Float32Array(rows * columns).fill(-Infinity), new Uint8Array(Math.ceil((rows * columns) / 8))];
    for (let row = 0; row < this.rows; row++)
      for (let column = 0; column < this.columns; column++) {
        if (!this.allowed(row, column)) continue;
        const index = Math.floor((row * rows) / this.rows) * columns + Math.floor((column * columns) / this.columns);
        values[index] = Math.max(values[index], this.at(row, column));
        bits[index >> 3] |= 1 << (index & 7);
      }
    return new Matrix({ values, rows, columns, bits });
  }
  // The allowed cell with the largest absolute value, or null when everything is masked.
  strongest() {
    let best = null;
    for (let row = 0; row < this.rows; row++)
      for (let column = 0; column < this.columns; column++) {
        const value = Math.abs(this.at(row, column));
        if (this.allowed(row, column) && !(best && best.size >= value)) best = { row, column, size: value };
      }
    return best;
  }
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const withMinus = (text) => text.replace("-", "−");

// Three significant digits: 0.873, 12.4, −0.00420, 4.20·10⁻⁵.
function threeDigits(value) {
  if (Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 0.001 && size < 1e6) return withMinus(size >= 999.5 ? String(Math.round(value)) : value.toPrecision(3));
  const [digits, exponent] = value.toExponential(2).split("e");
  const power = [...String(Math.abs(Number(exponent)))].map((digit) => SUPERSCRIPTS[digit]).join("");
  return `${withMinus(digits)}·10${exponent.startsWith("-") ? "⁻" : ""}${power}`;
}

// The shortest decimal that gives back exactly this float32.
function exactly(value) {
  if (!Number.isFinite(value)) return threeDigits(value);
  for (let digits = 6; digits < 10; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === Math.fround(value)) return withMinus(String(Number(text)));
  }
  return withMinus(String(value));
}

// A weight that was sent in 1/255: two digits are all it has.
function roughly(value) {
  if (value === 0) return "≈0 (below 0.002)";
  return value < 0.1 ? `≈${value.toFixed(3)}` : `≈${value.toFixed(2)}`;
}

// What is written into a cell that has room for about `digits` decimals.
function shortNumber(value, digits, signed) {
  if (Number.isNaN(value)) return "NaN";
  if (!signed) return value.toFixed(digits);
  const size = Math.abs(value);
  const decimals = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return withMinus(Number(value.toFixed(decimals)) === 0 ? (0).toFixed(decimals) : value.toFixed(decimals));
}
