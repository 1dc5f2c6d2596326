"""Files of calls: which names they may have, where a call finds them, and which arguments name them."""

from uuid import UUID

import pytest

from services.tool_runner.core.model import KeptFile
from services.tool_runner.executions.files.rules.names import input_paths, is_name
from services.tool_runner.executions.files.rules.references import file_references, replace_references

PARAMETERS = {
    "properties": {
        "report": {"type": "string", "format": "file"},
        "others": {"type": "array", "items": {"type": "string", "format": "file"}},
        "maybe": {"anyOf": [{"type": "string", "format": "file"}, {"type": "null"}]},
        "deep": {"type": "object", "properties": {"file": {"type": "string", "format": "file"}}},
        "text": {"type": "string"},
    }
}


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("a.txt", True),
        ("sub/ä b.txt", True),
        ("x" * 255, True),
        ("x" * 256, False),
        ("", False),
        (".", False),
        ("..", False),
        ("a/../b", False),
        ("/etc/passwd", False),
        ("a//b", False),
        ("a/", False),
        ("a\\b", False),
        ("a\x00b", False),
        ("a\nb", False),
        ("a\x85b", False),
        ("\ud800", False),
    ],
)
def test_names(name: str, taken: bool) -> None:
    assert is_name(name) == taken


def test_files_of_one_name_do_not_hide_each_other() -> None:
    names = ("a", "a", "a/b", "c", "c")
    files = [KeptFile(id=UUID(int=number), name=name, size=1, sha256="") for number, name in enumerate(names)]
    assert list(input_paths([*files, files[0]]).values()) == ["a", "2/a", "2/b", "c", "2/c"]


def test_arguments_that_name_files_get_their_paths() -> None:
    arguments = {
        "report": "one",
        "others": ["two", 3],
        "maybe": None,
        "deep": {"file": "three", "more": "no"},
        "text": "no",
        "unknown": "no",
    }
    assert file_references(PARAMETERS, arguments) == [("report", "one"), ("others[0]", "two"), ("deep.file", "three")]
    assert replace_references(PARAMETERS, arguments, str.upper) == arguments | {
        "report": "ONE",
        "others": ["TWO", 3],
        "deep": {"file": "THREE", "more": "no"},
    }
    assert file_references(PARAMETERS, {"maybe": "four"}) == [("maybe", "four")]
