"""Bearer tokens of Google Cloud: from a service account's key, or from what the machine itself is given.

Signing and files are work for threads; the exchange for a token goes out on the provider's own HTTP, since a tenant's
key says to which address. Nothing of it is recorded.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import google.auth
import google.auth.exceptions
import google.auth.transport.requests
import httpx2
import orjson
from google.auth import crypt, jwt

from services.llm_gateway.core.errors import LlmAuthentication, LlmConnection, LlmServerError
from services.llm_gateway.core.provider_config import NO_KEY, ProviderConfig

logger = logging.getLogger(__name__)

SERVICE_ACCOUNT = "service_account"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
# Wherever tokens are asked for.
_AUDIENCE = "https://oauth2.googleapis.com/token"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
# A token lives for an hour. It is renewed while it still serves, so that no call waits for it.
_EARLY_SECONDS = 300.0
_ASSERTION_SECONDS = 3600
_PATIENCE = 30.0


class Token(NamedTuple):
    """A bearer token, and how many seconds it lives."""

    value: str
    seconds: float


Fetch = Callable[[], Awaitable[Token]]


class Tokens:
    """The token of one provider, fetched once for all that wait for it and again before it expires."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._value = ""
        self._expires_at = 0.0
        self._fetching: asyncio.Task[None] | None = None

    async def get(self) -> str:
        """Returns a token that is valid now. Raises LlmError."""
        left = self._expires_at - time.monotonic()
        if left < _EARLY_SECONDS and self._fetching is None:
            self._fetching = asyncio.create_task(self._renew())
            self._fetching.add_done_callback(self._on_renewed)
        if left <= 0 and self._fetching is not None:
            await asyncio.shield(self._fetching)
        return self._value

    async def _renew(self) -> None:
        token = await self._fetch()
        self._value, self._expires_at = token.value, time.monotonic() + token.seconds

    def _on_renewed(self, task: asyncio.Task[None]) -> None:
        self._fetching = None
        if not task.cancelled() and (error := task.exception()) is not None:
            # Callers that waited get it raised; while the old token serves, the next call tries again.
            logger.warning("no new token of Google Cloud: %s", error)

    async def close(self) -> None:
        """Leaves a renewal that is under way."""
        if self._fetching is not None:
            self._fetching.cancel()


class Credentials(NamedTuple):
    """The provider's identity: how its tokens are fetched, and its project ("" where they do not say)."""

    fetch: Fetch
    project: str


async def credentials_of(config: ProviderConfig, http: httpx2.AsyncClient) -> Credentials:
    """Returns the credentials of the service account's JSON, its path, or the machine's own. Raises
    LlmAuthentication.
    """
    key = "" if config.api_key == NO_KEY else config.api_key.strip()
    if key.startswith("{"):
        return _account(config, http, _parse(config, key))
    if config.organization_id is not None:
        # Nobody speaks with the operator's credentials.
        raise _refusal(config, "it needs the JSON of a service account's key")
    info = _parse(config, await asyncio.to_thread(_file_text, config, key)) if key else {}
    if info.get("type") == SERVICE_ACCOUNT:
        return _account(config, http, info)
    return await asyncio.to_thread(_default, config)


def _account(config: ProviderConfig, http: httpx2.AsyncClient, info: dict[str, Any]) -> Credentials:
    # Other kinds name files, commands and addresses of the machine.
    if info.get("type") != SERVICE_ACCOUNT or not all(info.get(name) for name in ("client_email", "token_uri")):
        raise _refusal(config, "that JSON is not a service account's key")

    async def fetch() -> Token:
        assertion = await asyncio.to_thread(_assertion, config, info)
        return await _exchange(config, http, str(info["token_uri"]), assertion)

    return Credentials(fetch, str(info.get("project_id") or ""))


def _assertion(config: ProviderConfig, info: dict[str, Any]) -> str:
    now = int(time.time())
    claims = {"iss": info["client_email"], "scope": _SCOPE, "aud": _AUDIENCE}
    try:
        signer = crypt.RSASigner.from_service_account_info(info)  # type: ignore[no-untyped-call]
        signed: bytes = jwt.encode(  # type: ignore[no-untyped-call]
            signer, {**claims, "iat": now, "exp": now + _ASSERTION_SECONDS}
        )
    except (ValueError, google.auth.exceptions.GoogleAuthError):
        raise _refusal(config, "the service account's private key cannot be read") from None
    return signed.decode()


async def _exchange(config: ProviderConfig, http: httpx2.AsyncClient, url: str, assertion: str) -> Token:
    form = {"grant_type": _GRANT, "assertion": assertion}
    try:
        response = await http.post(url, data=form, timeout=_PATIENCE)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise LlmConnection(
            f"{config.name} gets no token: {url} cannot be reached ({type(error).__name__}: {error}). "
            f"Check {config.key_setting} and the network.",
            provider=config.name,
        ) from error
    try:
        value = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        value = None
    reply: dict[str, Any] = value if isinstance(value, dict) else {}
    if response.status_code >= 500:
        sentence = f"{config.name} gets no token: {url} failed ({response.status_code}). Try again later."
        raise LlmServerError(sentence, provider=config.name, status=response.status_code)
    if not response.is_success or not reply.get("access_token"):
        reason = reply.get("error_description") or reply.get("error") or "it gave no reason"
        raise _refusal(config, f"the token is refused: {reason}", response.status_code)
    return Token(str(reply["access_token"]), float(reply.get("expires_in") or _ASSERTION_SECONDS))


def _default(config: ProviderConfig) -> Credentials:
    """Returns the machine's own credentials: a metadata service, a login, a federated identity (application default
    credentials).

    Blocking, as all of that SDK.
    """
    try:
        credentials, project = google.auth.default(scopes=[_SCOPE])
    except google.auth.exceptions.GoogleAuthError as error:
        raise _refusal(config, f"there are no application default credentials ({error})") from error

    def refreshed() -> Token:
        try:
            credentials.refresh(google.auth.transport.requests.Request())  # type: ignore[no-untyped-call]
        except google.auth.exceptions.TransportError as error:
            sentence = f"{config.name} gets no token: {error}. Check the network."
            raise LlmConnection(sentence, provider=config.name) from error
        except google.auth.exceptions.GoogleAuthError as error:
            raise _refusal(config, f"the token is refused: {error}") from error
        left = (
            (credentials.expiry.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds() if credentials.expiry else 0.0
        )
        return Token(str(credentials.token), left or _ASSERTION_SECONDS)

    async def fetch() -> Token:
        return await asyncio.to_thread(refreshed)

    return Credentials(fetch, project or "")


def _file_text(config: ProviderConfig, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, ValueError) as error:
        raise _refusal(config, f"{path} cannot be read ({type(error).__name__})") from error


def _parse(config: ProviderConfig, text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise _refusal(config, "its key is not a JSON object")
    return value


def _refusal(config: ProviderConfig, what: str, status: int | None = None) -> LlmAuthentication:
    sentence = f"{config.name} cannot authenticate at Google Cloud: {what}. Check {config.key_setting}."
    return LlmAuthentication(sentence, provider=config.name, status=status)
