// Maps with cells of few pixels: one pixel a cell, and what is hatched on top.

const known = new WeakMap(); // of each matrix its image, and what that was made for

export function knownBitmap(matrix, theme, colour, ...what) {
  const key = [theme.ground, ...what].join();
  if (known.get(matrix)?.key !== key) known.set(matrix, { key, image: bitmap(matrix, theme, colour) });
  return known.get(matrix).image;
}

export function bitmap(matrix, theme, colour) {
  const { rows, columns } = matrix;
  const image = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
  const pen = image.getContext("2d");
  const points = pen.createImageData(columns, rows);
  for (let row = 0, at = 0; row < rows; row++)
    for (let column = 0; column < columns; column++, at += 4) {
      const value = matrix.at(row, column);
      const [red, green, blue] =
        matrix.allowed(row, column) && !Number.isNaN(value) ? colour(value) : theme.hatchGround;
      points.data[at] = red;
      points.data[at + 1] = green;
      points.data[at + 2] = blue;
      points.data[at + 3] = 255;
    }
  pen.putImageData(points, 0, 0);
  return image;
}

// The masked cells of a matrix in `rect`, whole runs of a row at once: a mark or none.
export function hatched(matrix, [x, y, width, height]) {
  const [stepX, stepY] = [width / matrix.columns, height / matrix.rows];
  let runs = "";
  for (let row = 0; row < matrix.rows; row++)
    for (let column = 0; column < matrix.columns; column++) {
      if (matrix.allowed(row, column)) continue;
      const from = column;
      while (column < matrix.columns && !matrix.allowed(row, column)) column++;
      const [left, right] = [x + from * stepX, x + column * stepX];
      runs += `M${left} ${y + row * stepY}H${right}v${stepY}H${left}z`;
    }
  return runs ? [{ path: runs, fill: "hatch" }] : [];
}
