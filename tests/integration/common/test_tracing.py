"""One trace across services, and its way to an OTLP receiver."""

import itertools
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from services.common import telemetry
from services.common.context import use_context
from services.common.errors import Internal, NotFound
from services.common.telemetry import current_trace_id
from tests.integration.common.echo import CALLER, SIGNER, Echo, echo
from tests.polling import until

REPOSITORY = Path(__file__).parents[3]


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


async def test_one_trace_runs_through_every_service(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    async with echo(tmp_path) as (back, _):

        async def ask_back(request: bytes) -> bytes:
            parts = [part async for part in back.StreamSay(request)]
            return b"".join(parts)

        async with echo(tmp_path, Echo(ask_back)) as (stub, _):
            with use_context(SIGNER.signed(CALLER)), telemetry.span("request"):
                await stub.Say(b"ab")
            # A caller has its answer before the server has ended its span.
            await until(lambda: len(spans.get_finished_spans()) >= 5)
    finished = {(span.name, span.kind): span for span in spans.get_finished_spans()}
    chain = [
        finished["request", SpanKind.INTERNAL],
        finished["test.Echo/Say", SpanKind.CLIENT],
        finished["test.Echo/Say", SpanKind.SERVER],
        finished["test.Echo/StreamSay", SpanKind.CLIENT],
        finished["test.Echo/StreamSay", SpanKind.SERVER],
    ]
    assert len(spans.get_finished_spans()) == len(chain)
    assert len({span.context.trace_id for span in chain}) == 1
    for outer, inner in itertools.pairwise(chain):
        assert parent_of(inner) == outer.context.span_id


async def test_without_an_exporter_one_trace_id_runs_through_every_service(tmp_path: Path) -> None:
    seen: list[str] = []

    async def note(request: bytes) -> bytes:
        seen.append(current_trace_id())
        return request

    async with echo(tmp_path, Echo(note)) as (back, _):

        async def ask_back(request: bytes) -> bytes:
            seen.append(current_trace_id())
            answer: bytes = await back.Say(request)
            return answer

        async with echo(tmp_path, Echo(ask_back)) as (stub, _):
            with use_context(SIGNER.signed(CALLER)):
                await stub.Say(b"a")
                await stub.Say(b"a")
    first, also_first, second, also_second = seen
    assert len(first) == 32
    assert (first, second) == (also_first, also_second)
    assert first != second


@pytest.mark.parametrize(
    ("error", "number", "served"),
    [(NotFound("no"), 5, StatusCode.UNSET), (Internal("bug"), 13, StatusCode.ERROR)],
)
async def test_spans_tell_how_a_call_ended(
    tmp_path: Path, spans: InMemorySpanExporter, error: Exception, number: int, served: StatusCode
) -> None:
    async def answer(request: bytes) -> bytes:
        raise error

    async with echo(tmp_path, Echo(answer)) as (stub, _):
        with use_context(SIGNER.signed(CALLER)), pytest.raises(grpc.aio.AioRpcError):
            await stub.Say(b"a")
        await until(lambda: len(spans.get_finished_spans()) >= 2)
    finished = {span.kind: span for span in spans.get_finished_spans()}
    for kind, status in ((SpanKind.SERVER, served), (SpanKind.CLIENT, StatusCode.ERROR)):
        attributes = finished[kind].attributes or {}
        assert attributes["rpc.grpc.status_code"] == number
        assert finished[kind].status.status_code is status


PROGRAM = """
import asyncio
from services.common import telemetry
from services.common.settings import Env

async def main() -> None:
    telemetry.setup("memory", Env.of_process())
    with telemetry.span("outer"), telemetry.span("inner", answer=42):
        pass
    await telemetry.shutdown()

asyncio.run(main())
"""


def test_spans_reach_an_otlp_receiver() -> None:
    received: list[tuple[str, ExportTraceServiceRequest]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append((self.path, ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}/"
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        server.shutdown()
    assert (done.returncode, done.stderr) == (0, "")
    ((path, request),) = received
    assert path == "/v1/traces"
    (resource,) = request.resource_spans
    names = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert names["service.name"] == "loci-memory"
    assert [span.name for scope in resource.scope_spans for span in scope.spans] == ["inner", "outer"]
