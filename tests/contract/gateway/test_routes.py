"""The routes that the official SDK calls, as far as they exist yet: each is there under the SDK's path and method."""

from __future__ import annotations

import asyncio
import inspect
import re
from types import ModuleType

import pytest
from fastapi import FastAPI
from letta_client import resources
from letta_client.resources import agents, archives, blocks, conversations, folders, models, passages, runs, steps

from gateway.bootstrap import build
from gateway.server.middleware import canonical_path
from gateway.settings import Settings
from services.common.context import Signer
from services.common.keys import load_private_key, new_private_key

# Modules of the SDK all of whose methods work.
WHOLE: list[ModuleType] = [
    agents.archives,
    agents.blocks,
    agents.passages,
    archives.archives,
    archives.passages,
    blocks.blocks,
    blocks.agents,
    conversations.conversations,
    folders.agents,
    folders.files,
    folders.folders,
    models.models,
    models.embeddings,
    passages,
    runs.runs,
    runs.messages,
    runs.steps,
    runs.trace,
    runs.usage,
    steps.feedback,
    steps.messages,
    steps.metrics,
    steps.steps,
    steps.trace,
]
# Of these modules, the methods that work.
PART = {
    agents.agents: {"create", "retrieve", "update", "list", "delete", "recompile"},
    agents.messages: {"create", "create_async", "list", "cancel", "compact", "stream", "reset"},
    conversations.messages: {"create", "list", "compact", "stream"},
    agents.tools: {"list", "attach", "detach", "update_approval", "run"},
    resources.tools: {"create", "retrieve", "update", "list", "delete", "upsert"},
}
_CALL = re.compile(r'self\._(get|post|put|patch|delete|get_api_list)\(\s*(?:path_template\(\s*)?"([^"]+)"')


def _calls(module: ModuleType) -> dict[str, tuple[str, str]]:
    """Method of the SDK -> HTTP method and path."""
    found = {}
    for name, owner in vars(module).items():
        if not name.endswith("Resource") or name.startswith("Async") or owner.__module__ != module.__name__:
            continue
        for method, function in vars(owner).items():
            source = inspect.getsource(function) if inspect.isfunction(function) else ""
            for verb, path in _CALL.findall(source):
                found[method] = ("get" if verb == "get_api_list" else verb, path)
    return found


@pytest.fixture(scope="module")
def served() -> set[tuple[str, str]]:
    """(method, path) of every route, with the names of its parameters left out."""
    paths = asyncio.run(_document())
    return {(method, _shape(path)) for path, methods in paths.items() for method in methods}


async def _document() -> dict[str, dict[str, object]]:
    gateway = build(Settings(), Signer(load_private_key(new_private_key()), "test"))
    app = gateway.fastapi
    assert isinstance(app, FastAPI)
    await gateway.close()
    paths: dict[str, dict[str, object]] = app.openapi()["paths"]
    return paths


def _shape(path: str) -> str:
    return re.sub(r"{\w+}", "{}", canonical_path(path))


@pytest.mark.parametrize("module", [*WHOLE, *PART], ids=lambda module: module.__name__.partition("resources.")[2])
def test_the_sdk_finds_its_routes(module: ModuleType, served: set[tuple[str, str]]) -> None:
    calls = _calls(module)
    wanted = PART.get(module, set(calls))
    assert wanted <= set(calls)
    missing = {name: calls[name] for name in wanted if (calls[name][0], _shape(calls[name][1])) not in served}
    assert not missing
