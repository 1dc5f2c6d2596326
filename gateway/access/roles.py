"""Roles and rights: every route needs one right, and every role has some. Pure.

A resource that has no row below is closed to all roles but admin; a test holds the rows to the routes there are.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple
from urllib.parse import parse_qsl


class Right(Enum):
    """The right that a route needs. The four of agents are those that client-side tokens name."""

    # Without any credential.
    OPEN = auto()
    # For whoever shows a credential, where one is asked for.
    ANYBODY = auto()
    READ_AGENT = auto()
    WRITE_AGENT = auto()
    READ_MESSAGES = auto()
    WRITE_MESSAGES = auto()
    # Whatever else a tenant has, but secrets.
    READ = auto()
    # All else that developers do, secrets of agents, tools and sandboxes included.
    WRITE = auto()
    # Keys, users, tenants, providers with their secrets, budgets.
    OWN = auto()


_OF_AGENTS = frozenset({Right.READ_AGENT, Right.WRITE_AGENT, Right.READ_MESSAGES, Right.WRITE_MESSAGES})
_ALWAYS = frozenset({Right.OPEN, Right.ANYBODY})
ADMIN, CLIENT, AGENT_ONLY = "admin", "client", "agent-only"
MAY: Mapping[str, frozenset[Right]] = {
    ADMIN: frozenset(Right),
    "developer": frozenset(Right) - {Right.OWN},
    AGENT_ONLY: frozenset({*_ALWAYS, Right.READ_AGENT, Right.READ_MESSAGES, Right.WRITE_MESSAGES}),
    "read-only": frozenset({*_ALWAYS, Right.READ_AGENT, Right.READ_MESSAGES, Right.READ}),
    # And of these only what its policy says.
    CLIENT: _OF_AGENTS | _ALWAYS,
}
# Rights as a client-side token's policy names them.
ACCESS: Mapping[str, Right] = {right.name.lower(): right for right in _OF_AGENTS}

_ALL = ".*"
_READING = "GET|HEAD"
_SOCKET = "WEBSOCKET"
_AGENT = r"/v1/(?:agents|_internal_agents)/[^/]+"
_CONVERSATION = r"/v1/conversations/[^/]+"
# (methods, paths in their canonical form, right): the first that fits.
_ROUTES: Sequence[tuple[str, str, Right]] = (
    # Liveness probes carry no key, nor does a browser that comes back from an authorization server, reads the docs or
    # opens the page at /, which asks for one.
    (
        _READING,
        r"/v1/(health|ready|tools/mcp/oauth/(callback|begin))|/(docs(/.*)?|redoc|openapi\.json|assets/.*)?",
        Right.OPEN,
    ),
    ("POST", "/v1/tools/mcp/oauth/begin", Right.OPEN),
    (_READING, "/v1/whoami", Right.ANYBODY),
    (_ALL, r"/v1/(api-keys|users|orgs|admin|webhook-secret)(/.*)?", Right.OWN),
    ("POST|PUT|PATCH|DELETE", r"/v1/(providers|budgets)(/.*)?", Right.OWN),
    # Talking
    ("POST", r"/v1/(anthropic|zai)/v1/messages(/count_tokens)?", Right.WRITE_MESSAGES),
    (_READING, r"/v1/(anthropic|zai)/v1/models(/.*)?", Right.READ_AGENT),
    (_ALL, r"/mcp|/v1/chat/completions|/openai/v1/chat/completions|/v1/voice-beta/.*", Right.WRITE_MESSAGES),
    (_READING, r"/v1/models(/.*)?|/openai/v1/models(/.*)?", Right.READ_AGENT),
    (_READING, r"(/openai)?/v1/responses/[^/]+", Right.READ_MESSAGES),
    ("POST|DELETE", r"(/openai)?/v1/responses(/.*)?", Right.WRITE_MESSAGES),
    ("POST", r"/v1/agents/messages/search|/v1/messages/search", Right.READ_MESSAGES),
    # Another prompt and another model than the agent's.
    ("POST", rf"{_AGENT}/(messages/capture|generate)", Right.WRITE_AGENT),
    # Shows its instructions.
    ("POST", rf"({_AGENT}|{_CONVERSATION})/messages/preview-raw-payload", Right.READ_AGENT),
    (
        f"POST|{_SOCKET}",
        rf"({_AGENT}|{_CONVERSATION})/(messages(/.*)?|ws|stream|cancel)",
        Right.WRITE_MESSAGES,
    ),
    ("POST", r"/v1/conversations|/v1/groups/[^/]+/messages(/.*)?", Right.WRITE_MESSAGES),
    (_SOCKET, "/v1/groups/[^/]+/ws", Right.WRITE_MESSAGES),
    ("PATCH", r"/v1/steps/[^/]+/feedback", Right.WRITE_MESSAGES),
    # What was said
    (_READING, rf"{_AGENT}/(messages|checkpoints|rewinds|approvals)(/.*)?", Right.READ_MESSAGES),
    (_READING, r"/v1/(runs|steps)/[^/]+/trace|/v1/telemetry/[^/]+", Right.READ_AGENT),
    (_READING, r"/v1/messages/batches(/.*)?", Right.READ),
    (_READING, r"/v1/(conversations|runs|_internal_runs|steps|messages)(/.*)?", Right.READ_MESSAGES),
    ("POST", r"/v1/runs/[^/]+/stream", Right.READ_MESSAGES),
    # An agent's memory as a git repository
    (_READING, r"/v1/git/[^/]+/[^/]+/info/refs", Right.READ_AGENT),
    ("POST", r"/v1/git/[^/]+/[^/]+/git-upload-pack", Right.READ_AGENT),
    (_ALL, r"/v1/git(/.*)?", Right.WRITE_AGENT),
    # Agents
    (_ALL, rf"{_AGENT}/export", Right.WRITE),
    (_READING, r"/v1/(agents|_internal_agents)(/.*)?", Right.READ_AGENT),
    ("POST", rf"/v1/agents/import|{_AGENT}/fork|{_AGENT}/tools/[^/]+/run|{_CONVERSATION}/fork-agent", Right.WRITE),
    ("DELETE", _AGENT, Right.WRITE),
    # They outlive the token of a page.
    ("POST|DELETE", rf"{_AGENT}/schedule(/.*)?", Right.WRITE),
    (_ALL, rf"({_AGENT}|{_CONVERSATION})(/.*)?", Right.WRITE_AGENT),
    # Searches that are no GET, and GETs that show or change more than one reads
    ("POST", r"/v1/(passages|tools)/search", Right.READ),
    (_ALL, r".*/(secrets|environment-variables?)(/.*)?", Right.WRITE),
    # Servers are spoken to, with the tenant's secrets.
    (_READING, r"/v1/mcp-servers/(connect/.*|[^/]+/(resources|prompts)(/.*)?)", Right.WRITE),
    # Others' APIs, on the tenant's account
    (_ALL, r"/v1/(anthropic|zai)(/.*)?|/openai/v1(/.*)?", Right.WRITE),
    # Tokens are made and seen by who could do what they can.
    (_ALL, r"/v1/client-side-access-tokens(/.*)?", Right.WRITE),
)
_RESOURCES = r"""
    _internal_blocks _internal_search _internal_templates agents archives blocks budgets embeddings environments
    executions folders groups identities jobs learned-windows mcp-servers messages passages providers runs
    sandbox-config schedules sources steps tags templates tools usage
