"""The form of a recording: one JSON object per line, first the provider, then its exchanges. Pure.

A request is known by its method, path, query and body. Of a body that is JSON the order of keys does not matter, nor do
the fields by which a vendor is told who asks (ASKERS). A reply is kept as the very bytes that came, in the chunks in
which they came. Headers of requests are never kept, of replies only those in _HEADERS.
"""

import base64
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

import orjson

# What the line of a provider says of it, by the names of ProviderConfig.
DESCRIBED = frozenset({"name", "type", "base_url", "is_vendor", "region", "api_version", "options"})
# They change from machine to machine, and no answer depends on them.
ASKERS = ("prompt_cache_key", "safety_identifier", "user", "metadata")
# How an exchange ended, beside the name of an httpx2 error: all came, or the caller left before.
WHOLE, LEFT = "whole", "left"
_HEADERS = re.compile(
    r"content-type|content-encoding|retry-after|retry-after-ms|(x-)?request-id|x-amzn-(errortype|requestid)"
    r"|(x|anthropic)-ratelimit-.*",
    re.IGNORECASE,
)
_SECRET_QUERY = re.compile(
    r"(api[-_]?)?key|(access[-_]?)?token|sig|signature|code|password|auth.*|x-(amz|goog)-.*", re.IGNORECASE
)
# A placeholder for a key is a word that stands elsewhere, too.
_SHORTEST_SECRET = 8
_REMOVED = b"[removed]"
_ZLIB = ("gzip", "deflate")
# zlib: with whichever of the two headers.
_ANY_ZLIB = 47


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request: `path` with the base URL's own, `query` without what is secret."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    @property
    def place(self) -> tuple[str, str]:
        """Returns its method and path."""
        return self.method, self.path

    @property
    def key(self) -> bytes:
        """Returns a key that is equal for requests that are the same."""
        return orjson.dumps([self.method, self.path, self.query, self.value], option=orjson.OPT_SORT_KEYS)

    @property
    def value(self) -> Any:
        """Returns the body without ASKERS."""
        value = _value(self.body)
        return {name: one for name, one in value.items() if name not in ASKERS} if isinstance(value, dict) else value


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """A reply: its head came `milliseconds` after the request, each chunk that many after it, too.

    `end` is WHOLE, LEFT, or the name of the error of HTTP that ended it, `reason` that error's text; `status` is 0
    where it came before the head.
    """

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    milliseconds: int = 0
    chunks: Sequence[tuple[int, bytes]] = ()
    end: str = WHOLE
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its reply; `at` is when it was sent, in ISO 8601."""

    asked: RecordedRequest
    answered: RecordedReply
    at: str = ""


@dataclass(slots=True)
class Recording:
    """The contents of a file."""

    provider: dict[str, Any] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    # Lines that were torn by a crash.
    torn: int = 0


def request_of(method: str, url: str, body: bytes) -> RecordedRequest:
    """Returns the request to `url`."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    kept = sorted((name, value) for name, value in query if not _SECRET_QUERY.fullmatch(name))
    return RecordedRequest(method, parts.path, tuple(kept), body)


def kept_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Returns the headers of a reply that matter."""
    return tuple((name.lower(), value) for name, value in headers if _HEADERS.fullmatch(name))


def public_url(url: str) -> str:
    """Returns a base URL without user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def file_name(provider: str, organization: object | None) -> str:
    """Returns the name of a provider's file; a tenant's own has the tenant in its name."""
    return f"{quote(provider, safe='')}{f'@{organization}' if organization else ''}.jsonl"


def provider_line(fields: Mapping[str, Any]) -> bytes:
    """Returns the line that says whose exchanges follow."""
    return orjson.dumps({"provider": fields}) + b"\n"


def exchange_line(exchange: Exchange, secrets: Sequence[str]) -> bytes:
    """Returns the line of an exchange. A secret in it (a vendor may quote the key it refuses) is cut out."""
    request, reply = exchange.asked, _clean(exchange.answered, secrets)
    line = orjson.dumps(
        {
            "at": exchange.at,
            "request": {
                "method": request.method,
                "path": request.path,
                "query": request.query,
                "body": _pack(request.body, json=True),
            },
            "response": {
                "status": reply.status,
                "headers": reply.headers,
                "milliseconds": reply.milliseconds,
                "chunks": [(at, _pack(chunk)) for at, chunk in reply.chunks],
                "end": reply.end,
                "reason": reply.reason,
            },
        }
    )
    return _without(line, secrets) + b"\n"


def read(lines: Iterable[bytes]) -> Recording:
    """Returns the recording in the lines of a file; torn ones are counted."""
    recorded = Recording()
    for line in lines:
        try:
            item = orjson.loads(line)
            if "provider" in item:
                recorded.provider = item["provider"]
            else:
                recorded.exchanges.append(_exchange(item))
        except (ValueError, KeyError, TypeError):
            recorded.torn += bool(line.strip())
    return recorded


def _value(body: bytes) -> Any:
    """Returns the body as JSON, or else as text; bytes that are no text as base64. None for none."""
    if not body:
        return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        packed = _pack(body)
        return packed["base64"] if isinstance(packed, dict) else packed


def _pack(data: bytes, *, json: bool = False) -> Any:
    """Returns bytes as a text, or where they are none in base64; with `json`, JSON as {"json"}."""
    if json and data:
        try:
            return {"json": orjson.loads(data)}
        except orjson.JSONDecodeError:
            pass
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _unpack(packed: Any) -> bytes:
    if isinstance(packed, str):
        return packed.encode()
    return orjson.dumps(packed["json"]) if "json" in packed else base64.b64decode(packed["base64"], validate=True)


def _spellings(secrets: Iterable[str]) -> list[bytes]:
    """Returns the secrets as they stand in bytes and in JSON."""
    long = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    return [form for secret in long for form in {secret.encode(), orjson.dumps(secret)[1:-1]}]


def _clean(reply: RecordedReply, secrets: Sequence[str]) -> RecordedReply:
    """Returns the reply without secrets, whether torn between two chunks or compressed."""
    whole = plain = b"".join(chunk for _, chunk in reply.chunks)
    headers = dict(reply.headers)
    if headers.pop("content-encoding", "") in _ZLIB:
        with suppress(zlib.error):
            plain = zlib.decompressobj(_ANY_ZLIB).decompress(whole)
    if not any(secret in plain for secret in _spellings(secrets)):
        return reply
    kept = reply.headers if plain is whole else tuple(headers.items())
    return replace(reply, headers=kept, chunks=[(reply.milliseconds, _without(plain, secrets))])


def _without(data: bytes, secrets: Iterable[str]) -> bytes:
    for secret in _spellings(secrets):
        data = data.replace(secret, _REMOVED)
    return data


def _exchange(item: Mapping[str, Any]) -> Exchange:
    request, response = item["request"], item["response"]
    request_of_item = RecordedRequest(
        request["method"], request["path"], _pairs(request["query"]), _unpack(request["body"])
    )
    reply = RecordedReply(
        status=response["status"],
        headers=_pairs(response["headers"]),
        milliseconds=response["milliseconds"],
        chunks=[(at, _unpack(packed)) for at, packed in response["chunks"]],
        end=response["end"],
        reason=response["reason"],
    )
    return Exchange(request_of_item, reply, item["at"])


def _pairs(pairs: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in pairs)
