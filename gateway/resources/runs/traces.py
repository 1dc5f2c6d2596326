"""How long runs and steps took, and what providers were sent: protobuf to REST."""

from gateway.rest.convert import Rest, moment, to_rest
from loci.agent.v1 import run_pb2

# The reference's fields that Loci has no use for are there and null.
_TEMPLATES = dict.fromkeys(("template_id", "base_template_id"))
_TRACE_NULLS = dict.fromkeys(
    ("agent_tags", "billing_context", "compaction_settings", "created_by_id", "last_updated_by_id", "org_id")
)
_NANOSECONDS_PER_MILLISECOND = 1_000_000


def step_metrics(message: run_pb2.StepMetrics) -> Rest:
    """The reference's StepMetrics, and `ttft_ns`."""
    rest = to_rest(message) | _TEMPLATES | {"provider_id": None}
    return {"id": rest.pop("step_id")} | rest


def run_metrics(message: run_pb2.RunMetrics) -> Rest:
    """The reference's RunMetrics, and the names of the tools and the sums over steps."""
    rest = to_rest(message) | _TEMPLATES
    return {"id": rest.pop("run_id"), "tools_used": rest.pop("tool_ids")} | rest


def provider_trace(message: run_pb2.ProviderTrace) -> Rest:
    """The reference's ProviderTrace."""
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


def span(message: run_pb2.Span) -> Rest:
    """A span under the names that OpenTelemetry's tables give its parts; the duration is in nanoseconds."""
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
