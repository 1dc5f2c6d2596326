import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";

export interface Totals {
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_input_tokens: number;
  total_tokens: number;
  cost_usd: number;
  unpriced_requests: number;
}

export interface Row extends Totals {
  group: Record<string, string | null>;
}

export interface Report {
  totals: Totals;
  rows: Row[];
  truncated: boolean;
}

export type Unit = "day" | "hour";
export type Measure = "cost_usd" | "total_tokens" | "requests";
export const GROUPS = ["model", "agent", "provider", "kind"] as const;
export type Group = (typeof GROUPS)[number];

export const SPANS: Record<string, { label: string; unit: Unit; count: number }> = {
  day: { label: "24 hours", unit: "hour", count: 24 },
  week: { label: "7 days", unit: "day", count: 7 },
  month: { label: "30 days", unit: "day", count: 30 },
  quarter: { label: "90 days", unit: "day", count: 90 },
};

const MILLISECONDS: Record<Unit, number> = { hour: 3_600_000, day: 86_400_000 };

/** Returns the beginnings of the times of a span, in UTC, oldest first. */
export function timesOf(span: { unit: Unit; count: number }, now: number): string[] {
  const length = MILLISECONDS[span.unit];
  const newest = Math.floor(now / length) * length;
  return Array.from({ length: span.count }, (_, at) => new Date(newest - (span.count - 1 - at) * length).toISOString());
}

export function useReport(span: string, group: Group) {
  return useQuery({
    queryKey: ["usage", span, group],
    placeholderData: (before: { report: Report; times: string[] } | undefined) => before,
    queryFn: async () => {
      const { unit, count } = SPANS[span] ?? { unit: "day" as const, count: 7 };
      const times = timesOf({ unit, count }, Date.now());
      const query = { start: times[0], group_by: `${unit},${group}` };
      return { report: await api().get<Report>("/v1/usage", { query }), times };
    },
  });
}

/** A bar: a time, with what each of the groups used in it. */
export interface Bar {
  time: string;
  parts: { name: string; amount: number }[];
  amount: number;
}

/** Beyond so many, groups are summed up as "others". */
const MOST = 5;
export const OTHERS = "others";

/** Returns the bars of a chart and its groups, the largest first. */
export function barsOf(rows: readonly Row[], times: readonly string[], group: Group, measure: Measure): { bars: Bar[]; groups: string[] } {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(nameOf(row, group), (sums.get(nameOf(row, group)) ?? 0) + row[measure]);
  const sorted = [...sums].sort(([, a], [, b]) => b - a).map(([name]) => name);
  const own = new Set(sorted.slice(0, sorted.length > MOST ? MOST - 1 : MOST));
  const groups = sorted.length > own.size ? [...own, OTHERS] : [...own];
  const bars = times.map((time): Bar => {
    const amounts = new Map<string, number>();
    for (const row of rows) {
      if (Date.parse(row.group["day"] ?? row.group["hour"] ?? "") !== Date.parse(time)) continue;
      const name = own.has(nameOf(row, group)) ? nameOf(row, group) : OTHERS;
      amounts.set(name, (amounts.get(name) ?? 0) + row[measure]);
    }
    const parts = groups.flatMap((name) => (amounts.has(name) ? [{ name, amount: amounts.get(name) ?? 0 }] : []));
    return { time, parts, amount: parts.reduce((sum, part) => sum + part.amount, 0) };
  });
  return { bars, groups };
}

/** Returns what each group used over the whole span, the largest first. */
export function sumsOf(rows: readonly Row[], group: Group): (Totals & { name: string })[] {
  const sums = new Map<string, Totals & { name: string }>();
  for (const row of rows) {
    const name = nameOf(row, group);
    const sum = sums.get(name) ?? {
      name, requests: 0, prompt_tokens: 0, completion_tokens: 0, cached_input_tokens: 0, total_tokens: 0, cost_usd: 0, unpriced_requests: 0,
    };
    sums.set(name, {
      name,
      requests: sum.requests + row.requests,
      prompt_tokens: sum.prompt_tokens + row.prompt_tokens,
      completion_tokens: sum.completion_tokens + row.completion_tokens,
      cached_input_tokens: sum.cached_input_tokens + row.cached_input_tokens,
      total_tokens: sum.total_tokens + row.total_tokens,
      cost_usd: sum.cost_usd + row.cost_usd,
      unpriced_requests: sum.unpriced_requests + row.unpriced_requests,
    });
  }
  return [...sums.values()].sort((a, b) => b.cost_usd - a.cost_usd || b.total_tokens - a.total_tokens);
}

function nameOf(row: Row, group: Group): string {
  return row.group[group] ?? "none";
}

export type Period = "minute" | "hour" | "day" | "month";
export const PERIODS: Period[] = ["minute", "hour", "day", "month"];

export interface Budget {
  period: Period;
  operators: boolean;
  limits: { usd: number | null; tokens: number | null; requests: number | null };
  spent: { usd: number; tokens: number; requests: number };
  resets_at: string | null;
}

export function useBudgets() {
  return useQuery({ queryKey: ["budgets"], queryFn: () => api().get<Budget[]>("/v1/budgets"), refetchInterval: 30_000 });
}

/** Returns the limits that a form holds; null where none was typed. Throws where there is none at all. */
export function limitsOf(fields: FormData): Record<string, number> {
  const names = ["usd", "tokens", "requests"];
  const limits = Object.fromEntries(
    names.flatMap((name) => {
      const text = String(fields.get(name) ?? "").trim();
      return text ? [[name, Number(text)]] : [];
    }),
  ) as Record<string, number>;
  if (!Object.keys(limits).length) throw new Error("Write at least one limit: dollars, tokens or requests.");
  return limits;
}
