"""The end of a tenant here."""

from loci.memory.v1.agent_memory_service_pb2 import PurgeOrganizationRequest
from tests.integration.every_table import assert_purges
from tests.integration.memory.harness import SIGNER, Memory
from tests.postgres import Postgres


async def test_a_tenant_ends(memory: Memory, postgres: Postgres) -> None:
    rpc = memory.agents.PurgeOrganization
    await assert_purges(postgres, memory.url, "memory", rpc, PurgeOrganizationRequest(), memory.caller, SIGNER)
