import type { Run } from "./queries";

const STATUSES: Record<string, string> = {
  created: "Waits",
  running: "Running",
  completed: "Done",
  failed: "Failed",
  cancelled: "Cancelled",
};

const REASONS: Record<string, string> = {
  end_turn: "",
  requires_approval: "waits for an approval",
  max_steps: "made the most steps of a turn",
  max_tokens_exceeded: "reached the most tokens",
  insufficient_credits: "the account or a budget is used up",
  context_window_overflow_in_system_prompt: "the instructions and the memory do not fit into the window",
  llm_api_error: "the provider failed",
  invalid_llm_response: "the provider's answer could not be read",
  invalid_tool_call: "the model called a tool wrongly",
  no_tool_call: "the model called no tool",
  tool_rule: "a tool rule ended it",
  error: "",
  cancelled: "",
};

/** Returns how a run stands, in words. */
export function statusOf(run: Run): string {
  return STATUSES[run.status ?? ""] ?? run.status ?? "";
}

/** Returns why it ended so; empty where that says nothing more. */
export function reasonOf(run: { stop_reason: string | null }): string {
  return REASONS[run.stop_reason ?? ""] ?? run.stop_reason ?? "";
}
