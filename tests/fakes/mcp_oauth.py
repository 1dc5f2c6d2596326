"""An authorization server of the official SDK, in memory, in front of an MCP server: every user says yes at once."""

import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes, create_protected_resource_routes
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.fakes.mcp_server import McpServer, served


class OAuthServer:
    """`lifetime`: seconds of a token. `refreshed`: how often tokens were renewed. `registrations` takes new clients.

    methods: of authentication, as its metadata have them. silent: a registration has a secret and names no method, as
    mcpAuthRouter of the TypeScript SDK answers who names none.
    """

    def __init__(
        self,
        *,
        lifetime: int = 3600,
        registrations: bool = True,
        methods: tuple[str, ...] | None = None,
        silent: bool = False,
    ) -> None:
        self.methods = methods
        self.silent = silent
        self.asked: list[str | None] = []
        self.lifetime = lifetime
        self.registrations = registrations
        self.refreshed = 0
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, float] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.resources: list[str | None] = []
        self.mcp = McpServer()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["OAuthServer"]:
        """The authorization server on one port, the MCP server on another."""
        holder: dict[str, ASGIApp] = {}

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await holder["app"](scope, receive, send)

        async with served(app) as port, self.mcp.serving(app=self._guarded):
            self.issuer = f"http://127.0.0.1:{port}"
            options = ClientRegistrationOptions(enabled=self.registrations, valid_scopes=["tools"])
            provider: Any = self
            routes = create_auth_routes(provider, AnyHttpUrl(self.issuer), client_registration_options=options)
            holder["app"] = self._rewritten(Starlette(routes=routes))
            self.mcp.allows = lambda token: self.access.get(token, 0) > time.time()
            meta = f"http://127.0.0.1:{self.mcp.port}/.well-known/oauth-protected-resource/mcp"
            self.mcp.challenge = f'Bearer error="invalid_token", resource_metadata="{meta}"'
            yield self

    def _rewritten(self, inner: ASGIApp) -> ASGIApp:
        """The same, with other metadata and registrations where the test wants them."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await inner(scope, receive, send)
                return
            request = Request(scope, receive)
            async with httpx.AsyncClient(transport=httpx.ASGITransport(inner), base_url=self.issuer) as client:
                body = await request.body()
                headers = [(name, value) for name, value in request.headers.items() if name != "host"]
                got = await client.request(request.method, str(request.url), content=body, headers=headers)
            content = self._other(request.url.path, body, got)
            kept = {name: value for name, value in got.headers.items() if name != "content-length"}
            await Response(content, got.status_code, kept)(scope, receive, send)

        return app

    def _other(self, path: str, asked: bytes, got: httpx.Response) -> bytes:
        if got.is_success and path.startswith("/.well-known/") and self.methods is not None:
            return json.dumps({**got.json(), "token_endpoint_auth_methods_supported": self.methods}).encode()
        if got.is_success and path == "/register":
            self.asked.append(json.loads(asked).get("token_endpoint_auth_method"))
            if self.silent:
                shown = {name: value for name, value in got.json().items() if name != "token_endpoint_auth_method"}
                return json.dumps(shown).encode()
        return got.content

    def _guarded(self, server: McpServer) -> ASGIApp:
        """The MCP server, and what it says of who authorises for it."""
        metadata: list[ASGIApp] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if not scope["path"].startswith("/.well-known/"):
                await server(scope, receive, send)
                return
            if not metadata:
                routes = create_protected_resource_routes(
                    AnyHttpUrl(server.url), [AnyHttpUrl(self.issuer)], scopes_supported=["tools"]
                )
                metadata.append(Starlette(routes=list(routes)))
            await metadata[0](scope, receive, send)

        return app

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client: OAuthClientInformationFull) -> None:
        self.clients[client.client_id] = client

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = secrets.token_urlsafe(24)
        self.resources.append(params.resource)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, code: str) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(self, client: Any, code: AuthorizationCode) -> OAuthToken:
        del self.codes[code.code]
        return self._tokens(client, code.scopes)

    async def load_refresh_token(self, client: Any, token: str) -> RefreshToken | None:
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client: Any, token: RefreshToken, scopes: list[str]) -> OAuthToken:
        # Rotated: who shows it again is refused.
        del self.refresh[token.token]
        self.refreshed += 1
        return self._tokens(client, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return None

    def _tokens(self, client: Any, scopes: list[str]) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access[access] = time.time() + self.lifetime
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=scopes)
        return OAuthToken(access_token=access, expires_in=self.lifetime, refresh_token=refresh, scope=" ".join(scopes))
