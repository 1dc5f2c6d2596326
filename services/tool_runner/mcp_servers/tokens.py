"""Tokens of stored servers: read for each request, renewed in time, by one of all replicas at a time."""

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

from services.common.core.private_hosts import Private
from services.common.lazy_imports import import_lazily
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp_servers.ports import TokenStore

if TYPE_CHECKING:
    import httpx2

    from services.tool_runner.mcp import oauth

# A token that ends sooner is renewed before it is used.
_MARGIN = 30.0
_LEASE_SECONDS = 20.0
_LOOK_SECONDS = 0.2
_HTTP_SECONDS = 10.0


class TokenKeeper:
    """Opens, keeps and renews what users gave. `allow_private` as for every address that users supply."""

    def __init__(self, store: TokenStore, *, allow_private: Private) -> None:
        self.store = store
        self._allow_private = allow_private

    def bearer(self, organization_id: UUID, server_id: UUID, url: str) -> "StoredBearer":
        """Returns the tokens for requests to a stored server at that address."""
        return StoredBearer(self, organization_id, server_id, url)

    async def grant(self, organization_id: UUID, server_id: UUID, url: str) -> "oauth.Grant | None":
        """Returns what was given for the server while it was at the origin of `url`; None where nothing was.

        It may move while somebody gives leave, or while a request to its old address is on its way.
        """
        if not (text := await self.store.read(organization_id, server_id)):
            return None
        await load()
        from services.tool_runner.mcp.oauth import Grant  # noqa: PLC0415 - see `load`

        grant = Grant.model_validate_json(text)
        return grant if origin(grant.server_url) == origin(url) else None

    async def client(self) -> "httpx2.AsyncClient":
        """Returns a client for authorization servers; close it."""
        await load()
        from services.tool_runner.mcp.http import plain_client  # noqa: PLC0415 - see `load`

        return plain_client(allow_private=self._allow_private, seconds=_HTTP_SECONDS)

    async def renew_after(self, organization_id: UUID, server_id: UUID, url: str, refused: str) -> str:
        """Returns a token that is not `refused`; whoever comes first gets it, the others wait. Raises McpProblem."""
        async with asyncio.timeout(2 * _LEASE_SECONDS):
            while True:
                leased = await self.store.lease(organization_id, server_id, _LEASE_SECONDS)
                grant = await self.grant(organization_id, server_id, url)
                if grant is None:
                    if leased:
                        await self.store.release(organization_id, server_id)
                    return ""
                if grant.tokens.access_token != refused:
                    if leased:
                        await self.store.release(organization_id, server_id)
                    return grant.tokens.access_token
                if leased:
                    return await self._renew(organization_id, server_id, grant)
                await asyncio.sleep(_LOOK_SECONDS)

    async def _renew(self, organization_id: UUID, server_id: UUID, grant: "oauth.Grant") -> str:
        await load()
        from services.tool_runner.mcp.oauth import renew  # noqa: PLC0415 - see `load`

        try:
            async with await self.client() as client:
                fresh = await renew(client, grant)
        except BaseException:
            await asyncio.shield(self.store.release(organization_id, server_id))
            raise
        await self.store.write(organization_id, server_id, fresh.model_dump_json(exclude_none=True))
        return fresh.tokens.access_token


class StoredBearer:
    """`bearer.Bearer` of one stored server."""

    def __init__(self, wallet: TokenKeeper, organization_id: UUID, server_id: UUID, url: str) -> None:
        self._wallet = wallet
        self._of = (organization_id, server_id, url)

    async def token(self) -> str:
        """Returns one that holds for a while."""
        grant = await self._wallet.grant(*self._of)
        if grant is None:
            return ""
        if grant.fresh(_MARGIN) or not grant.tokens.refresh_token:
            return grant.tokens.access_token
        return await self._renew_after(grant.tokens.access_token)

    async def renew_after(self, refused: str) -> str:
        """Returns another token after a 401."""
        grant = await self._wallet.grant(*self._of)
        if grant is None or (grant.tokens.access_token == refused and not grant.tokens.refresh_token):
            return ""
        return await self._renew_after(refused)

    async def _renew_after(self, refused: str) -> str:
        try:
            return await self._wallet.renew_after(*self._of, refused)
        except TimeoutError:
            raise McpProblem(Kind.TIMEOUT, "the authorization server did not answer in time") from None


class FixedBearer:
    """A token that is used once, for a server that is not stored."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        """Returns the same, always."""
        return self._token

    async def renew_after(self, refused: str) -> str:
        """Returns ""."""
        return ""


def origin(url: str) -> tuple[str, str]:
    """Returns the part of an address that decides who reads what is sent there."""
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()


async def load() -> None:
    """Imports the SDK's parts in a thread, the first time: they take most of a second."""
    await import_lazily("services.tool_runner.mcp.oauth")
