"""Authorization: the routes that a role opens, and the agents that a credential is limited to."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.access.roles import ADMIN, CLIENT, MAY, Right, Target, right_in_run, right_of, target_of
from gateway.peers import Peers
from gateway.resources.conversations.responses import ConversationAgents
from loci.agent.v1 import run_service_pb2, step_service_pb2
from services.common.core.ceiling import Ceiling, ceiling
from services.common.errors import NotFound, PermissionDenied

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Grant:
    """How far a credential goes."""

    role: str
    # What it may do with each agent; None: whatever its role may, with all.
    agents: Mapping[str, frozenset[Right]] | None = None
    # The page whose requests it is for; empty: anybody's.
    hostname: str = ""

    @property
    def ceiling(self) -> Ceiling | None:
        """The most that may be done in its name; None: all of the tenant."""
        if self.role == ADMIN:
            return None
        if self.agents is None:
            return Ceiling(self.role)
        named = {agent: frozenset(right.name.lower() for right in rights) for agent, rights in self.agents.items()}
        return ceiling(self.role, named)


def grant_below(limit: Ceiling) -> Grant:
    """Returns the grant of whoever began a chain, from its ceiling."""
    if limit.resources is None:
        return Grant(limit.role)
    known = {right.name.lower(): right for right in Right}
    return Grant(
        limit.role,
        {agent: frozenset(known[name] for name in rights if name in known) for agent, rights in limit.resources},
    )


@dataclass(frozen=True)
class Authorizer:
    """Decides about requests. What it has to look up, it looks up as the caller."""

    peers: Peers
    conversations: ConversationAgents

    async def check(self, grant: Grant, method: str, path: str, query: bytes, origin: str) -> None:
        """Raises PermissionDenied (ROLE_NOT_PERMITTED, ORIGIN_NOT_ALLOWED), and NotFound for what is looked up."""
        if grant.role == ADMIN:
            return
        if grant.hostname and origin and _origin(origin) != _origin(grant.hostname):
            sentence = f"this token is for pages of {grant.hostname}, not of {origin[:200]}"
            raise PermissionDenied(sentence, reason="ORIGIN_NOT_ALLOWED")
        await self._check(grant, right_of(method, path), method, path, query)

    async def check_run(self, limit: Ceiling, method: str, path: str, query: bytes) -> None:
        """Raises the same where a tool goes further than whoever began its run."""
        await self._check(grant_below(limit), right_in_run(method, path), method, path, query)

    async def _check(self, grant: Grant, right: Right | None, method: str, path: str, query: bytes) -> None:
        if right is None or right not in MAY.get(grant.role, frozenset()):
            raise _refused(f"the role {grant.role} may not {method} {path[:200]}{_what_it_takes(right)}")
        if grant.agents is None or right in (Right.OPEN, Right.ANYBODY):
            return
        named = await self._agents(grant.agents, target_of(method, path, query))
        if not named:
            sentence = f"this key or token is limited to some agents: {path[:200]} must name one of them"
            raise _refused(f"{sentence}; ask an admin for one without the limit")
        for agent_id in named:
            if right not in grant.agents.get(agent_id, frozenset()):
                missing = f"this key or token may not {right.name.lower()} of {agent_id[:50]}"
                raise _refused(f"{missing}; ask an admin or a developer for one that may")

    async def _agents(self, limit: Container[str], target: Target | None) -> frozenset[str]:
        """Returns the agents that are meant. Raises NotFound for what is of none within the limit, as if it were not
        there.
        """
        if target is None:
            return frozenset()
        agent_id = await self._agent(target)
        if agent_id is None:
            return target.agents
        if agent_id not in limit:
            sentence = f"{target.kind.capitalize()} {target.id} not found"
            raise NotFound(sentence, reason=f"{target.kind.upper()}_NOT_FOUND")
        return frozenset({agent_id})

    async def _agent(self, target: Target) -> str | None:
        match target:
            case Target(kind="conversation", id=name):
                return (await self.conversations.place(name)).agent_id
            case Target(kind="run", id=name):
                request = run_service_pb2.GetRunRequest(run_id=name)
                return (await self.peers.call(self.peers.runs.GetRun, request)).run.agent_id
            case Target(kind="step", id=name):
                rpc_request = step_service_pb2.GetStepRequest(step_id=name)
                return (await self.peers.call(self.peers.steps.GetStep, rpc_request)).step.agent_id
        return None


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url.lower())
        return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", "", None


def _what_it_takes(right: Right | None) -> str:
    """Returns which right is missing and whose keys have it; nothing for a route that nobody has."""
    if right is None:
        return ""
    roles = " or ".join(role for role, rights in MAY.items() if role != CLIENT and right in rights)
    return f": that takes the right {right.name.lower()}; ask an admin for a key with the role {roles}"


def _refused(sentence: str) -> PermissionDenied:
    return PermissionDenied(sentence, reason="ROLE_NOT_PERMITTED")
