"""Trace ids without an exporter, and spans with one."""

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from services.common import telemetry
from services.common.context import CallContext, use_context
from services.common.logs import JsonFormatter

REPOSITORY = Path(__file__).parents[3]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def in_task(work: Callable[[], Any]) -> Any:
    """Runs `work` in an asyncio task of its own, as handlers are."""

    async def run() -> Any:
        return work()

    return await asyncio.create_task(run())


def served(header: str | None) -> tuple[str, str | None]:
    telemetry.begin_served("test.Echo/Say", header).end()
    return telemetry.current_trace_id(), telemetry.traceparent()


async def test_without_an_exporter_the_callers_ids_travel_on() -> None:
    assert not telemetry.is_recording()
    assert await in_task(lambda: served(PARENT)) == ("0af7651916cd43dd8448eb211c80319c", PARENT)
    assert telemetry.current_trace_id() == ""
    assert telemetry.traceparent() is None


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "garbage",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        PARENT + "\n",
    ],
)
async def test_without_a_usable_header_a_trace_begins(header: str | None) -> None:
    trace_id, traceparent = await in_task(lambda: served(header))
    assert len(trace_id) == 32
    assert int(trace_id, 16)
    assert traceparent is not None
    assert traceparent.startswith(f"00-{trace_id}-")
    assert (await in_task(lambda: served(header)))[0] != trace_id


async def test_a_later_version_of_the_header_is_read_as_far_as_we_know_it() -> None:
    trace_id, _ = await in_task(lambda: served("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-more"))
    assert trace_id == "0af7651916cd43dd8448eb211c80319c"


async def test_span_costs_nothing_and_keeps_the_trace_without_an_exporter() -> None:
    def work() -> tuple[str, str]:
        telemetry.begin_served("x", PARENT)
        before = telemetry.current_trace_id()
        with telemetry.span("inner", answer=42) as inner:
            assert not inner.is_recording()
            return before, telemetry.current_trace_id()

    assert await in_task(work) == ("0af7651916cd43dd8448eb211c80319c",) * 2


async def test_spans_nest_and_keep_their_attributes(spans: InMemorySpanExporter) -> None:
    def work() -> None:
        outer = telemetry.begin_served("test.Echo/Say", PARENT)
        with telemetry.span("middle", **{"loci.inputs": 3}), telemetry.span("inner"):
            pass
        outer.end()

    await in_task(work)
    inner, middle, outer = spans.get_finished_spans()
    assert [span.name for span in (inner, middle, outer)] == ["inner", "middle", "test.Echo/Say"]
    assert inner.parent is not None
    assert middle.parent is not None
    assert outer.parent is not None
    assert inner.parent.span_id == middle.context.span_id
    assert middle.parent.span_id == outer.context.span_id
    assert f"{outer.parent.span_id:016x}" == "b7ad6b7169203331"
    assert dict(middle.attributes or {}) == {"loci.inputs": 3}


async def test_a_failed_span_says_what_kind_of_error_and_not_what_users_wrote(
    spans: InMemorySpanExporter,
) -> None:
    with pytest.raises(KeyError), telemetry.span("work"):
        raise KeyError("my secret diary")
    (span,) = spans.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "KeyError")
    assert "diary" not in span.to_json()


async def test_a_cancelled_span_ends_too(spans: InMemorySpanExporter) -> None:
    async def work() -> None:
        with telemetry.span("work"):
            await asyncio.sleep(30)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    (span,) = spans.get_finished_spans()
    assert span.status.description == "CancelledError"


async def test_a_generator_with_a_span_may_be_closed_by_another_task(
    spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    async def numbers() -> AsyncGenerator[int]:
        with telemetry.span("work"):
            yield 1

    generator = numbers()

    async def begin() -> int:
        return await anext(generator)

    assert await asyncio.create_task(begin()) == 1
    await generator.aclose()
    assert len(spans.get_finished_spans()) == 1
    assert caplog.records == []


def test_log_lines_are_json_with_the_ids() -> None:
    formatter = JsonFormatter("memory", lambda: "abc")
    record = logging.makeLogRecord(
        {"name": "x", "levelno": 20, "levelname": "INFO", "msg": "%s ended", "args": ("run",), "steps": 3}
    )
    with use_context(CallContext(UUID(int=1), UUID(int=2), "user", (), run_id=UUID(int=3))):
        fields = json.loads(formatter.format(record))
    assert fields.pop("time").endswith("+00:00")
    assert fields == {
        "level": "info",
        "service": "memory",
        "logger": "x",
        "message": "run ended",
        "trace_id": "abc",
        "organization_id": str(UUID(int=1)),
        "run_id": str(UUID(int=3)),
        "steps": 3,
    }
    plain = json.loads(JsonFormatter("memory", lambda: "").format(record))
    assert {"trace_id", "run_id", "organization_id"}.isdisjoint(plain)


def test_log_lines_survive_anything_and_keep_the_traceback_in_one_line() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        record = logging.makeLogRecord({"msg": "\ud800 odd", "exc_info": sys.exc_info(), "thing": object()})
    line = JsonFormatter("memory", lambda: "").format(record)
    assert "\n" not in line
    assert "ValueError: no" in json.loads(line)["exception"]


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_setup_logs_json_at_the_level_asked_for() -> None:
    program = """
import logging
from services.common.settings import Env
from services.common.telemetry import setup
setup("memory", Env.of_process())
logging.getLogger("a").info("hidden")
logging.getLogger("a").warning("shown")
"""
    done = run(program, LOCI_LOG_LEVEL="warning")
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["message"] == "shown"
    wrong = run(program, LOCI_LOG_LEVEL="loud")
    assert "LOCI_LOG_LEVEL is 'loud'; expected one of debug, info, warning, error" in wrong.stderr


def test_what_is_not_needed_is_not_imported() -> None:
    """Each of these costs an idle process 5 to 30 MB."""
    program = """
import sys
import services.common.server, services.common.channel, services.common.keys, services.common.ids
from services.common.settings import Env
from services.common.telemetry import setup
setup("memory", Env({}))
names = {"opentelemetry.sdk", "requests", "sqlalchemy", "alembic"}
light = (names | {"asyncpg"}) & set(sys.modules)
import services.common.database, services.common.migrate
print(light, names & set(sys.modules))
"""
    done = run(program)
    assert (done.stdout, done.stderr) == ("set() set()\n", "")
