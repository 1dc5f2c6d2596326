"""One trace from REST to model and sandbox, and the RPCs it counts."""

import http.server
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.e2e.conftest import Providers
from tests.e2e.helpers import DICE, create
from tests.e2e.stack import Stack, running
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall, by_step

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


class Collector:
    """Receives OTLP over HTTP: service name -> names of its spans in the trace."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, str, str]] = []

    def receive(self, body: bytes) -> None:
        """One export."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    service = attributes["service.name"].removeprefix("loci-")
                    self.spans.append((service, span.name, span.trace_id.hex()))

    def of(self, trace_id: str) -> Counter[tuple[str, str]]:
        """Counts the spans of each service and name in a trace."""
        return Counter((service, name) for service, name, trace in self.spans if trace == trace_id)


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    """A collector on a thread, and its endpoint."""
    collector = Collector()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.receive(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def traced(providers: Providers) -> Iterator[tuple[Stack, Collector]]:
    """A stack that exports its spans to us."""
    with collecting() as (collector, endpoint):
        tracing = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "200"}
        with running(providers.environment() | tracing) as stack:
            yield stack, collector


@pytest.mark.sandbox
def test_one_trace(traced: tuple[Stack, Collector], openai_fake: OpenAIServer) -> None:
    stack, collector = traced
    client = stack.client()
    tool = client.tools.upsert(source_code=DICE)
    agent_id = create(client, "openai/gpt-4o-mini", tool_ids=[tool.id])
    openai_fake.rules(*by_step(Reply(calls=(ToolCall("roll_dice", {"num_sides": 1}),)), Reply(text="One.")))
    headers = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}
    client.agents.messages.create(agent_id, input="Roll.", extra_headers=headers)
    deadline = time.monotonic() + 15
    wanted = {"gateway", "agent", "memory", "llm_gateway", "tool_runner"}
    while {service for service, _ in collector.of(TRACE_ID)} != wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    seen = collector.of(TRACE_ID)
    assert {service for service, _ in seen} == wanted
    served = {name: count for (service, name), count in seen.items() if service in ("memory", "llm_gateway")}
    # One RPC to memory per turn, one to the model gateway per step.
    assert served["loci.memory.v1.AgentMemoryService/GetAgentMemory"] == 1
    assert served["loci.llm.v1.ChatService/Generate"] == 2
    assert any(service == "tool_runner" and "sandbox" in name for service, name in seen)
    client.agents.delete(agent_id)
