"""`loci import`: the real command, from a database as an old server leaves it into a whole Loci, read by the official
client.

The tests are in the order in which somebody who moves in goes: a dry run, the move, life after it, the move again.
"""

import asyncio
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest

from cli.home import Home
from cli.importing.encryption import NO_KEY, WRONG_KEY
from cli.postgres import SUPERUSER, url
from cli.secrets import passwords
from tests import letta_database, letta_oddities
from tests import letta_world as old
from tests.e2e.conftest import Providers
from tests.e2e.helpers import types
from tests.e2e.stack import ROOT, Stack, running
from tests.fakes.mcp_server import McpServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply

SECONDS = 120.0
# What an import makes, whoever makes anything else.
TABLES = (
    "memory.blocks",
    "memory.archives",
    "memory.passages",
    "memory.passage_vectors",
    "memory.agent_blocks",
    "memory.agent_archives",
    "memory.folders",
    "memory.files",
    "agent.agents",
    "agent.conversations",
    "agent.messages",
    "agent.identities",
    "agent.groups",
)


@dataclass
class Moving:
    """A Loci and the old server's database, which lies in the same Postgres."""

    stack: Stack
    chosen = ("--organization", letta_database.ORGANIZATION)

    def url(self, database: str = "letta") -> str:
        """Returns the superuser's URL."""
        home = Home(self.stack.home)
        return url(home.sockets / "postgres", SUPERUSER, passwords(home.secrets)[SUPERUSER], database)

    def rows(self, query: str, *values: Any, database: str = "loci") -> list[Any]:
        """Returns the rows of a query."""

        async def fetched() -> list[Any]:
            connection = await asyncpg.connect(self.url(database))
            try:
                return list(await connection.fetch(query, *values))
            finally:
                await connection.close()

        return _run(fetched())

    def command(self, *options: str, key: str = letta_database.ENCRYPTION_KEY) -> dict[str, Any]:
        """For subprocess."""
        more = {"PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}", "PYTHONUNBUFFERED": "1", "LETTA_ENCRYPTION_KEY": key}
        return {
            "args": [sys.executable, "-m", "cli", "import", "--postgres", self.url(), *self.chosen, *options],
            "env": self.stack.environment | more,
            "cwd": ROOT,
            "text": True,
        }

    def bring_over(self, folder: Path, *options: str, key: str = letta_database.ENCRYPTION_KEY) -> dict[str, Any]:
        """Runs the command; returns the report by table, whose sums are those of the old database."""
        file = folder / "report.json"
        command = self.command("--report", str(file), *options, key=key)
        process = subprocess.run(**command, capture_output=True, timeout=SECONDS, check=False)
        assert process.returncode == 0, process.stderr + process.stdout
        report = json.loads(file.read_text())
        assert report["complete"]
        tables: dict[str, Any] = report["tables"]
        for name, one in tables.items():
            assert name in process.stdout
            assert one["rows"] == self.rows(f'SELECT count(*) FROM "{name}"', database="letta")[0][0] > 0
            assert one["rows"] == one["taken"] + one["changed"] + one["already_there"] + one["left_out"], name
            assert (len(one["left_out_rows"]), len(one["changed_rows"])) == (one["left_out"], one["changed"]), name
            for row in (*one["left_out_rows"], *one["changed_rows"]):
                assert row["id"]
                assert row["reason"].partition("; ")[0] in process.stdout
                assert "no step of the import" not in row["reason"]
        names = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", database="letta")
        assert tables.keys() == {row[0] for row in names}
        assert report["total"]["rows"] == sum(one["rows"] for one in tables.values())
        return tables

    def counts(self, organization: str) -> dict[str, int]:
        """Rows of a tenant."""
        tenant = UUID(organization.removeprefix("org-"))
        query = "SELECT count(*) FROM {} WHERE organization_id = $1"
        return {table: self.rows(query.format(table), tenant)[0][0] for table in TABLES}


