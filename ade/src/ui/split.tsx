import { ChevronLeft } from "lucide-react";
import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { ErrorBoundary } from "../shell/error-boundary";
import { PANE } from "../shell/panes";

interface Props {
  title: string;
  /** Beside the title: searches, and what makes a new one. */
  head?: ReactNode;
  list: ReactNode;
  /** What is open of the list; null: nothing. */
  detail: ReactNode | null;
  /** The address of the list. */
  to: string;
  /** What stands in the place of a detail while none is open. */
  hint: string;
}

/** A list, and beside it what is open of it. Narrow screens show one of them. */
export function Split({ title, head, list, detail, to, hint }: Props) {
  const [path] = useLocation();
  const isOpen = detail !== null;
  return (
    <main className={`split ${isOpen ? "is-open" : ""}`}>
      <title>{`${title} · Loci`}</title>
      <header className="bar split-bar">
        {isOpen && (
          <Link href={to} className="icon-button narrow-only" aria-label={`Back to ${title}`} title={`Back to ${title}`}>
            <ChevronLeft aria-hidden size={18} />
          </Link>
        )}
        <h1>{title}</h1>
        {head}
      </header>
      <section className="split-list" aria-label={title} {...PANE}>{list}</section>
      <section className="split-detail" aria-label="Details" {...PANE}><ErrorBoundary key={path}>{detail ?? <p className="empty">{hint}</p>}</ErrorBoundary></section>
    </main>
  );
}
