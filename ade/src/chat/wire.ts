/** Messages as the API sends them, stored or in pieces: the fields that the page reads, all of them optional. */
export interface WireMessage {
  message_type?: string;
  id?: string;
  otid?: string | null;
  date?: string;
  name?: string | null;
  run_id?: string | null;
  step_id?: string | null;
  seq_id?: number | null;
  content?: string | WireContent[] | null;
  reasoning?: string | null;
  state?: string;
  tool_call?: WireCall | null;
  tool_calls?: WireCall | WireCall[] | null;
  tool_returns?: WireReturn[] | null;
  tool_return?: unknown;
  tool_call_id?: string | null;
  status?: string | null;
  stdout?: string[] | null;
  stderr?: string[] | null;
  approvals?: WireAnswer[] | null;
  approve?: boolean | null;
  approval_request_id?: string | null;
  reason?: string | null;
  summary?: string | null;
  event_type?: string;
  stop_reason?: string;
  message?: string;
  detail?: string | null;
  attempt_abandoned?: { step_id?: string; message_id?: string | null };
  total_tokens?: number;
  prompt_tokens?: number;
  completion_tokens?: number;
  step_count?: number;
  cached_input_tokens?: number | null;
}

export interface WireContent {
  type: string;
  text?: string;
  source?: { type?: string; media_type?: string; data?: string; url?: string };
}

export interface WireCall {
  name?: string | null;
  arguments?: string | null;
  tool_call_id?: string | null;
}

export interface WireReturn {
  type?: string;
  tool_call_id?: string;
  status?: string;
  tool_return?: unknown;
  stdout?: string[] | null;
  stderr?: string[] | null;
}

export interface WireAnswer extends WireReturn {
  approve?: boolean;
  reason?: string | null;
}
