// Rows of the file of numbers.

// A matrix as rows of numbers, with every digit: [row, its label, column, its label, value], for the file of numbers.
export function* matrixRecords({ rows, columns }, matrix, number, ...before) {
  for (let row = 0; row < matrix.rows; row++)
    for (let column = 0; column < matrix.columns; column++)
      yield [
        ...before,
        row,
        rows[row],
        column,
        columns[column],
        matrix.allowed(row, column) ? number(matrix.at(row, column)) : "",
      ];
}

export const MATRIX_COLUMNS = ["row", "row_label", "column", "column_label", "value"];
