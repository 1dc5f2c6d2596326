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
# Where the old server itself keeps vectors.
_NATIVE = "NATIVE"
# Columns that mean something to clients alone.
_ECHOES = ("project_id", "template_id", "base_template_id", "deployment_id", "entity_id")


def block(row: Row, tags: Sequence[str]) -> tuple[block_pb2.Block, list[str]] | Skip:
    """Returns a block, and the changes that it had to take."""
    label, value, changes = as_text(row["label"]), storable(as_text(row["value"])), list[str]()
    if not 1 <= len(label) <= _LONGEST_LABEL:
        return Skip(f"its label has {len(label)} characters, and may have 1 to {_LONGEST_LABEL}")
    if len(value) > _MOST_LIMIT:
        return Skip(f"its value has {len(value)} characters, and may have {_MOST_LIMIT}")
    limit = row["limit"] if type(row["limit"]) is int else _MOST_LIMIT
    if not max(1, len(value)) <= limit <= _MOST_LIMIT:
        limit = min(max(1, len(value), limit), _MOST_LIMIT)
        changes.append("its limit was raised to the length of its value, or lowered to what there may be")
    draft = block_pb2.Block(
        id=public_id("block", row["id"]),
        label=label,
        value=value,
        limit=limit,
        description=row["description"],
        read_only=bool(row["read_only"]),
        hidden=row["hidden"],
        metadata_json=dump(as_object(row["metadata_"])),
        tags=list(dict.fromkeys(tags)),
        template_name=row["template_name"],
        is_template=bool(row["is_template"]),
        preserve_on_migration=bool(row["preserve_on_migration"]),
        **{name: row[name] for name in _ECHOES},
    )
    return draft, changes


def archive(row: Row) -> tuple[passage_pb2.Archive, list[str]]:
    """Returns an archive with the model of its vectors, whoever serves that, and the changes that it had to take."""
    name, description = as_text(row["name"]).strip(), row["description"]
    embedding, size = models.embedding_handle(row["embedding_config"]), models.dimensions(row["embedding_config"])
    draft = passage_pb2.Archive(
        id=public_id("archive", row["id"]),
        name=name[:_LONGEST_NAME] or "archive",
        description=None if description is None else description[:_LONGEST_DESCRIPTION],
        embedding=embedding if size else "",
        metadata_json=dump(as_object(row["metadata_"])),
        dimensions=size if embedding else 0,
    )
    changes = _text_changes(row, draft.name, draft.description)
    if as_object(row["embedding_config"]) and not draft.dimensions:
        changes.append("its embedding names no model, or vectors without numbers: it is searched by words")
    if row["vector_db_provider"] not in (None, _NATIVE):
        changes.append(f"its vectors are kept in {row['vector_db_provider']}, and are made anew here")
    return draft, changes


def passage(
    row: Row, archive: Row, tags: Sequence[str] = ()
) -> tuple[passage_service_pb2.PassageDraft, list[str]] | Skip:
    """Returns a passage, with its date, and with its vector if that is one of the archive's model; `tags`: those that
    it has in rows of their own."""
    text = storable(as_text(row["text"]))
    if not text.strip():
        return Skip("it has no text")
    if len(text) > _LONGEST_PASSAGE:
        return Skip(f"its text has {len(text)} characters, and may have {_LONGEST_PASSAGE}")
    draft = passage_service_pb2.PassageDraft(
        id=public_id("passage", row["id"]),
        text=text,
        tags=list(dict.fromkeys(tag for tag in (*as_list(row["tags"]), *tags) if isinstance(tag, str) and tag)),
        metadata_json=dump(as_object(row["metadata_"])),
        embedding=vector(row["embedding"], row["embedding_config"], archive["embedding_config"]),
    )
    if isinstance(row["created_at"], datetime):
        draft.created_at.FromDatetime(row["created_at"])
    unusable = bool(row["embedding"]) and not draft.embedding
    return draft, ["its vector is not one of its archive's model, and is made anew"] if unusable else []


def folder(row: Row) -> tuple[folder_pb2.Folder, list[str]]:
    """Returns a folder, and the changes that it had to take."""
    draft = folder_pb2.Folder(
        id=public_id("source", row["id"]),
        name=as_text(row["name"]).replace("/", "_")[:_LONGEST_FOLDER] or "folder",
        description=row["description"],
        instructions=row["instructions"],
        metadata_json=dump(as_object(row["metadata_"])),
        embedding=models.embedding_handle(row["embedding_config"]),
    )
    return draft, _text_changes(row, draft.name, row["description"])


def _text_changes(row: Row, name: str, description: str | None) -> list[str]:
    changes = [] if name == row["name"] else [f"its name is {name!r} now"]
    return changes + ([] if (description or "") == (row["description"] or "") else ["its description is cut"])


def file(row: Row, text: str | None) -> tuple[folder_service_pb2.UploadHeader, list[str]] | Skip:
    """Returns the header of a file's text, which the old server has extracted already, and the changes that the file
    had to take."""
    if text is None or not text.strip():
        return Skip(f"its text is not there (it is {row['processing_status'] or 'unread'}); upload it again")
    name = as_text(row["file_name"]).rpartition("/")[2] or as_text(row["original_file_name"]).rpartition("/")[2]
    kind = as_text(row["file_type"])
    header = folder_service_pb2.UploadHeader(
        file_id=public_id("file", row["id"]),
        folder_id=public_id("source", row["source_id"]),
        name=name[-_LONGEST_FILE:] or "file.txt",
        media_type=kind,
        on_duplicate=folder_service_pb2.ON_DUPLICATE_SUFFIX,
        is_text=True,
    )
    is_text = not kind or kind.startswith("text/")
    return header, [] if is_text else [f"it was {kind}; its text comes, the original bytes are not in the database"]


def vector(values: Sequence[float] | None, own: Any, archives: Any) -> Sequence[float]:
    """Returns a vector without its padding of zeros; empty where `own` names another model than `archives`, the
    embedding_config of the archive."""
    size = models.dimensions(own)
    if not values or size == 0 or size != models.dimensions(archives) or len(values) < size or any(values[size:]):
        return ()
    return values[:size] if models.embedding_handle(own) == models.embedding_handle(archives) else ()
