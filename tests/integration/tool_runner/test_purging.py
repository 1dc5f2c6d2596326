"""The end of a tenant here."""

from loci.tool.v1.sandbox_config_service_pb2 import PurgeOrganizationRequest
from tests.integration.every_table import assert_purges
from tests.integration.tool_runner.harness import SIGNER, Service
from tests.postgres import Postgres


async def test_a_tenant_ends(runner: Service, tool_url: str, postgres: Postgres) -> None:
    rpc = runner.sandbox_configs.PurgeOrganization
    await assert_purges(postgres, tool_url, "tool_runner", rpc, PurgeOrganizationRequest(), runner.caller, SIGNER)
