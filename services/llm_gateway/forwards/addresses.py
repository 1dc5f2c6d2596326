"""Addresses and headers of forwarded requests; nothing leads out of the vendor's base URL. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from services.llm_gateway.core.errors import ForwardNotPermitted, LlmBadRequest
from services.llm_gateway.core.provider_config import ProviderConfig

# Providers that stand for a vendor, the first before the others.
TYPES: Mapping[str, tuple[str, ...]] = {"anthropic": ("anthropic",), "zai": ("zai", "zai_coding")}
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
MESSAGES = "v1/messages"

# Of Z.ai, beside its Chat Completions.
_ZAI_PATH = "/api/anthropic"
_PATH = re.compile(r"[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*")
_QUERY = re.compile(r"[\x21-\x22\x24-\x7e]*")
_LONGEST = 2_000
_SENT = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type"})
_TEXT = re.compile(r"[\x20-\x7e]*")
# What no tenant could see of another, method and path.
_ANYBODYS = re.compile(r"POST v1/messages(/count_tokens)?|GET v1/models(/[^/]+)?")
_TOLD = re.compile(
    r"content-type|(x-)?request-id|retry-after|x-should-retry|anthropic-(ratelimit-.+|organization-id|version)"
)


@dataclass(frozen=True, slots=True)
class Forward:
    """A request to hand on; `path` is below the base URL. `own_key` is the caller's at the vendor, or empty."""

    provider_type: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    own_key: str = ""

    @property
    def is_message(self) -> bool:
        """Returns whether a model is to generate something."""
        return (self.method, self.path) == ("POST", MESSAGES)


def validate(request: Forward) -> Forward:
    """Returns the request. Raises LlmBadRequest where its address leads elsewhere, or is none."""
    if request.provider_type not in TYPES:
        raise LlmBadRequest(f"Requests are handed on to {' and '.join(TYPES)}, not to {request.provider_type[:50]!r}.")
    if request.method not in METHODS:
        raise LlmBadRequest(f"Requests are handed on with {', '.join(sorted(METHODS))}, not with another method.")
    if len(request.path) > _LONGEST or not _PATH.fullmatch(request.path) or {".", ".."} & {*request.path.split("/")}:
        raise LlmBadRequest(
            "This path is not handed on: it has letters, digits and -._~ between single slashes, and no step upwards."
        )
    if len(request.query) > _LONGEST or not _QUERY.fullmatch(request.query):
        raise LlmBadRequest(f"This query is not handed on: it is no query, or longer than {_LONGEST:,} characters.")
    if not _TEXT.fullmatch(request.own_key) or not all(map(_TEXT.fullmatch, request.headers.values())):
        raise LlmBadRequest("A header has characters that headers do not have.")
    return request


def check_account(request: Forward, config: ProviderConfig) -> None:
    """Raises ForwardNotPermitted where a tenant would see what others keep on the operator's account."""
    if _ANYBODYS.fullmatch(f"{request.method} {request.path}"):
        return
    if config.organization_id is not None and config.allow_private and not config.is_vendor:
        # It may be within the operator's network, where other programs answer other paths with what is not for tenants.
        raise ForwardNotPermitted(
            f"{request.method} {request.path} is handed on to the vendor's own address alone, and to addresses of the "
            f"open internet; {config.name} is asked for {MESSAGES} and its models.",
            provider=config.name,
        )
    if config.organization_id is None and not request.own_key:
        raise ForwardNotPermitted(
            f"{request.method} {request.path} is not handed on with the key of the server, whose account may be "
            "others', too: show a key of your own, or make a provider of your own with POST /v1/providers.",
            provider=config.name,
        )


def in_dialect(config: ProviderConfig) -> ProviderConfig:
    """Returns the provider with the base URL under which it speaks Anthropic's dialect."""
    if config.type == "anthropic":
        return config
    parts = urlsplit(config.base_url)
    return replace(config, base_url=f"{parts.scheme}://{parts.netloc}{_ZAI_PATH}")


def url_of(request: Forward, config: ProviderConfig) -> str:
    """Returns the whole address."""
    query = f"?{request.query}" if request.query else ""
    return f"{config.base_url.rstrip('/')}/{request.path}{query}"


def headers_of(request: Forward, config: ProviderConfig) -> dict[str, str]:
    """Returns the headers that the vendor is sent."""
    key = request.own_key or config.api_key
    headers = {name: value for name, value in request.headers.items() if name in _SENT}
    headers |= {"accept-encoding": "gzip, deflate", "authorization": f"Bearer {key}"}
    # Compatible servers may know the older header alone.
    if not (config.is_vendor and config.type == "anthropic"):
        headers["x-api-key"] = key
    return headers


def visible_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers of an answer that the caller sees."""
    return {name.lower(): value for name, value in headers.items() if _TOLD.fullmatch(name.lower())}
