import type { ReactNode } from "react";
import { Link } from "wouter";

/** What stands in a row. */
export interface Row {
  title: ReactNode;
  note?: ReactNode;
  /** At the end of the first line. */
  end?: ReactNode;
}

interface Props extends Row {
  to: string;
  isOpen?: boolean;
}

/** An entry of a list that opens. */
export function RowLink({ to, isOpen = false, title, note, end }: Props) {
  return (
    <li>
      <Link href={to} className="row-link" aria-current={isOpen ? "true" : undefined}>
        <span className="row-line"><span className="cut">{title}</span>{end}</span>
        {note && <span className="row-note muted small cut">{note}</span>}
      </Link>
    </li>
  );
}
