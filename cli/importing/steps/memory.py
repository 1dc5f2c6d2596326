"""Blocks, archives with their passages, folders with their files."""

from collections.abc import AsyncIterator

from cli.importing.mapping import memory as mapping
from cli.importing.mapping import models
from cli.importing.schema import (
    ARCHIVES,
    BLOCK_TAGS,
    BLOCKS,
    FILE_CONTENTS,
    FILES,
    FOLDERS,
    PASSAGE_TAGS,
    PASSAGES,
)
from cli.importing.steps.common import REFUSALS, Import, run_concurrently
from cli.importing.target import describe
from cli.importing.values import Row, Skip, as_text, public_id
from loci.memory.v1 import archive_service_pb2, block_service_pb2, folder_pb2, folder_service_pb2, passage_service_pb2
from services.common.errors import LociError, NotFound

# Of one request, which may have 32 MiB.
_MOST_PASSAGES, _MOST_BYTES = 200, 8 * 1024 * 1024
_PART_BYTES = 1024 * 1024
_BY_WORDS = "it has no vector of its archive's model, which does not answer: it is found by its words"
# Passages under way: each with its old id.
Drafts = list[tuple[str, passage_service_pb2.PassageDraft]]


async def blocks(job: Import) -> None:
    """Imports blocks with their tags, whoever they are attached to."""
    tags: dict[str, list[str]] = {}
    async for row in job.source.rows(BLOCK_TAGS):
        tags.setdefault(row["block_id"], []).append(as_text(row["tag"]))
    await run_concurrently(job.source.rows(BLOCKS), lambda row: _block(job, row, tags.get(row["id"], [])))


async def _block(job: Import, row: Row, tags: list[str]) -> None:
    report, old_id, label = job.report, row["id"], as_text(row["label"])
    job.block_labels[old_id] = label
    key = block_service_pb2.BlockKey(block_id=public_id("block", old_id))
    if await job.loci.exists(job.loci.blocks.GetBlock, block_service_pb2.GetBlockRequest(key=key)):
        report.keep(BLOCKS.name, old_id)
        return
    mapped = mapping.block(row, tags)
    if isinstance(mapped, Skip):
        report.leave(BLOCKS.name, old_id, mapped.reason, label)
        return
    draft, changes = mapped
    request = block_service_pb2.CreateBlockRequest(block=draft)
    answer = await job.create(BLOCKS.name, job.loci.blocks.CreateBlock, request, id=old_id, name=label)
    if answer is None and not job.dry_run:
        return
    for tag in tags:
        report.take(BLOCK_TAGS.name, f"{old_id}/{tag}")
    for change in changes:
        report.change(BLOCKS.name, old_id, change, label)


async def archives(job: Import) -> None:
    """Imports archives, each followed by its passages. Vectors stay as they are; passages without are embedded here."""
    loci, report, table = job.loci, job.report, ARCHIVES.name
    async for row in job.source.rows(ARCHIVES):
        old_id, name = row["id"], as_text(row["name"])
        present = await _count_passages(job, old_id)
        draft, changes = mapping.archive(row)
        if present is not None:
            report.keep(table, old_id)
        else:
            request = archive_service_pb2.CreateArchiveRequest(archive=draft)
            answer = await job.create(table, loci.archives.CreateArchive, request, id=old_id, name=name)
            if answer is None and not job.dry_run:
                continue
            for change in changes:
                report.change(table, old_id, change, name)
        await _passages(job, row, present or 0)


async def _count_passages(job: Import, old_id: str) -> int | None:
    """Returns the number of passages that the archive has here; None where it is not here."""
    query = archive_service_pb2.GetArchiveRequest(archive_id=public_id("archive", old_id))
    try:
        count: int = (await job.loci.call(job.loci.archives.GetArchive, query)).archive.passage_count
    except NotFound:
        return None
    return count


async def _passages(job: Import, archive: Row, present: int) -> None:
    """Sends them all unless they are all there: the same id again makes no second one."""
    if 0 < present >= await job.source.count(PASSAGES.name, archive_id=archive["id"]):
        return
    tags: dict[str, list[tuple[str, str]]] = {}
    async for row in job.source.rows(PASSAGE_TAGS, archive_id=archive["id"]):
        tags.setdefault(row["passage_id"], []).append((row["id"], as_text(row["tag"])))
    record, total = job.report.take, 0
    async for drafts in _batches(job, archive, tags):
        stored = await _send(job, archive, drafts)
        if present:
            # An import before this one stopped among them: each batch was stored as a whole.
            count = await _count_passages(job, archive["id"]) or 0
            record, present = (job.report.take if count > present else job.report.keep), count
        for old_id in stored:
            record(PASSAGES.name, old_id)
            for tag_id, _ in tags.get(old_id, []):
                record(PASSAGE_TAGS.name, tag_id)
        total += len(stored)
    job.progress(f"archive {as_text(archive['name'])}: {total:,} passages")


