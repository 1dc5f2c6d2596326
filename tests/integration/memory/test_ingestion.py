"""What becomes of uploads: every format, every bad file, workers that die anywhere, an embedder that fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, cast
from uuid import uuid4

import pytest

from loci.memory.v1 import folder_pb2
from loci.memory.v1 import folder_service_pb2 as folder_pb
from loci.memory.v1 import passage_service_pb2 as passage_pb
from services.common.errors import Aborted, InvalidArgument, LociError, NotFound, ResourceExhausted
from services.memory.adapters.parser import ChildParser
from services.memory.core.errors import Unparsable
from services.memory.core.file_text.kinds import FileKind
from services.memory.core.ports.files import IngestionStore, Parser
from services.memory.core.ranking.search import archive_lexeme, tenant_lexeme
from services.memory.files import job as ingestion
from services.memory.files import service as uploads
from services.memory.files import servicer as folders
from services.memory.files.model import FILE_JOB, FOLDER_JOB, ParseSummary, TextPage
from services.memory.files.parsing import child
from services.memory.files.parsing.unreadable import Unreadable
from services.memory.jobs.worker import Worker
from services.memory.passages.embedding import TextEmbedder
from tests import documents
from tests.integration.memory.files import new_folder, read, upload, uuid_of
from tests.integration.memory.harness import SIGNER, Memory, fails, unavailable

_LONG = "\n\n".join(
    f"Paragraph {number} tells of a kitten and its vehicle. " + "It purrs. " * 60 for number in range(40)
)


async def run(memory: Memory, worker: Worker | None = None) -> None:
    """Everything that is to be done now."""
    worker = worker or memory.worker()
    while await worker.run_one():
        pass


def files_worker(memory: Memory, parser: Parser, store: IngestionStore | None = None) -> Worker:
    """One that knows files alone."""
    stores, models = memory.stores, TextEmbedder(memory.embedder, memory.stores.passages)
    handler = ingestion.Ingestion(store or stores.ingestion, stores.uploads, stores.folders, parser, models)
    handlers = {FILE_JOB: handler.go_on, FOLDER_JOB: handler.remove_folder}
    return Worker(stores.jobs, handlers, SIGNER, uuid4())


async def passages(memory: Memory, folder_id: str) -> list[tuple[int, int, int]]:
    """Place and lines of the folder's pieces, once their number and words were found to be those of its archive."""
    key = (memory.caller.organization_id, uuid_of(folder_id))
    query = "SELECT place, first_line, last_line FROM memory.passages WHERE organization_id = $1 AND archive_id = $2"
    found = [tuple(row) for row in await memory.pool.fetch(f"{query} ORDER BY file_id, place", *key)]
    statement_counts = """
        SELECT a.passage_count = count(p.id) AND a.word_count = coalesce(sum(p.word_count), 0)
        FROM memory.archives a
        LEFT JOIN memory.passages p ON p.organization_id = a.organization_id AND p.archive_id = a.id
        WHERE a.organization_id = $1 AND a.id = $2 GROUP BY a.organization_id, a.id"""
    assert await memory.pool.fetchval(statement_counts, *key) in (True, None)
    return found


async def left(memory: Memory, table: str) -> int:
    query = f"SELECT count(*) FROM memory.{table} WHERE organization_id = $1"
    statement_counts: int = await memory.pool.fetchval(query, memory.caller.organization_id)
    return statement_counts


async def test_a_text_is_not_parsed_whatever_its_name_says(memory: Memory) -> None:
    folder_id = await new_folder(memory, "texts")
    for name, told, kept in (
        ("report.pdf", "application/pdf", "text/plain"),
        ("page.html", "", "text/plain"),
        ("notes.md", "text/markdown", "text/x-markdown"),
        ("unknown.bin", "application/octet-stream", "text/plain"),
    ):
        text = f"# {name}\n<b>the kitten</b> sleeps"
        file = await upload(memory, folder_id, name, text.encode(), media_type=told, is_text=True)
        assert file.media_type == kept
        await run(memory)
        assert (await read(memory, file)).content == text


