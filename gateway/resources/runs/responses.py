"""Runs and steps as REST."""

import orjson

from gateway.rest.convert import Rest, moment, to_rest
from loci.agent.v1 import message_service_pb2, run_pb2

_NOT_IN_RUNS = frozenset({"started_at", "fence", "view"})
# What every run's request is for.
_RUN_TYPE = {"run_type": "send_message"}
# The tool by which older agents speak, and its argument.
_SPEAKING = ("send_message", "message")
_STEP_NULLS = dict.fromkeys(("origin", "provider_id", "request_id"))


def run_to_rest(message: run_pb2.Run) -> Rest:
    """Returns the reference's Run: 17 fields."""
    rest = to_rest(message, leave=_NOT_IN_RUNS)
    for name in ("callback_url", "callback_error"):
        rest[name] = rest[name] or None
    return rest | {
        "base_template_id": None,
        "metadata": _RUN_TYPE | (rest["metadata"] or {}),
        "request_config": _request_config(view_of(message.view_json)),
    }


def view_of(text: str) -> Rest:
    """Returns the view that a run's request asked for; empty where it did not say, or said it in the words of another
    caller.
    """
    try:
        view = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return view if isinstance(view, dict) else {}


def _request_config(view: Rest) -> Rest:
    """Returns the reference's request_config."""
    match view:
        case {"spoken": [tool, argument]}:
            spoken = tool, argument
        case _:
            spoken = _SPEAKING
    return {
        "use_assistant_message": view.get("spoken", spoken) is not None,
        "assistant_message_tool_name": spoken[0],
        "assistant_message_tool_kwarg": spoken[1],
        "include_return_message_types": view.get("types"),
    }


def step_to_rest(message: run_pb2.Step, organization_id: str, endpoint: str = "") -> Rest:
    """Returns the reference's Step: 30 fields, `messages` always empty (it is deprecated there).

    `endpoint`: where its model is asked, empty if nobody knows.
    """
    rest = to_rest(message) | _STEP_NULLS
    provider, _, model = message.model_handle.partition("/")
    usage = {"prompt_tokens": message.prompt_tokens, "completion_tokens": message.completion_tokens}
    rest |= {
        "model": model or message.model_handle,
        "provider_name": provider,
        "provider_category": "base",
        "total_tokens": sum(usage.values()),
        "error_type": message.error_type or None,
        "error_data": _error_data(message),
        "messages": [],
        "organization_id": organization_id,
        "model_endpoint": endpoint or None,
    } | _token_details(rest)
    # The breakdowns have what was counted; these are null where that is nothing.
    for name in ("cached_input_tokens", "cache_write_tokens", "reasoning_tokens"):
        rest[name] = rest[name] or None
    for name in ("number", "attempts", "error_message", "error_detail", "prompt_hash", "created_at"):
        del rest[name]
    if not message.tool_problems:
        del rest["tool_problems"]
    return rest


def _error_data(message: run_pb2.Step) -> Rest | None:
    texts = {"message": message.error_message, "detail": message.error_detail}
    return {name: text for name, text in texts.items() if text} or None


def run_usage_to_rest(message: message_service_pb2.TurnUsage) -> Rest:
    """Tokens of a run, as its usage route tells them."""
    names = ("completion_tokens", "prompt_tokens", "total_tokens")
    rest = to_rest(message)
    counted = {name: rest[name] or None for name in ("reasoning_tokens", "cached_input_tokens", "cache_write_tokens")}
    return {name: rest[name] for name in names} | _token_details(counted)


def _token_details(rest: Rest) -> Rest:
    """Returns the nested breakdowns; null where the provider says nothing."""
    reasoning, cached = rest["reasoning_tokens"], rest["cached_input_tokens"]
    written = rest["cache_write_tokens"]
    prompt = {"cached_tokens": cached, "cache_read_tokens": cached, "cache_creation_tokens": written or 0}
    return {
        "completion_tokens_details": None if reasoning is None else {"reasoning_tokens": reasoning},
        "prompt_tokens_details": None if cached is None and written is None else prompt,
    }


# The reference's fields that Loci has no use for are there and null.
_TEMPLATES = dict.fromkeys(("template_id", "base_template_id"))
_TRACE_NULLS = dict.fromkeys(
    ("agent_tags", "billing_context", "compaction_settings", "created_by_id", "last_updated_by_id", "org_id")
)
_NANOSECONDS_PER_MILLISECOND = 1_000_000


def step_metrics_to_rest(message: run_pb2.StepMetrics, organization_id: str) -> Rest:
    """Returns the reference's StepMetrics, and `ttft_ns`."""
    rest = to_rest(message) | _TEMPLATES | {"provider_id": None, "organization_id": organization_id}
    return {"id": rest.pop("step_id")} | rest


def run_metrics_to_rest(message: run_pb2.RunMetrics, organization_id: str) -> Rest:
    """Returns the reference's RunMetrics, and the names of the tools and the sums over steps."""
    rest = to_rest(message) | _TEMPLATES | {"organization_id": organization_id}
    return {"id": rest.pop("run_id"), "tools_used": rest.pop("tool_ids")} | rest


def provider_trace_to_rest(message: run_pb2.ProviderTrace) -> Rest:
    """Returns the reference's ProviderTrace."""
    rest = to_rest(message) | _TRACE_NULLS
    took = rest.pop("llm_request_ns")
    # In the reference these two keep their endings.
    rest |= {"request_json": rest.pop("request"), "response_json": rest.pop("response")}
    return rest | {
        "call_type": "agent_step",
        "source": "loci",
        "latency_ms": None if took is None else took // _NANOSECONDS_PER_MILLISECOND,
        "llm_config": {"handle": rest.pop("model_handle")},
        "updated_at": rest["created_at"],
    }


def span_to_rest(message: run_pb2.Span) -> Rest:
    """Returns a span under the names that OpenTelemetry's tables give its parts; the duration is in nanoseconds."""
    return {
        "timestamp": moment(message.start_time),
        "trace_id": message.trace_id,
        "span_id": message.span_id,
        "parent_span_id": message.parent_span_id,
        "span_name": message.name,
        "span_kind": "Internal",
        "service_name": "loci",
        "duration": message.duration_ns,
        "status_code": message.status_code,
        "status_message": message.status_message,
        "span_attributes": dict(message.attributes),
    }
