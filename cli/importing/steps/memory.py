"""Blocks, archives with their passages, folders with their files."""

from collections.abc import AsyncIterator

from cli.importing.mapping import memory as mapping
from cli.importing.mapping import models, together
from cli.importing.schema import ARCHIVES, BLOCK_TAGS, BLOCKS, FILE_CONTENTS, FILES, FOLDERS, PASSAGES
from cli.importing.steps.common import REFUSALS, Import, side_by_side
from cli.importing.target import sentence
from cli.importing.values import LeftOut, Row, public, text_of
from loci.memory.v1 import archive_service_pb2, block_service_pb2, folder_pb2, folder_service_pb2, passage_service_pb2
from services.common.errors import LociError, NotFound

# Of one request, which may have 32 MiB.
_MOST_PASSAGES, _MOST_BYTES = 200, 8 * 1024 * 1024
_PART_BYTES = 1024 * 1024
_BY_WORDS = "it has no vector of its archive's model, which does not answer: it is found by its words"
Drafts = list[passage_service_pb2.PassageDraft]


async def blocks(moving: Import) -> None:
    """Blocks with their tags, whoever they are attached to."""
    tags: dict[str, list[str]] = {}
    async for row in moving.source.rows(BLOCK_TAGS):
        tags.setdefault(row["block_id"], []).append(text_of(row["tag"]))

    async def one(row: Row) -> None:
        where = {"id": row["id"], "name": text_of(row["label"])}
        key = block_service_pb2.BlockKey(block_id=public("block", row["id"]))
        if await moving.loci.has(moving.loci.blocks.GetBlock, block_service_pb2.GetBlockRequest(key=key)):
            moving.report.found("blocks")
            return
        draft = mapping.block(row, tags.get(row["id"], []))
        if isinstance(draft, LeftOut):
            moving.lose("blocks", draft.reason, **where)
            return
        request = block_service_pb2.CreateBlockRequest(block=draft[0])
        await moving.make("blocks", moving.loci.blocks.CreateBlock, request, **where)
        for what in draft[1]:
            moving.report.changed("blocks", what, **where)

    await side_by_side(moving.source.rows(BLOCKS), one)


async def archives(moving: Import) -> None:
    """Archives, each followed by its passages. Vectors are taken as they are; no model is asked where there are any."""
    loci, report, seen = moving.loci, moving.report, 0
    async for row in moving.source.rows(ARCHIVES):
        where = {"id": row["id"], "name": text_of(row["name"])}
        total = await moving.source.count(PASSAGES.name, archive_id=row["id"])
        seen += total
        there = await _passages_of(moving, row["id"])
        if there is not None:
            report.found("archives")
        else:
            request = archive_service_pb2.CreateArchiveRequest(archive=mapping.archive(row))
            made = await moving.make("archives", loci.archives.CreateArchive, request, **where)
            if made is None and not moving.dry_run:
                report.left_out("passages", "its archive is not taken", count=total)
                continue
        await _passages(moving, row, there or 0, total)
    gone = await moving.source.count(PASSAGES.name) - seen
    report.left_out("passages", "its archive is not there", count=gone)


async def _passages_of(moving: Import, old_id: str) -> int | None:
    """How many passages the archive has here; None: it is not here."""
    asked = archive_service_pb2.GetArchiveRequest(archive_id=public("archive", old_id))
    try:
        count: int = (await moving.loci.ask(moving.loci.archives.GetArchive, asked)).archive.passage_count
    except NotFound:
        return None
    return count


async def _passages(moving: Import, archive: Row, there: int, total: int) -> None:
    """Sends them all unless they are all there: the same id again makes no second one."""
    if there >= total:
        moving.report.found("passages", total)
        return
    sent = refused = 0
    async for batch, problems in _batches(moving, archive):
        for passage_id, reason in problems:
            moving.report.left_out("passages", reason, id=passage_id)
        refused += len(problems)
        sent += len(batch)
        if batch and not moving.dry_run:
            refused += await _send(moving, archive, batch)
    taken = sent if moving.dry_run else (await _passages_of(moving, archive["id"]) or 0) - there
    moving.report.took("passages", taken)
    moving.report.found("passages", max(0, total - refused - taken))
    moving.progress(f"archive {text_of(archive['name'])}: {taken:,} passages")


