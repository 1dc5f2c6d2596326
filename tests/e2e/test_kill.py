"""kill -9 in the middle of a turn: the run ends completed, nothing is lost or doubled, no tool acts twice."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from typing import Any

import psutil
import pytest
from letta_client import ConflictError, Letta

from services.common.ids import from_public
from tests.e2e.database import rows, value
from tests.e2e.device import connected
from tests.e2e.helpers import calls_that_run, create, finished_run, types
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall, by_step
from tests.polling import wait_until

SLOW = '''
def slow(seconds: float) -> str:
    """Wait.

    Args:
        seconds (float): How long.

    Returns:
        str: That it is over.
    """
    import time

    time.sleep(seconds)
    return "waited"
'''


def note(text: str) -> ToolCall:
    """A block edit: seen once in the block if it was made once."""
    return ToolCall("memory_insert", {"label": "human", "new_string": text})


@contextmanager
def killed_during(
    stack: Stack, service: str, ready: Callable[[], object], then: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Kills a service as soon as `ready` says so, in the background of the block; when it is dead, calls `then`."""
    failed: list[BaseException] = []

    def kill() -> None:
        try:
            wait_until(ready, 60, pause=0.02, problem=lambda: f"the moment to kill {service} never came")
            stack.kill(service)
        except (AssertionError, OSError, psutil.Error) as error:
            failed.append(error)
        finally:
            then()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        killer.join()
    if failed:
        raise failed[0]


def contents(client: Letta, agent_id: str) -> list[Any]:
    """Role and content of the whole conversation, oldest first, without the prompt."""
    return [
        (message.message_type, getattr(message, "content", None))
        for message in client.agents.messages.list(agent_id, limit=100, order="asc")
        if message.message_type != "system_message"
    ]


WHOLE_TURN = [
    "user_message",
    "tool_call_message",
    "tool_return_message",
    "tool_call_message",
    "tool_return_message",
    "assistant_message",
]


@pytest.mark.parametrize("service", ["agent", "memory", "llm_gateway", "gateway"])
@pytest.mark.parametrize("mode", ["blocking", "steps", "tokens"])
def test_killed_during_a_three_step_turn(own_stack: Stack, openai_fake: OpenAIServer, service: str, mode: str) -> None:
    client = own_stack.client(timeout=60, max_retries=2)
    agent_id = create(client, "openai/gpt-4o-mini")
    # The model answers the second call when the service is dead.
    model = openai_fake.gate()
    openai_fake.rules(
        *by_step(
            Reply(calls=(note("first"),)),
            Reply(calls=(note("second"),), gate=model),
            Reply(text="Both are noted."),
        )
    )
    messages: list[Any] = [{"role": "user", "content": "Note two things."}]
    with killed_during(own_stack, service, lambda: model.is_reached, model.open):
        options: dict[str, Any] = {"messages": messages, "streaming": True, "stream_tokens": mode == "tokens"}
        if mode == "blocking":
            reply = client.agents.messages.create(agent_id, messages=messages)
            assert reply.stop_reason.stop_reason == "end_turn"
            assert types(reply.messages) == WHOLE_TURN[1:]
        elif service != "gateway":
            chunks = list(client.agents.messages.create(agent_id, **options))
            shown = [kind for kind, _ in groupby(types(chunks)) if kind != "ping"]
            assert shown == [*WHOLE_TURN[1:], "stop_reason", "usage_statistics"]
            said = [chunk.content for chunk in chunks if chunk.message_type == "assistant_message"]
            assert "".join(said) == "Both are noted."
        else:
            # The stream breaks with the process that serves it; the run goes on without a reader.
            with pytest.raises(Exception, match=r"(?i)peer closed|disconnected|connection|incomplete"):
                list(client.agents.messages.create(agent_id, **options))
    own_stack.wait_healthy()
    run = wait_ended(client, agent_id)
    assert run.status == "completed"
    assert [kind for kind, _ in contents(client, agent_id)] == WHOLE_TURN
    human = client.agents.blocks.retrieve("human", agent_id=agent_id).value
    assert (human.count("first"), human.count("second")) == (1, 1)
    client.agents.delete(agent_id)


def wait_ended(client: Letta, agent_id: str) -> Any:
    """The agent's one run, once it has ended."""
    [run] = client.runs.list(agent_id=agent_id)
    ended = finished_run(client, run.id)
    assert len(list(client.runs.list(agent_id=agent_id))) == 1
    return ended


@pytest.mark.sandbox
def test_tool_runner_killed_while_a_tool_runs(own_stack: Stack, openai_fake: OpenAIServer) -> None:
    client = own_stack.client(timeout=60)
    tool = client.tools.upsert(source_code=SLOW)
    agent_id = create(client, "openai/gpt-4o-mini", tool_ids=[tool.id])
    openai_fake.rules(*by_step(Reply(calls=(ToolCall("slow", {"seconds": 60.0}),)), Reply(text="I cannot say.")))
    with killed_during(own_stack, "tool_runner", lambda: calls_that_run(own_stack, agent_id)):
        reply = client.agents.messages.create(agent_id, input="Wait a little.")
    assert reply.stop_reason.stop_reason == "end_turn"
    returned = [message for message in reply.messages if message.message_type == "tool_return_message"]
    assert returned[0].status == "error"
    assert "is not known" in returned[0].tool_return
    assert len(openai_fake.bodies("/chat/completions")) == 2
    client.agents.delete(agent_id)