def _run(work: Coroutine[Any, Any, list[Any]]) -> list[Any]:
    return asyncio.run(work)


@pytest.fixture(scope="module")
def moving(providers: Providers) -> Iterator[Moving]:
    """A Loci, and the old server's database, filled, in its Postgres."""
    environment = providers.environment() | {"LOCI_ALLOW_PRIVATE_URLS": "1"}
    with McpServer().in_thread() as mcp, running(environment) as stack:
        moving = Moving(stack)

        async def make() -> list[Any]:
            connection = await asyncpg.connect(moving.url("postgres"))
            await connection.execute("CREATE DATABASE letta")
            await connection.close()
            world = old.build(endpoint=providers.openai.base_url, mcp=mcp.url)
            await letta_database.create(moving.url(), world)
            return []

        _run(make())
        yield moving


def reasons(tables: dict[str, Any], table: str, fate: str = "left_out") -> dict[str, str]:
    """Returns why rows of a table are not taken, or are changed, by their keys."""
    return {row["id"]: row["reason"] for row in tables[table][f"{fate}_rows"]}


def here(tables: dict[str, Any]) -> dict[str, int]:
    """Returns how many rows of each table are taken, changed or not."""
    counts = {name: one["taken"] + one["changed"] for name, one in tables.items()}
    return {name: count for name, count in counts.items() if count}


def number(prefix: str, place: int) -> str:
    """Returns the id of a row."""
    return letta_database.identifier(prefix, place)


# Rows of each table that come, changed or not.
EXPECTED = {
    "providers": 1,
    "mcp_server": 2,
    "sandbox_configs": 2,
    "sandbox_environment_variables": 2,
    "tools": 5,
    "block": 5,
    "blocks_tags": 1,
    "archives": 9,
    "archival_passages": 10,
    "passage_tags": 1,
    "sources": 1,
    "files": 2,
    "file_contents": 2,
    "agent_environment_variables": 5,
    "agents": 4,
    "blocks_agents": 4,
    "tools_agents": 5,
    "archives_agents": 2,
    "sources_agents": 1,
    "agents_tags": 1,
    "conversations": 2,
    "blocks_conversations": 1,
    "messages": 30,
    "conversation_messages": 7,
    "identities": 2,
    "identities_agents": 2,
    "identities_blocks": 1,
    "groups": 1,
    "groups_blocks": 1,
    "groups_agents": 2,
}


def test_a_dry_run_writes_nothing(moving: Moving, tmp_path: Path) -> None:
    before = moving.counts(letta_database.ORGANIZATION)
    counts = here(moving.bring_over(tmp_path, "--dry-run"))
    # Nobody knows beforehand what a server or a program refuses, and what an MCP server offers.
    refused = {"mcp_server": 1, "agents": 1, "blocks_agents": 1, "conversations": 1, "messages": 12}
    assert counts == {
        table: count + refused.get(table, 0) - (table in ("tools", "tools_agents")) for table, count in EXPECTED.items()
    }
    assert moving.counts(letta_database.ORGANIZATION) == before
    for key, reason in (("", NO_KEY), ("another key", WRONG_KEY)):
        tables = moving.bring_over(tmp_path, "--dry-run", key=key)
        assert [one for one in reasons(tables, "providers", "changed").values() if reason in one]
        assert list(reasons(tables, "sandbox_environment_variables").values()) == [reason]


