"""Routes that refuse what is right otherwise, and places in which an unknown id is no mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from re import fullmatch

from tests.e2e.tenants.places import Place

# What others are in, in the order in which it is deleted.
WHOLES = (
    "DELETE /v1/sandbox-config/{sandbox_config_id}",
    "DELETE /v1/mcp-servers/{mcp_server_id}",
    "DELETE /v1/folders/{folder_id}",
    "DELETE /v1/sources/{folder_id}",
    "DELETE /v1/archives/{archive_id}",
    "DELETE /v1/groups/{group_id}",
    "DELETE /v1/conversations/{conversation_id}",
    "DELETE /v1/agents/{agent_id}",
    "DELETE /v1/users",
    "DELETE /v1/admin/users",
)
_NOT_AUTHORISED = (400, "Not authorised")
_NO_BATCHES = (501, "batches of messages are not handed to providers yet")
_OPERATOR = (403, "this is for the operator")
# Status and sentence by route, and by route and place where only that is refused.
_REFUSALS: Mapping[tuple[str, str], tuple[int, str]] = {
    ("GET /v1/agents/{agent_id}/messages", "group_id"): (422, "not available yet"),
    ("GET /v1/conversations/{conversation_id}/messages", "group_id"): (422, "not available yet"),
    ("PATCH /v1/agents/{agent_id}", "message_ids"): (422, "the window cannot be set"),
    ("POST /v1/conversations/{conversation_id}/cancel", ""): (409, "No active runs to cancel"),
    ("GET /v1/tools/mcp/oauth/begin", ""): _NOT_AUTHORISED,
    ("POST /v1/tools/mcp/oauth/begin", ""): _NOT_AUTHORISED,
    ("GET /v1/tools/mcp/oauth/callback", ""): _NOT_AUTHORISED,
    ("GET /v1/messages/batches", ""): _NO_BATCHES,
    ("POST /v1/messages/batches", ""): _NO_BATCHES,
    ("GET /v1/messages/batches/{batch_id}", ""): _NO_BATCHES,
    ("GET /v1/messages/batches/{batch_id}/messages", ""): _NO_BATCHES,
    ("PATCH /v1/messages/batches/{batch_id}/cancel", ""): _NO_BATCHES,
    ("POST /v1/voice-beta/{agent_id}/chat/completions", ""): (501, "agents do not speak over this route yet"),
    ("POST /v1/tools/import", ""): (400, "definition.module must be the name of a Python module"),
    ("POST /v1/tools/generate-tool", ""): (502, "did not answer with a tool"),
    ("PATCH /v1/jobs/{job_id}/cancel", ""): (409, "has ended already"),
    ("POST /v1/orgs", ""): _OPERATOR,
    ("POST /v1/admin/orgs", ""): _OPERATOR,
    ("DELETE /v1/orgs", ""): _OPERATOR,
    ("DELETE /v1/admin/orgs", ""): _OPERATOR,
}


def refusals(label: str, place: Place | None) -> list[tuple[int, str]]:
    """Returns how a route refuses even what is the caller's own, if it does."""
    keys = ((label, ""), (label, place.way[-1] if place else ""))
    return [_REFUSALS[key] for key in dict.fromkeys(keys) if key in _REFUSALS]


# Routes and places in which an unknown id is no mistake, and what it comes to instead of a 404.
_AS_OF_NOTHING: Sequence[tuple[str, str, str]] = (
    (r"GET .*", "query .*", "a list is narrowed to nothing, or begins elsewhere"),
    (r"GET .*/(archival-memory|blocks/{block_id}/agents|conversations/{conversation_id}/messages)", "path .*", "empty"),
    (r"GET /v1/_internal_blocks/{block_id}/agents", "path .*", "an empty list"),
    (r"GET /v1/(telemetry/{step_id}|steps/{step_id}/trace)", "path .*", "null"),
    (r".*/detach/.*", "path .*", "what is not attached is not detached"),
    (r"POST .*/messages/cancel", ".*", "nothing runs that could be cancelled"),
    (r"POST /v1/conversations/{conversation_id}/(stream|cancel)", ".*", "nothing runs there"),
    (r"POST /v1/runs/{run_id}/stream", "body .*", "the path says which run"),
    (r"POST /v1/agents/{agent_id}/rewind", "body agent_id", "the path says which agent"),
    (r"POST /v1/environments/{connection_id}/messages", "body .*", "the device reads it"),
    (r".* /v1/(tools/mcp/servers/.*/resync|mcp-servers/.*/refresh)", "query agent_id", "not looked at"),
    (r"POST /v1/tools/run", "body file_ids", "the call's return says that the file is not there"),
    (r"(POST|PATCH|DELETE) /v1/(admin/)?(orgs|users)", ".*org.*", "the operator alone names tenants"),
    (r".* /v1/(messages/batches|voice-beta).*", "path .*", "not there yet"),
    (r"(GET|POST|PATCH) .*", "(body message_ids|query group_id)", "refused whatever it is"),
)


def as_of_nothing(label: str, place: Place) -> str:
    """Returns what an unknown id comes to there; "" where it is a mistake."""
    fits = (why for routes, where, why in _AS_OF_NOTHING if fullmatch(routes, label) and fullmatch(where, str(place)))
    return next(fits, "")
