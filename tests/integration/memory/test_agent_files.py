"""Files as agents use them: folders attached, files opened and looked through, and what the prompt gets of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import orjson
import pytest

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import folder_pb2
from loci.memory.v1 import folder_service_pb2 as pb
from services.common.errors import FailedPrecondition, InvalidArgument, NotFound
from services.memory.core.file_text.pages import pages_of
from tests.integration.memory.harness import EMBEDDING, Memory, fails
from tests.page_requests import paged

FILE = """
INSERT INTO memory.files (
    organization_id, id, folder_id, name, original_name, media_type, size, sha256, status, line_count, char_count,
    created_by_id, created_at)
VALUES ($1, $2, $3, $4, $4, 'text/markdown', 1, '', 4, $5, $6, $2, clock_timestamp())
"""
PAGE = """
INSERT INTO memory.file_pages (organization_id, file_id, page, first_line, last_line, text)
VALUES ($1, $2, $3, $4, $5, $6)
"""
NOTES = "\n".join(f"note {number}" for number in range(1, 101))


class Files:
    """An agent, its folders and their files."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.agent = f"agent-{uuid4()}"
        self.ids: dict[str, str] = {}

    async def folder(self, name: str, **files: str) -> str:
        """A folder of files with these texts, parsed and not embedded."""
        folder_id = f"source-{uuid4()}"
        draft = folder_pb2.Folder(id=folder_id, name=name, description=f"About {name}", embedding=EMBEDDING)
        await self.memory.folders.CreateFolder(pb.CreateFolderRequest(folder=draft))
        for stem, text in files.items():
            self.ids[f"{name}/{stem}.md"] = await self._file(UUID(folder_id[7:]), f"{stem}.md", text)
        return folder_id

    async def _file(self, folder_id: UUID, name: str, text: str) -> str:
        organization_id, file_id, pages = self.memory.caller.organization_id, uuid4(), list(pages_of(text))
        values = organization_id, file_id, folder_id, name, pages[-1].last_line, len(text)
        await self.memory.pool.execute(FILE, *values)
        rows = [(organization_id, file_id, page.page, page.first_line, page.last_line, page.text) for page in pages]
        await self.memory.pool.executemany(PAGE, rows)
        return f"file-{file_id}"

    async def upload(self, folder_id: str, name: str, text: str) -> None:
        """Parsed and embedded."""

        def parts() -> Iterator[pb.UploadFileRequest]:
            yield pb.UploadFileRequest(header=pb.UploadHeader(folder_id=folder_id, name=name))
            yield pb.UploadFileRequest(data=text.encode())

        await self.memory.folders.UploadFile(parts())
        worker = self.memory.worker()
        while await worker.run_one():
            pass

    async def attach(self, folder_id: str, *, most: int = 5, characters: int = 0) -> None:
        limits = pb.FileLimits(max_files_open=most, per_file_view_chars=characters)
        request = pb.AttachFolderRequest(agent_id=self.agent, folder_id=folder_id, limits=limits)
        await self.memory.folders.AttachFolder(request)

    async def detach(self, folder_id: str) -> int:
        request = pb.DetachFolderRequest(agent_id=self.agent, folder_id=folder_id)
        return (await self.memory.folders.DetachFolder(request)).folders_left

    async def open(self, name: str, *, most: int = 5) -> list[str]:
        limits = pb.FileLimits(max_files_open=most)
        request = pb.OpenFileRequest(agent_id=self.agent, file_id=self.ids[name], limits=limits)
        return list((await self.memory.folders.OpenFile(request)).closed_names)

    async def close(self, name: str) -> None:
        request = pb.CloseFileRequest(agent_id=self.agent, file_id=self.ids[name])
        await self.memory.folders.CloseFile(request)

    async def listed(self, **options: Any) -> pb.ListAgentFilesResponse:
        request = pb.ListAgentFilesRequest(**paged(agent_id=self.agent, **options))
        return await self.memory.folders.ListAgentFiles(request)

    async def opened(self, agent_id: str = "") -> list[str]:
        request = pb.ListAgentFilesRequest(agent_id=agent_id or self.agent, is_open=True)
        return [file.file_name for file in (await self.memory.folders.ListAgentFiles(request)).files]

    async def directories(self, agent_id: str = "") -> list[folder_pb2.Directory]:
        request = agent_pb.GetAgentMemoryRequest(agent_id=agent_id or self.agent)
        return list((await self.memory.agents.GetAgentMemory(request)).memory.directories)

    async def call(
        self, tool: str, *, key: str = "", most: int = 5, characters: int = 10_000, **arguments: Any
    ) -> agent_pb.ApplyToolResponse:
        request = agent_pb.ApplyToolRequest(
            call_key=key or f"call-{uuid4()}",
            agent_id=self.agent,
            tool_name=tool,
            arguments_json=orjson.dumps(arguments).decode(),
            max_files_open=most,
            per_file_view_chars=characters,
        )
        return await self.memory.agents.ApplyTool(request)


