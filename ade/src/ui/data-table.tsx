import type { ReactNode } from "react";

interface Column {
  name: string;
  /** Numbers stand at the right, one below the other. */
  isNumber?: boolean;
}

interface Props {
  label: string;
  columns: Column[];
  /** Each with a cell for each column. */
  rows: { key: string; cells: ReactNode[] }[];
}

/** A table; on narrow screens each row is a card whose cells have their names beside them. */
export function DataTable({ label, columns, rows }: Props) {
  const classOf = (at: number): string => (columns[at]?.isNumber ? "number" : "");
  return (
    <table className="table" aria-label={label}>
      <thead>
        <tr>{columns.map(({ name }, at) => <th key={name} scope="col" className={classOf(at)}>{name}</th>)}</tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells }) => (
          <tr key={key}>
            {cells.map((cell, at) => <td key={columns[at]?.name} data-name={columns[at]?.name} className={classOf(at)}><div>{cell}</div></td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
