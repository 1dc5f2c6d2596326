"""Modules that an idle server does without: the first request that needs them imports them."""

import subprocess
import sys

import pytest

from services.common.lazy_imports import import_lazily
from tests.e2e.stack import ROOT

# What a client of HTTP, a terminal, an SDK or an exporter takes, and few requests need.
HEAVY = {
    "aiohttp",
    "alembic",
    "anthropic",
    "boto3",
    "docker",
    "dulwich",
    "e2b",
    "google.genai",
    "httpx",
    "httpx2",
    "jsonschema",
    "mcp",
    "modal",
    "openai",
    "opentelemetry.sdk",
    "requests",
    "rich",
}
DATABASE = {"asyncpg"}
LISTS = {"sqlalchemy"}


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("services.agent", HEAVY),
        ("services.memory", HEAVY),
        # Every call of a model needs its HTTP.
        ("services.llm_gateway", (HEAVY | LISTS) - {"httpx2"}),
        ("services.tool_runner", HEAVY | LISTS),
        ("gateway", HEAVY | DATABASE | LISTS),
    ],
)
def test_a_server_starts_without_what_few_requests_need(program: str, absent: set[str]) -> None:
    code = f"import sys, {program}.__main__\nprint(sorted({absent!r} & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"}, capture_output=True, text=True
    )
    assert done.stdout == "[]\n", done.stdout + done.stderr


async def test_what_is_imported_late_is_the_module() -> None:
    assert (await import_lazily("colorsys")).rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert await import_lazily("colorsys") is sys.modules["colorsys"]
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        await import_lazily("no_such_module")
