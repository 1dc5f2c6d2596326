"""Each test belongs to one part of the suite, and the table of parts names what exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.suite.parts import (
    _EVERY,
    AGAIN,
    PARTS,
    SHORT,
    SPLIT,
    asked_for,
    fits,
    part_of,
    parts_of_file,
)

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("bench", "cli", "docs", "gateway", "images", "k8s", "protos", "requirements", "scripts", "services", "tests")
FILES = [
    path.relative_to(ROOT).as_posix()
    for place in (*(ROOT / folder for folder in FOLDERS), ROOT)
    for path in (place.rglob("*") if place != ROOT else place.glob("*"))
    if path.is_file() and not {"node_modules", "__pycache__"} & set(path.parts)
]
TESTS = [path for path in FILES if path.startswith("tests/") and path.rpartition("/")[2].startswith("test_")]


@pytest.mark.parametrize("part", [*PARTS, AGAIN], ids=lambda part: part.name)
def test_a_part_names_what_exists(part: object) -> None:
    assert part in (*PARTS, AGAIN)
    dead = [start for start in part.tests if not any(path.startswith(start) for path in TESTS)]  # type: ignore[attr-defined]
    dead += [one for one in (*part.subjects, *_EVERY) if not any(fits(path, one) for path in FILES)]  # type: ignore[attr-defined]
    assert dead == []


def test_every_service_is_a_subject() -> None:
    asked = {path: asked_for([path]) for path in FILES if path.startswith(("cli/", "gateway/", "services/"))}
    assert [path for path, parts in asked.items() if not parts and path.endswith(".py")] == []


def test_a_changed_test_asks_for_its_part() -> None:
    assert {path for path in TESTS if part_of(path) != SHORT and part_of(path) not in asked_for([path])} == set()


def test_a_document_alone_asks_for_little() -> None:
    assert set(asked_for(["README.md", "CHANGELOG.md", "tests/unit/gateway/test_sse.py"])) == set()


def test_no_module_is_in_no_part_or_in_two() -> None:
    """Whoever runs the short part and all others runs each module, and only those of SPLIT twice."""
    assert {path for path in TESTS if len(parts_of_file(path)) != 1} == set(SPLIT)


def _unsteady(node: ast.AST) -> bool:
    """Whether the value of an expression may differ between two processes, or its order."""
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset" | "id")):
            return True
        case ast.Call(func=ast.Attribute(attr="uuid4" | "uuid1" | "token_hex" | "random")):
            return True
        case ast.Call(func=ast.Name(id="sorted" | "len" | "max" | "min" | "sum")):
            return False
    return any(map(_unsteady, ast.iter_child_nodes(node)))


def test_workers_find_the_same_tests() -> None:
    """Two workers must collect the same parameters in the same order: no set, nothing random."""
    wrong = []
    for path in (path for path in FILES if path.startswith("tests/") and path.endswith(".py")):
        source = (ROOT / path).read_text()
        if "parametrize" not in source and "params=" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, values, *_]) if _unsteady(values):
                    wrong.append(f"{path}:{node.lineno}")
                case ast.keyword(arg="params", value=values) if _unsteady(values):
                    wrong.append(f"{path}:{node.value.lineno}")
    assert wrong == []
