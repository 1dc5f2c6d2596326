import type { UseQueryResult } from "@tanstack/react-query";
import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { Loaded } from "./loaded";
import { NewButton } from "./new-button";
import { type Row, RowLink } from "./row-link";
import { Split } from "./split";

interface Props<T> {
  title: string;
  /** What an entry is, as in "New group", "the groups", "There is no such group". */
  noun: string;
  icon?: LucideIcon;
  /** The address of the list. */
  to: string;
  query: UseQueryResult<T[]>;
  /** What the address names: an entry, or one of `pages`; null: nothing. */
  open: string | null;
  /** By which addresses name an entry. */
  keyOf?: (entry: T) => string;
  /** Why nothing may be made; null where it may. */
  refusal: string | null;
  row: (entry: T) => Row;
  /** Rows before those of entries. */
  renderFirst?: (all: T[]) => ReactNode;
  renderDetail: (entry: T) => ReactNode;
  /** What is open by a name that no entry has. */
  pages: { new: ReactNode } & Record<string, ReactNode>;
  /** What stands in the place of a detail while none is open. */
  hint: string;
  /** What stands in a list without entries. */
  empty?: string;
}

/** All of a kind: a list with what makes a new one, and beside it what is open. */
export function ListScreen<T extends { id: string }>(props: Props<T>) {
  const { title, noun, icon, to, query, open, keyOf = ({ id }) => id, refusal, row, renderFirst, hint, empty } = props;
  return (
    <Split
      title={title}
      to={to}
      hint={hint}
      head={
        <>
          <span className="spacer" />
          <NewButton to={`${to}/new`} label={`New ${noun}`} refusal={refusal} {...(icon && { icon })} />
        </>
      }
      list={
        <Loaded query={query} what={`the ${noun}s`}>
          {(all) => (
            <ul className="rows">
              {renderFirst?.(all)}
              {all.map((entry) => (
                <RowLink key={entry.id} to={`${to}/${keyOf(entry)}`} isOpen={keyOf(entry) === open} {...row(entry)} />
              ))}
              {empty && all.length === 0 && <li className="empty">{empty}</li>}
            </ul>
          )}
        </Loaded>
      }
      detail={detailOf(props, keyOf)}
    />
  );
}

function detailOf<T>({ open, pages, query, noun, renderDetail }: Props<T>, keyOf: (entry: T) => string): ReactNode {
  if (open === null) return null;
  if (open in pages) return pages[open];
  if (query.isPending) return null;
  const entry = query.data?.find((each) => keyOf(each) === open);
  return entry ? renderDetail(entry) : <p className="empty">There is no such {noun}.</p>;
}
