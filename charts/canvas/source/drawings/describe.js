// What is said about a cell, a row or a column: in the tooltip, to a screen reader, in the table, in the file of numbers.

import { exactly, roughly, shortest, threeDigits } from "../toolkit/numbers.js";
import { quoted } from "../toolkit/sentences.js";
import { say } from "../toolkit/words.js";

// ‘·cat’ looks at ‘·the₂’: 0.873
export function describeCell(metadata, matrix, { row, column }) {
  const short = matrix.rounded ? roughly : threeDigits;
  const { rows, columns, phrase, value_name: name } = metadata;
  const [before, between, by] = phrase;
  const named = name ? [`${name} `] : [];
  if (row !== undefined && column !== undefined) {
    const pair = [...named, before, ...quoted(rows[row]), between, ...quoted(columns[column])];
    if (!matrix.allowed(row, column))
      return [
        { parts: [...pair, `${say(": ")}${metadata.masked_text || say("masked")}`] },
        ...(metadata.masked_text ? [] : [{ parts: [say("cannot be attended to")], muted: true }]),
      ];
    const value = matrix.at(row, column);
    return [
      { parts: [...pair, `${say(": ")}${short(value)}`] },
      { parts: [matrix.rounded ? say("rounded to 1/255") : `${say("exactly")} ${exactly(value)}`], muted: true },
    ];
  }
  const along = row !== undefined;
  const count = along ? matrix.columns : matrix.rows;
  const cells = Array.from({ length: count }, (_, i) => (along ? [row, i] : [i, column])).filter((cell) =>
    matrix.allowed(...cell),
  );
  const first = along ? [...named, before, ...quoted(rows[row]), between] : [...named, ...quoted(columns[column])];
  if (!cells.length) return [{ parts: [...first, `${say(": ")}${say("everything is masked")}`] }];
  const largest = cells.sort((a, b) => Math.abs(matrix.at(...b)) - Math.abs(matrix.at(...a))).slice(0, 3);
  const list = largest.map(([r, c]) => ({
    parts: [...(along ? quoted(columns[c]) : [before, ...quoted(rows[r])]), `${say(": ")}${short(matrix.at(r, c))}`],
  }));
  const open = cells.length === count ? "" : ` · ${say("{count} masked", { count: count - cells.length })}`;
  return [
    { parts: along ? first : [...first, by ?? `${say(": ")}${say("the largest values")}`] },
    ...list,
    { parts: [`${say("the {shown} largest of {count}", { shown: list.length, count })}${open}`], muted: true },
  ];
}

export function matrixTable(caption, { rows, columns }, matrix, short) {
  const cells = (row) =>
    columns.map((_, column) => (matrix.allowed(row, column) ? short(matrix.at(row, column)) : say("masked")));
  return { caption, columns, rows: rows.map((label, row) => ({ label, cells: cells(row) })) };
}

const COLUMNS = ["row", "row_label", "column", "column_label"];

// The columns of the file of numbers: every digit, where they were not rounded on their way.
export const matrixColumns = (...matrices) => [
  ...COLUMNS,
  matrices.some(({ rounded }) => rounded) ? "value_rounded_to_1/255" : "value",
];

export function* matrixRecords({ rows, columns }, matrix, ...before) {
  for (let row = 0; row < matrix.rows; row++)
    for (let column = 0; column < matrix.columns; column++) {
      const value = matrix.at(row, column);
      const written = matrix.divisor === 1 ? shortest(value) : value.toFixed(matrix.rounded ? 4 : 6);
      yield [...before, row, rows[row], column, columns[column], matrix.allowed(row, column) ? written : ""];
    }
}