async def _batches(job: Import, archive: Row, tags: dict[str, list[tuple[str, str]]]) -> AsyncIterator[Drafts]:
    """Yields passages to send together, all of them with vectors or none; reports those that cannot come."""
    batches: dict[bool, Drafts] = {True: [], False: []}
    sizes = {True: 0, False: 0}
    async for row in job.source.rows(PASSAGES, archive_id=archive["id"]):
        mapped = mapping.passage(row, archive, [tag for _, tag in tags.get(row["id"], [])])
        if isinstance(mapped, Skip):
            job.report.leave(PASSAGES.name, row["id"], mapped.reason)
            continue
        draft, changes = mapped
        for change in changes:
            job.report.change(PASSAGES.name, row["id"], change)
        kind = bool(draft.embedding)
        batches[kind].append((row["id"], draft))
        sizes[kind] += draft.ByteSize()
        if len(batches[kind]) == _MOST_PASSAGES or sizes[kind] >= _MOST_BYTES:
            yield batches[kind]
            batches[kind], sizes[kind] = [], 0
    for rest in batches.values():
        if rest:
            yield rest


async def _send(job: Import, archive: Row, drafts: Drafts) -> list[str]:
    """Sends passages, reports those that are refused, and returns the old ids of those that are here now."""
    try:
        if not job.dry_run:
            await _store(job, archive, drafts)
    except REFUSALS as error:
        if len(drafts) == 1:
            job.report.leave(PASSAGES.name, drafts[0][0], describe(error))
            return []
        return [one for draft in drafts for one in await _send(job, archive, [draft])]
    return [old_id for old_id, _ in drafts]


async def _store(job: Import, archive: Row, drafts: Drafts) -> None:
    """Stores passages. Those without vectors are embedded here, or stored without where that is not possible."""
    passages = [draft for _, draft in drafts]
    request = passage_service_pb2.CreatePassagesRequest(
        archive_id=public_id("archive", archive["id"]), passages=passages
    )
    create = job.loci.passages.CreatePassages
    size = models.dimensions(archive["embedding_config"])
    try:
        await job.loci.call(create, request)
    except LociError as error:
        if passages[0].embedding or not size or not models.embedding_handle(archive["embedding_config"]):
            raise
        # A vector without any direction stands for none.
        for draft in request.passages:
            draft.embedding.extend([0.0] * size)
        await job.loci.call(create, request)
        for old_id, _ in drafts:
            job.report.change(PASSAGES.name, old_id, f"{_BY_WORDS}: {error.reason}")


async def folders(job: Import) -> None:
    """Imports folders, each followed by its files, whose texts are cut and embedded anew in the background."""
    loci, report, table = job.loci, job.report, FOLDERS.name
    async for row in job.source.rows(FOLDERS):
        draft, changes = mapping.folder(row)
        query = folder_service_pb2.GetFolderRequest(folder_id=draft.id)
        if await loci.exists(loci.folders.GetFolder, query):
            report.keep(table, row["id"])
        else:
            try:
                changes += [] if job.dry_run else await _create_folder(job, draft)
            except REFUSALS as error:
                report.leave(table, row["id"], describe(error), as_text(row["name"]))
                continue
            report.take(table, row["id"])
            for change in changes:
                report.change(table, row["id"], change, as_text(row["name"]))
        async for file in job.source.rows(FILES, source_id=row["id"]):
            await _file(job, file)


async def _create_folder(job: Import, draft: folder_pb2.Folder) -> list[str]:
    """Creates a folder; returns the change it had to take. Raises LociError."""
    request = folder_service_pb2.CreateFolderRequest(folder=draft)
    create = job.loci.folders.CreateFolder
    try:
        await job.loci.call(create, request)
    except NotFound:
        handle, request.folder.embedding = request.folder.embedding, ""
        await job.loci.call(create, request)
        return [f"nobody serves {handle} here: it is searched by words, until its embedding is changed"]
    return []


async def _file(job: Import, row: Row) -> None:
    loci, report, old_id, name = job.loci, job.report, row["id"], as_text(row["file_name"])
    query = folder_service_pb2.GetFileRequest(
        folder_id=public_id("source", row["source_id"]), file_id=public_id("file", old_id)
    )
    if await loci.exists(loci.folders.GetFile, query):
        report.keep(FILES.name, old_id)
        return
    contents = [one async for one in job.source.rows(FILE_CONTENTS, file_id=old_id)]
    text = contents[0]["text"] if contents else None
    mapped = mapping.file(row, text)
    if isinstance(mapped, Skip):
        report.leave(FILES.name, old_id, mapped.reason, name)
        return
    header, changes = mapped
    try:
        if not job.dry_run:
            await loci.send(loci.folders.UploadFile, lambda: _upload(header, (text or "").encode()))
    except REFUSALS as error:
        report.leave(FILES.name, old_id, describe(error), name)
        return
    report.take(FILES.name, old_id)
    for change in changes:
        report.change(FILES.name, old_id, change, name)
    report.take(FILE_CONTENTS.name, contents[0]["id"])


async def _upload(
    header: folder_service_pb2.UploadHeader, data: bytes
) -> AsyncIterator[folder_service_pb2.UploadFileRequest]:
    yield folder_service_pb2.UploadFileRequest(header=header)
    for start in range(0, len(data), _PART_BYTES):
        yield folder_service_pb2.UploadFileRequest(data=data[start : start + _PART_BYTES])
