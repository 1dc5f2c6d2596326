"""docs/settings.md names every setting that is read, and no other; figures that it gives as defaults are the code's."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.names import SERVICES
from services.llm_gateway.core.provider_types import TYPES
from services.tool_runner.web.engines import ENGINES

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs" / "settings.md").read_text()
_NAME = re.compile(
    r"(?:LOCI|OTEL|DOCKER|LETTA_(?:SERVER|API|BASE|OLD|ENCRYPTION)|MCP_DISABLE|E2B|MODAL)_[A-Z0-9_]*[A-Z]"
)
# Read by names that are put together.
COMPOSED = {f"LOCI_{service.upper()}_{what}" for service in SERVICES for what in ("ADDR", "DATABASE_URL")} | {
    setting for row in TYPES.values() for setting in row.settings
}
COMPOSED |= {name for engine in ENGINES for name in (engine.key, engine.address_setting) if name}


def sources() -> Iterator[ast.Module]:
    """The parsed files of all processes."""
    for folder in ("services", "gateway", "cli"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield ast.parse(path.read_text())


@pytest.fixture(scope="module")
def trees() -> list[ast.Module]:
    return list(sources())


def named(tree: ast.Module) -> set[str]:
    """The texts in a file that are the name of a setting and nothing else."""
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {text for text in texts if _NAME.fullmatch(text)}


def rows() -> dict[str, str]:
    """name -> what the table says of its default."""
    found: dict[str, str] = {}
    for line in TABLE.splitlines():
        if line.startswith("| `"):
            names, _, default, _ = (cell.strip() for cell in line.strip("|").split(" | ", 3))
            found |= dict.fromkeys(re.findall(r"`([A-Z0-9_]+)`", names), default)
    return found


def test_every_setting_is_in_the_table_and_nothing_else(trees: list[ast.Module]) -> None:
    assert set().union(*map(named, trees)) | COMPOSED == rows().keys()


def defaults(tree: ast.Module) -> Iterator[tuple[str, float]]:
    """Settings that are read with a figure as their default."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and isinstance(name := node.args[0], ast.Constant):
            for keyword in node.keywords:
                figure = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if keyword.arg == "default" and isinstance(figure, int | float) and not isinstance(figure, bool):
                    yield str(name.value), float(figure)


def test_figures_in_the_table_are_those_of_the_code(trees: list[ast.Module]) -> None:
    read = {name: figure for tree in trees for name, figure in defaults(tree) if _NAME.fullmatch(name)}
    # No socket is inherited.
    del read["LOCI_LISTEN_FD"]
    assert len(read) > 10
    assert {name: float(rows()[name]) for name in read} == read
