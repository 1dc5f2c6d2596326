"""OAuth 2.1 as MCP has it, with the parts of the official SDK: discovery, registration, PKCE, exchange, renewal.

The SDK's own provider does all of it in one coroutine that waits for the user. Here a callback may come to another
replica, so an attempt is data: `begin` makes it, `finish` goes on from it, and what comes out is data again. Sources:
the protocol's pages on authorization, RFC 8414, 8707, 9207, 9728. Imported when the first server wants it: 36 MB.
"""

import secrets
import time
from typing import Any, Literal
from urllib.parse import urlencode, urljoin, urlsplit

import httpx2
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext, PKCEParameters, check_registration_usable
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_client_registration_request,
    create_oauth_metadata_request,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    get_client_metadata_scopes,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    handle_registration_response,
    handle_token_response_scopes,
    issuers_match,
    validate_authorization_response_iss,
    validate_metadata_issuer,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import AnyUrl, BaseModel, ValidationError

from services.tool_runner.mcp.protocol.errors import Kind, McpProblem

_FORM = "application/x-www-form-urlencoded"
_QUOTE_CHARS = 300
# Of authentication at the token endpoint, those that we can use, the likeliest to work first: some servers advertise
# `client_secret_basic` and read the body alone. "none" is for public clients, which have PKCE.
_Method = Literal["client_secret_post", "client_secret_basic", "none"]
_METHODS: tuple[_Method, ...] = ("client_secret_post", "client_secret_basic", "none")
# What a client has that was registered without a word of it (RFC 7591, section 2).
_USUAL_METHOD: _Method = "client_secret_basic"


class Attempt(BaseModel):
    """An authorisation under way: all that the exchange of the code needs."""

    server_url: str
    redirect_uri: str
    verifier: str
    # Where the user gives leave, and what its tenant calls the server.
    url: str = ""
    server_name: str = ""
    client: OAuthClientInformationFull
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None
    scope: str | None = None


class Grant(BaseModel):
    """Tokens, and how to renew them. `expires_at` is Unix time."""

    server_url: str
    client: OAuthClientInformationFull
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None
    tokens: OAuthToken
    expires_at: float | None = None

    def fresh(self, margin: float) -> bool:
        """Returns whether the token holds for so many seconds."""
        return self.expires_at is None or time.time() + margin < self.expires_at


class AuthorizationRequest(BaseModel):
    """The address to which the user is sent, and the state with which they come back."""

    url: str
    state: str
    attempt: Attempt


async def begin(client: httpx2.AsyncClient, server_url: str, challenge: str, redirect_uri: str) -> AuthorizationRequest:
    """Goes from a 401 to the page where the user gives leave. Raises McpProblem."""
    try:
        refused = httpx2.Response(401, headers={"www-authenticate": challenge} if challenge else {})
        resource = await _resource(client, server_url, extract_resource_metadata_from_www_auth(refused))
        metadata = await _metadata(client, server_url, resource)
        ours = _ourselves(redirect_uri)
        ours.token_endpoint_auth_method = _auth_method(metadata)
        ours.scope = get_client_metadata_scopes(
            extract_scope_from_www_auth(refused), resource, metadata, ours.grant_types
        )
        registered = await _register(client, server_url, metadata, ours)
        return _authorization_request(server_url, redirect_uri, registered, metadata, resource, ours.scope)
    except (OAuthFlowError, ValidationError, ValueError) as error:
        raise _failure(error) from None


async def finish(client: httpx2.AsyncClient, attempt: Attempt, code: str, issuer: str) -> Grant:
    """Exchanges the code that came back for tokens. Raises McpProblem."""
    context = _context(attempt.server_url, attempt.client, attempt.metadata, attempt.resource)
    data = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": attempt.redirect_uri,
        "client_id": attempt.client.client_id,
        "code_verifier": attempt.verifier,
    }
    try:
        validate_authorization_response_iss(issuer or None, attempt.metadata)
        response = await _token_request(client, context, data)
        if response.status_code not in (200, 201):
            raise OAuthFlowError(f"the code was not exchanged: HTTP {response.status_code} {_error_text(response)}")
        tokens = await handle_token_response_scopes(response)
    except (OAuthFlowError, ValidationError, ValueError) as error:
        raise _failure(error) from None
    tokens.scope = tokens.scope or attempt.scope
    return _grant(context, tokens)


