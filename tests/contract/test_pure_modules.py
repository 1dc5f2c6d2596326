"""A module whose docstring says "Pure" is one of those that may do no I/O."""

import ast
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("agent", "llm_gateway", "memory", "tool_runner")


def says_pure(path: Path) -> bool:
    """Returns whether the docstring of a module says so."""
    return re.search(r"\bPure\b", ast.get_docstring(ast.parse(path.read_text())) or "") is not None


def test_modules_that_say_they_are_pure_are_held_to_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    pure_contracts = [contract for contract in contracts if contract["id"].startswith("pure-")]
    # A contract for a package is one for all that is in it.
    modules = [module for contract in pure_contracts for module in contract["source_modules"]]
    held = [pattern for module in modules for pattern in (module, f"{module}.*")]
    files = [path for service in SERVICES for path in (ROOT / "services" / service).rglob("*.py") if says_pure(path)]
    assert len(files) > 50
    pure = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files}
    assert {module for module in pure if not any(fnmatch(module, pattern) for pattern in held)} == set()
