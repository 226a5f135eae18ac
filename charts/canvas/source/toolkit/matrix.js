// One labelled matrix of a payload, and what may be looked at in it.

// One labelled matrix: numbers, divided by `divisor` if they were sent as whole numbers, and its mask as bits.
export class Matrix {
  constructor({ values, rows, columns, bits, divisor = 1 }) {
    Object.assign(this, { values, rows, columns, bits, divisor });
  }
  // To the 255 steps of a byte; of finer ones nobody sees the difference.
  get rounded() {
    return this.values instanceof Uint8Array;
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
    const [rows, columns] = [
      Math.max(1, Math.min(this.rows, mostRows)),
      Math.max(1, Math.min(this.columns, mostColumns)),
    ];
    const [values, bits] = [
      new Float32Array(rows * columns).fill(-Infinity),
      new Uint8Array(Math.ceil((rows * columns) / 8)),
    ];
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
