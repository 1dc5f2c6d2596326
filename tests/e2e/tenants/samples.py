"""Requests that work, for the routes whose place in the OpenAPI document has no example."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.e2e.sdk_methods.world import DOUBLE, EMBEDDING, MODEL
from tests.gateway_document import openapi

_HELLO = [{"role": "user", "content": "Hello."}]
_IDENTITY = {"identifier_key": "%fresh", "name": "Ada", "identity_type": "user"}
_TEMPLATE_OF = {"template_id": "t", "base_template_id": "b", "deployment_id": "d", "entity_id": "e"}
_TEMPLATE_BLOCK = {"label": "%fresh", "value": "v", **_TEMPLATE_OF}
_SERVER = {"mcp_server_type": "streamable_http", "server_url": "%mcp"}
_NOTHING: Mapping[str, Any] = {}
_FILE = "One line.\n"

# What the document has no example of. "%name" stands for something of the caller's own: see `filled`.
BODIES: Mapping[str, Any] = {
    "PATCH /v1/agents/{agent_id}/archival-memory/{memory_id}": {"text": "Changed."},
    "PATCH /v1/agents/{agent_id}/core-memory/blocks/{block_label}": {"value": "changed"},
    "PATCH /v1/agents/{agent_id}/messages/{message_id}": {"message_type": "user_message", "content": "Changed."},
    "PATCH /v1/agents/{agent_id}/tools/approval/{tool_name}": {"requires_approval": False},
    "POST /v1/agents/{agent_id}/fork": {"checkpoint_id": "%checkpoint_id"},
    "POST /v1/agents/{agent_id}/generate": {"prompt": "Hello."},
    "POST /v1/agents/{agent_id}/messages/preview-raw-payload": {"messages": _HELLO},
    "POST /v1/agents/{agent_id}/rewind": {"checkpoint_id": "%checkpoint_id"},
    "POST /v1/agents/{agent_id}/schedule": {
        "messages": _HELLO,
        "schedule": {"type": "one-time", "scheduled_at": (time.time() + 86_400) * 1_000},
    },
    "POST /v1/agents/{agent_id}/tools/{tool_name}/run": {"args": {"number": 2}},
    "POST /v1/agents/messages/search": {"query": "Hello"},
    "PATCH /v1/archives/{archive_id}": {"description": "Changed."},
    "POST /v1/archives/{archive_id}/passages/batch": {"passages": [{"text": "Another."}]},
    "PATCH /v1/archives/{archive_id}/passages/{passage_id}": {"text": "Changed."},
    "POST /v1/archives/{archive_id}/embedding-change": {"embedding": EMBEDDING},
    "PATCH /v1/blocks/{block_id}": {"value": "changed"},
    "POST /v1/blocks/{block_id}/restore": {"version": 1},
    "PATCH /v1/conversations/{conversation_id}": {"summary": "Changed"},
    "POST /v1/conversations/{conversation_id}/messages/preview-raw-payload": {"messages": _HELLO},
    "POST /v1/conversations/{conversation_id}/rewind": {"checkpoint_id": "%talk_checkpoint_id"},
    "POST /v1/conversations/{conversation_id}/fork-agent": {"checkpoint_id": "%talk_checkpoint_id"},
    "POST /v1/environments/register": {"deviceId": "%fresh"},
    "POST /v1/environments/{connection_id}/messages": {"messages": [{**_HELLO[0], "client_message_id": "1"}]},
    "PATCH /v1/folders/{folder_id}": {"description": "Changed."},
    "POST /v1/folders/{folder_id}/embedding-change": {"embedding": EMBEDDING},
    "POST /v1/sources": {"name": "%fresh", "embedding": EMBEDDING},
    "PATCH /v1/sources/{folder_id}": {"description": "Changed."},
    "POST /v1/tools/run": {"source_code": DOUBLE, "args": {"number": 2}},
    "PUT /v1/tools/mcp/servers": _SERVER | {"server_name": "%fresh"},
    "POST /v1/tools/mcp/servers/test": _SERVER | {"server_name": "%fresh"},
    "POST /v1/tools/mcp/servers/connect": _SERVER | {"server_name": "%fresh"},
    "PATCH /v1/tools/mcp/servers/{mcp_server_name}": _SERVER,
    "POST /v1/tools/mcp/servers/{mcp_server_name}/tools/{tool_name}/execute": {"args": {"a": 1, "b": 2}},
    "POST /v1/mcp-servers/{mcp_server_id}/prompts/get": {"name": "greet", "arguments": {"who": "Ada"}},
    "POST /v1/tools/search": {"query": "double"},
    "POST /v1/tools/generate-schema": {"code": DOUBLE},
    "POST /v1/tools/import": {"library": "langchain", "definition": {}},
    "POST /v1/tools/generate-tool": {"tool_name": "halve", "prompt": "Halve a number.", "handle": MODEL},
    "PATCH /v1/tools/{tool_id}": {"description": "Doubles."},
    "PATCH /v1/mcp-servers/{mcp_server_id}": {"config": _SERVER},
    "POST /v1/mcp-servers/{mcp_server_id}/tools/{tool_id}/run": {"args": {"a": 1, "b": 2}},
    "POST /v1/sandbox-config": {"config": {"timeout": 6}},
    "POST /v1/sandbox-config/local": {"timeout": 8},
    "PATCH /v1/sandbox-config/{sandbox_config_id}": {"config": {"timeout": 7}},
    "POST /v1/sandbox-config/{sandbox_config_id}/environment-variable": {"key": "%FRESH", "value": "v"},
    "PATCH /v1/sandbox-config/environment-variable/{env_var_id}": {"value": "changed"},
    "POST /v1/chat/completions": {"model": "%agent_id", "messages": _HELLO},
    "POST /v1/embeddings": {"model": EMBEDDING, "input": "Hello."},
    "POST /v1/responses": {"model": "%agent_id", "input": "Hello."},
    "POST /v1/providers": {"name": "%fresh", "provider_type": "openai", "api_key": "sk-x"},
    "POST /v1/providers/check": {"provider_type": "openai", "api_key": "sk-x", "base_url": "%openai_url"},
    "PATCH /v1/providers/{provider_id}": {"api_key": "sk-y"},
    "POST /v1/identities": _IDENTITY,
    "PUT /v1/identities": _IDENTITY,
    "PATCH /v1/identities/{identity_id}": {"name": "Grace"},
    "PUT /v1/identities/{identity_id}/properties": [{"key": "age", "value": 36, "type": "number"}],
    "POST /v1/groups": {"agent_ids": ["%agent_id"], "description": "All."},
    "PATCH /v1/groups/{group_id}": {"description": "Changed."},
    "POST /v1/groups/{group_id}/messages": {"input": "Hello."},
    "POST /v1/groups/{group_id}/messages/stream": {"input": "Hello."},
    "PATCH /v1/groups/{group_id}/messages/{message_id}": {"message_type": "user_message", "content": "Changed."},
    "PATCH /v1/_internal_agents/{agent_id}/core-memory/blocks/{block_label}": {"value": "changed"},
    "POST /v1/_internal_blocks": {"label": "%fresh", "value": "v"},
    "POST /v1/_internal_templates/groups": {"agent_ids": ["%agent_id"], "description": "All.", **_TEMPLATE_OF},
    "POST /v1/_internal_templates/agents": {"model": MODEL, **_TEMPLATE_OF},
    "POST /v1/_internal_templates/blocks": _TEMPLATE_BLOCK,
    "POST /v1/_internal_templates/blocks/batch": [_TEMPLATE_BLOCK],
    "PATCH /v1/steps/{step_id}/feedback": {"feedback": "positive"},
    "PUT /v1/budgets/{period}": {"usd": 100},
    "POST /v1/templates": {"type": "agent", "agent_id": "%agent_id", "name": "%fresh"},
    "PATCH /v1/templates/{template_name}": {"agent_file_json": "%agent_file"},
    "POST /v1/templates/{template_name}/rollback": {"version": "%template_number"},
    "POST /v1/templates/{template_version}/agents": {"agent_name": "Twin"},
    "POST /v1/client-side-access-tokens": {
        "hostname": "https://app.test",
        "policy": [{"type": "agent", "id": "%agent_id", "access": ["read_messages"]}],
    },
    "POST /v1/api-keys": {"name": "%fresh", "role": "agent-only"},
    "POST /v1/orgs": {"name": "%fresh"},
    "PATCH /v1/orgs": {"name": "%fresh"},
    "POST /v1/users": {"name": "%fresh"},
    "PUT /v1/users": {"id": "%user_id", "name": "%fresh"},
    "POST /v1/admin/orgs": {"name": "%fresh"},
    "PATCH /v1/admin/orgs": {"name": "%fresh"},
    "POST /v1/admin/users": {"name": "%fresh"},
    "PUT /v1/admin/users": {"id": "%user_id", "name": "%fresh"},
}
# What a field needs beside it.
BESIDE: Mapping[str, Mapping[str, Any]] = {"manager_config": {"manager_type": "supervisor"}}
FORMS: Mapping[str, tuple[str, Any]] = {
    "POST /v1/agents/import": ("agent.af", "%agent_file"),
    "POST /v1/executions/files": ("file.txt", _FILE),
    "POST /v1/folders/{folder_id}/upload": ("file.txt", _FILE),
    "POST /v1/sources/{folder_id}/upload": ("file.txt", _FILE),
}
QUERIES: Mapping[str, Mapping[str, str]] = {
    "GET /v1/agents/{agent_id}/archival-memory/search": {"query": "There"},
    "GET /v1/blocks/{block_id}/value": {"as_of": "2099-01-01T00:00:00Z"},
    "GET /v1/blocks/{block_id}/diff": {"from_version": "1"},
    "GET /v1/mcp-servers/{mcp_server_id}/resources/read": {"uri": "test://note/1"},
    "POST /v1/conversations": {"agent_id": "%agent_id"},
    "PATCH /v1/orgs": {"org_id": "%org_id"},
    "DELETE /v1/orgs": {"org_id": "%org_id"},
    "DELETE /v1/users": {"user_id": "%user_id"},
    "PATCH /v1/admin/orgs": {"org_id": "%org_id"},
    "DELETE /v1/admin/orgs": {"org_id": "%org_id"},
    "DELETE /v1/admin/users": {"user_id": "%user_id"},
}


def body_of(label: str) -> Any:
    """Returns a body that the route takes; None where it wants none. Raises LookupError: write one."""
    content = operation(label).get("requestBody", {}).get("content", {})
    if label in BODIES:
        return BODIES[label]
    if "application/json" not in content:
        return None
    if "example" in content["application/json"]:
        return content["application/json"]["example"]
    if operation(label)["requestBody"].get("required"):
        raise LookupError(f"{label} has no example; write a body that it takes into {__name__}")
    return _NOTHING


def with_beside(body: Any, way: tuple[str, ...]) -> Any:
    """Returns a body with what a field needs beside it."""
    return {**body, way[0]: BESIDE[way[0]]} if way[0] in BESIDE else body


def operation(label: str) -> Mapping[str, Any]:
    """Returns what the document says about a route."""
    method, _, path = label.partition(" ")
    found: Mapping[str, Any] = openapi()["paths"][path][method.lower()]
    return found


def filled(sample: Any, own: Mapping[str, Any], fresh: Callable[[], str]) -> Any:
    """Returns a sample with what "%name" stands for: something of `own`, or for "%fresh" a name that is new."""
    if isinstance(sample, dict):
        return {key: filled(value, own, fresh) for key, value in sample.items()}
    if isinstance(sample, list):
        return [filled(value, own, fresh) for value in sample]
    if isinstance(sample, str) and sample.startswith("%"):
        name = sample[1:]
        return {"fresh": fresh(), "FRESH": fresh().upper()}.get(name) or own[name]
    return sample


def put(body: Any, way: tuple[str, ...], value: Any) -> Any:
    """Returns a body with a value in one place; what leads there is made, or is the first of its list."""
    if not way:
        return value
    head, *rest = way
    if head == "[]":
        first, *others = body or [{}]
        return [put(first, tuple(rest), value), *others]
    return {**(body or {}), head: put((body or {}).get(head), tuple(rest), value)}