def test_everything_killed_while_idle(own_stack: Stack) -> None:
    client = own_stack.client(timeout=60, max_retries=2)
    agent_id = create(client, "loci/demo")
    client.agents.messages.create(agent_id, input="My name is Grace.")
    for service in ("memory", "tool_runner", "llm_gateway", "agent", "gateway"):
        own_stack.kill(service)
    own_stack.wait_healthy()
    reply = client.agents.messages.create(agent_id, input="What is my name?")
    assert "Grace" in reply.messages[-1].content
    client.agents.delete(agent_id)


def test_agent_killed_while_scheduled_messages_come(own_stack: Stack) -> None:
    client = own_stack.client(max_retries=5)
    agent_id, wanted = create(client, "loci/demo"), [f"Number {number}" for number in range(10)]
    for number, content in enumerate(wanted):
        at = (time.time() + 2.0 + number * 0.15) * 1_000
        message = {"role": "user", "content": content}
        client.agents.schedule.create(agent_id, messages=[message], schedule={"scheduled_at": at})

    def have_come(count: int) -> bool:
        query = "SELECT count(*) FROM agent.runs WHERE agent_id = $1"
        return bool(value(own_stack, query, from_public("agent", agent_id)) >= count)

    for count in (1, 4, 7):
        wait_until(partial(have_come, count), 60, pause=0.02)
        own_stack.kill("agent")
    own_stack.wait_healthy()

    def said() -> list[str]:
        return sorted(content for kind, content in contents(client, agent_id) if kind == "user_message")

    wait_until(lambda: len(said()) >= len(wanted), 60, pause=0.1)
    wait_until(lambda: all(run.status == "completed" for run in client.runs.list(agent_id=agent_id)), 60, pause=0.1)
    assert said() == sorted(wanted)
    planned = client.agents.schedule.list(agent_id).scheduled_messages
    assert all(each.next_scheduled_time is None and each.last_run_id for each in planned)
    client.agents.delete(agent_id)


def test_agent_killed_while_a_device_is_sent_messages(own_stack: Stack) -> None:
    client = own_stack.client(max_retries=5)
    with connected(own_stack.url, "survivor") as device:
        own_stack.kill("agent")

        def sent(content: str) -> bool:
            message: Any = {"role": "user", "content": content, "client_message_id": content}
            try:
                return bool(client.environments.send_message(device.connection_id, messages=[message]).success)
            except ConflictError:
                # It is connected again in a moment.
                return False

        wanted = [f"Number {number}" for number in range(5)]
        for content in wanted:
            wait_until(partial(sent, content))
        heard = []
        for _ in wanted:
            frame = device.hear(20)
            heard.append(frame["payload"]["messages"][0]["content"])
            device.say(type="ack", id=frame["id"])
        assert heard == wanted


def test_a_run_that_kills_its_owners_is_driven_alone_and_killed_alone(
    own_stack: Stack, openai_fake: OpenAIServer
) -> None:
    client = own_stack.client(timeout=60)
    agent_id = create(client, "openai/gpt-4o-mini")
    model = openai_fake.gate()
    openai_fake.rules(*by_step(Reply(text="Here I am.", gate=model)))
    service = psutil.Process(own_stack.pid("agent"))
    run = client.agents.messages.create_async(agent_id, messages=[{"role": "user", "content": "Are you there?"}])
    wait_until(lambda: model.is_reached)
    # As if two replicas had died with it.
    suspect = """
    WITH lost AS (
        UPDATE agent.runs SET fence = fence + 2, worker_id = NULL WHERE id = $1 RETURNING organization_id, id
    ), ready AS (
        INSERT INTO agent.ready_tenants (organization_id) SELECT organization_id FROM lost ON CONFLICT DO NOTHING
    )
    INSERT INTO agent.run_queue (organization_id, run_id) SELECT organization_id, id FROM lost
    """
    rows(own_stack, suspect, from_public("run", run.id))
    first = wait_until(lambda: alone(service), 60)
    first.kill()
    second = wait_until(lambda: alone(service, but=first), 60)
    model.open()
    assert finished_run(client, run.id).status == "completed"
    second.wait(20)
    assert service.is_running()
    assert contents(client, agent_id)[-1] == ("assistant_message", "Here I am.")
    assert own_stack.pid("agent") == service.pid
    client.agents.delete(agent_id)


def alone(service: psutil.Process, but: psutil.Process | None = None) -> psutil.Process | None:
    """The process in which a run is driven alone."""
    for child in service.children():
        with suppress(psutil.Error):
            if child != but and child.cmdline()[-1:] == ["isolate"]:
                return child
    return None