async def renew(client: httpx2.AsyncClient, grant: Grant) -> Grant:
    """Renews tokens. Raises McpProblem: OAUTH_REQUIRED where the user has to give leave again."""
    context = _context(grant.server_url, grant.client, grant.metadata, grant.resource)
    if not grant.tokens.refresh_token:
        raise _over()
    data = {
        "grant_type": "refresh_token",
        "refresh_token": grant.tokens.refresh_token,
        "client_id": grant.client.client_id,
    }
    try:
        response = await _token_request(client, context, data)
        if 400 <= response.status_code < 500:
            raise _over()
        if response.status_code != 200:
            raise OAuthFlowError(f"the tokens were not renewed: HTTP {response.status_code}")
        tokens = OAuthToken.model_validate_json(response.content)
    except (OAuthFlowError, ValidationError, ValueError) as error:
        raise _failure(error) from None
    # RFC 6749, section 6: what is left out stays.
    tokens.scope = tokens.scope or grant.tokens.scope
    tokens.refresh_token = tokens.refresh_token or grant.tokens.refresh_token
    return _grant(context, tokens)


async def _resource(client: httpx2.AsyncClient, server_url: str, named: str | None) -> ProtectedResourceMetadata | None:
    """Returns what the server says of who authorises for it (RFC 9728)."""
    broken = 0
    for url in build_protected_resource_metadata_discovery_urls(named, server_url):
        response = await _got(client, url)
        if response.status_code >= 500 or response.status_code == 429:
            broken = response.status_code
        if metadata := await handle_protected_resource_response(response):
            resource = resource_url_from_server_url(server_url)
            if not check_resource_allowed(requested_resource=resource, configured_resource=str(metadata.resource)):
                raise OAuthFlowError(f"the server's metadata are those of {metadata.resource}, not of {resource}")
            return metadata
    if broken:
        # It says nothing about whether there are any.
        raise OAuthFlowError(f"the server's metadata could not be read: HTTP {broken}")
    return None


async def _metadata(
    client: httpx2.AsyncClient, server_url: str, resource: ProtectedResourceMetadata | None
) -> OAuthMetadata | None:
    """Returns what the authorization server says of itself (RFC 8414). The first that is named is used."""
    named = str(resource.authorization_servers[0]) if resource else None
    expected = named or _origin(server_url)
    for url in build_oauth_authorization_server_metadata_discovery_urls(named, server_url):
        go_on, metadata = await handle_auth_metadata_response(await _got(client, url))
        if not go_on:
            return None
        if metadata:
            if named is None and issuers_match(str(metadata.issuer), expected):
                expected = str(metadata.issuer)
            validate_metadata_issuer(metadata, expected)
            return metadata
    return None


async def _register(
    client: httpx2.AsyncClient, server_url: str, metadata: OAuthMetadata | None, ours: OAuthClientMetadata
) -> OAuthClientInformationFull:
    """Returns what we are to the authorization server (RFC 7591)."""
    response = await client.send(create_client_registration_request(metadata, ours, _origin(server_url)))
    if response.status_code not in (200, 201):
        raise OAuthFlowError(
            "the authorization server registers no clients by itself "
            f"(HTTP {response.status_code} {_error_text(response)}); give the server an auth_token instead"
        )
    registered = await handle_registration_response(response)
    if registered.client_secret and not registered.token_endpoint_auth_method:
        # It has what we asked for; unnamed, the SDK would send no secret.
        registered.token_endpoint_auth_method = ours.token_endpoint_auth_method or _USUAL_METHOD
    check_registration_usable(registered)
    return registered


