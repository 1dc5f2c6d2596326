"""What `loci import --verify` says of two servers, which are made of recorded answers here."""

import copy
from typing import Any

import httpx
import pytest

from cli.errors import CliError
from cli.importing.verify import run
from cli.importing.verify.calls import CALLS, Call
from cli.importing.verify.comparison import by_key, differences
from cli.importing.verify.walk import Server, Walk

AGENT = {
    "id": "agent-1",
    "name": "Ada's friend",
    "model": "openai-proxy/gpt-4o",
    "description": None,
    "tags": ["b", "a"],
    "updated_at": "2025-03-01T12:00:00Z",
}
MESSAGES = [
    {"id": f"message-{number}", "message_type": "user_message", "content": str(number), "date": "2025-03-01T12:00:00Z"}
    for number in range(230)
]
ANSWERS: dict[str, Any] = {
    "/v1/agents/": [AGENT],
    "/v1/agents/agent-1/core-memory/blocks": [{"id": "block-1", "label": "human", "value": "Ada", "limit": 100}],
    "/v1/agents/agent-1/files": {"files": [{"id": "file_agent-1", "file_id": "file-1"}], "has_more": False},
    "/v1/agents/agent-1/messages": MESSAGES,
    "/v1/conversations/": [{"id": "conv-1", "agent_id": "agent-1", "summary": "On the phone"}],
    "/v1/folders/": [{"id": "source-1", "name": "papers"}],
    "/v1/folders/source-1/agents": ["agent-1"],
    "/v1/providers/": [{"name": "openai", "provider_category": "base"}],
}


def server(answers: dict[str, Any], asked: list[str] | None = None) -> Server:
    """A server that gives these answers, messages by pages, and an empty list to anything else."""

    def answer(request: httpx.Request) -> httpx.Response:
        if asked is not None:
            asked.append(str(request.url))
        entries = answers.get(request.url.path, [])
        if isinstance(entries, int):
            return httpx.Response(entries, json={"detail": "no"})
        if isinstance(entries, list) and (after := request.url.params.get("after")):
            ids = [entry if isinstance(entry, str) else entry["id"] for entry in entries]
            entries = entries[ids.index(after) + 1 :]
        limit = int(request.url.params["limit"])
        return httpx.Response(200, json=entries[:limit] if isinstance(entries, list) else entries)

    return Server("http://test", transport=httpx.MockTransport(answer))


