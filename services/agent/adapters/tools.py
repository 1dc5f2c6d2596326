"""The port Tools over gRPC to the tool runner."""

import asyncio
import base64
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

import grpc
import orjson

from loci.tool.v1 import (
    execution_service_pb2,
    execution_service_pb2_grpc,
    tool_pb2,
    tool_service_pb2,
    tool_service_pb2_grpc,
)
from services.agent.core.calls.pictures import split_pictures
from services.agent.core.messages import Call, Return
from services.agent.core.ports import CallSite, ToolInfo, ToolResult
from services.common.channel import call_idempotent
from services.common.context import RUN_ROLE, RUN_TOKEN_PREFIX, Signer, current
from services.common.errors import NotFound
from services.common.ids import from_public, to_public

PATIENCE_SECONDS = 30.0
# An execution has its own time limit; this one only bounds a runner that never answers.
EXECUTION_SECONDS = 600.0
CANCEL_SECONDS = 2.0
SHIPPED_SECONDS = 30.0
_BUILT_IN = "letta_builtin"
_WITHOUT_SANDBOX = frozenset({"external_mcp", _BUILT_IN})
# Types of tools whose code may call Loci, and the one built-in tool.
_CALLERS = frozenset({"custom", "external_langchain", "external_composio"})
_CALLING_TOOL = "run_code_with_tools"
# How much longer than the longest execution a tool's token is good for.
_SPARE_SECONDS = 300.0
_LONGEST_TOKEN_SECONDS = 3_900.0


class ShippedTools:
    """The tools that ship with a release, for SHIPPED_SECONDS: a tenant may put its own tool in the place of one.

    Whoever asks the tool runner for a tool says so here, so that an agent that is given such a tool has it at once.
    """

    def __init__(self) -> None:
        self._tools: dict[UUID, tuple[float, ToolInfo]] = {}

    def find(self, tool_ids: Iterable[UUID]) -> dict[UUID, ToolInfo]:
        """Returns those of the tools that are kept, by id."""
        now = time.monotonic()
        kept = ((tool_id, self._tools.get(tool_id)) for tool_id in tool_ids)
        return {tool_id: entry[1] for tool_id, entry in kept if entry and entry[0] > now}

    def keep(self, tools: Iterable[tool_pb2.Tool]) -> None:
        """Keeps those of the tools that ship."""
        until = time.monotonic() + SHIPPED_SECONDS
        for tool in map(_info, tools):
            if tool.tool_type.startswith("letta_"):
                self._tools[tool.id] = until, tool

    def forget_replaced(self, tools: Iterable[tool_pb2.Tool]) -> None:
        """Forgets those of the tools that are a tenant's own."""
        for tool in tools:
            if tool.tool_type == tool_pb2.TOOL_TYPE_CUSTOM:
                self._tools.pop(from_public("tool", tool.id), None)


