"""Blocks, archives with their passages, folders with their files."""

from collections.abc import AsyncIterator

from cli.importing.mapping import memory as mapping
from cli.importing.mapping import models
from cli.importing.schema import ARCHIVES, BLOCK_TAGS, BLOCKS, FILE_CONTENTS, FILES, FOLDERS, PASSAGES
from cli.importing.steps.common import REFUSALS, Import, run_concurrently
from cli.importing.target import describe
from cli.importing.values import Row, Skip, as_text, public_id
from loci.memory.v1 import archive_service_pb2, block_service_pb2, folder_pb2, folder_service_pb2, passage_service_pb2
from services.common.errors import LociError, NotFound

# Of one request, which may have 32 MiB.
_MOST_PASSAGES, _MOST_BYTES = 200, 8 * 1024 * 1024
_PART_BYTES = 1024 * 1024
_BY_WORDS = "it has no vector of its archive's model, which does not answer: it is found by its words"
Drafts = list[passage_service_pb2.PassageDraft]


async def blocks(job: Import) -> None:
    """Imports blocks with their tags, whoever they are attached to."""
    tags: dict[str, list[str]] = {}
    async for row in job.source.rows(BLOCK_TAGS):
        tags.setdefault(row["block_id"], []).append(as_text(row["tag"]))

    async def one(row: Row) -> None:
        where = {"id": row["id"], "name": as_text(row["label"])}
        key = block_service_pb2.BlockKey(block_id=public_id("block", row["id"]))
        if await job.loci.exists(job.loci.blocks.GetBlock, block_service_pb2.GetBlockRequest(key=key)):
            job.report.count_present("blocks")
            return
        draft = mapping.block(row, tags.get(row["id"], []))
        if isinstance(draft, Skip):
            job.skip("blocks", draft.reason, **where)
            return
        request = block_service_pb2.CreateBlockRequest(block=draft[0])
        await job.create("blocks", job.loci.blocks.CreateBlock, request, **where)
        for what in draft[1]:
            job.report.note_change("blocks", what, **where)

    await run_concurrently(job.source.rows(BLOCKS), one)


async def archives(job: Import) -> None:
    """Imports archives, each followed by its passages. Vectors stay as they are; passages without are embedded here."""
    loci, report, seen = job.loci, job.report, 0
    async for row in job.source.rows(ARCHIVES):
        where = {"id": row["id"], "name": as_text(row["name"])}
        total = await job.source.count(PASSAGES.name, archive_id=row["id"])
        seen += total
        there = await _passages_of(job, row["id"])
        if there is not None:
            report.count_present("archives")
        else:
            request = archive_service_pb2.CreateArchiveRequest(archive=mapping.archive(row))
            made = await job.create("archives", loci.archives.CreateArchive, request, **where)
            if made is None and not job.dry_run:
                report.skip("passages", "its archive is not taken", count=total)
                continue
        await _passages(job, row, there or 0, total)
    gone = await job.source.count(PASSAGES.name) - seen
    report.skip("passages", "its archive is not there", count=gone)


async def _passages_of(job: Import, old_id: str) -> int | None:
    """Returns the number of passages that the archive has here; None where it is not here."""
    asked = archive_service_pb2.GetArchiveRequest(archive_id=public_id("archive", old_id))
    try:
        count: int = (await job.loci.call(job.loci.archives.GetArchive, asked)).archive.passage_count
    except NotFound:
        return None
    return count


async def _passages(job: Import, archive: Row, there: int, total: int) -> None:
    """Sends them all unless they are all there: the same id again makes no second one."""
    if there >= total:
        job.report.count_present("passages", total)
        return
    sent = refused = 0
    async for batch, problems in _batches(job, archive):
        for passage_id, reason in problems:
            job.report.skip("passages", reason, id=passage_id)
        refused += len(problems)
        sent += len(batch)
        if batch and not job.dry_run:
            refused += await _send(job, archive, batch)
    taken = sent if job.dry_run else (await _passages_of(job, archive["id"]) or 0) - there
    job.report.count_taken("passages", taken)
    job.report.count_present("passages", max(0, total - refused - taken))
    job.progress(f"archive {as_text(archive['name'])}: {taken:,} passages")


