"""The pure parts: what a server offers, what it answers, what a command means, what is secret."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from services.common.core.refusals import Refused
from services.common.core.secret_names import MASK
from services.tool_runner.core.job import ExitReason, Language
from services.tool_runner.mcp.protocol import results, server_tools
from services.tool_runner.mcp.protocol.commands import program_of
from services.tool_runner.mcp.protocol.errors import McpProblem
from services.tool_runner.mcp.protocol.server_tools import ServerTool
from services.tool_runner.mcp.schema_check import SchemaCheck
from services.tool_runner.mcp.throttle import Throttle
from services.tool_runner.mcp_servers import masks, model
from services.tool_runner.mcp_servers.model import Http, Kind, Stdio
from services.tool_runner.mcp_servers.service import refreshed_tool

PNG = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": []}, ""),
        ({}, ""),
        ({"content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}}, 3),
        (
            {"content": [{"type": "text", "text": "{}"}], "structuredContent": {"a": [1], "result": 2}},
            {"a": [1], "result": 2},
        ),
        ({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]}, "inside"),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA", "mimeType": "x/y"}}]},
            "[file:///a: 3 bytes of x/y]",
        ),
        ({"content": [{"type": "resource_link", "uri": "file:///a", "name": "a file"}]}, "[a file](file:///a)"),
        (
            {"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]},
            "[a sound of type audio/wav, which cannot be shown]",
        ),
        ({"content": [{"type": "news", "x": 1}]}, '{"type": "news", "x": 1}'),
        ({"content": "no list"}, "no list"),
        ({"content": [{"type": "text", "text": "\ud800\x00"}]}, "\ufffd\ufffd"),
        (
            {"content": [PNG]},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        ),
    ],
)
def test_what_a_tool_answers_is_its_result(answer: Any, result: Any) -> None:
    made = results.result_of(answer)
    assert made.reason is ExitReason.OK
    assert json.loads(made.result or "") == result


def test_a_question_to_the_user_is_an_error_that_has_it() -> None:
    question = {"method": "elicitation/create", "params": {"message": "Which colour?", "requestedSchema": {}}}
    for requests in ({"a": question, "b": None, "c": {}}, {}, None):
        made = results.result_of({"resultType": "input_required", "inputRequests": requests})
        assert made.error is not None
        assert ("(Which colour?)" in made.error.message) is bool(requests)
        assert "nobody is asked while a tool runs" in made.error.message


def test_a_resource_is_text_unless_it_has_pictures() -> None:
    text, picture = {"uri": "a:1", "text": "one"}, {"uri": "a:2", "blob": "aGk=", "mimeType": "image/png"}
    assert results.value_of_contents([text, {"uri": "a:3", "blob": "aGk="}]) == "one\n[a:3: 3 bytes of an unknown type]"
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert results.value_of_contents([picture]) == {"type": "image", "source": source}
    assert [item["type"] for item in results.value_of_contents([text, picture])] == ["text", "image"]


def test_an_error_is_one_that_raised() -> None:
    made = results.result_of({"isError": True, "content": [{"type": "text", "text": "no disk"}]})
    assert (made.reason, made.result) == (ExitReason.RAISED, None)
    assert made.error is not None
    assert made.error.message == "no disk"
    waiting = results.result_of({"resultType": "input_required", "inputRequests": {}})
    assert waiting.reason is ExitReason.RAISED


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("add", "add"),
        ("get sum!", "get_sum"),
        ("a/b.c", "a_b_c"),
        ("2fast", "_2fast"),
        ("日本", "tool"),
        ("a" * 60, "a" * 48),
    ],
)
def test_names_are_made_valid(name: str, valid: str) -> None:
    assert server_tools.valid_name(name) == valid


def test_what_a_server_changed_is_taken_over_and_what_a_user_changed_stays() -> None:
    server_id = uuid4()
    offer = ServerTool("add", "Add.", {"type": "object", "properties": {}}, False)
    tool = server_tools.tool_of(offer, tool_id=UUID(int=1), name="add", server_id=server_id, server="one")
    assert refreshed_tool(tool, offer) is None
    better = ServerTool("add", "Add two.", {"type": "object", "properties": {"a": {}}}, False)
    taken = refreshed_tool(tool, better)
    assert taken is not None
    assert (taken.description, json.loads(taken.json_schema)["description"]) == ("Add two.", "Add two.")
    own = refreshed_tool(replace(tool, description="Mine."), better)
    assert own is not None
    assert (own.description, json.loads(own.json_schema)["parameters"]) == ("Mine.", better.parameters)


def test_descriptions_are_cut() -> None:
    (offer,) = server_tools.read([{"name": "a", "description": "x" * 10_000 + "\x07"}]).offers
    assert len(offer.description) == server_tools.MOST_DESCRIPTION


async def test_a_schema_that_kills_the_child_harms_no_other() -> None:
    plain = {"type": "object", "properties": {}}
    # Its types are to be different from one another, which is looked at pair by pair.
    deadly = {"type": "object", "properties": {"a": {"type": [{"x": number} for number in range(20_000)]}}}
    good = [ServerTool(name, "", plain, False) for name in ("one", "two", "three")]
    listing = server_tools.ServerTools((good[0], ServerTool("deadly", "", deadly, False), *good[1:]))
    checked = await SchemaCheck().check(listing)
    assert [offer.name for offer in checked.offers] == ["one", "two", "three"]
    assert dict(checked.problems) == {"deadly": "its inputSchema needs too much time or memory to read"}


@pytest.mark.parametrize(
    ("command", "args", "language", "needed", "words"),
    [
        (
            "npx",
            ["-y", "@scope/pkg@1.2.3", "stdio"],
            Language.NODE,
            [("@scope/pkg", "1.2.3")],
            ["@scope/pkg", "", "stdio"],
        ),
        ("/usr/bin/npx", ["--yes", "pkg"], Language.NODE, [("pkg", "")], ["pkg", ""]),
        ("npx", ["-p", "pkg", "bin", "--x"], Language.NODE, [("pkg", "")], ["pkg", "bin", "--x"]),
        ("npm", ["exec", "--", "pkg"], Language.NODE, [("pkg", "")], ["pkg", ""]),
        ("uvx", ["mcp-server-git"], Language.PYTHON, [("mcp-server-git", "")], ["mcp-server-git"]),
        ("uvx", ["mcp-server-git@1.0", "-v"], Language.PYTHON, [("mcp-server-git", "1.0")], ["mcp-server-git", "-v"]),
        ("uvx", ["--from", "pkg[cli]==2.*", "run"], Language.PYTHON, [("pkg[cli]", "==2.*")], ["run"]),
        ("uvx", ["--with", "extra", "pkg"], Language.PYTHON, [("pkg", ""), ("extra", "")], ["pkg"]),
        ("uv", ["tool", "run", "pkg"], Language.PYTHON, [("pkg", "")], ["pkg"]),
        ("uvx", ["--refresh", "-q", "pkg", "--port", "1"], Language.PYTHON, [("pkg", "")], ["pkg", "--port", "1"]),
        ("uvx", ["--from", "pkg", "python", "-m", "x"], Language.PYTHON, [("pkg", "")], ["python3", "-P", "-m", "x"]),
        (
            "uv",
            ["run", "--with", "a==1,b", "s.py", "-v"],
            Language.PYTHON,
            [("a", "==1"), ("b", "")],
            ["", "s.py", "-v"],
        ),
    ],
)
def test_commands_of_npx_and_uvx_are_packages_and_programs(
    command: str, args: list[str], language: Language, needed: list[tuple[str, str]], words: list[str]
) -> None:
    program = program_of(command, args)
    assert program.language is language
    assert [(one["name"], one["version"]) for one in json.loads(program.requirements)] == needed
    assert list(program.argv[-len(words) :]) == words


def test_other_commands_are_programs_of_the_image() -> None:
    program = program_of("python3", ["-m", "server"])
    assert (program.argv, program.requirements) == (("python3", "-m", "server"), "")
    assert program_of("node", ["server.js"]).language is Language.NODE
    own = program_of("uv", ["run", "--directory=/srv/mine", "--no-project", "server.py", "--port", "1"])
    assert (own.argv[-4:], own.requirements) == (("/srv/mine", "server.py", "--port", "1"), "")
    for before in (["--directory", "/srv/mine"], ["-q", "--directory=/srv/mine"]):
        assert program_of("uv", [*before, "run", "server.py", "--port", "1"]) == own
    with pytest.raises(Refused, match="LOCI_MCP_STDIO_PATHS"):
        program_of("uvx", ["--from", "git+https://evil/x", "x"])
    with pytest.raises(Refused, match="the Python of the sandbox"):
        program_of("uvx", ["--python", "3.12", "pkg"])
    for bad in (
        ["uv", "run"],
        ["uv", "run", "--with"],
        ["uv", "run", "--python", "3.12", "x"],
        ["npx"],
        ["npx", "--registry", "http://evil", "pkg"],
        ["npx", "github:evil/x"],
        ["npx", "evil/x"],
        ["npx", "./x"],
        ["uvx", "git+https://evil/x"],
        ["uvx", "--from", "git+https://evil/x", "x"],
        ["uvx", "--from"],
    ):
        with pytest.raises(Refused):
            program_of(bad[0], bad[1:])


@pytest.mark.parametrize(
    ("transport", "word"),
    [
        (Http(kind=Kind.SSE, url="u", headers={"a b": "c"}), "custom_headers"),
        (Http(kind=Kind.SSE, url="u", headers={"a": "b\r\nc: d"}), "custom_headers"),
        (Http(kind=Kind.SSE, url="u", auth_token="x"), "auth_header"),
        (Http(kind=Kind.SSE, url="u", auth_header="mcp-session-id", auth_token="x"), "auth_header"),
        (Stdio(command=" "), "command"),
        (Stdio(command="a", args=("\x00",)), "args"),
        (Stdio(command="a", env={"A=B": "c"}), "env"),
        (Stdio(command="a", paths=("relative",)), "paths"),
        (Stdio(command="a", paths=("/data:rw",)), "paths"),
        (Stdio(command="a", paths=("/data",) * 33), "paths"),
    ],
)
def test_what_no_transport_can_have_is_refused(transport: Any, word: str) -> None:
    with pytest.raises(Refused, match=word):
        model.check(transport)


def test_headers_of_the_protocol_are_kept_and_not_sent() -> None:
    headers = {"Accept": "text/plain", "content-length": "5", "X-Own": "1"}
    transport = Http(kind=Kind.SSE, url="u", headers=headers, auth_header="Authorization", auth_token="t")
    model.check(transport)
    assert transport.all_headers() == {"X-Own": "1", "Authorization": "Bearer t"}


def test_secrets_are_masked_kept_and_left_out_of_what_is_stored_in_the_open() -> None:
    http = Http(kind=Kind.SSE, url="https://a", auth_header="Authorization", auth_token="t0ken", headers={"k": "v4l"})
    program = Stdio(command="cat", args=("--token", "v4larg", "--all"), env={"KEY": "v4lue"}, paths=("/a:ro",))
    for transport in (http, program):
        shown = masks.mask(transport)
        assert masks.unmask(shown, transport) == transport
        text = model.config_text(transport) + repr(transport) + repr(shown)
        assert not any(secret in text for secret in ("t0ken", "v4l", "v4lue"))
        assert "--all" in text or transport is http
        kept = model.transport_of(transport.kind, model.config_text(transport), model.secrets_text(transport))
        assert kept == transport
    with pytest.raises(Refused, match="stands for a value"):
        masks.unmask(Stdio(command="cat", env={"NEW": MASK}), program)
    with pytest.raises(Refused, match="args"):
        masks.unmask(Stdio(command="cat", args=("--password", MASK)), program)
    assert http.all_headers() == {"k": "v4l", "Authorization": "Bearer t0ken"}


def test_results_hide_what_is_secret_and_show_the_rest() -> None:
    env = {"API_KEY": "v4lue", "DATA_DIR": "/work/data", "PLAIN": "held back"}
    network = '{"secrets": {"PLAIN": {"hosts": ["a.example"]}}}'
    program = Stdio(command="npx", args=("server", "--figma-api-key=s3cret"), env=env, network=network)
    assert set(masks.secrets_of(program)) == {"v4lue", "s3cret", "held back"}
    http = Http(kind=Kind.SSE, url="u", auth_header="X", auth_token="t0", headers={"X-Tenant": "acme", "X-Key": "k3y"})
    assert set(masks.secrets_of(http)) == {"t0", "k3y"}


async def test_what_comes_too_fast_waits_and_what_is_too_much_ends() -> None:
    now, waits = 100.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    throttle = Throttle(1_000_000, now=lambda: now, sleep=sleep)
    await throttle.wait_for_bytes(b"\n" * 9_000)
    assert waits == []
    for _ in range(10):
        await throttle.wait_for_bytes(b"\n" * 1_000)
    # Of 19,000 lines 10,000 are free, and a second brings a thousand more.
    assert sum(waits) == pytest.approx(9, abs=0.1)
    with pytest.raises(McpProblem, match="sent more than"):
        await throttle.wait_for_bytes(bytes(2_000_000))
