"""Two tenants of one Loci."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.conftest import Providers
from tests.e2e.rest.things import things
from tests.e2e.sdk_methods.world import World
from tests.e2e.stack import Stack
from tests.e2e.tenants.party import Party
from tests.e2e.tenants.things import more_things
from tests.e2e.test_access import Tenant
from tests.fakes.mcp_server import McpServer


@pytest.fixture(scope="module")
def parties(open_stack: Stack, providers: Providers) -> Iterator[tuple[Party, Party]]:
    """The attacker and the victim; each has one of everything."""
    found = []
    with McpServer().in_thread() as mcp, ExitStack() as open_:
        for name in ("Attacker", "Victim"):
            tenant = Tenant(open_stack, name)
            world = World(open_stack, providers.openai, mcp.url, tenant.key)
            there = things(world)
            found.append(Party(tenant.id, world.mark, there | more_things(world, there), tenant.http, mcp.url))
            open_.callback(world.close)
            open_.callback(tenant.http.close)
        attacker, victim = found
        yield attacker, victim