async def _batches(job: Import, archive: Row) -> AsyncIterator[tuple[Drafts, list[tuple[str, str]]]]:
    """Yields passages to send together, all of them with vectors or none, and the skipped ones with their reasons."""
    held: dict[bool, Drafts] = {True: [], False: []}
    sizes = {True: 0, False: 0}
    async for row in job.source.rows(PASSAGES, archive_id=archive["id"]):
        draft = mapping.passage(row, archive)
        if isinstance(draft, Skip):
            yield [], [(row["id"], draft.reason)]
            continue
        kind = bool(draft.embedding)
        held[kind].append(draft)
        sizes[kind] += draft.ByteSize()
        if len(held[kind]) == _MOST_PASSAGES or sizes[kind] >= _MOST_BYTES:
            yield held[kind], []
            held[kind], sizes[kind] = [], 0
    for rest in held.values():
        yield rest, []


async def _send(job: Import, archive: Row, drafts: Drafts) -> int:
    """Sends passages, reports each that is refused, and returns their number."""
    try:
        await _store(job, archive, drafts)
    except REFUSALS as error:
        if len(drafts) == 1:
            job.report.skip("passages", describe(error), id=drafts[0].id)
            return 1
        return sum([await _send(job, archive, [draft]) for draft in drafts])
    return 0


async def _store(job: Import, archive: Row, drafts: Drafts) -> None:
    """Stores passages. Those without vectors are embedded here, or stored without where that is not possible."""
    request = passage_service_pb2.CreatePassagesRequest(archive_id=public_id("archive", archive["id"]), passages=drafts)
    create = job.loci.passages.CreatePassages
    size = models.dimensions(archive["embedding_config"])
    if drafts[0].embedding or not size or not models.embedding_handle(archive["embedding_config"]):
        await job.loci.call(create, request)
        return
    try:
        await job.loci.call(create, request)
    except LociError as error:
        # A vector without any direction stands for none.
        for draft in request.passages:
            draft.embedding.extend([0.0] * size)
        await job.loci.call(create, request)
        for draft in drafts:
            job.report.note_change("passages", f"{_BY_WORDS}: {error.reason}", id=draft.id)


async def folders(job: Import) -> None:
    """Imports folders, each followed by its files, whose texts are cut and embedded anew in the background."""
    loci, report = job.loci, job.report
    async for row in job.source.rows(FOLDERS):
        where = {"id": row["id"], "name": as_text(row["name"])}
        draft = mapping.folder(row)
        if await loci.exists(loci.folders.GetFolder, folder_service_pb2.GetFolderRequest(folder_id=draft.id)):
            report.count_present("folders")
        elif job.dry_run:
            report.count_taken("folders")
        else:
            try:
                await _make_folder(job, draft, where)
            except REFUSALS as error:
                job.skip("folders", describe(error), **where)
                continue
        async for file in job.source.rows(FILES, source_id=row["id"]):
            await _file(job, file)


async def _make_folder(job: Import, draft: folder_pb2.Folder, where: dict[str, str]) -> None:
    request = folder_service_pb2.CreateFolderRequest(folder=draft)
    create = job.loci.folders.CreateFolder
    try:
        await job.loci.call(create, request)
    except NotFound:
        handle, request.folder.embedding = request.folder.embedding, ""
        await job.loci.call(create, request)
        job.report.note_change(
            "folders", f"nobody serves {handle} here: it is searched by words, until its embedding is changed", **where
        )
    job.report.count_taken("folders")


async def _file(job: Import, row: Row) -> None:
    loci, report = job.loci, job.report
    where = {"id": row["id"], "name": as_text(row["file_name"])}
    asked = folder_service_pb2.GetFileRequest(
        folder_id=public_id("source", row["source_id"]), file_id=public_id("file", row["id"])
    )
    if await loci.exists(loci.folders.GetFile, asked):
        report.count_present("files")
        return
    texts = [one["text"] async for one in job.source.rows(FILE_CONTENTS, file_id=row["id"])]
    text = texts[0] if texts else None
    header = mapping.file(row, text)
    if isinstance(header, Skip):
        report.skip("files", header.reason, **where)
    elif job.dry_run:
        report.count_taken("files")
    else:
        try:
            await loci.send(loci.folders.UploadFile, lambda: _upload(header, (text or "").encode()))
        except REFUSALS as error:
            report.skip("files", describe(error), **where)
        else:
            report.count_taken("files")


async def _upload(
    header: folder_service_pb2.UploadHeader, data: bytes
) -> AsyncIterator[folder_service_pb2.UploadFileRequest]:
    yield folder_service_pb2.UploadFileRequest(header=header)
    for start in range(0, len(data), _PART_BYTES):
        yield folder_service_pb2.UploadFileRequest(data=data[start : start + _PART_BYTES])