def test_everything_comes_over(moving: Moving, tmp_path: Path) -> None:
    tables = moving.bring_over(tmp_path)
    assert here(tables) == EXPECTED
    program, pigeon = reasons(tables, "mcp_server").values()
    assert "programs are off" in program
    assert "'pigeon'" in pigeon
    assert "IMPORT_EXISTS" in reasons(tables, "agents")[old.REFUSED]
    assert reasons(tables, "messages")[old.message_id(60)] == "its agent is not here"
    assert list(reasons(tables, "groups").values()) == [
        f"its manager {number('agent', 9)} is not here",
        "there is no group with a manager of type 'choir' here",
    ]
    assert reasons(tables, "tools") == {
        number("tool", 13): "this server has no tool of that name",
        letta_oddities.FORECAST: "the MCP server 'climate' does not offer it now; refresh that and attach it again",
        number("tool", 31): "it is marked as deleted",
        number("tool", 32): "it has no source code",
    }
    assert list(reasons(tables, "files", "changed")) == [old.REPORT]
    changes = reasons(tables, "agents", "changed")
    assert changes[old.ADA] == f"messages of its window are not there: {old.message_id(12)}"
    assert changes[old.BEN] == "it lost the tool no_longer_there, which is not here"
    messages = reasons(tables, "messages")
    assert {key: messages[old.message_id(key)] for key in (45, 46, 201, 210, 211, 230)} == {
        45: "it is marked as deleted",
        46: "its conversation is not here",
        201: "there are no messages of role 'ghost' here",
        210: "its agent is not here",
        211: "its conversation is not here",
        230: f"it belongs to {letta_oddities.OTHER_ORGANIZATION}, which is imported by a command of its own"
        " (--organization, --into)",
    }
    assert letta_oddities.LONE_RETURN not in messages
    changed = reasons(tables, "messages", "changed")
    prompts = [key for key, reason in changed.items() if "the model was last given" in reason]
    assert set(prompts) == {old.message_id(place) for place in (1, 20, 30, 40, 43, 220)}
    assert {key: reason for key, reason in changed.items() if key not in prompts} == {
        old.message_id(32): f"its calls are in the message of {old.message_id(33)}",
        letta_oddities.HOLOGRAM: "a part of type 'hologram' is left out",
        letta_oddities.FUNCTION: "it has the role 'tool' now",
    }
    for word in ("'of_tomorrow'", "'haiku'", "without tool_rules[0]", "without compaction_settings"):
        assert word in changes[letta_oddities.ODD]


def test_the_agents_are_as_they_were(moving: Moving) -> None:
    client = moving.stack.client()
    ada = client.agents.retrieve(old.ADA, include=["agent.blocks", "agent.tools", "agent.tags", "agent.secrets"])
    assert (ada.name, ada.agent_type, ada.model) == ("Ada's friend", "letta_v1_agent", "openai/gpt-4o-mini")
    assert (ada.embedding, ada.metadata, ada.tags) == ("openai/text-embedding-3-small", {"team": "owls"}, ["friend"])
    settings: Any = ada.model_settings
    assert (settings["temperature"], settings["max_output_tokens"]) == (0.3, 900)
    assert (ada.llm_config.context_window, ada.compaction_settings.clip_chars) == (30_000, 5_000)
    assert [rule.type for rule in ada.tool_rules] == ["requires_approval", "max_count_per_step"]
    assert {block.label: block.id for block in ada.blocks} == {"human": old.ADAS_HUMAN, "persona": old.SHARED}
    assert {tool.name for tool in ada.tools} == {"roll_dice", "echo", "memory_insert"}
    assert sorted(secret.key for secret in ada.secrets) == ["PLAIN", "SEALED"]
    assert str(ada.created_at).startswith("2025-03-01 12:00:00")
    ben = client.agents.retrieve(old.BEN, include=["agent.blocks", "agent.tools"])
    assert (ben.agent_type, ben.timezone) == ("memgpt_v2_agent", "Europe/Oslo")
    assert {block.id for block in ben.blocks} == {old.BENS_HUMAN, old.SHARED}
    assert {agent.id for agent in client.blocks.agents.list(old.SHARED)} == {old.ADA, old.BEN}
    shared = client.blocks.retrieve(old.SHARED)
    assert (shared.value, shared.read_only, shared.tags) == ("I like owls.", True, ["owl"])
    free = client.blocks.retrieve(old.FREE)
    assert (len(free.value), free.limit) == (30, 30)
    tool = client.tools.retrieve(old.DICE)
    assert (tool.source_type, tool.source_code, tool.default_requires_approval) == ("python", old.DICE_SOURCE, True)
    # The id under which the old server showed the calls that waited.
    assert old.message_id(9) in {message.id for message in client.agents.messages.list(old.ADA)}