def compared(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Returns the lines that are printed of two servers."""
    lines: list[str] = []
    walk = Walk(server(old), server(new), lines.append)
    for call in CALLS:
        walk.compare(call)
    assert walk.differences == len([line for line in lines if not line.startswith("note: ")])
    return lines


def changed(path: str, **fields: Any) -> dict[str, Any]:
    """Returns the answers with other fields in the first entry of a list."""
    answers = copy.deepcopy(ANSWERS)
    answers[path][0].update(fields)
    return answers


def test_what_is_the_same() -> None:
    here = changed(
        "/v1/agents/", model="openai/gpt-4o", tags=["a", "b"], updated_at="2026-01-01T00:00:00+00:00", folders=[]
    )
    here["/v1/agents/agent-1/messages"][0]["date"] = "2025-03-01T12:00:00+00:00"
    del here["/v1/agents/"][0]["description"]
    here["/v1/agents/"].append({"id": "agent-2", "name": "made here"})
    here["/v1/providers/"] = []
    assert compared(ANSWERS, here) == []


@pytest.mark.parametrize(
    ("path", "fields", "line"),
    [
        ("/v1/agents/", {"name": "Bo"}, "/v1/agents/ agent-1: name: \"Ada's friend\", now 'Bo'"),
        ("/v1/agents/", {"description": "new"}, "/v1/agents/ agent-1: description: None, now 'new'"),
        ("/v1/agents/", {"tags": ["a"]}, "/v1/agents/ agent-1: tags: 2 entries, now 1"),
        (
            "/v1/agents/agent-1/core-memory/blocks",
            {"value": "Eve"},
            "/v1/agents/agent-1/core-memory/blocks human: value: 'Ada', now 'Eve'",
        ),
        (
            "/v1/agents/agent-1/messages",
            {"content": [{"type": "text", "text": "0"}]},
            "/v1/agents/agent-1/messages message-0 user_message: content: '0', now [{'type': 'text', 'text': '0'}]",
        ),
    ],
)
def test_what_differs(path: str, fields: dict[str, Any], line: str) -> None:
    assert compared(ANSWERS, changed(path, **fields)) == [line]


def test_what_is_on_one_server_alone() -> None:
    here = copy.deepcopy(ANSWERS)
    del here["/v1/agents/agent-1/messages"][150]
    here["/v1/agents/agent-1/messages"].append({"id": "message-new", "message_type": "user_message", "content": "!"})
    here["/v1/folders/source-1/agents"] = []
    here["/v1/conversations/"] = []
    messages = "/v1/agents/agent-1/messages"
    assert compared(ANSWERS, here) == [
        f"{messages} message-150 user_message: is not here",
        f"{messages} message-new user_message: is here alone",
        "/v1/conversations/ conv-1: is not here",
        "/v1/folders/source-1/agents agent-1: is not here",
    ]


def test_routes_that_a_server_lacks() -> None:
    assert compared({**ANSWERS, "/v1/groups/": 404}, {**ANSWERS, "/v1/groups/": 404}) == []
    assert compared({**ANSWERS, "/v1/groups/": 500}, ANSWERS) == [
        "note: /v1/groups/: the old server answers 500, so it is not compared"
    ]
    assert compared(ANSWERS, {**ANSWERS, "/v1/groups/": 501}) == ["/v1/groups/: this server answers 501"]


def test_what_changes_meanwhile_is_no_difference() -> None:
    here = copy.deepcopy(ANSWERS)
    busy = server(here)
    first = busy.entries

    def entries(call: Call, parent: str) -> list[Any]:
        answer = first(call, parent)
        here["/v1/folders/"] = ANSWERS["/v1/folders/"]
        return answer

    busy.entries = entries  # type: ignore[method-assign]
    here["/v1/folders/"] = []
    lines: list[str] = []
    walk = Walk(server(ANSWERS), busy, lines.append)
    walk.compare(Call("/v1/folders/"))
    assert (lines, walk.lists) == ([], 1)


def test_pages_are_turned() -> None:
    asked: list[str] = []
    call = Call("/v1/agents/{id}/messages", parameters={"conversation_id": "default"})
    assert len(server(ANSWERS, asked).entries(call, "agent-1")) == len(MESSAGES)
    first, second, *_ = (httpx.URL(url).params for url in asked)
    assert dict(first) == {"limit": "100", "order": "asc", "conversation_id": "default"}
    assert second["after"] == "message-99"


def test_pages_with_cursors_of_their_own_are_turned() -> None:
    pages = {"": ("file-1", "next"), "next": ("file-2", None)}

    def answer(request: httpx.Request) -> httpx.Response:
        file_id, following = pages[request.url.params.get("cursor", "")]
        return httpx.Response(200, json={"files": [{"file_id": file_id}], "next_cursor": following})

    call = Call("/v1/agents/{id}/files", key="file_id", inner="files", cursor="cursor")
    entries = Server("http://test", transport=httpx.MockTransport(answer)).entries(call, "agent-1")
    assert [entry["file_id"] for entry in entries] == ["file-1", "file-2"]


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("2025-03-01T12:00:00Z", "2025-03-01T12:00:00.000000+00:00", True),
        ("2025-03-01T12:00:00Z", "2025-03-01T13:00:00Z", False),
        ("2025-03-01T99:00:00Z", "2025-03-01T99:00:00+00:00", False),
    ],
)
def test_times_are_compared_as_times(old: str, new: str, same: bool) -> None:
    assert (list(differences({"date": old}, {"date": new})) == []) is same


def test_entries_with_the_same_key_are_told_apart() -> None:
    assert list(
        by_key([{"id": "a", "kind": "x"}, {"id": "a", "kind": "y"}, {"id": "a", "kind": "x"}], "id", "kind")
    ) == [
        "a x",
        "a y",
        "a x (2)",
    ]


def test_long_values_are_shortened() -> None:
    [line] = differences({"text": "x" * 500}, {"text": "y"})
    assert len(line) < 100


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Two servers by their addresses."""
    by_url: dict[str, dict[str, Any]] = {"http://old": ANSWERS, "http://here": copy.deepcopy(ANSWERS)}
    monkeypatch.setattr(run, "Server", lambda url, key: server(by_url[url]))
    return by_url


def test_the_command(servers: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    run.verify("http://old", "http://here", {})
    assert capsys.readouterr().out.splitlines()[-1].endswith("lists compared, 0 differences")
    servers["http://here"]["/v1/folders/"] = []
    with pytest.raises(CliError, match="1 differences from http://old") as error:
        run.verify("http://old", "http://here", {})
    assert error.value.code == 1
    assert "/v1/folders/ source-1: is not here" in capsys.readouterr().out
