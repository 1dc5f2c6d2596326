"""Traces: W3C `traceparent` in gRPC metadata both ways, one span per RPC, and spans of one's own with `span`.

With an OTLP endpoint in the settings spans are recorded and sent in the background. Without one nothing is
recorded and the SDK is not even imported; trace ids still travel, for logs and error messages.
"""

import asyncio
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
)

from services.common.logs import log_to_stderr
from services.common.settings import Env

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

METADATA_KEY = "traceparent"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)

_provider: "TracerProvider | None" = None
_tracer: Tracer | None = None


def setup(service_name: str, env: Env) -> Tracer:
    """Sets up JSON logs on stderr at LOCI_LOG_LEVEL, and an exporter where OTEL_EXPORTER_OTLP_ENDPOINT is set.

    Once per process, before anything is served. Raises SettingsError.
    """
    levels = ("debug", "info", "warning", "error")
    log_to_stderr(service_name, env.choice("LOCI_LOG_LEVEL", levels, default="info").upper(), current_trace_id)
    endpoint = env.text(ENDPOINT, default="")
    if not endpoint:
        return trace.get_tracer("loci")
    # The SDK and its exporter cost 15 MB, so a process that sends no traces does without them.
    from services.common.exporter import provider_for  # noqa: PLC0415

    return install(provider_for(service_name, endpoint))


def install(provider: "TracerProvider | None") -> Tracer:
    """Records this process's spans with `provider`; None: no longer. Tests give one that keeps them."""
    global _provider, _tracer
    _provider = provider
    _tracer = None if provider is None else provider.get_tracer("loci")
    return _tracer or trace.get_tracer("loci")


async def shutdown() -> None:
    """Sends what is still waiting, at most 5 s long."""
    if _provider is not None:
        await asyncio.to_thread(_provider.force_flush, 5_000)


def is_recording() -> bool:
    """Returns whether spans go anywhere."""
    return _tracer is not None


@contextmanager
def span(name: str, /, **attributes: Any) -> Iterator[Span]:
    """Opens a span around this block, child of the current one: `with span("embed", **{"loci.inputs": 3}):`.

    An exception marks it as failed, by its class's name: messages may hold what users wrote. Works in async
    code.
    """
    if _tracer is None:
        yield trace.get_current_span()
        return
    current = _tracer.start_span(name, attributes=attributes)
    token = otel_context.attach(trace.set_span_in_context(current))
    try:
        yield current
    except BaseException as error:
        mark_failed(current, type(error).__name__)
        raise
    finally:
        current.end()
        # An async generator may be closed by another task, where there is nothing to take back.
        if trace.get_current_span() is current:
            otel_context.detach(token)


def mark_failed(current: Span, description: str) -> None:
    """Sets a span's status to error."""
    current.set_status(Status(StatusCode.ERROR, description))


def begin_served(name: str, header: str | None) -> Span:
    """Starts the SERVER span of an RPC or request and makes it current for the rest of this asyncio task.

    header: the caller's `traceparent`; without a usable one a new trace begins. Who calls this ends the span.
    """
    parent = _parse(header)
    if _tracer is None:
        served: Span = NonRecordingSpan(parent or _new_span_context())
    else:
        scope = None if parent is None else trace.set_span_in_context(NonRecordingSpan(parent))
        served = _tracer.start_span(name, context=scope, kind=SpanKind.SERVER)
    otel_context.attach(trace.set_span_in_context(served))
    return served


def begin_call(name: str, attributes: Mapping[str, Any]) -> Span | None:
    """Starts the CLIENT span of an outgoing RPC, child of the current span, without making it current.

    None where nothing is recorded.
    """
    return None if _tracer is None else _tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)


def traceparent(of: Span | None = None) -> str | None:
    """Returns the header that names `of`, or else the current span, as the parent; None outside of a trace."""
    ids = (of or trace.get_current_span()).get_span_context()
    return f"00-{ids.trace_id:032x}-{ids.span_id:016x}-{ids.trace_flags:02x}" if ids.is_valid else None


def current_trace_id() -> str:
    """Returns 32 hex digits; empty outside of a trace."""
    ids = trace.get_current_span().get_span_context()
    return f"{ids.trace_id:032x}" if ids.is_valid else ""


def _parse(header: str | None) -> SpanContext | None:
    match = _TRACEPARENT.fullmatch(header or "")
    if match is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in match.groups())
    ids = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags & TraceFlags.SAMPLED))
    return ids if ids.is_valid else None


def _new_span_context() -> SpanContext:
    # Marked as sampled: whether to keep it is left to those who record.
    return SpanContext(random.getrandbits(128) or 1, random.getrandbits(64) or 1, False, _SAMPLED)