def test_what_was_said_is_as_it_was(moving: Moving) -> None:
    client = moving.stack.client()
    said = list(client.agents.messages.list(old.ADA, order="asc", limit=100, conversation_id="default"))
    assert types(said) == [
        "system_message",
        "user_message",
        "assistant_message",
        "summary_message",
        "user_message",
        "reasoning_message",
        "tool_call_message",
        "tool_return_message",
        "assistant_message",
        "approval_request_message",
        "approval_response_message",
        "tool_return_message",
    ]
    assert said[0].content == old.COMPILED, "what the model was last given"
    by_id = {message.id: message for message in said}
    assert by_id[old.message_id(2)].content == "Long ago I said hello."
    picture = by_id[old.message_id(4)]
    assert ([part.type for part in picture.content], picture.otid) == (["text", "image"], "my-own-otid")
    assert by_id[old.message_id(5)].summary == "They said hello."
    assert by_id[old.message_id(11)].status == "error"
    assert (by_id[old.message_id(8)].content, str(by_id[old.message_id(8)].date)[:10]) == (
        "It is a pixel.",
        "2025-03-01",
    )
    ben = list(client.agents.messages.list(old.BEN, order="asc"))
    thought = [message.reasoning for message in ben if message.message_type == "reasoning_message"]
    assert thought == ["He told me his name."]

    talk = client.conversations.retrieve(old.TALK)
    assert (talk.summary, talk.agent_id, talk.isolated_block_ids) == ("On the phone", old.ADA, [old.ISOLATED])
    heard = [message.content for message in client.conversations.messages.list(old.TALK, order="asc")][-2:]
    assert heard == ["Can you hear me?", "Loud and clear."]
    forked = list(client.conversations.messages.list(old.FORK, order="asc"))[-3:]
    assert [message.content for message in forked] == [*heard, "And on this line?"]
    assert old.message_id(41) not in [message.id for message in forked]
    assert forked[-1].id == old.message_id(44)


def test_vectors_are_those_that_there_were(moving: Moving) -> None:
    stored = moving.rows(
        "SELECT p.id, v.embedding::vector::real[] AS vector, e.handle FROM memory.passage_vectors v"
        " JOIN memory.passages p ON p.id = v.passage_id AND p.file_id IS NULL"
        " JOIN memory.embedding_models e ON e.id = v.model_id"
    )
    by_id = {f"passage-{row['id']}": (row["handle"], row["vector"]) for row in stored}
    models = {0: ("openai/text-embedding-3-small", 1, 1_536), 1: ("openai/text-embedding-3-small", 2, 1_536)}
    models[2] = ("openai/text-embedding-3-large", 3, 3_072)
    models |= {100 + size: (f"elsewhere/embedder-{size}", size, size) for size in letta_oddities.SIZES if size}
    assert by_id.keys() == {number("passage", place) for place in models}
    for place, (handle, direction, size) in models.items():
        old_vector = letta_database.direction(direction, size)
        assert (by_id[number("passage", place)][0], len(by_id[number("passage", place)][1])) == (handle, size)
        products = (one * two for one, two in zip(by_id[number("passage", place)][1], old_vector, strict=True))
        assert sum(products) == pytest.approx(1.0, abs=1e-3)
    client = moving.stack.client()
    for archive_id, query in (
        (old.SMALL_ARCHIVE, "owl midnight"),
        (old.PLAIN_ARCHIVE, "found words"),
        (old.ODD_ARCHIVE, "elsewhere"),
        *((letta_oddities.archive_id(size), "thought") for size in letta_oddities.SIZES),
    ):
        assert client.passages.search(query=query, archive_id=archive_id), archive_id
    [tagged] = client.passages.search(query="thought", archive_id=letta_oddities.archive_id(384))
    assert tagged.passage.tags == ["row"]
    [first, *_] = client.passages.search(query="owl", archive_id=old.SMALL_ARCHIVE)
    assert (first.passage.text, first.passage.tags) == (old.FREQUENT, ["night"])
    odd = client.archives.retrieve(old.ODD_ARCHIVE)
    assert (odd.embedding_config.handle, odd.embedding_config.embedding_dim) == ("elsewhere/embedder", 8)