class GrpcTools:
    """The catalogue and the sandboxes behind the tool runner.

    Tools that ship with a release do not change while it runs, so their descriptions are kept; a tenant's own tools
    are asked for at each turn, so that a user's change holds at once on every replica. `shipped`: see ShippedTools.
    """

    def __init__(self, channel: grpc.aio.Channel, signer: Signer, shipped: ShippedTools) -> None:
        self._catalogue = tool_service_pb2_grpc.ToolServiceStub(channel)
        self._execution = execution_service_pb2_grpc.ExecutionServiceStub(channel)
        self._shipped = shipped
        self._signer = signer

    async def describe(self, tool_ids: Sequence[UUID]) -> tuple[ToolInfo, ...]:
        """See ports.Tools.describe."""
        tools = self._shipped.find(tool_ids)
        if unknown := [tool_id for tool_id in tool_ids if tool_id not in tools]:
            request = tool_service_pb2.BatchGetToolsRequest(
                tool_ids=[to_public("tool", tool_id) for tool_id in unknown]
            )
            response = await call_idempotent(self._catalogue.BatchGetTools, request, timeout=PATIENCE_SECONDS)
            self._shipped.keep(response.tools)
            tools |= {tool.id: tool for tool in map(_info, response.tools)}
        return tuple(tools[tool_id] for tool_id in tool_ids if tool_id in tools)

    async def execute(self, tool: ToolInfo, call: Call, site: CallSite, *, agent_state: str = "") -> ToolResult:
        """See ports.Tools.execute. The same key attaches to the same execution, so a lost call is made again."""
        request = execution_service_pb2.ExecuteToolRequest(
            call_key=call.key,
            tool_id=to_public("tool", tool.id),
            arguments_json=call.arguments,
            agent_id=to_public("agent", site.agent_id),
            run_id=to_public("run", site.run_id) if site.run_id else "",
            step_id=to_public("step", site.step_id) if site.step_id else "",
            agent_state_json=agent_state,
            client_token=self._client_token(tool, site),
            agent_tool_ids=_tools_of_agent(tool, site),
        )
        response = await call_idempotent(self._execution.ExecuteTool, request, timeout=EXECUTION_SECONDS)
        return _tool_result(call, tool, response.receipt)

    async def cancel(self, call_key: str) -> None:
        """See ports.Tools.cancel."""
        request = execution_service_pb2.CancelExecutionRequest(call_key=call_key)
        try:
            await asyncio.shield(call_idempotent(self._execution.CancelExecution, request, timeout=CANCEL_SECONDS))
        except NotFound:
            # A memory tool, or a call that was never begun.
            return

    async def fence(self) -> None:
        """See ports.Tools.fence."""
        await call_idempotent(self._execution.FenceRun, execution_service_pb2.FenceRunRequest(), timeout=CANCEL_SECONDS)

    def _client_token(self, tool: ToolInfo, site: CallSite) -> str:
        """Returns what the tool may call Loci with: for this tenant and within this run, whose chain a nested run
        continues.
        """
        if tool.tool_type not in _CALLERS and tool.name != _CALLING_TOOL:
            return ""
        context = replace(current(), role=RUN_ROLE, audience=("gateway",), deadline=site.deadline)
        longest = min(EXECUTION_SECONDS + _SPARE_SECONDS, _LONGEST_TOKEN_SECONDS)
        if site.deadline is not None:
            longest = min(longest, max(1.0, site.deadline - time.time()))
        token = self._signer.signed(context, lifetime=longest).token
        return RUN_TOKEN_PREFIX + base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _tools_of_agent(tool: ToolInfo, site: CallSite) -> list[str]:
    tool_ids = site.settings.tool_ids if tool.tool_type == _BUILT_IN else ()
    return [to_public("tool", tool_id) for tool_id in tool_ids]


def _info(tool: tool_pb2.Tool) -> ToolInfo:
    schema = orjson.loads(tool.json_schema_json)
    return ToolInfo(
        id=from_public("tool", tool.id),
        name=tool.name,
        tool_type=tool_pb2.ToolType.Name(tool.tool_type).removeprefix("TOOL_TYPE_").lower(),
        description=schema.get("description") or tool.description,
        parameters=schema.get("parameters") or {"type": "object", "properties": {}},
        parallel=tool.enable_parallel_execution,
        return_char_limit=tool.return_char_limit,
        takes_agent_state=tool.takes_agent_state,
    )


def _tool_result(call: Call, tool: ToolInfo, receipt: execution_service_pb2.Receipt) -> ToolResult:
    succeeded = receipt.outcome == execution_service_pb2.OUTCOME_SUCCESS
    pictures = split_pictures(receipt.result_json) if succeeded else None
    text, images = pictures or (receipt.tool_return, ())
    if pictures and receipt.files:
        # The last line names them.
        text = f"{text}\n{receipt.tool_return.splitlines()[-1]}".lstrip("\n")
    # Each a list of one text, as the reference has them.
    stdout, stderr = (tuple(filter(None, [text])) for text in (receipt.stdout, receipt.stderr))
    return ToolResult(
        Return(
            call.id,
            call.name,
            text,
            not succeeded,
            stdout,
            stderr,
            images,
            captures=tool.tool_type not in _WITHOUT_SANDBOX,
        ),
        edits=tuple((edit.label, edit.value) for edit in receipt.block_edits),
        is_cut=pictures is None,
        result=receipt.result_json,
        settings=receipt.sandbox_config_fingerprint,
    )
