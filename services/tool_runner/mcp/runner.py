"""Runs tools of MCP servers: `ports.Runner`. What goes wrong there is told to the model, never raised."""

import asyncio
import itertools
import logging
from collections.abc import Callable

from services.common.errors import NotFound
from services.tool_runner.core.job import MIB, ExitReason, Limits, Output, Result, ToolError
from services.tool_runner.core.masked_results import mask_result
from services.tool_runner.core.masking import Mask
from services.tool_runner.core.model import Tool
from services.tool_runner.core.ports import Place, Work
from services.tool_runner.mcp.client import McpClient
from services.tool_runner.mcp.protocol import server_tools
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem, ServerError
from services.tool_runner.mcp.protocol.results import failed_result, result_of
from services.tool_runner.mcp_servers.masks import secrets_of
from services.tool_runner.mcp_servers.model import Server
from services.tool_runner.mcp_servers.service import McpServerService

_MOST_RESULT = 12 * MIB
_log = logging.getLogger(__name__)


class McpRunner:
    """`ports.Runner` of tools of type external_mcp."""

    def __init__(self, registry: McpServerService, client: McpClient) -> None:
        self._registry = registry
        self._client = client

    async def place(self, tool: Tool) -> Place:
        """Returns the server."""
        return Place("mcp", server=str(tool.mcp_server_id))

    async def run(self, work: Work, on_output: Callable[[Output], None]) -> Result:
        """Asks the server, once."""
        server_id = work.tool.mcp_server_id
        assert server_id is not None
        try:
            server = await self._registry.get(work.organization_id, server_id)
        except NotFound:
            return failed_result("McpUnavailable", f"the MCP server of {work.tool.name} is gone. Nothing was done.")
        mask = Mask(secrets_of(server.transport))
        log_lines = _LogLines(on_output, work.limits, mask)
        seconds = min(self._client.times.execute, work.limits.seconds)
        try:
            async with asyncio.timeout(seconds + self._client.times.connect):
                answer = await self._client.call(
                    self._registry.target(work.organization_id, server),
                    work.tool.mcp_tool_name,
                    dict(work.arguments),
                    schema=server_tools.parsed(work.tool.args_json_schema),
                    seconds=seconds,
                    listener=log_lines.line,
                )
            await self._note(work, server, None)
            result = await asyncio.to_thread(_bounded_result, answer)
        except ServerError as error:
            await self._note(work, server, None)
            result = failed_result("McpError", str(error))
        except McpProblem as problem:
            if problem.kind in (Kind.UNREACHABLE, Kind.OAUTH_REQUIRED):  # one slow or large answer says little
                await self._note(work, server, problem)
            result = _trouble(work.tool.name, server.name, problem)
        except TimeoutError:
            result = _timeout_text(f"it ran longer than {seconds:g} s")
        return log_lines.with_output(mask_result(result, mask.text))

    async def _note(self, work: Work, server: Server, problem: McpProblem | None) -> None:
        try:
            await self._registry.note_contact(work.organization_id, server, problem)
        # A supervisor: the tool has acted, and its result counts more than what a list shows of its server.
        except Exception as error:  # noqa: BLE001
            _log.warning("the state of an MCP server was not kept", extra={"problem": type(error).__name__})


def _bounded_result(answer: dict[str, object]) -> Result:
    """Returns the result within its limits; in a thread, since an answer of 16 MiB takes a while."""
    result = result_of(answer)
    if result.result is not None and len(result.result) > _MOST_RESULT:
        text = f"it answered more than {_MOST_RESULT // MIB} MiB"
        return Result(reason=ExitReason.OUTPUT_TOO_LARGE, error=ToolError("OutputTooLarge", text))
    return result


def _trouble(tool: str, server: str, problem: McpProblem) -> Result:
    """Returns what the model is told of a call that got no answer."""
    unknown = f" Whether {tool} acted is not known, and it was not called again. Check before you repeat it."
    if problem.kind is Kind.TIMEOUT and problem.arrived:
        return _timeout_text(problem.message)
    if problem.kind is Kind.OAUTH_REQUIRED:
        advice = " Nothing was done. Whoever runs this agent has to connect to the server again."
        return failed_result("McpUnauthorized", f"{server}: {problem.message}.{advice}")
    end = unknown if problem.arrived else " Nothing was done."
    return failed_result("McpUnavailable", f"{server}: {problem.message}.{end}")


def _timeout_text(message: str) -> Result:
    return Result(reason=ExitReason.TIMEOUT, error=ToolError("Timeout", message))


class _LogLines:
    """Lines that a server logs while a call runs: output of the call, up to a limit."""

    def __init__(self, on_output: Callable[[Output], None], limits: Limits, mask: Mask) -> None:
        self._on_output = on_output
        self._mask = mask
        self._left = limits.capture
        self._lines: list[str] = []
        self._numbers = itertools.count(1)
        self._dropped = False

    def line(self, text: str) -> None:
        """Adds a line."""
        line = f"{self._mask.text(text)}\n"
        if len(line) > self._left:
            self._dropped = True
            return
        self._left -= len(line)
        self._lines.append(line)
        self._on_output(Output(next(self._numbers), "stdout", line))

    def with_output(self, result: Result) -> Result:
        """Returns the result, with it."""
        return Result(
            reason=result.reason,
            result=result.result,
            error=result.error,
            stdout="".join(self._lines),
            truncated=self._dropped,
        )
