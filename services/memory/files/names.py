"""Which names folders and files may have, and what becomes of a name that is taken. Pure."""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import replace

import orjson

from services.memory.core.blocks import json_without_nul, without_nul
from services.memory.files.model import FolderChanges, FolderDraft
from services.memory.model import JsonObject, Refused

LONGEST_NAME = 255
LONGEST_TEXT = 100_000
# A name stands in prompts and in lists of one line each, and shall look like what it is: no marks of direction.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def checked_folder(draft: FolderDraft) -> FolderDraft:
    """The draft as it will be stored. Raises Refused (FOLDER_INVALID)."""
    return replace(
        draft,
        name=_folder_name(draft.name),
        description=_text("description", draft.description),
        instructions=_text("instructions", draft.instructions),
        metadata=_metadata(draft.metadata),
        embedding=without_nul(draft.embedding),
    )


def checked_changes(changes: FolderChanges) -> FolderChanges:
    """The changes as they will be stored. Raises Refused (FOLDER_INVALID)."""
    checked = changes.copy()
    if "name" in checked:
        checked["name"] = _folder_name(checked["name"])
    if "description" in checked:
        checked["description"] = _text("description", checked["description"])
    if "instructions" in checked:
        checked["instructions"] = _text("instructions", checked["instructions"])
    if "metadata" in checked:
        checked["metadata"] = _metadata(checked["metadata"])
    return checked


def one_form(name: str) -> str:
    """The name as it is stored: composed (NFC), which models and most clients write; macOS sends it decomposed."""
    return unicodedata.normalize("NFC", name)


def _folder_name(name: str) -> str:
    name = one_form(_CONTROLS.sub("", name)).strip()
    if not 1 <= len(name) <= LONGEST_NAME:
        raise Refused("FOLDER_INVALID", f"a folder's name has 1 to {LONGEST_NAME} characters, this one {len(name)}")
    if "/" in name:
        raise Refused("FOLDER_INVALID", "a folder's name has no '/': files are called folder/name")
    return name


def _text(field: str, text: str | None) -> str | None:
    text = None if text is None else without_nul(text)
    if text is not None and len(text) > LONGEST_TEXT:
        raise Refused("FOLDER_INVALID", f"{field} has at most {LONGEST_TEXT} characters, this one {len(text)}")
    return text


def _metadata(value: JsonObject) -> JsonObject:
    """Every agent with the folder is answered with it."""
    value = json_without_nul(value)
    if (size := len(orjson.dumps(value))) > LONGEST_TEXT:
        raise Refused("FOLDER_INVALID", f"metadata has at most {LONGEST_TEXT} bytes as JSON, this one {size}")
    return value


def checked_file_name(name: str) -> str:
    """The name's last part, without folders and control characters. Raises Refused (FILE_INVALID)."""
    own = one_form(_CONTROLS.sub("", name)).replace("\\", "/").rpartition("/")[2].strip()
    if own in ("", ".", ".."):
        raise Refused("FILE_INVALID", f"{name[:LONGEST_NAME]!r} is no name of a file")
    if len(own) > LONGEST_NAME:
        raise Refused("FILE_INVALID", f"a file's name has at most {LONGEST_NAME} characters, this one {len(own)}")
    return own


def stem_and_suffix(name: str) -> tuple[str, str]:
    """`report.pdf` is ("report", ".pdf"); names that begin with their only dot have no suffix."""
    stem, dot, extension = name.rpartition(".")
    return (stem, dot + extension) if stem else (name, "")


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, or the first of `report_(1).pdf`, `report_(2).pdf` ... that is not taken, cut to what is allowed."""
    if name not in taken:
        return name
    stem, suffix = stem_and_suffix(name)
    for number in range(1, len(taken) + 2):
        mark = f"_({number}){suffix}"
        candidate = stem[: LONGEST_NAME - len(mark)] + mark
        if candidate not in taken:
            return candidate
    raise AssertionError("one of n + 1 names is free where n are taken")
