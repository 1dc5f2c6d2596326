import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { problemOf } from "../api/errors";
import { ProblemBox } from "./problem-box";

interface Props<T> {
  query: UseQueryResult<T>;
  /** Of what it is, as in "Could not load the runs". */
  what: string;
  children: (data: T) => ReactNode;
}

/** What a query brought; before, that it comes, or why it did not. What came before stays beside a failure. */
export function Loaded<T>({ query, what, children }: Props<T>) {
  return (
    <>
      {query.isError && (
        <ProblemBox title={`Could not load ${what}`} problem={problemOf(query.error)} retry={() => void query.refetch()} />
      )}
      {query.isPending && (
        <div className="skeleton" aria-busy="true" aria-label={`Loading ${what}`}><div /><div /><div /></div>
      )}
      {query.data !== undefined && children(query.data)}
    </>
  );
}