def test_what_stands_around_the_agents(moving: Moving) -> None:
    client = moving.stack.client()
    files = {file.id: file for file in client.folders.files.list(old.FOLDER, include_content=True)}
    assert files.keys() == {old.REPORT, old.NOTES}
    assert files[old.REPORT].content == "The moon was full.\nThe owl was not."
    assert list(client.folders.agents.list(old.FOLDER)) == [old.ADA]
    assert {server.id for server in client.mcp_servers.list()} == {old.SERVER, number("mcp_server", 2)}
    with httpx.Client(base_url=moving.stack.url, timeout=30) as rest:
        [provider] = [one for one in rest.get("/v1/providers/").json() if one["name"] == "mine"]
        assert provider["id"] == old.PROVIDER
        identity = rest.get(f"/v1/identities/{old.PERSON}").json()
        assert (identity["identifier_key"], identity["agent_ids"], identity["block_ids"]) == (
            "ada",
            [old.ADA],
            [old.ADAS_HUMAN],
        )
        group = rest.get(f"/v1/groups/{old.PAIR}").json()
        assert (group["agent_ids"], group["manager_type"]) == ([old.BEN, old.ADA], "round_robin")


def verify(moving: Moving, old_url: str) -> subprocess.CompletedProcess[str]:
    """Runs `loci import --verify` of another server against this one."""
    command = moving.command() | {"args": [sys.executable, "-m", "cli", "import", "--verify", old_url]}
    command["env"] = command["env"] | {"LOCI_BASE_URL": moving.stack.url}
    return subprocess.run(**command, capture_output=True, timeout=SECONDS, check=False)


class OldServer(http.server.BaseHTTPRequestHandler):
    """A server that answers as this one does, but for a name and a message."""

    stack_url = ""

    def do_GET(self) -> None:
        answer = httpx.get(f"{self.stack_url}{self.path}", timeout=30)
        body = answer.content.replace(b"Ada's friend", b"Ada's oldest friend").replace(b"Loud and clear.", b"Hardly.")
        self.send_response(answer.status_code)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: Any) -> None:
        """Prints nothing."""


