"""Resources and prompts of servers: read when somebody asks, never stored."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from services.tool_runner.core.job import MIB
from services.tool_runner.core.masked_results import mask_json
from services.tool_runner.core.masking import Mask
from services.tool_runner.core.storable import storable
from services.tool_runner.mcp.client import McpClient, Target
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp.protocol.results import asked_instead
from services.tool_runner.mcp_servers.masks import secrets_of
from services.tool_runner.mcp_servers.model import Server
from services.tool_runner.mcp_servers.service import McpServerService

JsonObject = dict[str, Any]
_MOST_JSON = 3 * MIB


class McpResources:
    """All of it as JSON text, in the server's own words but for its secrets. Raises NotFound, McpProblem."""

    def __init__(self, registry: McpServerService, client: McpClient) -> None:
        self._registry = registry
        self._client = client

    async def resources(self, organization_id: UUID, server_id: UUID) -> tuple[str, str]:
        """Returns its resources, and the templates of more."""
        async with self._contact(organization_id, server_id) as target:
            found = await self._client.listed(target, "resources/list", "resources")
            templates = await self._client.listed(target, "resources/templates/list", "resourceTemplates")
            return _text(target.server, found), _text(target.server, templates)

    async def read(self, organization_id: UUID, server_id: UUID, uri: str) -> str:
        """Returns the contents of a resource: a list, of which each is `text`, or `blob` in base64."""
        return await self._ask(organization_id, server_id, "resources/read", {"uri": uri}, "contents")

    async def prompts(self, organization_id: UUID, server_id: UUID) -> str:
        """Returns its prompts, with the arguments that they take."""
        async with self._contact(organization_id, server_id) as target:
            return _text(target.server, await self._client.listed(target, "prompts/list", "prompts"))

    async def prompt(self, organization_id: UUID, server_id: UUID, name: str, arguments: Mapping[str, str]) -> str:
        """Returns the messages of a prompt."""
        params = {"name": name, "arguments": dict(arguments)}
        return await self._ask(organization_id, server_id, "prompts/get", params, "messages")

    async def _ask(self, organization_id: UUID, server_id: UUID, method: str, params: JsonObject, member: str) -> str:
        async with self._contact(organization_id, server_id) as target:
            answer = await self._client.read(target, method, params)
            if asked := asked_instead(answer):
                raise McpProblem(Kind.FAILED, asked)
            if not isinstance(answer.get(member), list):
                raise McpProblem(Kind.FAILED, f"the MCP server's answer to {method} has no list of {member}")
            return _text(target.server, answer[member])

    @asynccontextmanager
    async def _contact(self, organization_id: UUID, server_id: UUID) -> AsyncIterator[Target]:
        """Notes what came of it; a problem is told without the server's secrets."""
        server = await self._registry.get(organization_id, server_id)
        try:
            yield self._registry.target(organization_id, server)
        except McpProblem as problem:
            if problem.kind in (Kind.UNREACHABLE, Kind.OAUTH_REQUIRED):  # it may just not know what was asked for
                await self._registry.note_contact(organization_id, server, problem)
            raise McpProblem(problem.kind, Mask(secrets_of(server.transport)).text(problem.message)) from None
        await self._registry.note_contact(organization_id, server, None)


def _text(server: Server, value: list[Any]) -> str:
    try:
        text = json.dumps(storable(value), ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise McpProblem(Kind.FAILED, "the MCP server answered numbers that are none of JSON") from None
    if len(text) > _MOST_JSON:
        raise McpProblem(Kind.FAILED, f"the MCP server answered more than {_MOST_JSON // MIB} MiB")
    return mask_json(text, Mask(secrets_of(server.transport)).text)