@pytest.fixture
async def files(memory: Memory) -> Files:
    return Files(memory)


async def test_attaching_opening_closing_and_what_is_seen_of_it(files: Files) -> None:
    docs = await files.folder("docs", a="alpha\nbeta", b=NOTES, c="# Gamma")
    other = await files.folder("other", d="delta")
    for _ in range(2):
        await files.attach(docs, most=2)
    assert await files.opened() == ["docs/a.md", "docs/b.md"]
    # New files win; the one opened longest ago gives way.
    await files.attach(other, most=2)
    assert await files.opened() == ["docs/b.md", "other/d.md"]
    assert await files.open("docs/a.md", most=2) == ["docs/b.md"]
    assert await files.open("docs/b.md", most=2) == ["other/d.md"]
    first, second = await files.directories()
    assert (first.name, first.description, first.instructions, first.file_count) == ("docs", "About docs", "", 3)
    assert [(file.name, file.is_open) for file in first.files] == [
        ("docs/a.md", True),
        ("docs/b.md", True),
        ("docs/c.md", False),
    ]
    assert first.files[0].visible_content == "[Viewing file start (out of 2 lines)]\n1: alpha\n2: beta"
    assert first.files[2].visible_content == ""
    assert [file.name for file in second.files] == ["other/d.md"]

    # The one opened longest ago goes; opening again makes it the newest.
    assert await files.open("docs/a.md", most=2) == []
    assert await files.open("other/d.md", most=2) == ["docs/b.md"]
    await files.close("other/d.md")
    await files.close("other/d.md")
    assert await files.opened() == ["docs/a.md"]
    assert (await files.memory.folders.CloseAllFiles(pb.CloseAllFilesRequest(agent_id=files.agent))).closed_names == [
        "docs/a.md"
    ]
    assert await files.opened() == []

    await files.open("other/d.md")
    assert await files.detach(docs) == 1
    assert [directory.name for directory in await files.directories()] == ["other"]
    assert await files.detach(docs) == 1
    with fails(NotFound, "FILE_NOT_FOUND"):
        await files.open("docs/a.md")
    assert await files.detach(other) == 0
    await files.attach(other, most=0)
    assert await files.opened() == []


async def test_the_list_pages_and_filters(files: Files) -> None:
    docs = await files.folder("docs", a="alpha", b="beta\n\ngamma", c="x")
    await files.attach(docs, most=2)
    first = await files.listed(page_size=2)
    assert [file.file_name for file in first.files] == ["docs/a.md", "docs/b.md"]
    rest = await files.listed(page_size=2, page_token=first.next_page_token)
    assert [file.file_name for file in rest.files] == ["docs/c.md"]
    assert not rest.next_page_token
    for cursor in (files.ids["docs/b.md"], first.files[1].id):
        assert (await files.listed(after=cursor)).files == rest.files
    assert (await files.listed(before=first.files[1].id)).files == first.files[:1]
    with fails(NotFound, "CURSOR_NOT_FOUND"):
        await files.listed(after=f"file_agent-{uuid4()}")
    newest = await files.listed(descending=True, page_size=1)
    assert newest.files == rest.files
    assert [file.file_name for file in (await files.listed(is_open=False)).files] == ["docs/c.md"]
    opened, closed = first.files[1], rest.files[0]
    assert opened.id.startswith("file_agent-")
    assert (opened.file_id, opened.folder_id, opened.folder_name) == (files.ids["docs/b.md"], docs, "docs")
    assert (opened.start_line, opened.end_line, opened.is_open) == (0, 0, True)
    assert opened.visible_content.endswith("\n1: beta\n2: gamma")
    assert opened.HasField("last_accessed_at")
    assert (closed.is_open, closed.start_line, closed.HasField("visible_content")) == (False, 0, False)
    assert not closed.HasField("last_accessed_at")


