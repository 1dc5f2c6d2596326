"""Blocks, archives with passages, folders with files. No I/O."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cli.importing.mapping import models
from cli.importing.values import Row, Skip, as_list, as_object, as_text, dump, public_id, storable
from loci.memory.v1 import block_pb2, folder_pb2, folder_service_pb2, passage_pb2, passage_service_pb2

_LONGEST_LABEL = 100
_MOST_LIMIT = 10_000_000
_LONGEST_NAME = 1_000
_LONGEST_DESCRIPTION = 10_000
_LONGEST_PASSAGE = 1_000_000
_LONGEST_FOLDER, _LONGEST_FILE = 255, 255


def block(row: Row, tags: Sequence[str]) -> tuple[block_pb2.Block, list[str]] | Skip:
    """Returns a block, and the changes that it had to take."""
    label, value, changed = as_text(row["label"]), storable(as_text(row["value"])), list[str]()
    if not 1 <= len(label) <= _LONGEST_LABEL:
        return Skip(f"its label has {len(label)} characters, and may have 1 to {_LONGEST_LABEL}")
    if len(value) > _MOST_LIMIT:
        return Skip(f"its value has {len(value)} characters, and may have {_MOST_LIMIT}")
    limit = row["limit"] if type(row["limit"]) is int else _MOST_LIMIT
    if not max(1, len(value)) <= limit <= _MOST_LIMIT:
        limit = min(max(1, len(value), limit), _MOST_LIMIT)
        changed.append("its limit was raised to the length of its value, or lowered to what there may be")
    draft = block_pb2.Block(
        id=public_id("block", row["id"]),
        label=label,
        value=value,
        limit=limit,
        description=row["description"],
        read_only=bool(row["read_only"]),
        hidden=bool(row["hidden"]),
        metadata_json=dump(as_object(row["metadata_"])),
        tags=list(dict.fromkeys(tags)),
        template_name=row["template_name"],
        is_template=bool(row["is_template"]),
        preserve_on_migration=bool(row["preserve_on_migration"]),
    )
    return draft, changed


def archive(row: Row) -> passage_pb2.Archive:
    """Returns an archive with the model of its vectors, whoever serves that."""
    name, description = as_text(row["name"]).strip(), row["description"]
    embedding = models.embedding_handle(row["embedding_config"])
    return passage_pb2.Archive(
        id=public_id("archive", row["id"]),
        name=name[:_LONGEST_NAME] or "archive",
        description=None if description is None else description[:_LONGEST_DESCRIPTION],
        embedding=embedding,
        metadata_json=dump(as_object(row["metadata_"])),
        dimensions=models.dimensions(row["embedding_config"]) if embedding else 0,
    )


def passage(row: Row, archive: Row) -> passage_service_pb2.PassageDraft | Skip:
    """Returns a passage, with its date, and with its vector if that is one of the archive's model."""
    text = storable(as_text(row["text"]))
    if not text.strip():
        return Skip("it has no text")
    if len(text) > _LONGEST_PASSAGE:
        return Skip(f"its text has {len(text)} characters, and may have {_LONGEST_PASSAGE}")
    draft = passage_service_pb2.PassageDraft(
        id=public_id("passage", row["id"]),
        text=text,
        tags=list(dict.fromkeys(tag for tag in as_list(row["tags"]) if isinstance(tag, str) and tag)),
        metadata_json=dump(as_object(row["metadata_"])),
        embedding=vector(row["embedding"], row["embedding_config"], archive["embedding_config"]),
    )
    if isinstance(row["created_at"], datetime):
        draft.created_at.FromDatetime(row["created_at"])
    return draft


def folder(row: Row) -> folder_pb2.Folder:
    """Returns a folder."""
    return folder_pb2.Folder(
        id=public_id("source", row["id"]),
        name=as_text(row["name"]).replace("/", "_")[:_LONGEST_FOLDER] or "folder",
        description=row["description"],
        instructions=row["instructions"],
        metadata_json=dump(as_object(row["metadata_"])),
        embedding=models.embedding_handle(row["embedding_config"]),
    )


def file(row: Row, text: str | None) -> folder_service_pb2.UploadHeader | Skip:
    """Returns the header of a file's text, which the old server has extracted already."""
    if text is None or not text.strip():
        return Skip(f"its text is not there (it is {row['processing_status'] or 'unread'}); upload it again")
    name = as_text(row["file_name"]).rpartition("/")[2] or as_text(row["original_file_name"]).rpartition("/")[2]
    return folder_service_pb2.UploadHeader(
        file_id=public_id("file", row["id"]),
        folder_id=public_id("source", row["source_id"]),
        name=name[-_LONGEST_FILE:] or "file.txt",
        media_type=as_text(row["file_type"]),
        on_duplicate=folder_service_pb2.ON_DUPLICATE_SUFFIX,
        is_text=True,
    )


def vector(values: Sequence[float] | None, own: Any, wanted: Any) -> Sequence[float]:
    """Returns a vector without its padding of zeros; empty where it is of another model than `wanted`."""
    size = models.dimensions(own)
    if not values or size == 0 or size != models.dimensions(wanted) or len(values) < size or any(values[size:]):
        return ()
    return values[:size] if models.embedding_handle(own) == models.embedding_handle(wanted) else ()
