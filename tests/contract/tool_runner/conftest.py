"""Sandboxes for tests: each of them where this machine can run it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from services.tool_runner.job import SandboxUnavailable
from services.tool_runner.ports import Sandbox
from services.tool_runner.sandboxes.bubblewrap import BubblewrapSandbox
from services.tool_runner.sandboxes.docker import DockerSandbox, DockerSettings
from tests.contract.tool_runner.engine import IMAGE, container_engine


@pytest.fixture(scope="session")
def engine_environment() -> Iterator[dict[str, str]]:
    """Reaches a container engine that has the sandbox image."""
    with container_engine() as environment:
        yield environment


@pytest.fixture
async def docker_sandbox(engine_environment: dict[str, str]) -> AsyncIterator[DockerSandbox]:
    sandbox = DockerSandbox(DockerSettings(image=IMAGE, environment=engine_environment))
    yield sandbox
    await sandbox.close()


@pytest.fixture
async def bubblewrap_sandbox() -> BubblewrapSandbox:
    try:
        return await BubblewrapSandbox.create()
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(params=["docker", "bubblewrap"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Every sandbox in turn: what holds for one holds for all."""
    chosen: Sandbox = request.getfixturevalue(f"{request.param}_sandbox")
    return chosen
