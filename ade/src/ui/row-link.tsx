import type { ReactNode } from "react";
import { Link } from "wouter";

interface Props {
  to: string;
  isOpen?: boolean;
  title: ReactNode;
  note?: ReactNode;
  /** At the end of the first line. */
  end?: ReactNode;
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
