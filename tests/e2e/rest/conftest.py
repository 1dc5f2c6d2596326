"""A world in which every path can name something."""

from collections.abc import Iterator, Mapping

import pytest

from tests.e2e.conftest import Providers
from tests.e2e.rest.things import things
from tests.e2e.sdk_methods.world import World
from tests.e2e.stack import Stack
from tests.fakes.mcp_server import McpServer


@pytest.fixture(scope="package")
def world(open_stack: Stack, providers: Providers) -> Iterator[World]:
    """The objects that the paths name."""
    with McpServer().in_thread() as mcp:
        made = World(open_stack, providers.openai, mcp.url)
        yield made
        made.close()


@pytest.fixture(scope="package")
def there(world: World) -> Mapping[str, str]:
    """For each parameter of a path something that is there."""
    return things(world)