async def test_every_format_is_read_and_found(memory: Memory) -> None:
    folder_id = await new_folder(memory, "f")
    files: dict[str, bytes] = {
        "a.pdf": documents.pdf("a kitten sleeps", "second page"),
        "a.docx": documents.docx("a kitten sleeps", heading="Pets"),
        "a.xlsx": documents.xlsx(("animal", "age"), ("kitten", 1)),
        "a.pptx": documents.pptx("Pets", "a kitten sleeps", "notes on it"),
        "a.html": b"<html><head><title>x</title></head><body><h1>Pets</h1><p>a <b>kitten</b></p></body></html>",
        "titled.html": b"<title>On\n cats</title><script>x</script><p>a kitten</p>",
        "a.md": b"# Pets\n\na kitten sleeps\n",
        "a.csv": b"animal,age\r\nkitten,1\r\n",
        "a.json": b'{"animal": "kitten"}',
        "a.py": b"def kitten() -> None:\n    sleep()\n",
        "Makefile": b"kitten:\n\tsleep 1\n",
        "latin.txt": "Ein Kätzchen (kitten) schläft auf dem großen, grünen Sofa.".encode("latin-1"),
        "wide.txt": "a kitten sleeps".encode("utf-16"),
        "nul.txt": b"a kit\0ten sleeps",
        "nuls.txt": b"\0".join(b"%c" % letter for letter in b"a kitten sleeps"),
        "empty.txt": b"",
        "blank.txt": b"  \n\n ",
    }
    stored = {}
    for name, data in files.items():
        stored[name] = await upload(memory, folder_id, name, data)
        # Each process takes a while; one for each library is enough.
        office = name.endswith(("pdf", "docx", "xlsx", "pptx", "a.html"))
        await run(memory, None if office else files_worker(memory, InProcess()))
    texts = {name: await read(memory, file) for name, file in stored.items()}
    assert {name: file.error for name, file in texts.items() if file.status != folder_pb2.FILE_STATUS_COMPLETED} == {}
    assert [name for name, file in texts.items() if "kitten" not in file.content] == ["empty.txt", "blank.txt"]
    assert texts["a.docx"].content == "# Pets\n\na kitten sleeps"
    assert texts["a.xlsx"].content == "## Data\n\n| animal | age |\n| --- | --- |\n| kitten | 1 |"
    assert texts["a.pptx"].content == "## Slide 1: Pets\n\na kitten sleeps\n\nNotes: notes on it"
    assert texts["a.html"].content == "# Pets\n\na **kitten**"
    assert texts["titled.html"].content == "# On cats\n\na kitten"
    assert texts["a.csv"].content == "animal,age\nkitten,1\n"
    assert "Kätzchen" in texts["latin.txt"].content
    assert {(file.total_chunks, file.chunks_embedded) for file in texts.values()} == {(1, 1), (0, 0)}
    assert (texts["a.md"].line_count, texts["a.md"].char_count) == (2, 23)
    assert (texts["empty.txt"].total_chunks, texts["empty.txt"].content) == (0, "")
    assert len(await passages(memory, folder_id)) == len(files) - 2
    assert await left(memory, "file_uploads") == await left(memory, "jobs") == 0
    found = await memory.passages.SearchPassages(
        passage_pb.SearchPassagesRequest(folder_id=folder_id, query="feline", top_k=3)
    )
    assert all("kitten" in hit.passage.text for hit in found.hits)
    # Nothing of a file is found but in its folder.
    words = "SELECT count(*) FROM memory.passages WHERE words @@ $1::text::tsquery"
    for scope, number in (
        (archive_lexeme(uuid_of(folder_id)), len(files) - 2),
        (tenant_lexeme(memory.caller.organization_id), 0),
    ):
        assert await memory.pool.fetchval(words, f"'{scope}'") == number
    list_page = await memory.folders.ListFiles(folder_pb.ListFilesRequest(folder_id=folder_id, include_content=True))
    assert [file.content for file in list_page.files] == [file.content for file in texts.values()]


