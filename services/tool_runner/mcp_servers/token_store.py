"""OAuth of MCP servers on Postgres: tokens of servers, and authorisations under way. All of it is sealed."""

from hashlib import sha256
from typing import Any
from uuid import UUID

import asyncpg

from services.common.encryption import Sealer, UnreadableSecret
from services.tool_runner.mcp_servers.ports import GIVEN, REFUSED, TAKEN, WAITING, Authorization, AuthorizationOutcome

_READ = "SELECT oauth FROM tool_runner.mcp_servers WHERE organization_id = $1 AND id = $2"
_WRITE = """
UPDATE tool_runner.mcp_servers SET oauth = $3, oauth_lease_until = NULL WHERE organization_id = $1 AND id = $2
"""
_LEASE = """
UPDATE tool_runner.mcp_servers SET oauth_lease_until = clock_timestamp() + make_interval(secs => $3)
WHERE organization_id = $1 AND id = $2
    AND (oauth_lease_until IS NULL OR oauth_lease_until < clock_timestamp())
RETURNING id
"""
_RELEASE = "UPDATE tool_runner.mcp_servers SET oauth_lease_until = NULL WHERE organization_id = $1 AND id = $2"
_BEGIN = """
INSERT INTO tool_runner.mcp_authorizations (state_hash, organization_id, user_id, mcp_server_id, attempt, expires_at)
VALUES ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6))
"""
_COLUMNS = "organization_id, user_id, mcp_server_id, attempt, outcome, problem, tokens, expires_at"
_WAITING = f"""
SELECT {_COLUMNS} FROM tool_runner.mcp_authorizations WHERE state_hash = $1 AND expires_at > clock_timestamp()
"""
_TAKE = f"""
UPDATE tool_runner.mcp_authorizations SET outcome = {TAKEN}
WHERE state_hash = $1 AND outcome = {WAITING} AND expires_at > clock_timestamp()
RETURNING {_COLUMNS}
"""
_END = "UPDATE tool_runner.mcp_authorizations SET outcome = $2, problem = $3, tokens = $4 WHERE state_hash = $1"
_FORGET = """
DELETE FROM tool_runner.mcp_authorizations WHERE state_hash = $1 OR expires_at < clock_timestamp() - interval '1 hour'
"""


class PostgresMcpTokens:
    """`mcp.ports.TokenStore`."""

    def __init__(self, pool: asyncpg.Pool, sealer: Sealer) -> None:
        self._pool = pool
        self._sealer = sealer

    async def read(self, organization_id: UUID, server_id: UUID) -> str:
        sealed = await self._pool.fetchval(_READ, organization_id, server_id)
        return self._unseal(sealed, _bound(organization_id, server_id))

    async def write(self, organization_id: UUID, server_id: UUID, oauth: str) -> None:
        sealed = self._sealer.seal(oauth.encode(), _bound(organization_id, server_id)) if oauth else None
        await self._pool.execute(_WRITE, organization_id, server_id, sealed)

    async def lease(self, organization_id: UUID, server_id: UUID, seconds: float) -> bool:
        return await self._pool.fetchval(_LEASE, organization_id, server_id, seconds) is not None

    async def release(self, organization_id: UUID, server_id: UUID) -> None:
        await self._pool.execute(_RELEASE, organization_id, server_id)

    async def begin(
        self, state: str, organization_id: UUID, user_id: UUID, server_id: UUID | None, attempt: str, seconds: float
    ) -> None:
        sealed = self._sealer.seal(attempt.encode(), _bound_to_state(state))
        await self._pool.execute(_BEGIN, _hash(state), organization_id, user_id, server_id, sealed, seconds)

    async def waiting(self, state: str) -> Authorization | None:
        row = await self._pool.fetchrow(_WAITING, _hash(state))
        return self._waiting(state, row) if row else None

    async def take(self, state: str) -> Authorization | None:
        row = await self._pool.fetchrow(_TAKE, _hash(state))
        return self._waiting(state, row) if row else None

    async def end(self, state: str, outcome: AuthorizationOutcome, *, problem: str = "", tokens: str = "") -> None:
        assert outcome in (GIVEN, REFUSED)
        sealed = self._sealer.seal(tokens.encode(), _bound_to_state(state)) if tokens else None
        await self._pool.execute(_END, _hash(state), outcome, problem, sealed)

    async def forget(self, state: str) -> None:
        await self._pool.execute(_FORGET, _hash(state))

    def _waiting(self, state: str, row: Any) -> Authorization:
        return Authorization(
            organization_id=row["organization_id"],
            user_id=row["user_id"],
            server_id=row["mcp_server_id"],
            attempt=self._unseal(row["attempt"], _bound_to_state(state)),
            outcome=row["outcome"],
            problem=row["problem"],
            tokens=self._unseal(row["tokens"], _bound_to_state(state)),
            expires_at=row["expires_at"],
        )

    def _unseal(self, sealed: bytes | None, bound: str) -> str:
        """Returns the text; "" also for what cannot be read any more, since it can be had again."""
        try:
            return self._sealer.open(sealed, bound).decode() if sealed else ""
        except UnreadableSecret:
            return ""


def _hash(state: str) -> bytes:
    return sha256(state.encode()).digest()


def _bound(organization_id: UUID, server_id: UUID) -> str:
    return f"tool_runner.mcp_servers/{organization_id}/{server_id}/oauth"


def _bound_to_state(state: str) -> str:
    return f"tool_runner.mcp_authorizations/{_hash(state).hex()}"
