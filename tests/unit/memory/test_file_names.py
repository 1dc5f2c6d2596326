"""Names of folders and files, and what becomes of one that is taken."""

from __future__ import annotations

import pytest

from loci.memory.v1.folder_pb2 import Folder
from services.common.core.refusals import Refused
from services.memory.core.file_text.names import free_name, validate_file_name
from services.memory.folders.model import validate_changes, validate_folder
from services.memory.folders.servicer import _SETTINGS, folder_draft
from services.memory.wire import changes


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("a.txt", "a.txt"),
        ("law/2026/act.md", "law/2026/act.md"),
        ("../../etc/passwd", "../../etc/passwd"),
        (" a\n</file>\r.txt\0 ", "a</file>.txt"),
        (".env", ".env"),
        ("report-\u202etxt.exe.txt", "report-txt.exe.txt"),
        ("Größe.md", "Größe.md"),
        # As macOS sends it.
        ("Gro\u0308ße.md", "Größe.md"),
    ],
)
def test_a_file_has_a_name_of_one_line(name: str, kept: str) -> None:
    assert validate_file_name(name) == kept


@pytest.mark.parametrize("name", ["", "/", "..", "../.", "\0", "n" * 256])
def test_what_is_no_name_of_a_file(name: str) -> None:
    with pytest.raises(Refused) as error:
        validate_file_name(name)
    assert error.value.reason == "FILE_INVALID"


@pytest.mark.parametrize(
    ("name", "names_in_use", "free"),
    [
        ("a.pdf", [], "a.pdf"),
        ("a.pdf", ["b.pdf"], "a.pdf"),
        ("a.pdf", ["a.pdf"], "a_(1).pdf"),
        ("a.pdf", ["a.pdf", "a_(1).pdf", "a_(3).pdf"], "a_(2).pdf"),
        ("a.tar.gz", ["a.tar.gz"], "a.tar_(1).gz"),
        ("README", ["README"], "README_(1)"),
        (".env", [".env"], ".env_(1)"),
        ("v1.2/notes", ["v1.2/notes"], "v1.2/notes_(1)"),
        ("v1.2/.env", ["v1.2/.env"], "v1.2/.env_(1)"),
        ("n" * 251 + ".txt", ["n" * 251 + ".txt"], "n" * 247 + "_(1).txt"),
    ],
)
def test_a_name_that_is_taken_gets_a_number(name: str, names_in_use: list[str], free: str) -> None:
    assert free_name(name, names_in_use) == free


def test_a_folder_is_checked() -> None:
    folder = Folder(name=" law\n", description="a\0b", metadata_json='{"k": "\\u0000"}', embedding="x/y")
    checked = validate_folder(folder_draft(folder))
    assert (checked.name, checked.description, checked.metadata) == ("law", "ab", {"k": ""})
    assert validate_changes({"name": "a ", "description": None}) == {"name": "a", "description": None}
    for name in ("", "a/b", "n" * 256):
        with pytest.raises(Refused):
            validate_changes({"name": name})
    with pytest.raises(Refused, match="metadata has at most 100000 bytes"):
        validate_changes({"metadata": {"k": "m" * 100_000}})
    for name in ("description", "instructions"):
        long = Folder(name="a", **{name: "i" * 100_001})  # type: ignore[arg-type]
        with pytest.raises(Refused, match=f"{name} must have at most 100,000 characters"):
            folder_draft(long)
        with pytest.raises(Refused, match=f"{name} must have at most 100,000 characters"):
            changes(_SETTINGS, long, [name])
