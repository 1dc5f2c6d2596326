import type { ReactNode } from "react";

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ReactNode;
  /** Numbers stand at the right, one below the other. */
  isNumber?: boolean;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string;
}

/** A table; on narrow screens each row is a card whose cells have their names beside them. */
export function DataTable<Row>({ label, columns, rows, keyOf }: Props<Row>) {
  return (
    <table className="table" aria-label={label}>
      <thead>
        <tr>{columns.map(({ name, isNumber }) => <th key={name} scope="col" className={isNumber ? "number" : ""}>{name}</th>)}</tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ name, cell, isNumber }) => (
              <td key={name} data-name={name} className={isNumber ? "number" : ""}><div>{cell(row)}</div></td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