async def test_what_cannot_be_attached_or_opened_is_told(files: Files) -> None:
    docs = await files.folder("docs", a="alpha")
    with fails(NotFound, "FOLDER_NOT_FOUND"):
        await files.attach(f"source-{uuid4()}")
    with fails(NotFound, "FOLDER_NOT_FOUND"):
        await files.detach(f"source-{uuid4()}")
    with fails(NotFound, "FOLDER_NOT_FOUND"):
        await files.memory.folders.ListFolderAgents(pb.ListFolderAgentsRequest(folder_id=f"source-{uuid4()}"))
    with fails(NotFound, "FILE_NOT_FOUND"):
        await files.open("docs/a.md")
    await files.attach(docs)
    with fails(InvalidArgument, "FILE_INVALID"):
        await files.open("docs/a.md", most=0)
    with fails(InvalidArgument, "PAGE_SIZE_INVALID"):
        await files.memory.folders.BatchGetAgentFolders(pb.BatchGetAgentFoldersRequest())
    await files.memory.pool.execute(
        "UPDATE memory.files SET status = 2, line_count = 0 WHERE id = $1", UUID(files.ids["docs/a.md"][5:])
    )
    with fails(FailedPrecondition, "FILE_NOT_READY"):
        await files.open("docs/a.md")
    told = await files.call("open_files", file_requests=[{"file_name": "a.md"}])
    assert told.is_error
    assert "is still being read" in told.tool_return
    # Another tenant sees nothing of it.
    with files.memory.of(uuid4()), fails(NotFound, "FOLDER_NOT_FOUND"):
        await files.attach(docs)


async def test_folders_of_agents_and_agents_of_a_folder(files: Files) -> None:
    docs, other = await files.folder("docs", a="alpha"), await files.folder("other")
    await files.attach(docs)
    await files.attach(other)
    copy = f"agent-{uuid4()}"
    share = agent_pb.ShareArchivesRequest(source_agent_id=files.agent, target_agent_id=copy)
    for _ in range(2):
        await files.memory.agents.ShareArchives(share)
    asked = pb.BatchGetAgentFoldersRequest(agent_ids=[f"agent-{UUID(int=9)}", copy, files.agent])
    none, copied, own = (await files.memory.folders.BatchGetAgentFolders(asked)).agents
    assert (list(none.folders), [folder.id for folder in own.folders]) == ([], [docs, other])
    assert copied.folders == own.folders
    assert (own.folders[0].name, own.folders[0].file_count, own.folders[0].embedding) == ("docs", 1, EMBEDDING)
    batch = agent_pb.BatchGetAgentMemoryRequest(agent_ids=[files.agent])
    [memory] = (await files.memory.agents.BatchGetAgentMemory(batch)).memories
    assert (memory.folders, list(memory.directories)) == (own.folders, [])
    assert await files.opened(copy) == ["docs/a.md"]
    listed = pb.ListFolderAgentsRequest(folder_id=docs)
    assert list((await files.memory.folders.ListFolderAgents(listed)).agent_ids) == [files.agent, copy]
    for _ in range(2):
        await files.memory.agents.PurgeAgent(agent_pb.PurgeAgentRequest(agent_id=files.agent))
    assert list((await files.memory.folders.ListFolderAgents(listed)).agent_ids) == [copy]
    assert await files.directories() == []
    left = "SELECT count(*) FROM memory.agent_files WHERE agent_id = $1"
    assert await files.memory.pool.fetchval(left, UUID(files.agent[6:])) == 0


async def test_a_new_file_is_opened_for_every_agent_of_its_folder_within_its_limits(files: Files) -> None:
    docs = await files.folder("docs", a="alpha", b="beta")
    await files.attach(docs, most=2, characters=500)
    closed, none = Files(files.memory), Files(files.memory)
    await closed.attach(docs, most=3)
    await closed.memory.folders.CloseAllFiles(pb.CloseAllFilesRequest(agent_id=closed.agent))
    await none.attach(docs, most=0)
    await files.upload(docs, "new.md", "new " * 1_000)
    assert await files.opened() == ["docs/b.md", "docs/new.md"]
    assert len((await files.listed(is_open=True)).files[1].visible_content) <= 500
    assert (await closed.opened(), await none.opened()) == (["docs/new.md"], [])
    # It is there before it is embedded.
    await files.attach(docs, most=1)
    await files.upload(docs, "newer.md", "newer")
    assert await files.opened() == ["docs/newer.md"]


async def test_the_files_of_many_agents_in_one_answer(files: Files) -> None:
    docs = await files.folder("docs", a="alpha", b=NOTES)
    await files.attach(docs, most=2)
    other = Files(files.memory)
    await other.attach(docs, most=0)
    other.ids = files.ids
    await other.call("open_files", file_requests=[{"file_name": "b.md", "offset": 1, "length": 1}])
    ids = [files.agent, f"agent-{uuid4()}", other.agent]
    request = agent_pb.BatchGetAgentMemoryRequest(agent_ids=ids, include_files=True)
    own, without, others = (await files.memory.agents.BatchGetAgentMemory(request)).memories
    assert own.files == (await files.listed()).files
    assert others.files == (await other.listed()).files
    assert [file.visible_content for file in others.files] == [
        "",
        "[Viewing lines 2 to 2 (out of 100 lines)]\n2: note 2",
    ]
    assert not without.files
    # Nobody pays for what he does not ask for.
    request.include_files = False
    assert not (await files.memory.agents.BatchGetAgentMemory(request)).memories[0].files


