"""Receives spans (OTLP over HTTP), and tells when all of a trace are there."""

from __future__ import annotations

import http.server
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

# RPCs between services; what they call elsewhere has no span of a server.
RPC = "loci."


@dataclass(frozen=True)
class Seen:
    """A span and the service that sent it."""

    service: str
    name: str
    trace: str
    id: bytes
    parent: bytes
    calls: bool


class Collector:
    """What was received."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.spans: list[Seen] = []

    def environment(self) -> dict[str, str]:
        """Returns the settings of a stack that sends its spans here: of the traces alone that a client says to keep."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_TRACES_SAMPLER": "parentbased_always_off",
        }

    def receive(self, body: bytes) -> None:
        """One export."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
            service = attributes["service.name"].removeprefix("loci-")
            for scope in resource.scope_spans:
                self.spans += [_seen(service, span) for span in scope.spans]

    def of(self, trace: str) -> Counter[tuple[str, str]]:
        """Counts the spans of each service and name in a trace, without those of who calls."""
        return Counter((each.service, each.name) for each in self.spans if each.trace == trace and not each.calls)

    def is_whole(self, trace: str) -> bool:
        """Returns whether all spans of a turn are here: the last of the gateway and of the agent service, which send
        theirs in the order in which they end, and for each call its server's.
        """
        spans = [each for each in self.spans if each.trace == trace]
        served = {each.parent for each in spans}
        calls = [each for each in spans if each.calls and each.name.startswith(RPC)]
        ended = any(each.service == "gateway" and not each.calls for each in spans)
        return ended and ("agent", "run") in self.of(trace) and all(each.id in served for each in calls)


def _seen(service: str, span: Span) -> Seen:
    calls = span.kind == Span.SPAN_KIND_CLIENT
    return Seen(service, span.name, span.trace_id.hex(), span.span_id, span.parent_span_id, calls)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a thread."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.receive(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
