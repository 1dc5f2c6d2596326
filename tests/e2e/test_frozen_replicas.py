"""One of two replicas is frozen (SIGSTOP) amid a turn: the other goes on, and who wakes up changes nothing."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest

from services.common.ids import from_public
from tests.e2e.database import rows, value
from tests.e2e.helpers import calls_that_run, create
from tests.e2e.stack import ROOT, Stack
from tests.e2e.test_kill import SLOW, contents
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall, by_step
from tests.polling import wait_until

SERVICES = ("tool_runner", "agent")


@contextmanager
def second_replicas(stack: Stack) -> Iterator[None]:
    """A second agent service, and a second tool runner, which that one asks; afterwards they are gone."""
    with ExitStack() as running:
        tools: dict[str, str] = {}
        for service in SERVICES:
            environment = psutil.Process(stack.pid(service)).environ()
            environment.pop("LOCI_AGENT_EXTERNAL_LISTEN", None)
            listen = environment["LOCI_LISTEN"].removesuffix(".sock") + "-2.sock"
            environment |= {"LOCI_LISTEN": listen, **tools}
            tools = {"LOCI_TOOL_RUNNER_ADDR": listen}
            running.enter_context(_process(service, environment))
            wait_until(Path(listen.removeprefix("unix://")).exists, 60)
        yield


@contextmanager
def _process(service: str, environment: dict[str, str]) -> Iterator[None]:
    command = [sys.executable, "-P", "-m", f"services.{service}"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def frozen(stack: Stack, services: Sequence[str]) -> Iterator[None]:
    """The first replicas stand still within the block."""
    processes = [psutil.Process(stack.pid(service)) for service in services]
    try:
        for process in processes:
            process.suspend()
        yield
    finally:
        for process in processes:
            process.resume()


def is_taken_over(stack: Stack, agent_id: str) -> bool:
    """Whether another owner has the agent's run. Asks the database: the service that the gateway asks stands still."""
    return bool(value(stack, "SELECT bool_or(fence > 1) FROM agent.runs WHERE agent_id = $1", _id(agent_id)))


def has_ended(stack: Stack, agent_id: str) -> bool:
    """Whether the agent's run is completed."""
    return bool(
        value(stack, "SELECT bool_and(status = 'completed') FROM agent.runs WHERE agent_id = $1", _id(agent_id))
    )


def check_all(stack: Stack, openai_fake: OpenAIServer, client: Any, agent_id: str) -> None:
    """Nothing stays claimed, every call has one result, and the next message to the conversation succeeds."""
    numbers = """
        SELECT bool_and(places.numbers = ARRAY(SELECT generate_series(1, array_length(places.numbers, 1))))
        FROM (SELECT array_agg(number ORDER BY number)::int[] AS numbers FROM agent.facts GROUP BY run_id) places
    """
    assert value(stack, numbers)
    openai_fake.rules(*by_step(Reply(text="All is well.")))
    before = len(contents(client, agent_id))
    reply = client.agents.messages.create(agent_id, input="And now?")
    assert reply.stop_reason.stop_reason == "end_turn"
    assert len(contents(client, agent_id)) == before + 2
    assert not rows(stack, "SELECT id FROM agent.runs WHERE status IN ('created', 'running')")
    assert not rows(stack, "SELECT run_id FROM agent.run_queue")


@contextmanager
def said(client: Any, agent_id: str) -> Iterator[Future[Any]]:
    """A message to an agent that is being answered; the first replica drives its run."""
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(client.agents.messages.create, agent_id, input="Are you there?")


def test_frozen_amid_a_model_call(own_stack: Stack, openai_fake: OpenAIServer) -> None:
    client = own_stack.client(timeout=60)
    agent_id = create(client, "openai/gpt-4o-mini")
    model = openai_fake.gate()
    openai_fake.rules(*by_step(Reply(text="Here I am.", gate=model)))
    with second_replicas(own_stack), said(client, agent_id) as answer:
        wait_until(lambda: model.is_reached)
        with frozen(own_stack, ["agent"]):
            wait_until(lambda: is_taken_over(own_stack, agent_id), 60)
            # Both have asked, and both are answered.
            model.open()
            wait_until(lambda: has_ended(own_stack, agent_id), 60)
        # Its own reply waits for it when it wakes up.
        assert answer.result(60).messages[-1].content == "Here I am."
        assert [kind for kind, _ in contents(client, agent_id)] == ["user_message", "assistant_message"]
        check_all(own_stack, openai_fake, client, agent_id)
    client.agents.delete(agent_id)


@pytest.mark.sandbox
def test_frozen_amid_a_tool_call_with_the_tool_runner(own_stack: Stack, openai_fake: OpenAIServer) -> None:
    client = own_stack.client(timeout=60)
    tool = client.tools.upsert(source_code=SLOW)
    agent_id = create(client, "openai/gpt-4o-mini", tool_ids=[tool.id])
    openai_fake.rules(*by_step(Reply(calls=(ToolCall("slow", {"seconds": 3.0}),)), Reply(text="I cannot say.")))
    with second_replicas(own_stack), said(client, agent_id) as answer:
        wait_until(lambda: calls_that_run(own_stack, agent_id))
        with frozen(own_stack, SERVICES):
            wait_until(lambda: has_ended(own_stack, agent_id), 60)
        # What the tool returned meanwhile comes too late.
        assert answer.result(60).stop_reason.stop_reason == "end_turn"
        kinds = ["user_message", "tool_call_message", "tool_return_message", "assistant_message"]
        assert [kind for kind, _ in contents(client, agent_id)] == kinds
        returned = client.agents.messages.list(agent_id, limit=10, order="asc").items[-2]
        assert "is not known" in returned.tool_return
        assert value(own_stack, "SELECT count(*) FROM tool_runner.receipts WHERE agent_id = $1", _id(agent_id)) == 1
        check_all(own_stack, openai_fake, client, agent_id)
    client.agents.delete(agent_id)


def _id(agent_id: str) -> UUID:
    return from_public("agent", agent_id)
