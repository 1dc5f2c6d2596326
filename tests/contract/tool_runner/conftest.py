"""Sandboxes for tests: each of them where this machine can run it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.sandboxes.bubblewrap import source as bubblewrap
from services.tool_runner.sandboxes.docker import DockerSandbox, DockerSettings
from services.tool_runner.sandboxes.kubernetes.source import KubernetesSource
from services.tool_runner.sandboxes.pool import PooledSandbox
from tests.contract.tool_runner.engine import IMAGE, container_engine
from tests.contract.tool_runner.fake_cluster import Cluster, OfTenant, cluster_of, serving

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a module share its event loop, in which its sandboxes live."""
    for item in items:
        if _HERE in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest.fixture(scope="session")
def engine_environment() -> Iterator[dict[str, str]]:
    """Reaches a container engine that has the sandbox image."""
    with container_engine() as environment:
        yield environment


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def docker_sandbox(engine_environment: dict[str, str]) -> AsyncIterator[DockerSandbox]:
    """One for a module: a launcher and warm containers take longer than most tests."""
    sandbox = DockerSandbox(DockerSettings(image=IMAGE, environment=engine_environment))
    yield sandbox
    await sandbox.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bubblewrap_sandbox() -> AsyncIterator[PooledSandbox]:
    try:
        sandbox = await bubblewrap.create()
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    yield sandbox
    await sandbox.close()


@pytest.fixture(scope="session")
def cluster(engine_environment: dict[str, str]) -> Iterator[tuple[Cluster, str, Path]]:
    """Two sandbox hosts of a cluster, the address of its API server, and the certificate to trust."""
    with cluster_of(engine_environment, 2, "gvisor") as hosts, serving(hosts) as (server, authority):
        yield hosts, server, authority


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kubernetes_sandbox(cluster: tuple[Cluster, str, Path]) -> AsyncIterator[OfTenant]:
    hosts, server, authority = cluster
    sandbox = OfTenant(PooledSandbox(KubernetesSource(hosts.settings(server, authority)), warm=0))
    yield sandbox
    await sandbox.close()


@pytest.fixture(params=["docker", "bubblewrap"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Every sandbox in turn: what holds for one holds for all."""
    chosen: Sandbox = request.getfixturevalue(f"{request.param}_sandbox")
    return chosen


@pytest.fixture(params=["docker", "bubblewrap", "kubernetes"])
def attacked_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Those that claim to hold what tool code tries."""
    chosen: Sandbox = request.getfixturevalue(f"{request.param}_sandbox")
    return chosen
