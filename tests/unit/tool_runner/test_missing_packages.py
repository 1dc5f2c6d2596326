"""What a new tool imports and its sandbox lacks."""

import json
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest

from services.tool_runner.core.job import ExitReason, Job, Result, SandboxUnavailable
from services.tool_runner.core.model import Tool, ToolType
from services.tool_runner.core.ports import CallEnvironment
from services.tool_runner.core.schemas.imports import foreign_modules
from services.tool_runner.tools.missing_packages import MissingPackages

SOURCE = """
import os, requests as r
from pydantic.fields import Field
def f():
    import yaml.loader
    from . import x
"""
TOOL = Tool(id=UUID(int=1), name="f", tool_type=ToolType.CUSTOM, source_type="python", source_code=SOURCE)


@dataclass
class World:
    """A sandbox without `requests`, which is chosen for everybody."""

    name: str = "bubblewrap"
    image: str = ""
    pip: str = ""
    there: bool = True
    jobs: list[Job] = field(default_factory=list)

    async def get(self) -> Any:
        if not self.there:
            raise SandboxUnavailable("none")
        return self

    async def run(self, job: Job) -> Result:
        self.jobs.append(job)
        return Result(ExitReason.OK, json.dumps([name for name in job.arguments["names"] if name == "requests"]))

    async def of_call(self, organization_id: UUID, tool_id: UUID, agent_id: UUID | None) -> CallEnvironment:
        return CallEnvironment(variables={}, pip_requirements=self.pip, npm_requirements="", fingerprint="")


async def warnings(world: World, tool: Tool = TOOL) -> list[str]:
    return await MissingPackages(world, world).warnings(UUID(int=2), tool)  # type: ignore[arg-type]


def test_modules_are_those_that_python_lacks() -> None:
    assert foreign_modules(SOURCE) == ("pydantic", "requests", "yaml")
    assert foreign_modules("class A(BaseModel):\n    pass\nimport json, re\n") == ("pydantic",)
    assert foreign_modules("def f():\n    '''important from here'''\n") == ()


async def test_what_is_missing_is_said() -> None:
    world = World()
    (sentence,) = await warnings(world)
    assert sentence.startswith("the source imports requests, which the sandbox (bubblewrap) does not have")
    assert "pip_requirements" in sentence
    assert world.jobs[0].arguments == {"names": ["pydantic", "requests", "yaml"]}


async def test_it_is_asked_once() -> None:
    world = World()
    asked = MissingPackages(world, world)  # type: ignore[arg-type]
    assert await asked.warnings(UUID(int=2), TOOL) == await asked.warnings(UUID(int=2), TOOL)
    assert len(world.jobs) == 1


@pytest.mark.parametrize(
    ("world", "tool"),
    [
        (World(there=False), TOOL),
        (World(pip='[{"name": "requests"}]'), TOOL),
        (World(), replace(TOOL, pip_requirements='[{"name": "requests"}]')),
        (World(), replace(TOOL, source_type="typescript")),
        (World(), replace(TOOL, tool_type=ToolType.EXTERNAL_MCP)),
        (World(), replace(TOOL, source_code="import os\ndef f(): pass")),
    ],
)
async def test_nothing_is_said_where_nothing_is_known_or_missing(world: World, tool: Tool) -> None:
    assert await warnings(world, tool) == []
    assert world.jobs == []