"""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_RESOURCE = re.compile(rf"/v1/({'|'.join(_RESOURCES.split())})(/.*)?")
_RULES = [(re.compile(methods), re.compile(paths), right) for methods, paths, right in _ROUTES]


def right_of(method: str, path: str) -> Right | None:
    """Returns the right that a request needs; `path` in its canonical form. None: nothing was decided about it."""
    if _CONTROL.search(path):  # routes are found before a newline at their end, and rows are not
        return None
    for methods, paths, right in _RULES:
        if methods.fullmatch(method) and paths.fullmatch(path):
            return right
    if not _RESOURCE.fullmatch(path):
        return None
    return Right.READ if method in ("GET", "HEAD") else Right.WRITE


# What a tool calls of an agent's tools, its model could be talked into.
_TOOL_CALL = re.compile(rf"{_AGENT}/tools/[^/]+/run")


def right_in_run(method: str, path: str) -> Right | None:
    """Returns the right that whoever began a run needs, so that a tool may make a request in it."""
    return Right.WRITE_MESSAGES if method == "POST" and _TOOL_CALL.fullmatch(path) else right_of(method, path)


class Target(NamedTuple):
    """Where a request leads: to these agents, or to the agent of a thing with an id."""

    agents: frozenset[str] = frozenset()
    # "conversation", "run" or "step"; empty: `agents` is all there is.
    kind: str = ""
    id: str = ""


_TARGETS = {
    "agent": re.compile(
        rf"{_AGENT.replace('[^/]+', '(agent-[^/]+)')}(?:/.*)?|/v1/(?:voice-beta|git)/(agent-[^/]+)(?:/.*)?"
    ),
    "conversation": re.compile(r"/v1/conversations/((?:conv|agent)-[^/]+)(?:/.*)?"),
    "run": re.compile(r"/v1/runs/(run-[^/]+)(?:/.*)?"),
    "step": re.compile(r"/v1/(?:steps|telemetry)/(step-[^/]+)(?:/.*)?"),
}
# Where the query alone says whose they are, and by which of its fields.
_BY_QUERY: Sequence[tuple[re.Pattern[str], frozenset[str]]] = (
    (re.compile(r"(GET|HEAD) /v1/runs(/active)?"), frozenset({"agent_id", "agent_ids"})),
    (re.compile(r"(GET|HEAD) /v1/(conversations(/default(/.*)?)?|steps)"), frozenset({"agent_id"})),
    (re.compile(r"POST /v1/conversations"), frozenset({"agent_id"})),
)


def target_of(method: str, path: str, query: bytes) -> Target | None:
    """Returns the target of a request, as far as its address tells; None where it does not."""
    for kind, pattern in _TARGETS.items():
        if match := pattern.fullmatch(path):
            name = next(filter(None, match.groups())).lower()
            return Target(frozenset({name})) if name.startswith("agent-") else Target(kind=kind, id=name)
    for route, names in _BY_QUERY:
        if route.fullmatch(f"{method} {path}"):
            fields = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
            agents = [part.strip().lower() for name, value in fields if name in names for part in value.split(",")]
            # One that is empty may be read as "of all".
            return Target(frozenset(agents)) if agents and all(agents) else None
    return None
