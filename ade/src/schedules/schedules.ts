import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";

export interface Schedule {
  id: string;
  message: { messages: { role: string; content: string | { text?: string }[] }[] };
  next_scheduled_time: string | null;
  schedule: { type: "one-time"; scheduled_at: number } | { type: "recurring"; cron_expression: string };
  timezone: string;
  last_scheduled_time: string | null;
  last_run_id: string | null;
  last_error: string | null;
}

const POLL_MILLISECONDS = 10_000;

export function useSchedules(agentId: string) {
  return useQuery({
    queryKey: ["schedules", agentId],
    refetchInterval: POLL_MILLISECONDS,
    queryFn: async () =>
      ((await api().agents.schedule.list(agentId, { limit: "100" } as never)) as unknown as { scheduled_messages: Schedule[] }).scheduled_messages,
  });
}

/** Returns the text that a schedule sends. */
export function textOf(schedule: Schedule): string {
  return schedule.message.messages
    .map(({ content }) => (typeof content === "string" ? content : content.map((part) => part.text ?? "").join(" ")))
    .join("\n");
}

/** Expressions to begin with, in words. */
export const EXAMPLES: [string, string][] = [
  ["0 9 * * MON-FRI", "Workdays at 9"],
  ["0 8 * * *", "Every day at 8"],
  ["0 * * * *", "Every hour"],
  ["0 9 * * MON", "Mondays at 9"],
  ["0 9 1 * *", "The first of the month at 9"],
];

/** Returns when a schedule is due, in words. */
export function wordsOf(schedule: Schedule["schedule"]): string {
  if (schedule.type === "one-time") return `once, ${new Date(schedule.scheduled_at).toLocaleString()}`;
  const known = EXAMPLES.find(([expression]) => expression === schedule.cron_expression);
  return known ? known[1].toLowerCase() : schedule.cron_expression;
}

/** Returns the body of a new schedule. Throws what is missing. */
export function bodyOf(fields: FormData): object {
  const text = String(fields.get("text") ?? "").trim();
  const messages = [{ role: "user", content: text }];
  if (fields.get("kind") === "recurring") {
    return { messages, schedule: { type: "recurring", cron_expression: String(fields.get("cron") ?? "").trim() } };
  }
  const at = new Date(String(fields.get("at"))).getTime();
  if (Number.isNaN(at)) throw new Error("Choose a day and a time.");
  return { messages, schedule: { type: "one-time", scheduled_at: at } };
}

/** Returns a moment in the zone of the agent and, where that is another, in the zone of this browser. */
export function moment(iso: string, zone: string): string {
  const options: Intl.DateTimeFormatOptions = { dateStyle: "medium", timeStyle: "short" };
  const date = new Date(iso);
  const mine = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const there = inZone(date, zone, options);
  if (zone === mine || there === null) return date.toLocaleString("en", options);
  return `${there} ${zone} (${date.toLocaleString("en", options)} here)`;
}

function inZone(date: Date, zone: string, options: Intl.DateTimeFormatOptions): string | null {
  try {
    return date.toLocaleString("en", { ...options, timeZone: zone });
  } catch {
    return null; // a zone that this browser does not know
  }
}