async def test_the_memory_is_one_statement_with_and_without_folders(files: Files, memory_url: str) -> None:
    """Long files are not read to their end, and no table is read whole."""
    docs = await files.folder("docs", long="\n".join(f"{number} {'x' * 90}" for number in range(20_000)))
    agent = files.agent
    await files.attach(docs, characters=2_000)
    texts = []
    # That the agent has folders is found out by the first look of a process.
    for attached, times in ((agent, 2), (agent, 1), (f"agent-{uuid4()}", 1)):
        await files.memory.statement_counts()
        files.memory.counter.reset()
        found = await files.directories(attached)
        assert [len(directory.files) for directory in found] == ([1] if attached == agent else [])
        assert (await files.memory.statement_counts())[0] == times
        texts.append(files.memory.counter.texts[-1])
    statement, without = texts[1:]
    assert "file_pages" not in without
    plan = await _plan(memory_url, statement, files.memory.caller.organization_id, UUID(agent[6:]))
    pages = [node for node in _nodes(plan) if node.get("Relation Name") == "file_pages"]
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in pages) <= 3
    assert all(node["Node Type"] != "Seq Scan" for node in pages)
    # With the last folder that is over.
    await files.detach(docs)
    for times in (1, 1):
        files.memory.counter.reset()
        assert await files.directories() == []
        assert (await files.memory.statement_counts())[0] == times
    assert "file_pages" not in files.memory.counter.texts[-1]


async def test_what_is_in_view_together_can_be_sent_whatever_the_limits_are(files: Files) -> None:
    text = "\n".join(["x" * 3_000] * 900)
    await files.attach(await files.folder("docs", a=text, b=text), most=1_000, characters=10**9)
    [docs] = await files.directories()
    shown = [len(file.visible_content) for file in docs.files]
    assert all(1_990_000 < length <= 2_000_000 for length in shown)
    assert [len(file.visible_content) for file in (await files.listed()).files] == shown
    await files.close("docs/a.md")
    [docs] = await files.directories()
    assert len(docs.files[0].visible_content) > 2_700_000


async def _plan(url: str, statement: str, organization_id: UUID, agent_id: UUID) -> dict[str, Any]:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        await connection.execute("SET enable_seqscan = off")  # the tables are small here
        await connection.execute(f"PREPARE asked (uuid, uuid, uuid) AS {statement}")
        asked = f"EXPLAIN (ANALYZE, COSTS OFF, FORMAT JSON) EXECUTE asked ('{organization_id}', '{agent_id}', NULL)"
        found: dict[str, Any] = json.loads(await connection.fetchval(asked))[0]["Plan"]
        return found
    finally:
        await connection.close()


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)


# The tools ----------------------------------------------------------------------------------------------------


