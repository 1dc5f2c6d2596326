"""`loci import`: the real command, from a database as an old server leaves it into a whole Loci, read by the official
client.

The tests are in the order in which somebody who moves in goes: a dry run, the move, life after it, the move again.
"""

import asyncio
import json
import subprocess
import sys
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
from tests import letta_database
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
            "args": [sys.executable, "-m", "cli", "import", "--postgres", self.url(), *options],
            "env": self.stack.environment | more,
            "cwd": ROOT,
            "text": True,
        }

    def bring_over(self, folder: Path, *options: str, key: str = letta_database.ENCRYPTION_KEY) -> dict[str, Any]:
        """The report by kind."""
        file = folder / "report.json"
        command = self.command("--report", str(file), *options, key=key)
        done = subprocess.run(**command, capture_output=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
        report = json.loads(file.read_text())
        assert report["complete"]
        for kind, one in report["entities"].items():
            assert kind in done.stdout
            for row in one["left_out_rows"]:
                assert row["reason"] in done.stdout
        found: dict[str, Any] = report["entities"]
        return found

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


def reasons(entities: dict[str, Any], kind: str) -> list[str]:
    """Why rows of a kind are not taken."""
    return [row["reason"] for row in entities[kind]["left_out_rows"]]


def taken(entities: dict[str, Any]) -> dict[str, int]:
    """Returns the count of each kind with taken rows."""
    return {kind: one["taken"] for kind, one in entities.items() if one["taken"]}


EXPECTED = {
    "providers": 1,
    "mcp servers": 1,
    "sandbox configs": 1,
    "sandbox variables": 2,
    "tools": 1,
    "blocks": 5,
    "archives": 4,
    "passages": 5,
    "folders": 1,
    "files": 2,
    "agents": 3,
    "secrets": 3,
    "conversations": 2,
    "messages": 21,
    "identities": 1,
    "groups": 1,
}


def test_a_dry_run_writes_nothing(moving: Moving, tmp_path: Path) -> None:
    before = moving.counts(letta_database.ORGANIZATION)
    entities = moving.bring_over(tmp_path, "--dry-run")
    # What a server or a program would refuse, nobody knows before.
    assert taken(entities) == EXPECTED | {"mcp servers": 2, "agents": 4, "messages": EXPECTED["messages"] + 12}
    assert moving.counts(letta_database.ORGANIZATION) == before
    for key, reason in (("", NO_KEY), ("another key", WRONG_KEY)):
        entities = moving.bring_over(tmp_path, "--dry-run", key=key)
        assert [one for one in reasons(entities, "secrets") if reason in one]
        assert reasons(entities, "sandbox variables") == [reason]


def test_everything_comes_over(moving: Moving, tmp_path: Path) -> None:
    entities = moving.bring_over(tmp_path)
    assert taken(entities) == EXPECTED
    [program] = reasons(entities, "mcp servers")
    assert "programs are off" in program
    [refused] = [row for row in entities["agents"]["left_out_rows"] if row.get("id") == old.REFUSED]
    assert "BLOCK_LABEL_TAKEN" in refused["reason"]
    assert "its agent is not taken" in reasons(entities, "messages")
    assert reasons(entities, "groups") == [f"its manager {letta_database.identifier('agent', 9)} is not here"]
    assert sorted(reasons(entities, "passages")) == ["it has no text", "its archive is not there"]
    assert reasons(entities, "tools") == ["this server has no tool of that name"]
    assert {"runs", "steps"} <= entities.keys()
    changed = [row["what"] for row in entities["agents"]["changed_rows"]]
    assert "it lost the tool no_longer_there, which is not here" in changed
    assert "1 of the messages in its window are not there" in changed


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
    said = list(client.agents.messages.list(old.ADA, order="asc", limit=100))
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
    found = {f"passage-{row['id']}": (row["handle"], row["vector"]) for row in stored}
    sizes = {0: ("small", 1, 1_536), 1: ("small", 2, 1_536), 2: ("large", 3, 3_072)}
    assert found.keys() == {letta_database.identifier("passage", number) for number in sizes}
    for number, (name, direction, size) in sizes.items():
        handle, vector = found[letta_database.identifier("passage", number)]
        wanted = letta_database.direction(direction, size)
        assert (handle, len(vector)) == (f"openai/text-embedding-3-{name}", size)
        assert sum(one * two for one, two in zip(vector, wanted, strict=True)) == pytest.approx(1.0, abs=1e-3)
    client = moving.stack.client()
    for archive_id, query in (
        (old.SMALL_ARCHIVE, "owl midnight"),
        (old.PLAIN_ARCHIVE, "found words"),
        (old.ODD_ARCHIVE, "elsewhere"),
    ):
        assert client.passages.search(query=query, archive_id=archive_id), archive_id
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
    assert [server.id for server in client.mcp_servers.list()] == [old.SERVER]
    with httpx.Client(base_url=moving.stack.url, timeout=30) as http:
        [provider] = [one for one in http.get("/v1/providers/").json() if one["name"] == "mine"]
        assert provider["id"] == old.PROVIDER
        identity = http.get(f"/v1/identities/{old.PERSON}").json()
        assert (identity["identifier_key"], identity["agent_ids"], identity["block_ids"]) == (
            "ada",
            [old.ADA],
            [old.ADAS_HUMAN],
        )
        group = http.get(f"/v1/groups/{old.PAIR}").json()
        assert (group["agent_ids"], group["manager_type"]) == ([old.BEN, old.ADA], "round_robin")


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
    entities = moving.bring_over(tmp_path)
    assert taken(entities) == {}
    assert moving.counts(letta_database.ORGANIZATION) == before
    for kind in ("agents", "blocks", "archives", "passages", "files", "identities", "groups", "providers"):
        assert entities[kind]["already_there"] >= EXPECTED[kind], kind


def test_killed_at_any_moment_it_goes_on(moving: Moving, tmp_path: Path, openai_fake: OpenAIServer) -> None:
    with httpx.Client(base_url=moving.stack.url, timeout=30) as http:
        tenant: str = http.post("/v1/admin/orgs/", json={"name": "other"}).json()["id"]
    options = ("--into", tenant)
    for moment in ("blocks ...", "  archive Large", "agents ...", "  agent Ada's friend", "groups ..."):
        with subprocess.Popen(**moving.command(*options), stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(moment):
                    process.kill()
                    break
    entities = moving.bring_over(tmp_path, *options)
    there = {kind: one["taken"] + one["already_there"] for kind, one in entities.items()}
    assert there["agents"] == EXPECTED["agents"]
    first, second = moving.counts(letta_database.ORGANIZATION), moving.counts(tenant)
    # The first tenant has gone on talking since.
    said = [table for table in TABLES if table != "agent.messages"]
    assert {table: second[table] for table in said} == {table: first[table] for table in said}
    assert second["agent.messages"] == EXPECTED["messages"]


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
    done = subprocess.run(**moving.command(*options), capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_database_that_is_another_one(moving: Moving) -> None:
    done = subprocess.run(
        **moving.command("--postgres", moving.url("postgres")), capture_output=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 1
    assert "no tables of a Letta server" in done.stderr