async def test_a_text_that_is_too_large_to_be_sent_does_not_hide_the_others(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_id = await new_folder(memory, "f")
    files = [await upload(memory, folder_id, f"{text}.txt", text.encode()) for text in ("cat", "Kätzchen")]
    await run(memory, files_worker(memory, InProcess()))
    monkeypatch.setattr(folders, "_MOST_BYTES", len("Kätzchen"))
    with fails(InvalidArgument, "FILE_TOO_LARGE"):
        await read(memory, files[1])
    list_page = await memory.folders.ListFiles(folder_pb.ListFilesRequest(folder_id=folder_id, include_content=True))
    assert [(file.content, file.HasField("content")) for file in list_page.files] == [("cat", True), ("", False)]


async def test_every_bad_file_ends_in_an_error_that_says_why(memory: Memory) -> None:
    folder_id = await new_folder(memory, "f")
    bad = {
        "corrupt.pdf": (b"%PDF-1.4 and then nothing", "it is not a PDF, or it is damaged"),
        "empty.pdf": (b"", "it is not a PDF"),
        "locked.pdf": (documents.encrypted_pdf(), "protected by a password"),
        "scan.pdf": (documents.pdf(""), "there is no text on its pages"),
        "no.docx": (b"not a zip at all", "it is not a DOCX file, or it is damaged"),
        "other.docx": (documents.xlsx(("a", 1)), "it is a zip file, but not a DOCX file"),
        "old.xlsx": (b"\xd0\xcf\x11\xe0" + bytes(600), "save it as a XLSX file"),
        "bomb.docx": (documents.zip_bomb(), "like a zip bomb"),
        "broken.pptx": (documents.zipped({"ppt/presentation.xml": "<not"}), "it is damaged, or not a PPTX file"),
        "deep.html": (b"<div>" * 5_000 + b"x", "nested too deeply"),
        "binary.txt": (bytes(range(256)) * 40, "no text"),
    }
    stored = {}
    for name, (data, _) in bad.items():
        stored[name] = await upload(memory, folder_id, name, data)
        await run(memory, None if name in ("corrupt.pdf", "broken.pptx") else files_worker(memory, InProcess()))
    for name, (_, sentence) in bad.items():
        file = await read(memory, stored[name])
        assert file.status == folder_pb2.FILE_STATUS_ERROR, name
        assert f"{name} cannot be read: " in file.error, file.error
        assert sentence in file.error, file.error
        assert (file.line_count, file.HasField("content")) == (0, False)
    assert await passages(memory, folder_id) == []
    assert await left(memory, "file_pages") == await left(memory, "jobs") == 0
    # Its bytes are kept: perhaps a later version can read it.
    key = folder_pb.RetryFileRequest(folder_id=folder_id, file_id=stored["no.docx"].id)
    assert (await memory.folders.RetryFile(key)).file.status == folder_pb2.FILE_STATUS_PENDING
    await run(memory)
    assert (await read(memory, stored["no.docx"])).status == folder_pb2.FILE_STATUS_ERROR


async def test_a_parser_that_takes_too_long_or_too_much_is_ended(memory: Memory) -> None:
    folder_id = await new_folder(memory, "f")
    file = await upload(memory, folder_id, "a.txt", b"x")
    await run(memory, files_worker(memory, ChildParser(seconds=0.02)))
    assert "could not be read within 0.02 seconds" in (await read(memory, file)).error
    large = await upload(memory, folder_id, "b.txt", b"word " * 4_200_000)
    await run(memory)
    assert "more than 20,000,000 characters" in (await read(memory, large)).error
    assert await left(memory, "file_pages") == 0


class InProcess:
    """The parser without its process, for tests that parse very often."""

    async def parse(self, kind: FileKind, data: AsyncIterator[bytes]) -> AsyncGenerator[TextPage | ParseSummary]:
        """As the child would."""
        whole = b"".join([part async for part in data])
        try:
            for line in child.answer(kind.format, kind.split_mode, whole):
                yield TextPage(**line) if "page" in line else ParseSummary(**line)
        except Unreadable as error:
            raise Unparsable(str(error)) from None


class Killed(BaseException):
    """The process died."""


class Dying:
    """A store whose process dies before or after its nth write."""

    def __init__(self, store: Any, counter: list[int], after: bool) -> None:
        self._store, self._counter, self._after = store, counter, after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in ("start_parsing", "add_pages", "finish_parsing", "add_batch", "remove_passages"):
            return method

        async def dying(*values: Any) -> Any:
            self._counter[0] -= 1
            if self._counter[0] == 0 and not self._after:
                raise Killed
            result = await method(*values)
            if self._counter[0] == 0:
                raise Killed
            return result

        return dying


@pytest.mark.parametrize("after", [False, True])
async def test_a_worker_killed_anywhere_is_taken_over_and_nothing_is_lost_or_doubled(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr(ingestion, "_BATCH", 9)
    folder_id = await new_folder(memory, "f")
    whole = await upload(memory, folder_id, "whole.md", _LONG.encode())
    await run(memory, files_worker(memory, InProcess()))
    expected, text = await passages(memory, folder_id), (await read(memory, whole)).content
    assert text == _LONG
    assert len(expected) > 20
    await memory.folders.DeleteFolder(folder_pb.DeleteFolderRequest(folder_id=folder_id))
    killed = 0
    for number in range(1, 20):
        folder_id = await new_folder(memory, "f")
        file = await upload(memory, folder_id, "a.md", _LONG.encode())
        dying = Dying(memory.stores.ingestion, [number], after)
        try:
            await run(memory, files_worker(memory, InProcess(), cast(IngestionStore, dying)))
        except* Killed:
            killed += 1
        await memory.pool.execute("UPDATE memory.jobs SET leased_until = now() - interval '1 second'")
        await run(memory, files_worker(memory, InProcess()))
        now = await read(memory, file)
        assert (now.status, now.content) == (folder_pb2.FILE_STATUS_COMPLETED, text)
        assert now.total_chunks == now.chunks_embedded == len(expected)
        assert await passages(memory, folder_id) == expected
        await memory.folders.DeleteFolder(folder_pb.DeleteFolderRequest(folder_id=folder_id))
        if killed < number:
            break
    assert killed >= 6
    await run(memory)
    tables = ("files", "file_uploads", "file_pages", "passages", "archives", "jobs")
    assert [await left(memory, table) for table in tables] == [0] * len(tables)


async def test_who_finds_a_file_parsed_by_who_has_lost_its_job_goes_on(memory: Memory) -> None:
    class Outrun:
        """A store to which the other came a moment earlier."""

        async def finish_parsing(self, *arguments: Any) -> Any:
            await memory.stores.ingestion.finish_parsing(*arguments)
            return await memory.stores.ingestion.finish_parsing(*arguments)

        def __getattr__(self, name: str) -> Any:
            return getattr(memory.stores.ingestion, name)

    file = await upload(memory, await new_folder(memory, "f"), "a.md", b"a kitten")
    await run(memory, files_worker(memory, InProcess(), cast(IngestionStore, Outrun())))
    assert (await read(memory, file)).status == folder_pb2.FILE_STATUS_COMPLETED


async def due(memory: Memory) -> None:
    """Whatever waits, need not wait any longer."""
    await memory.pool.execute("UPDATE memory.jobs SET not_before = now()")


async def test_an_embedder_that_fails_is_tried_again_and_given_up_in_the_end(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "_BATCH", 9)
    folder_id = await new_folder(memory, "f")
    file = await upload(memory, folder_id, "a.md", _LONG.encode())
    memory.models.failure = unavailable()
    await run(memory)
    now = await read(memory, file)
    assert (now.status, now.error) == (folder_pb2.FILE_STATUS_EMBEDDING, "trying again: the provider is down")
    assert now.content == _LONG
    memory.models.failure = None
    await due(memory)
    await run(memory)
    now = await read(memory, file)
    assert (now.status, now.error) == (folder_pb2.FILE_STATUS_COMPLETED, "")
    # Half-way through another file it fails for good.
    second = await upload(memory, folder_id, "b.md", _LONG.encode())
    before = await passages(memory, folder_id)
    embed = memory.models.Embed
    calls = 0

    async def fails_after_two(request: Any, context: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 2:
            raise ResourceExhausted("too many requests", reason="LLM_RATE_LIMIT")
        return await embed(request, context)

    monkeypatch.setattr(memory.embedder._models, "Embed", _stub(memory, fails_after_two))
    await run(memory)
    now = await read(memory, second)
    assert 0 < now.chunks_embedded < now.total_chunks
    assert now.error == "trying again: too many requests"
    for _ in range(ingestion._MOST_FAILURES):
        await due(memory)
        await run(memory)
    now = await read(memory, second)
    assert now.status == folder_pb2.FILE_STATUS_ERROR
    assert now.error == "b.md could not be embedded: too many requests"
    assert (now.chunks_embedded, now.content) == (0, _LONG)
    assert await passages(memory, folder_id) == before
    assert await left(memory, "jobs") == 0
    calls = -1_000
    key = folder_pb.RetryFileRequest(folder_id=folder_id, file_id=second.id)
    assert (await memory.folders.RetryFile(key)).file.status == folder_pb2.FILE_STATUS_EMBEDDING
    await run(memory)
    assert (await read(memory, second)).status == folder_pb2.FILE_STATUS_COMPLETED
    assert await passages(memory, folder_id) == before * 2
    assert (await memory.folders.RetryFile(key)).file.status == folder_pb2.FILE_STATUS_COMPLETED


def _stub(memory: Memory, answer: Callable[[Any, Any], Any]) -> Any:
    async def call(request: Any, **_: Any) -> Any:
        return await answer(request, None)

    return call


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (NotFound("there is no such model", reason="MODEL_NOT_FOUND"), folder_pb2.FILE_STATUS_ERROR),
        (Aborted("later"), folder_pb2.FILE_STATUS_EMBEDDING),
    ],
)
async def test_what_repeating_does_not_mend_is_given_up_at_once(
    memory: Memory, failure: LociError, status: int
) -> None:
    folder_id = await new_folder(memory, "f")
    file = await upload(memory, folder_id, "a.md", b"a kitten")
    memory.models.failure = failure
    await run(memory)
    assert (await read(memory, file)).status == status


async def test_a_file_that_ends_every_process_is_given_up(memory: Memory) -> None:
    folder_id = await new_folder(memory, "f")
    file = await upload(memory, folder_id, "a.md", b"a kitten")
    for _ in range(ingestion._MOST_TRIES):
        dying = cast(IngestionStore, Dying(memory.stores.ingestion, [2], after=False))
        with pytest.raises(Killed):
            await run(memory, files_worker(memory, InProcess(), dying))
        assert (await read(memory, file)).status == folder_pb2.FILE_STATUS_PARSING
        await memory.pool.execute("UPDATE memory.jobs SET leased_until = now() - interval '1 second'")
    await run(memory)
    now = await read(memory, file)
    assert (now.status, now.error) == (
        folder_pb2.FILE_STATUS_ERROR,
        "a.md could not be taken in; the server's log says why",
    )
    await memory.folders.RetryFile(folder_pb.RetryFileRequest(folder_id=folder_id, file_id=file.id))
    await run(memory)
    assert (await read(memory, file)).status == folder_pb2.FILE_STATUS_COMPLETED


async def test_without_a_model_words_are_enough_and_a_refused_text_is_no_reason_to_give_up(memory: Memory) -> None:
    plain = await new_folder(memory, "plain", embedding="")
    file = await upload(memory, plain, "a.md", _LONG.encode())
    await run(memory)
    now = await read(memory, file)
    assert (now.status, now.chunks_embedded) == (folder_pb2.FILE_STATUS_COMPLETED, now.total_chunks)
    # A worker knows the jobs of other tests, too.
    assert memory.caller.organization_id not in [caller.organization_id for caller in memory.models.callers]
    other = await new_folder(memory, "other")
    memory.models.refused = "Paragraph 7 "
    file = await upload(memory, other, "a.md", _LONG.encode())
    await run(memory)
    now = await read(memory, file)
    assert now.status == folder_pb2.FILE_STATUS_COMPLETED
    vectors = "SELECT count(*) FROM memory.passage_vectors WHERE archive_id = $1"
    assert await memory.pool.fetchval(vectors, uuid_of(other)) == now.total_chunks - 1


async def test_what_is_deleted_is_gone_with_its_passages(memory: Memory) -> None:
    folder_id = await new_folder(memory, "f")
    files = [await upload(memory, folder_id, f"{name}.md", _LONG.encode()) for name in "ab"]
    waiting = await upload(memory, folder_id, "c.docx", b"bytes")
    await run(memory)
    before = await passages(memory, folder_id)
    await memory.folders.DeleteFile(folder_pb.DeleteFileRequest(folder_id=folder_id, file_id=files[0].id))
    assert len(await passages(memory, folder_id)) == len(before) // 2
    await memory.folders.DeleteFile(folder_pb.DeleteFileRequest(folder_id=folder_id, file_id=waiting.id))
    assert await left(memory, "file_uploads") == 0
    # One that makes way takes its passages with it.
    await upload(memory, folder_id, "b.md", b"another", on_duplicate=folder_pb.ON_DUPLICATE_REPLACE)
    await run(memory)
    assert len(await passages(memory, folder_id)) == 1
    # What an upload left whose process died.
    store, organization_id = memory.stores.uploads, memory.caller.organization_id
    await store.begin(organization_id, uuid_of(folder_id))
    await store.add(organization_id, uuid_of(folder_id), 0, bytes(uploads.PART_BYTES))
    await due(memory)
    await run(memory)
    assert await left(memory, "file_uploads") == await left(memory, "jobs") == 0
