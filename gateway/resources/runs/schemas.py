"""Runs and steps."""

from gateway.openapi.schemas import (
    ANY,
    FLAG,
    MOMENT,
    NUMBER,
    OBJECT,
    TEXT,
    WHOLE,
    array,
    by_name,
    maybe,
    members_of,
    of,
    record,
)
from loci.agent.v1 import run_pb2
from loci.llm.v1 import usage_service_pb2

_TOKENS = {
    "completion_tokens_details": maybe(record("CompletionTokensDetails", {"reasoning_tokens": maybe(WHOLE)})),
    "prompt_tokens_details": maybe(
        record(
            "PromptTokensDetails",
            dict.fromkeys(("cached_tokens", "cache_read_tokens", "cache_creation_tokens"), maybe(WHOLE)),
        )
    ),
}
RUN = of(
    "Run",
    run_pb2.Run.DESCRIPTOR,
    leave=("started_at", "fence", "view"),
    callback_url=maybe(TEXT),
    callback_error=maybe(TEXT),
    base_template_id=maybe(TEXT),
    request_config=record(
        "LettaRequestConfig",
        {
            "use_assistant_message": FLAG,
            "assistant_message_tool_name": TEXT,
            "assistant_message_tool_kwarg": TEXT,
            "include_return_message_types": maybe(array(TEXT)),
        },
    ),
)
STEP = of(
    "Step",
    run_pb2.Step.DESCRIPTOR,
    leave=("number", "attempts", "error_message", "error_detail", "prompt_hash", "created_at"),
    **dict.fromkeys(("model_endpoint", "origin", "provider_id", "request_id"), maybe(TEXT)),
    model=maybe(TEXT),
    provider_name=maybe(TEXT),
    provider_category=maybe(TEXT),
    total_tokens=WHOLE,
    error_type=maybe(TEXT),
    error_data=maybe(OBJECT),
    organization_id=TEXT,
    messages=array(OBJECT),
    tool_problems=array(record("StepToolProblem", {"name": TEXT, "problem": TEXT})),
    deprecated=("messages",),
    optional=("tool_problems",),
    **_TOKENS,
)
_TEMPLATES = {"template_id": maybe(TEXT), "base_template_id": maybe(TEXT)}
STEP_METRICS = of(
    "StepMetrics",
    run_pb2.StepMetrics.DESCRIPTOR,
    leave=("step_id",),
    id=TEXT,
    provider_id=maybe(TEXT),
    organization_id=TEXT,
    **_TEMPLATES,
)
RUN_METRICS = of(
    "RunMetrics",
    run_pb2.RunMetrics.DESCRIPTOR,
    leave=("run_id", "tool_ids"),
    id=TEXT,
    tools_used=array(TEXT),
    organization_id=TEXT,
    **_TEMPLATES,
)
PROVIDER_TRACE = of(
    "ProviderTrace",
    run_pb2.ProviderTrace.DESCRIPTOR,
    leave=("llm_request_ns", "request", "response", "model_handle"),
    request_json=ANY,
    response_json=ANY,
    call_type=TEXT,
    source=TEXT,
    latency_ms=maybe(WHOLE),
    llm_config=OBJECT,
    updated_at=maybe(MOMENT),
    agent_tags=maybe(array(TEXT)),
    billing_context=maybe(OBJECT),
    compaction_settings=maybe(OBJECT),
    **dict.fromkeys(("created_by_id", "last_updated_by_id", "org_id"), maybe(TEXT)),
)
SPAN = record(
    "Span",
    {
        "timestamp": MOMENT,
        **dict.fromkeys(("trace_id", "span_id", "parent_span_id", "span_name", "span_kind", "service_name"), TEXT),
        "duration": WHOLE,
        "status_code": TEXT,
        "status_message": TEXT,
        "span_attributes": by_name(TEXT),
    },
)
_TOTALS = {
    key: schema
    for key, schema in members_of(usage_service_pb2.UsageTotals.DESCRIPTOR).items()
    if key != "cost_nanos_usd"
} | {"total_tokens": WHOLE, "cost_usd": NUMBER}
_COSTS = {
    "cost_usd": NUMBER,
    "requests": WHOLE,
    "unpriced_requests": WHOLE,
    "estimated_requests": WHOLE,
    "by_model": array(record("ModelUsage", {"model": TEXT, **_TOTALS})),
}
RUN_USAGE = record(
    "RunUsage",
    {**dict.fromkeys(("completion_tokens", "prompt_tokens", "total_tokens"), WHOLE), **_TOKENS, **_COSTS},
    optional=_COSTS,
)
