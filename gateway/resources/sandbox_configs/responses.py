"""Environment variables as REST: secrets of agents, variables of sandboxes. Values are never shown."""

from collections.abc import Iterable, Sequence

from gateway.access.run_tokens import sees_secrets
from gateway.rest.convert import Rest, to_rest
from gateway.rest.services import Services
from loci.tool.v1 import environment_service_pb2 as wire
from services.common.context import current
from services.common.ids import to_public

_OWNERS_AT_ONCE = 1_000
_NO_MEMBERS = frozenset({"owner", "masked_value"})


async def agent_secrets(loci: Services, agent_ids: Sequence[str]) -> dict[str, list[Rest]]:
    """Returns the reference's AgentEnvironmentVariable of each agent that has any, by key; nothing for who may not see
    them.
    """
    secrets: dict[str, list[Rest]] = {}
    if not sees_secrets():
        return secrets
    for variable in await _variables(loci, [wire.Owner(agent_id=agent_id) for agent_id in agent_ids]):
        agent_id = variable.owner.agent_id
        secrets.setdefault(agent_id, []).append(_rest(variable) | {"agent_id": agent_id})
    return secrets


def sandbox_variable(variable: wire.Variable) -> Rest:
    """Returns the reference's SandboxEnvironmentVariable."""
    return _rest(variable) | {
        "sandbox_config_id": variable.owner.sandbox_config_id,
        "organization_id": to_public("org", current().organization_id),
    }


def _rest(variable: wire.Variable) -> Rest:
    rest = to_rest(variable, leave=_NO_MEMBERS)
    return rest | {
        "value": variable.masked_value,
        "value_enc": None,
        "description": variable.description or None,
    }


async def _variables(loci: Services, owners: Sequence[wire.Owner]) -> Iterable[wire.Variable]:
    """In one call for a page."""
    variables: list[wire.Variable] = []
    for start in range(0, len(owners), _OWNERS_AT_ONCE):
        request = wire.BatchGetEnvironmentsRequest(owners=owners[start : start + _OWNERS_AT_ONCE])
        response = await loci.peers.call(loci.peers.environments.BatchGetEnvironments, request)
        variables += response.variables
    return variables