async def _batches(moving: Import, archive: Row) -> AsyncIterator[tuple[Drafts, list[tuple[str, str]]]]:
    """Passages to send together, all of them with vectors or none, and those that are not sent."""
    held: dict[bool, Drafts] = {True: [], False: []}
    sizes = {True: 0, False: 0}
    async for row in moving.source.rows(PASSAGES, archive_id=archive["id"]):
        draft = mapping.passage(row, archive)
        if isinstance(draft, LeftOut):
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


async def _send(moving: Import, archive: Row, drafts: Drafts) -> int:
    """How many of them were refused, each of which is reported."""
    try:
        await _store(moving, archive, drafts)
    except REFUSALS as error:
        if len(drafts) == 1:
            moving.report.left_out("passages", sentence(error), id=drafts[0].id)
            return 1
        return sum([await _send(moving, archive, [draft]) for draft in drafts])
    return 0


async def _store(moving: Import, archive: Row, drafts: Drafts) -> None:
    """Those without vectors are embedded here, or where that cannot be done, kept without."""
    request = passage_service_pb2.CreatePassagesRequest(archive_id=public("archive", archive["id"]), passages=drafts)
    create = moving.loci.passages.CreatePassages
    size = models.dimensions(archive["embedding_config"])
    if drafts[0].embedding or not size or not models.embedding_handle(archive["embedding_config"]):
        await moving.loci.ask(create, request)
        return
    try:
        await moving.loci.ask(create, request)
    except LociError as error:
        # A vector without any direction stands for none.
        for draft in request.passages:
            draft.embedding.extend([0.0] * size)
        await moving.loci.ask(create, request)
        for draft in drafts:
            moving.report.changed("passages", f"{_BY_WORDS}: {error.reason}", id=draft.id)


async def folders(moving: Import) -> None:
    """Folders, each followed by its files, whose texts are cut and embedded anew in the background."""
    loci, report = moving.loci, moving.report
    async for row in moving.source.rows(FOLDERS):
        where = {"id": row["id"], "name": text_of(row["name"])}
        draft = together.folder(row)
        if await loci.has(loci.folders.GetFolder, folder_service_pb2.GetFolderRequest(folder_id=draft.id)):
            report.found("folders")
        elif moving.dry_run:
            report.took("folders")
        else:
            try:
                await _make_folder(moving, draft, where)
            except REFUSALS as error:
                moving.lose("folders", sentence(error), **where)
                continue
        async for file in moving.source.rows(FILES, source_id=row["id"]):
            await _file(moving, file)


async def _make_folder(moving: Import, draft: folder_pb2.Folder, where: dict[str, str]) -> None:
    request = folder_service_pb2.CreateFolderRequest(folder=draft)
    create = moving.loci.folders.CreateFolder
    try:
        await moving.loci.ask(create, request)
    except NotFound:
        handle, request.folder.embedding = request.folder.embedding, ""
        await moving.loci.ask(create, request)
        moving.report.changed(
            "folders", f"nobody serves {handle} here: it is searched by words, until its embedding is changed", **where
        )
    moving.report.took("folders")


async def _file(moving: Import, row: Row) -> None:
    loci, report = moving.loci, moving.report
    where = {"id": row["id"], "name": text_of(row["file_name"])}
    asked = folder_service_pb2.GetFileRequest(
        folder_id=public("source", row["source_id"]), file_id=public("file", row["id"])
    )
    if await loci.has(loci.folders.GetFile, asked):
        report.found("files")
        return
    texts = [one["text"] async for one in moving.source.rows(FILE_CONTENTS, file_id=row["id"])]
    text = texts[0] if texts else None
    header = together.file(row, text)
    if isinstance(header, LeftOut):
        report.left_out("files", header.reason, **where)
    elif moving.dry_run:
        report.took("files")
    else:
        try:
            await loci.send(loci.folders.UploadFile, lambda: _upload(header, (text or "").encode()))
        except REFUSALS as error:
            report.left_out("files", sentence(error), **where)
        else:
            report.took("files")


async def _upload(
    header: folder_service_pb2.UploadHeader, data: bytes
) -> AsyncIterator[folder_service_pb2.UploadFileRequest]:
    yield folder_service_pb2.UploadFileRequest(header=header)
    for start in range(0, len(data), _PART_BYTES):
        yield folder_service_pb2.UploadFileRequest(data=data[start : start + _PART_BYTES])