def test_two_servers_are_compared_call_by_call(moving: Moving) -> None:
    same = verify(moving, moving.stack.url)
    assert (same.returncode, same.stderr) == (0, ""), same.stdout
    assert same.stdout.splitlines()[-1].endswith("lists compared, 0 differences")
    OldServer.stack_url = moving.stack.url
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), OldServer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        other = verify(moving, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()
    assert other.returncode == 1
    differences = [line for line in other.stdout.splitlines() if ", now " in line]
    assert f'/v1/agents/ {old.ADA}: name: "Ada\'s oldest friend", now "Ada\'s friend"' in differences
    talk = f"/v1/conversations/{old.TALK}/messages"
    assert f"{talk} assistant_message: content: 'Hardly.', now 'Loud and clear.'" in differences
    assert f"{len(differences):,} differences from" in other.stderr


def test_an_imported_agent_goes_on(moving: Moving, openai_fake: OpenAIServer) -> None:
    client = moving.stack.client()
    openai_fake.reply(Reply(text="I remember the pixel."))
    reply = client.agents.messages.create(old.ADA, input="What was it?")
    assert reply.messages[-1].content == "I remember the pixel."
    shown = json.dumps(openai_fake.requests[-1].body)
    for words in ("They said hello.", "It is a pixel.", "I like owls.", "no gambling"):
        assert words in shown
    assert "Long ago I said hello." not in shown, "it was out of the window before"

    openai_fake.reply(Reply(text="Copied."))
    client.conversations.messages.create(old.FORK, input="Hello?", streaming=False)
    shown = json.dumps(openai_fake.requests[-1].body)
    assert "Loud and clear." in shown
    assert "It is a pixel." not in shown


def test_an_approval_that_was_open_can_still_be_given(moving: Moving, openai_fake: OpenAIServer) -> None:
    client = moving.stack.client()
    pending = client.agents.retrieve(old.CLEO, include=["agent.pending_approval"]).pending_approval
    assert pending.id == old.message_id(33)
    openai_fake.reply(Reply(text="Very well."))
    denied = [{"type": "approval", "tool_call_id": "call-5", "approve": False, "reason": "no"}]
    answer: Any = {"type": "approval", "approvals": denied, "approval_request_id": old.message_id(33)}
    reply = client.agents.messages.create(old.CLEO, messages=[answer])
    assert reply.messages[-1].content == "Very well."


def test_importing_again_changes_nothing(moving: Moving, tmp_path: Path) -> None:
    before = moving.counts(letta_database.ORGANIZATION)
    tables = moving.bring_over(tmp_path)
    # Tools that stand in for others are named each time.
    assert here(tables) == {"tools": 4}
    assert moving.counts(letta_database.ORGANIZATION) == before
    for table, count in EXPECTED.items():
        assert tables[table]["already_there"] >= count - (4 if table == "tools" else 0), table


def test_killed_at_any_moment_it_goes_on(moving: Moving, tmp_path: Path, openai_fake: OpenAIServer) -> None:
    with httpx.Client(base_url=moving.stack.url, timeout=30) as rest:
        tenant: str = rest.post("/v1/admin/orgs/", json={"name": "other"}).json()["id"]
    options = ("--into", tenant)
    for moment in ("blocks ...", "  archive Large", "agents ...", "  agent Ada's friend", "groups ..."):
        with subprocess.Popen(**moving.command(*options), stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(moment):
                    process.kill()
                    break
    agents = moving.bring_over(tmp_path, *options)["agents"]
    assert agents["rows"] - agents["left_out"] == EXPECTED["agents"]
    first, second = moving.counts(letta_database.ORGANIZATION), moving.counts(tenant)
    # The first tenant has gone on talking since.
    quiet = [table for table in TABLES if table != "agent.messages"]
    assert {table: second[table] for table in quiet} == {table: first[table] for table in quiet}
    # Six are prompts, one was absorbed by another, two were copied for a fork.
    assert second["agent.messages"] == EXPECTED["messages"] - 6 - 1 + 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--organization", "org-nobody"), "has no organization org-nobody"),
        (("--into", "nobody"), "--into must be an organization's id"),
        (("--into", f"org-{UUID(int=77, version=4)}"), "there is no organization org-"),
        (("--postgres", "postgresql://127.0.0.1:9/none"), "cannot be opened"),
    ],
)
def test_what_cannot_be_imported_is_said_in_a_line(moving: Moving, options: tuple[str, ...], words: str) -> None:
    process = subprocess.run(**moving.command(*options), capture_output=True, timeout=SECONDS, check=False)
    assert process.returncode in (1, 2)
    assert words in process.stderr
    assert len(process.stderr.splitlines()) == 1


def test_a_database_that_is_another_one(moving: Moving) -> None:
    process = subprocess.run(
        **moving.command("--postgres", moving.url("postgres")), capture_output=True, timeout=SECONDS, check=False
    )
    assert process.returncode == 1
    assert "no tables of a Letta server" in process.stderr
