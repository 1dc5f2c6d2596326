"""Requests of tools: the token of a run in place of a password, and what it opens.

A tool's code calls Loci through the proxy of its sandbox, which puts the token in. It acts for the tenant and within
the run that the tool was called in, so that a run it begins knows who waits for it. Whoever talks a model into calling
tools can reach as far as this: hence no settings, no keys, no code that would run with other permissions, and no say in
what waits for a person.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gateway.access.roles import CLIENT
from loci.agent.v1 import message_pb2
from services.common.context import RUN_ROLE, RUN_TOKEN_PREFIX, CallContext, Verifier, current_or_none
from services.common.errors import PermissionDenied, Unauthenticated

_PREFIX = RUN_TOKEN_PREFIX.encode()
_READ = "GET|HEAD"
# What is not here is refused: methods, and paths below /v1/.
_PERMITTED = [
    re.compile(rf"({methods}) /v1/({paths})")
    for methods, paths in (
        (r"\w+", r"(agents|archives|blocks|conversations|messages|passages)(/.*)?"),
        (_READ, r"(folders|models|runs|sources|steps|tags|tools|health)(/.*)?"),
        ("POST", r"chat/completions|responses|runs/[^/]+/stream|tools/(run|search)"),
        ("PATCH", r"steps/[^/]+/feedback"),
        # Calls of an MCP server's tool by its own route would go past the approval of the agent that has it, and
        # resources may be of a server that the agent has nothing of.
        (_READ, r"mcp-servers(?!/connect|/[^/]+/(resources|prompts))(/.*)?"),
    )
]
# Of those, what shows or sets secrets.
_SECRET = re.compile(r".*/(secrets|environment-variables?)(/.*)?|.*/tools/mcp/oauth/.*")
# What is sent at its time would outlive the run, and its token.
_LATER = re.compile(r"POST .*/schedule")
# Whether calls of a tool wait for a person.
_APPROVAL = re.compile(r".*/tools/approval/.*")
# Files with whole agents in them bring code, servers and secrets.
_MOVING = re.compile(r".*/agents/import")
# Members of an agent that hold its secrets.
SECRET_MEMBERS = ("secrets", "tool_exec_environment_variables")
# A callback, or source with a network of its own, would go out past the proxy that judges the tool's own requests.
_CLOSED_MEMBERS = frozenset((*SECRET_MEMBERS, "callback_url", "network"))
# Roles that are not shown even the names of secrets.
_WITHOUT_SECRETS = frozenset({RUN_ROLE, "agent-only", "read-only", CLIENT})


def bearer_of(headers: Mapping[bytes, bytes]) -> bytes:
    """Returns the credential in `authorization: Bearer ...`; empty for none."""
    scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
    return bearer.strip() if scheme.lower() == b"bearer" else b""


def has_run_token(headers: Mapping[bytes, bytes]) -> bool:
    """Returns whether a request comes with the token of a run. It is then no other's, whatever else it shows."""
    return bearer_of(headers).startswith(_PREFIX)


def run_context(headers: Mapping[bytes, bytes], verifier: Verifier | None) -> CallContext:
    """Returns the context in the token, still with its token. Raises Unauthenticated (RUN_TOKEN_INVALID)."""
    encoded = bearer_of(headers).removeprefix(_PREFIX)
    try:
        token = base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
        context = None if verifier is None else verifier.verify(token, "gateway")
    except (binascii.Error, Unauthenticated):
        context = None
    if context is None or context.role != RUN_ROLE:
        sentence = "the token of this tool's call is not valid, or the time of the call is over"
        raise Unauthenticated(sentence, reason="RUN_TOKEN_INVALID")
    return context


def acting_context(context: CallContext, audience: tuple[str, ...]) -> CallContext:
    """Returns the unsigned context of a request that came with `context`."""
    return replace(context, audience=audience, expires_at=0.0, token=b"")


def check_route(method: str, path: str) -> None:
    """Raises PermissionDenied (RUN_NOT_PERMITTED) where a tool may not use the route; `path` in its canonical form."""
    route = f"{method} {path}"
    closed = _SECRET.fullmatch(path) or _APPROVAL.fullmatch(path) or _MOVING.fullmatch(path)
    if closed or _LATER.fullmatch(route) or not any(pattern.fullmatch(route) for pattern in _PERMITTED):
        raise _refused(f"a tool may not {method} {path[:200]} with the token of its run")


def check_members(names: Iterable[str], *closed: str) -> None:
    """Raises PermissionDenied where a tool or a page sets what it may not; `names`: the members of what it sends.

    `closed`: those that a tool may not set here, beside those that it may set nowhere.
    """
    context = current_or_none()
    for name in names:
        if name in SECRET_MEMBERS and context and context.role == CLIENT:
            raise PermissionDenied(f"the role {CLIENT} may not set {name}", reason="ROLE_NOT_PERMITTED")
        if (name in _CLOSED_MEMBERS or name in closed) and is_tool():
            raise _refused(f"a tool may not set {name} with the token of its run")


def check_approvals(messages: Iterable[message_pb2.InputMessage]) -> None:
    """Raises PermissionDenied where a tool approves calls, which wait for a person."""
    approves = any(answer.decision.approve for message in messages for answer in message.answers)
    if approves and is_tool():
        raise _refused("a tool may not approve calls with the token of its run: they wait for a person")


def is_tool() -> bool:
    """Returns whether the request being served is a tool's."""
    context = current_or_none()
    return context is not None and context.role == RUN_ROLE


def sees_secrets() -> bool:
    """Returns whether whoever is served may see that an agent has secrets, and their names."""
    context = current_or_none()
    return context is None or context.role not in _WITHOUT_SECRETS


def _refused(sentence: str) -> PermissionDenied:
    return PermissionDenied(sentence, reason="RUN_NOT_PERMITTED")
