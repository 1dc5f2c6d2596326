"""MCP servers as plain values: what a tenant may set, its masks, and what is secret. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

from services.common.core.refusals import Refused
from services.common.core.secret_names import MASK, mask_arguments

INVALID = "MCP_SERVER_INVALID"
MOST_SERVERS = 200

_LONGEST_NAME = 255
_LONGEST_SECRET = 16 * 1024
_MOST_ENTRIES = 100
_MOST_ARGUMENTS = 200
_LONGEST_ARGUMENT = 32 * 1024
_MOST_PATHS = 32
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\x80-\xff\t]*")
_PATH = re.compile(r"/[^\x00:]{0,4095}(:ro)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
# Those that frame or route a request, and those that the protocol sets itself: kept, shown, and never sent.
_PROTOCOL_HEADERS = frozenset(
    [
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)


class Kind(StrEnum):
    """The transport of a server; the values are stored."""

    STREAMABLE_HTTP = "streamable_http"
    SSE = "sse"
    STDIO = "stdio"


class Status(IntEnum):
    """The state of a server; the numbers are those of McpStatus in the proto, and stored."""

    NEVER_ASKED = 0
    CONNECTED = 1
    OAUTH_REQUIRED = 2
    FAILED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """A server behind a URL. `headers` and `auth_token` are secret."""

    kind: Kind
    url: str
    auth_header: str = ""
    auth_token: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def all_headers(self) -> dict[str, str]:
        """Returns what every request carries; the protocol's own headers hold."""
        own = {self.auth_header: self._credential()} if self.auth_header and self.auth_token else {}
        headers = {**self.headers, **own}
        return {name: value for name, value in headers.items() if name.lower() not in _PROTOCOL_HEADERS}

    def _credential(self) -> str:
        # People give the bare token, or the whole header.
        bare = self.auth_header.lower() == "authorization" and " " not in self.auth_token
        return f"Bearer {self.auth_token}" if bare else self.auth_token


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """A server that is a program. `env` is secret, and so may `args` be. `network` is JSON as a tool's; "": none.

    paths: the operator's folders that it sees, `:ro` behind one that it must not write to; (): all of them.
    """

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    network: str = ""
    paths: tuple[str, ...] = ()
    kind: Kind = Kind.STDIO


Transport = Http | Stdio


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An MCP server of one tenant. `tool_problems`: (name, why) of tools that cannot be offered."""

    id: UUID
    name: str
    transport: Transport
    status: Status = Status.NEVER_ASKED
    problem: str = ""
    tool_problems: tuple[tuple[str, str], ...] = ()
    metadata: str = "{}"
    synced_at: datetime | None = None
    created_by_id: UUID | None = None
    last_updated_by_id: UUID | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    version: int = 1


def check_name(name: str) -> str:
    """Raises Refused."""
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise refusal("server_name", f"must have 1 to {_LONGEST_NAME} printable characters")
    return name.strip()


def check(transport: Transport) -> None:
    """Checks a transport, but for its URL and network. Raises Refused, naming the field."""
    if isinstance(transport, Http):
        _check_http(transport)
    else:
        _check_stdio(transport)


def _check_http(transport: Http) -> None:
    own = {transport.auth_header: transport.auth_token} if transport.auth_header else {}
    for name, value in (*transport.headers.items(), *own.items()):
        where = "auth_header" if name == transport.auth_header else "custom_headers"
        if not _HEADER.fullmatch(name):
            raise refusal(where, f"{name[:100]!r} is not the name of a header")
        if len(value) > _LONGEST_SECRET or not _HEADER_VALUE.fullmatch(value):
            raise refusal(where, f"the value of {name!r} is too long, or holds characters that no header can have")
    if transport.auth_header.lower() in _PROTOCOL_HEADERS:
        raise refusal("auth_header", f"{transport.auth_header!r} belongs to the protocol: no token can be sent in it")
    if transport.auth_token and not transport.auth_header:
        raise refusal("auth_header", "must name the header that carries auth_token, for example Authorization")
    if len(transport.headers) > _MOST_ENTRIES:
        raise refusal("custom_headers", f"holds more than {_MOST_ENTRIES} headers")


def _check_stdio(transport: Stdio) -> None:
    texts = (transport.command, *transport.args)
    if not transport.command.strip():
        raise refusal("command", "is empty")
    if len(texts) > _MOST_ARGUMENTS or any(len(text) > _LONGEST_ARGUMENT or "\x00" in text for text in texts):
        raise refusal("args", f"are more than {_MOST_ARGUMENTS}, or one is too long or holds NUL")
    if len(transport.env) > _MOST_ENTRIES:
        raise refusal("env", f"holds more than {_MOST_ENTRIES} variables")
    for name, value in transport.env.items():
        if not _VARIABLE.fullmatch(name) or "\x00" in value or len(value) > _LONGEST_SECRET:
            raise refusal("env", f"{name[:100]!r} is not a variable, or its value is too long or holds NUL")
    if len(transport.paths) > _MOST_PATHS:
        raise refusal("paths", f"are more than {_MOST_PATHS}")
    for path in transport.paths:
        if not _PATH.fullmatch(path):
            raise refusal("paths", f"{path[:200]!r} is not a folder by its whole path, with `:ro` behind it or nothing")


def holds_mask(written: object) -> bool:
    """Returns whether a written value, or one of those in it, stands for what is there."""
    return written == MASK or (isinstance(written, Mapping) and MASK in written.values())


def config_text(transport: Transport) -> str:
    """Returns what is stored in the open: nothing secret."""
    if isinstance(transport, Http):
        return json.dumps({"server_url": transport.url, "auth_header": transport.auth_header})
    args = mask_arguments(transport.args)
    config = {"command": transport.command, "args": args, "network": transport.network, "paths": transport.paths}
    return json.dumps(config)


def secrets_text(transport: Transport) -> str:
    """Returns what is sealed; "" where there is nothing."""
    secrets: dict[str, Any]
    if isinstance(transport, Http):
        secrets = {"auth_token": transport.auth_token, "custom_headers": dict(transport.headers)}
    else:
        hides = mask_arguments(transport.args) != transport.args
        secrets = {"env": dict(transport.env), "args": list(transport.args) if hides else []}
    return json.dumps(secrets) if any(secrets.values()) else ""


def transport_of(kind: str, config: str, secrets: str) -> Transport:
    """Returns what `config_text` and `secrets_text` made."""
    stored: dict[str, Any] = json.loads(config)
    hidden: dict[str, Any] = json.loads(secrets or "{}")
    if kind == Kind.STDIO:
        args = tuple(hidden.get("args") or stored["args"])
        return Stdio(
            command=stored["command"],
            args=args,
            env=hidden.get("env", {}),
            network=stored["network"],
            paths=tuple(stored.get("paths", ())),
        )
    return Http(
        kind=Kind(kind),
        url=stored["server_url"],
        auth_header=stored["auth_header"],
        auth_token=hidden.get("auth_token", ""),
        headers=hidden.get("custom_headers", {}),
    )


def refusal(where: str, problem: str) -> Refused:
    """Returns the refusal of a field."""
    return Refused(INVALID, f"{where}: {problem}")
