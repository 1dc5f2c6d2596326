"""Each test belongs to one part of the suite, and the table of parts names what exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.suite.parts import AGAIN, EVERY, PARTS, SHORT, SPLIT, Part, asked_for, fits, part_of, parts_of_file

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "ade",
    "bench",
    "cli",
    "docs",
    "gateway",
    "images",
    "k8s",
    "protos",
    "requirements",
    "scripts",
    "services",
    "tests",
)
FILES = [
    path.relative_to(ROOT).as_posix()
    for place in (*(ROOT / folder for folder in FOLDERS), ROOT)
    for path in (place.rglob("*") if place != ROOT else place.glob("*"))
    if path.is_file() and not {"node_modules", ".venv", "__pycache__"} & set(path.relative_to(ROOT).parts)
]
TESTS = [path for path in FILES if path.startswith("tests/") and path.rpartition("/")[2].startswith("test_")]


@pytest.mark.parametrize("part", [*PARTS, AGAIN], ids=lambda part: part.name)
def test_a_part_names_what_exists(part: Part) -> None:
    dead = [start for start in part.tests if not any(path.startswith(start) for path in TESTS)]
    dead += [one for one in (*part.subjects, *EVERY) if not any(fits(path, one) for path in FILES)]
    assert dead == []


def test_every_service_is_a_subject() -> None:
    code = [path for path in FILES if path.endswith(".py") and path.startswith(("cli/", "gateway/", "services/"))]
    assert [path for path in code if not asked_for([path])] == ["services/__init__.py"]


def test_a_changed_test_asks_for_its_part() -> None:
    assert {path for path in TESTS if part_of(path) != SHORT and part_of(path) not in asked_for([path])} == set()


def test_a_document_alone_asks_for_little() -> None:
    assert set(asked_for(["README.md", "CHANGELOG.md", "tests/unit/gateway/test_sse.py"])) == set()


def test_no_module_is_in_no_part_or_in_two() -> None:
    """Whoever runs the short part and all others runs each module, and only those of SPLIT twice."""
    assert {path for path in TESTS if len(parts_of_file(path)) != 1} == set(SPLIT)


# What makes another text in each process.
_RANDOM = re.compile(r"uuid[14]\(\)(\.hex|})|str\(uuid[14]|token_hex|randint|time\(\)")
_IN_ORDER = ("sorted", "len", "max", "min", "sum", "any", "all")


def _unsteady(values: ast.expr) -> bool:
    """Whether the values of a parameter, or their order, may differ between two processes."""
    match values:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Name(id=name)) if name in _IN_ORDER:
            return False
        case ast.Call(func=ast.Name(id="list" | "tuple" | "map" | "filter"), args=inner):
            return any(map(_unsteady, inner))
        case ast.ListComp(generators=loops) | ast.GeneratorExp(generators=loops):
            return any(_unsteady(loop.iter) for loop in loops)
        case ast.List(elts=inner) | ast.Tuple(elts=inner):
            return any(_unsteady(one.value) for one in inner if isinstance(one, ast.Starred))
        case ast.BinOp(left=left, right=right):
            return _unsteady(left) or _unsteady(right)
    return False


def _texts(values: ast.expr) -> Iterator[str]:
    """The source of those values that pytest writes into the id of a test."""
    for row in values.elts if isinstance(values, ast.List | ast.Tuple) else []:
        for value in row.elts if isinstance(row, ast.Tuple) else [row]:
            if isinstance(value, ast.JoinedStr | ast.Attribute | ast.Call):
                yield ast.unparse(value)


def _is_wrong(values: ast.expr) -> bool:
    return _unsteady(values) or any(map(_RANDOM.search, _texts(values)))


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ("{'a', 'b'}", True),
        ("list(set(NAMES))", True),
        ("[*{'a'}, 'b']", True),
        ("[uuid4().hex]", True),
        ("sorted({'a', 'b'})", False),
        ("[({'a', 'b'}, 1)]", False),
    ],
)
def test_what_workers_would_not_agree_on_is_seen(values: str, wrong: bool) -> None:
    assert _is_wrong(ast.parse(values, mode="eval").body) is wrong


def test_workers_find_the_same_tests() -> None:
    """Two workers must collect the same parameters in the same order: no set, nothing random."""
    wrong = []
    for path in (path for path in FILES if path.startswith("tests/") and path.endswith(".py")):
        source = (ROOT / path).read_text()
        if "parametrize" not in source and "params=" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, values, *_]) if _is_wrong(values):
                    wrong.append(f"{path}:{node.lineno}")
                case ast.keyword(arg="params", value=values) if _is_wrong(values):
                    wrong.append(f"{path}:{node.value.lineno}")
    assert wrong == []
