"""Every method of the official client, from tables: a new version of it shows here what has no case."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from letta_client import APIStatusError

from tests.e2e.conftest import Providers
from tests.e2e.openapi_strict import Document
from tests.e2e.sdk_methods.tables import CASES
from tests.e2e.sdk_methods.walking import Method, methods
from tests.e2e.sdk_methods.world import UNKNOWN, Case, World
from tests.e2e.stack import Stack
from tests.fakes.mcp_server import McpServer

METHODS = methods()
# Cases that call several methods run once, for all of them.
RUNS: dict[Case, list[str]] = {}
for _name, _case in CASES.items():
    RUNS.setdefault(_case, []).append(_name)

# Of what ids in paths name: their prefix.
PREFIXES = {
    "agent_id": "agent",
    "archive_id": "archive",
    "block_id": "block",
    "conversation_id": "conv",
    "file_id": "file",
    "folder_id": "source",
    "identity_id": "identity",
    "mcp_server_id": "mcp_server",
    "memory_id": "passage",
    "message_id": "message",
    "passage_id": "passage",
    "path_run_id": "run",
    "run_id": "run",
    "scheduled_message_id": "schedule",
    "step_id": "step",
    "tool_id": "tool",
}
# Something that is right for each other parameter that must be given.
GIVEN: dict[str, Any] = {
    "agent_file_json": {},
    "body_requires_approval": True,
    "config": {"mcp_server_type": "streamable_http", "server_url": "http://127.0.0.1:1/mcp"},
    "file": ("a.txt", b"a"),
    "input": "Hello.",
    "messages": [{"role": "user", "content": "Hello.", "client_message_id": UNKNOWN}],
    "passages": [{"text": "t"}],
    "query": "q",
    "schedule": {"type": "recurring", "cron_expression": "0 9 * * *"},
    "text": "t",
    "version": "1",
}


@pytest.fixture(scope="module")
def world(open_stack: Stack, providers: Providers) -> Iterator[World]:
    """The module's world."""
    with McpServer().in_thread() as mcp:
        made = World(open_stack, providers.openai, mcp.url)
        made.answered = Document(open_stack.url).check
        yield made
        made.close()


def test_every_method_has_a_case() -> None:
    assert set(METHODS) == set(CASES)


@pytest.mark.parametrize("case", RUNS, ids=lambda case: ", ".join(RUNS[case]))
def test_what_it_does(world: World, case: Case) -> None:
    world.requests.clear()
    case(world)
    for name in RUNS[case]:
        succeeded = [status for verb, path, status in world.requests if METHODS[name].matches(verb, path)]
        assert any(status < 300 for status in succeeded), f"the case never succeeded in calling {name}"


def _call(method: Method, world: World, **in_path: str) -> Callable[[], Any]:
    others = [one for one in method.required if one not in in_path] or (["input"] if "input" in method.optional else [])
    given = {name: GIVEN.get(name, f"nothing-{UNKNOWN}") for name in others}
    return lambda: method.of(world.client)(**given, **in_path)


# Of what is not there they list nothing, as the reference does.
LISTS_OF_NOTHING = ("agents.passages.list", "blocks.agents.list", "conversations.messages.list")
# As the reference has it; 404 of all others.
STATUSES_OF_NOTHING = {
    "tools.delete": 400,
    "mcp_servers.delete": 400,
    "conversations.messages.stream": 400,
    "agents.messages.cancel": 409,
}
BY_ID = [method for method in METHODS.values() if PREFIXES.keys() & set(method.in_path)]


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")
@pytest.mark.parametrize("method", BY_ID, ids=lambda method: method.name)
def test_what_is_no_id_and_what_names_nothing(world: World, method: Method) -> None:
    unknown = {name: f"{PREFIXES[name]}-{UNKNOWN}" for name in method.in_path if name in PREFIXES}
    for name in unknown:
        with pytest.raises(APIStatusError) as raised:
            _call(method, world, **unknown | {name: "other-42"})()
        body: Any = raised.value.body
        assert isinstance(body["detail"], str)
        if name in ("run_id", "path_run_id"):
            assert (raised.value.status_code, "run-123e4567" in body["detail"]) == (400, True), body
            continue
        assert raised.value.status_code == 422, (name, body)
        assert body["examples"] == [f"{PREFIXES[name]}-123e4567-e89b-42d3-8456-426614174000"]
        assert "trace_id" in body
    if method.name in LISTS_OF_NOTHING:
        assert list(_call(method, world, **unknown)()) == []
        return
    if method.name == "steps.trace.retrieve":
        assert _call(method, world, **unknown)() is None
        return
    with pytest.raises(APIStatusError) as raised:
        _call(method, world, **unknown)()
    problem: Any = raised.value.body
    assert raised.value.status_code == STATUSES_OF_NOTHING.get(method.name, 404), problem
    assert problem["detail"]
