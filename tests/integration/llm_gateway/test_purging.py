"""The end of a tenant here."""

from loci.llm.v1.provider_service_pb2 import PurgeOrganizationRequest
from tests.integration.every_table import assert_purges
from tests.integration.llm_gateway.harness import SIGNER, Gateway
from tests.postgres import Postgres


async def test_a_tenant_ends(gateway: Gateway, gateway_url: str, postgres: Postgres) -> None:
    rpc = gateway.providers.PurgeOrganization
    await assert_purges(postgres, gateway_url, "llm_gateway", rpc, PurgeOrganizationRequest(), gateway.caller, SIGNER)
