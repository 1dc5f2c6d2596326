"""Where requests have room for ids, read from the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.e2e.tenants.samples import operation
from tests.gateway_document import openapi

# Fields whose names end like an id's, and what they hold instead.
LABELS = {
    "project_id": "a word of the client's",
    "template_id": "a word of the client's",
    "base_template_id": "a word of the client's",
    "deployment_id": "a word of the client's",
    "entity_id": "a word of the client's",
    "sender_id": "a word of the client's",
    "client_message_id": "a word of the client's",
    "transaction_id": "a word of the client's",
    "created_by_id": "compared with nothing",
    "trace_ids": "ids of traces, which the client's tracer makes",
    "tool_call_id": "made by the model, known within its run",
    "approval_request_id": "another name of the message that waits",
    "return_token_ids": "whether to return tokens",
    "deviceId": "chosen by the device",
    "request_id": "a word of the caller's, which tells a repeated request",
    "batch_id": "there are no batches",
}
# Parameters of paths that are no things of a tenant.
WORDS = {
    "batch_id": "batch-1",
    "deployment_id": "none",
    "mcp_tool_name": "add",
    "model": "loci-demo",
    "period": "day",
    "tool_name": "double",
    "transaction_id": "t",
    "version": "1",
}
ALIASES = {
    "id": "agent_id",
    "manager_agent_id": "agent_id",
    "previous_response_id": "response_id",
    "shared_block_id": "block_id",
    "source_id": "folder_id",
    "file_id": "execution_file_id",
    "agentId": "agent_id",
    "conversationId": "conversation_id",
    "organization_id": "org_id",
    "userId": "user_id",
}
# Where a name means something else than elsewhere.
EXCEPTIONS = {
    ("PUT /v1/users", "id"): "user_id",
    ("PUT /v1/admin/users", "id"): "user_id",
    ("POST /v1/chat/completions", "model"): "agent_id",
    ("POST /v1/responses", "model"): "agent_id",
    ("GET /v1/models/{name}", "name"): "agent_id",
    ("POST /v1/conversations/{conversation_id}/fork", "message_id"): "talk_message_id",
    ("POST /v1/conversations/{conversation_id}/fork", "checkpoint_id"): "talk_checkpoint_id",
    ("POST /v1/conversations/{conversation_id}/fork-agent", "checkpoint_id"): "talk_checkpoint_id",
    ("POST /v1/conversations/{conversation_id}/rewind", "checkpoint_id"): "talk_checkpoint_id",
    ("GET /v1/conversations/{conversation_id}/checkpoints", "after"): "talk_checkpoint_id",
    ("GET /v1/conversations/{conversation_id}/messages", "after"): "talk_message_id",
    ("GET /v1/conversations/{conversation_id}/messages", "before"): "talk_message_id",
    ("POST /v1/conversations/{conversation_id}/stream", "run_id"): "talk_run_id",
    ("GET /v1/groups/{group_id}/messages", "after"): "group_message_id",
    ("GET /v1/groups/{group_id}/messages", "before"): "group_message_id",
    ("PATCH /v1/groups/{group_id}/messages/{message_id}", "message_id"): "group_message_id",
    ("DELETE /v1/_internal_blocks/{block_id}", "block_id"): "spare_block_id",
    ("DELETE /v1/sources/{folder_id}/{file_id}", "file_id"): "spare_file_id",
    ("DELETE /v1/sources/{folder_id}/{file_id}", "folder_id"): "spare_folder_id",
    ("DELETE /v1/sources/{folder_id}", "folder_id"): "spare_folder_id",
    ("DELETE /v1/tools/mcp/servers/{mcp_server_name}", "mcp_server_name"): "spare_server_name",
    ("DELETE /v1/admin/users", "user_id"): "spare_user_id",
    ("GET /v1/executions/files/{file_id}/content", "file_id"): "execution_file_id",
    ("DELETE /v1/executions/files/{file_id}", "file_id"): "execution_file_id",
    ("GET /v1/mcp-servers/{mcp_server_id}/tools/{tool_id}", "tool_id"): "mcp_tool_id",
    ("POST /v1/mcp-servers/{mcp_server_id}/tools/{tool_id}/run", "tool_id"): "mcp_tool_id",
    ("POST /v1/tools/mcp/servers/{mcp_server_name}/tools/{tool_name}/execute", "tool_name"): "mcp_tool_name",
}
CURSORS = ("after", "before")
# What a list pages through, by the last word of its path; None for words and numbers.
PAGED = {
    "_internal_blocks": "block_id",
    "_internal_runs": "run_id",
    "active": "job_id",
    "agents": "agent_id",
    "archival-memory": "passage_id",
    "archives": "archive_id",
    "blocks": "block_id",
    "checkpoints": "checkpoint_id",
    "conversations": "conversation_id",
    "environment-variable": "env_var_id",
    "environments": "device_row_id",
    "files": "file_id",
    "folders": "folder_id",
    "sources": "folder_id",
    "groups": "group_id",
    "identities": "identity_id",
    "jobs": "job_id",
    "messages": "message_id",
    "models": None,
    "orgs": "org_id",
    "passages": "passage_id",
    "providers": "provider_id",
    "runs": "run_id",
    "sandbox-config": "sandbox_config_id",
    "schedule": "scheduled_message_id",
    "steps": "step_id",
    "stream": None,
    "tags": None,
    "templates": "template_id",
    "tools": "tool_id",
    "users": "user_id",
    "versions": None,
}
_ID = re.compile(r"(?:^|_)ids?$|[a-z]Ids?$")


@dataclass(frozen=True)
class Place:
    """Room for an id. `way`: for bodies through objects and, with "[]", lists; `thing`: of `things.py`."""

    kind: str
    way: tuple[str, ...]
    thing: str
    many: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {'.'.join(self.way)}"


def places(label: str) -> list[Place]:
    """Returns where a route takes ids. Raises LookupError for names of which nobody said what they mean."""
    return [*_parameters(label), *_fields(label)]


def _parameters(label: str) -> Iterator[Place]:
    path = label.partition(" ")[2]
    for name in re.findall(r"{(\w+)", path):
        if (thing := EXCEPTIONS.get((label, name), name)) not in WORDS:
            yield Place("path", (name,), thing)
        # Deprecated: the conversation of an agent that has no other.
        if name == "conversation_id" and path.count("/") > 3:
            yield Place("path", (name,), "agent_id")
    for parameter in operation(label).get("parameters", ()):
        name = parameter["name"]
        if parameter["in"] != "query":
            continue
        if name in CURSORS:
            if thing := EXCEPTIONS.get((label, name), PAGED[path.rpartition("/")[2]]):
                yield Place("query", (name,), thing)
        elif _ID.search(name) and name not in LABELS:
            yield _place("query", label, (name,), many=name.endswith("s"))


def _fields(label: str) -> Iterator[Place]:
    for content in operation(label).get("requestBody", {}).get("content", {}).values():
        for way, schema in dict(_walk(content.get("schema", {}), (), ())).items():
            if (label, way[-1]) in EXCEPTIONS or (_ID.search(way[-1]) and way[-1] not in LABELS):
                yield _place("body", label, way, many="array" in str(schema))


def _place(kind: str, label: str, way: tuple[str, ...], *, many: bool) -> Place:
    name = way[-1].removesuffix("s") if many else way[-1]
    return Place(kind, way, EXCEPTIONS.get((label, name), ALIASES.get(name, name)), many)


def _walk(schema: Any, way: tuple[str, ...], seen: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in seen:
            yield from _walk(openapi()["components"]["schemas"][name], way, (*seen, name))
        return
    for variant in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _walk(variant, way, seen)
    if "items" in schema:
        yield from _walk(schema["items"], (*way, "[]"), seen)
    for name, inner in schema.get("properties", {}).items():
        yield (*way, name), inner
        yield from _walk(inner, (*way, name), seen)