async def test_open_files(files: Files) -> None:
    docs = await files.folder("docs", a="alpha", b=NOTES, c="gamma")
    other = await files.folder("other", a="another")
    await files.attach(docs, most=0)
    await files.attach(other, most=0)
    requests = [{"file_name": "docs/a.md", "length": 10**11}, {"file_name": "b.md", "offset": 40, "length": 2}]
    told = await files.call("open_files", key="k1", most=2, file_requests=requests)
    assert not told.is_error
    assert told.tool_return == (
        "* Opened docs/a.md\n* Opened docs/b.md (lines 41-42)\n\n"
        "docs/a.md\n[Viewing file start (out of 1 lines)]\n1: alpha\n\n"
        "docs/b.md\n[Viewing lines 41 to 42 (out of 100 lines)]\n41: note 41\n42: note 42"
    )
    assert await files.opened() == ["docs/a.md", "docs/b.md"]
    part = (await files.listed(is_open=True)).files[1]
    assert (part.start_line, part.end_line) == (41, 42)
    second = await files.call("open_files", most=2, file_requests="docs/c.md")
    assert second.tool_return.endswith("1: gamma\n\nClosed: docs/a.md.")
    # The first call again changes nothing.
    assert await files.call("open_files", key="k1", most=2, file_requests=requests) == told
    assert await files.opened() == ["docs/b.md", "docs/c.md"]
    await files.call("open_files", most=2, file_requests=["other/a.md"], close_all_others=True)
    assert await files.opened() == ["other/a.md"]
    # A long view is cut at its limit, in the answer and in the prompt alike.
    told = await files.call("open_files", characters=400, file_requests=["docs/b.md"])
    [directory, _] = await files.directories()
    assert directory.files[0].visible_content in told.tool_return
    assert len(directory.files[0].visible_content) <= 400
    assert "open_files with offset=" in told.tool_return


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({}, 'The argument "file_requests" must be a list of objects'),
    ({"file_requests": []}, "name at least one file"),
    ({"file_requests": [{"offset": 1}]}, 'The argument "file_name" is missing'),
    ({"file_requests": [{"file_name": "docs/b.md", "offset": 100}]}, "has 100 lines; offset=100 is behind the last"),
    ({"file_requests": [{"file_name": "docs/b.md", "length": -1}]}, "are not negative"),
    ({"file_requests": ["docs/a.md", "docs/b.md", "x"]}, "at most 2 files open at once, and asked for 3"),
    ({"file_requests": ["docs/bb.md"]}, 'There is no file "docs/bb.md" in your folders. Close to it: docs/b.md'),
    ({"file_requests": ["docs/\x00a.md", "nope"]}, 'There is no file "nope"'),
    ({"file_requests": ["docs/a.md"], "close_all_others": 7}, 'The argument "close_all_others" must be a boolean'),
]


async def test_what_the_model_did_wrong_is_told_and_nothing_opened(files: Files) -> None:
    docs = await files.folder("docs", a="alpha", b=NOTES)
    await files.attach(docs, most=0)
    for arguments, said in MISTAKES:
        told = await files.call("open_files", most=2, **arguments)
        assert told.is_error
        assert said in told.tool_return
    assert await files.opened() == []


async def test_those_who_open_at_once_do_not_open_too_many(files: Files) -> None:
    docs = await files.folder("docs", **{letter: letter for letter in "abcdefgh"})
    await files.attach(docs, most=0)
    calls = [files.call("open_files", key=f"k{place % 4}", most=2, file_requests=[f"{letter}.md"])
             for place, letter in enumerate("abcdabcd")]  # fmt: skip
    returned = await asyncio.gather(*calls)
    assert returned[:4] == returned[4:]
    assert all(not each.is_error for each in returned)
    assert len(await files.opened()) == 2


async def test_looking_through_files(files: Files) -> None:
    docs = await files.folder("docs", b=NOTES)
    await files.upload(docs, "a.md", "The cat\nsleeps.\n\nIt purrs.")
    code = await files.folder("code", c="def cat():\n    pass")
    await files.attach(docs, most=0)
    await files.attach(code, most=0)
    told = await files.call("grep_files", pattern=r"\bcat\b", context_lines=0)
    assert told.tool_return == (
        "Found 2 matches in 2 files for pattern: '\\bcat\\b'; matches 1 to 2 are shown.\n\n"
        "code/c.md:\n> 1: def cat():\n\ndocs/a.md:\n> 1: The cat"
    )
    told = await files.call("grep_files", key="g", pattern="note", include="^docs/", offset=20)
    assert "> 21: note 21" in told.tool_return
    assert "matches 21 to 40 are shown" in told.tool_return
    assert told.tool_return.endswith("[Go on with offset=40.]")
    assert "Found 1 matches in 1 files" in (await files.call("grep_files", pattern="CAT", include="a*.md")).tool_return
    await files.detach(code)
    assert await files.call("grep_files", key="g", pattern="note", include="^docs/", offset=20) == told
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"pattern": "(?<=a)b"}, "knows neither lookahead"),
        ({"pattern": "a", "include": "["}, 'The argument "include" is not a valid'),
    ]
    for arguments, said in mistakes:
        refused = await files.call("grep_files", **arguments)
        assert refused.is_error
        assert said in refused.tool_return
    assert "has a name like that" in (await files.call("grep_files", pattern="a", include="zzz")).tool_return

    found = json.loads((await files.call("semantic_search_files", query="a kitten", limit=1)).tool_return)
    assert found == {
        "count": 1,
        "results": [{"file_name": "docs/a.md", "lines": "1-3", "text": "The cat\nsleeps.\n\nIt purrs."}],
    }
    assert "missing" in (await files.call("semantic_search_files")).tool_return
    await files.detach(docs)
    assert json.loads((await files.call("semantic_search_files", query="cat")).tool_return)["count"] == 0
    assert "No file to search" in (await files.call("grep_files", pattern="a")).tool_return