def _authorization_request(
    server_url: str,
    redirect_uri: str,
    registered: OAuthClientInformationFull,
    metadata: OAuthMetadata | None,
    resource: ProtectedResourceMetadata | None,
    scope: str | None,
) -> AuthorizationRequest:
    context = _context(server_url, registered, metadata, resource)
    pkce, state = PKCEParameters.generate(), secrets.token_urlsafe(32)
    query = {
        "response_type": "code",
        "client_id": registered.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": "S256",
        "resource": context.get_resource_url(),
    }
    if scope:
        query["scope"] = scope
        if "offline_access" in scope.split():
            query["prompt"] = "consent"  # as OpenID Connect wants it for that
    endpoint = str(metadata.authorization_endpoint) if metadata else urljoin(_origin(server_url), "/authorize")
    attempt = Attempt(
        server_url=server_url,
        redirect_uri=redirect_uri,
        verifier=pkce.code_verifier,
        client=registered,
        metadata=metadata,
        resource=resource,
        scope=scope,
    )
    joint = "&" if urlsplit(endpoint).query else "?"
    return AuthorizationRequest(url=f"{endpoint}{joint}{urlencode(query)}", state=state, attempt=attempt)


async def _token_request(client: httpx2.AsyncClient, context: OAuthContext, data: dict[str, str]) -> httpx2.Response:
    if context.should_include_resource_param(LATEST_HANDSHAKE_VERSION):
        data["resource"] = context.get_resource_url()
    data, headers = context.prepare_token_auth(data, {"content-type": _FORM, "accept": "application/json"})
    metadata = context.oauth_metadata
    url = str(metadata.token_endpoint) if metadata else urljoin(_origin(context.server_url), "/token")
    return await client.post(url, data=data, headers=headers)


async def _got(client: httpx2.AsyncClient, url: str) -> httpx2.Response:
    # Wherever a redirect leads, its address is checked as the first one was.
    return await client.send(create_oauth_metadata_request(url), follow_redirects=True)


def _ourselves(redirect_uri: str) -> OAuthClientMetadata:
    kind: Literal["web", "native"] = "web" if redirect_uri.startswith("https://") else "native"
    return OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect_uri)],
        client_name="Loci",
        application_type=kind,
    )


def _auth_method(metadata: OAuthMetadata | None) -> _Method | None:
    """Returns the method to register for; None leaves it to the server, which does not say what it can do."""
    supported = (metadata.token_endpoint_auth_methods_supported if metadata else None) or ()
    return next((method for method in _METHODS if method in supported), None)


def _context(
    server_url: str,
    client: OAuthClientInformationFull,
    metadata: OAuthMetadata | None,
    resource: ProtectedResourceMetadata | None,
) -> OAuthContext:
    unused: Any = None
    ours = OAuthClientMetadata(redirect_uris=client.redirect_uris or [AnyUrl("http://localhost/")])
    context = OAuthContext(server_url, ours, unused, None, None)
    context.client_info, context.oauth_metadata = client, metadata
    context.protected_resource_metadata = resource
    return context


def _grant(context: OAuthContext, tokens: OAuthToken) -> Grant:
    assert context.client_info
    return Grant(
        server_url=context.server_url,
        client=context.client_info,
        metadata=context.oauth_metadata,
        resource=context.protected_resource_metadata,
        tokens=tokens,
        expires_at=None if tokens.expires_in is None else time.time() + tokens.expires_in,
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _error_text(response: httpx2.Response) -> str:
    return response.text[:_QUOTE_CHARS]


def _failure(error: Exception) -> McpProblem:
    return McpProblem(Kind.FAILED, f"the authorisation failed: {str(error)[: 2 * _QUOTE_CHARS]}")


def _over() -> McpProblem:
    return McpProblem(Kind.OAUTH_REQUIRED, "the authorisation is over; connect to the MCP server again")
