import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, type Caller } from "../api/client";
import { allPages } from "../api/pages";
import type { TraceSpan } from "./waterfall";

/** A run: a turn from a message to its end. */
export interface Run {
  id: string;
  agent_id: string | null;
  conversation_id: string | null;
  status: "created" | "running" | "completed" | "failed" | "cancelled" | null;
  stop_reason: string | null;
  background: boolean;
  created_at: string | null;
  completed_at: string | null;
  total_duration_ns: number | null;
  ttft_ns: number | null;
  callback_url: string | null;
  callback_error: string | null;
  callback_status_code: number | null;
  metadata: Record<string, unknown> | null;
}

export interface Step {
  id: string;
  status: string | null;
  model: string | null;
  model_handle: string;
  provider_name: string | null;
  stop_reason: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  cached_input_tokens: number | null;
  cache_write_tokens: number | null;
  reasoning_tokens: number | null;
  context_window_limit: number;
  error_type: string | null;
  error_data: Record<string, unknown> | null;
  trace_id: string | null;
  request_id: string | null;
  feedback: "positive" | "negative" | null;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens?: number | null } | null;
  cost_usd?: number;
  requests?: number;
  unpriced_requests?: number;
  by_model?: { model: string; requests: number; total_tokens: number; cost_usd: number }[];
}

/** A request to a provider as it was kept, and its answer. */
export interface ProviderTrace {
  request_json: unknown;
  response_json: unknown;
  latency_ms: number | null;
  call_type: string;
}

/** A call of a tool as the sandbox knows it. */
export interface Execution {
  call_key: string;
  tool_name: string;
  state: string | null;
  outcome: string | null;
  step_id: string | null;
  started_at: string | null;
  ended_at: string | null;
  sandbox: string;
}

export interface Filter {
  status: string;
  agent: string;
}

const PAGE = 50;
const LIST_MILLISECONDS = 5_000;
const RUN_MILLISECONDS = 1_500;

export function isActive(run: { status: Run["status"] }): boolean {
  return run.status === "created" || run.status === "running";
}

/** Runs, newest first; while one of them goes on they are asked for again. */
export function useRuns(caller: Caller, { status, agent }: Filter) {
  // A key that is limited to agents must name them.
  const agents = agent ? [agent] : Object.keys(caller.agents ?? {});
  return useInfiniteQuery({
    queryKey: ["runs", status, agent],
    initialPageParam: "",
    queryFn: async ({ pageParam }) => {
      const query = {
        limit: PAGE,
        ...(status && { statuses: [status] }),
        ...(agents.length === 1 ? { agent_id: agents[0] } : agents.length ? { agent_ids: agents } : {}),
        ...(pageParam && { after: pageParam }),
      };
      return (await api().runs.list(query as never)).items as unknown as Run[];
    },
    getNextPageParam: (last) => (last.length === PAGE ? last.at(-1)?.id : undefined),
    placeholderData: (before) => before,
    refetchInterval: ({ state }) => (state.data?.pages.flat().some(isActive) ? LIST_MILLISECONDS : false),
  });
}

/** The newest runs of one agent. */
export function useAgentRuns(agentId: string) {
  return useQuery({
    queryKey: ["agent-runs", agentId],
    refetchInterval: LIST_MILLISECONDS,
    queryFn: async () => (await api().runs.list({ agent_id: agentId, limit: PAGE })).items as unknown as Run[],
  });
}

export function useRun(runId: string) {
  return useQuery({
    queryKey: ["run", runId],
    refetchInterval: ({ state }) => (state.data && isActive(state.data) ? RUN_MILLISECONDS : false),
    queryFn: async () => (await api().runs.retrieve(runId)) as unknown as Run,
  });
}

/** The steps of a run, in their order. */
export function useSteps(runId: string, isLive: boolean) {
  return useQuery({
    queryKey: ["steps", runId, isLive],
    refetchInterval: isLive ? RUN_MILLISECONDS : false,
    placeholderData: (before: Step[] | undefined) => before,
    queryFn: () => allPages(async (query) => (await api().runs.steps.list(runId, query)).items as unknown as Step[]),
  });
}

/** When the parts of a run were at work. */
export function useTrace(runId: string, mayRead: boolean, isLive: boolean) {
  return useQuery({
    queryKey: ["trace", runId, isLive],
    enabled: mayRead,
    refetchInterval: isLive ? RUN_MILLISECONDS : false,
    placeholderData: (before: TraceSpan[] | undefined) => before,
    queryFn: async () => (await api().runs.trace.retrieve(runId, { limit: 1_000 })) as unknown as TraceSpan[],
  });
}

export function useUsage(runId: string, isLive: boolean) {
  return useQuery({
    queryKey: ["run-usage", runId, isLive],
    queryFn: async () => (await api().runs.usage.retrieve(runId)) as unknown as Usage,
  });
}

/** What a provider was asked and answered; null where it was not kept. */
export function useProviderTrace(stepId: string | null) {
  return useQuery({
    queryKey: ["provider-trace", stepId],
    enabled: stepId !== null,
    queryFn: async () => ((await api().steps.trace.retrieve(stepId ?? "")) ?? null) as unknown as ProviderTrace | null,
  });
}

export function useExecutions(runId: string, mayRead: boolean, isLive: boolean) {
  return useQuery({
    queryKey: ["executions", runId, isLive],
    enabled: mayRead,
    queryFn: async () =>
      (await api().get<{ executions: Execution[] }>("/v1/executions", { query: { run_id: runId, limit: 100 } })).executions,
  });
}

export interface Receipt extends Execution {
  tool_return: string;
  stdout: string;
  stderr: string;
}

export function useReceipt(callKey: string) {
  return useQuery({
    queryKey: ["receipt", callKey],
    queryFn: () => api().get<Receipt>(`/v1/executions/${callKey}`),
  });
}
