"""Environment variables as REST: secrets of agents, variables of sandboxes, as the tool runner shows their values."""

from collections.abc import Iterable, Sequence

from gateway.access.run_tokens import sees_secrets
from gateway.rest.convert import Rest, to_rest
from gateway.rest.services import Services
from loci.tool.v1 import sandbox_config_service_pb2 as wire
from services.common.context import current
from services.common.ids import to_public

_OWNERS_AT_ONCE = 1_000
_NO_MEMBERS = frozenset({"owner"})
# Members of an agent's secret that the reference has and leaves empty.
_UNTOLD = dict.fromkeys(("created_by_id", "last_updated_by_id", "created_at", "updated_at"))


async def agent_secrets(loci: Services, agent_ids: Sequence[str]) -> dict[str, list[Rest]]:
    """Returns the reference's AgentEnvironmentVariable of each agent that has any, by key; nothing for who may not see
    them.
    """
    secrets: dict[str, list[Rest]] = {}
    if not sees_secrets():
        return secrets
    for variable in await _variables(loci, [wire.Owner(agent_id=agent_id) for agent_id in agent_ids]):
        agent_id = variable.owner.agent_id
        secrets.setdefault(agent_id, []).append(_rest(variable) | _UNTOLD | {"agent_id": agent_id})
    return secrets


def sandbox_variable(variable: wire.Variable) -> Rest:
    """Returns the reference's SandboxEnvironmentVariable."""
    return _rest(variable) | {"sandbox_config_id": variable.owner.sandbox_config_id}


def _rest(variable: wire.Variable) -> Rest:
    rest = to_rest(variable, leave=_NO_MEMBERS)
    return rest | {
        # What is stored is nobody's to read; the reference shows the value under this name, too.
        "value_enc": variable.value,
        "description": variable.description or None,
        "organization_id": to_public("org", current().organization_id),
    }


async def _variables(loci: Services, owners: Sequence[wire.Owner]) -> Iterable[wire.Variable]:
    """Returns the variables of owners, in one call for a page."""
    variables: list[wire.Variable] = []
    for start in range(0, len(owners), _OWNERS_AT_ONCE):
        request = wire.BatchGetEnvironmentsRequest(owners=owners[start : start + _OWNERS_AT_ONCE])
        response = await loci.peers.call(loci.peers.sandbox_configs.BatchGetEnvironments, request)
        variables += response.variables
    return variables
