"""Runs the built-in tools that belong here: programs in the sandbox, the web from here."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from services.tool_runner.builtin.tool_program import PROGRAM
from services.tool_runner.core.job import ExitReason, Mode, Output, Result, SandboxUnavailable, ToolError
from services.tool_runner.core.model import Tool
from services.tool_runner.core.ports import Place, Runner, Work
from services.tool_runner.mcp.protocol.errors import McpProblem
from services.tool_runner.web.engines.engine import Engine, Hit, Query
from services.tool_runner.web.errors import WebError
from services.tool_runner.web.lazy import Web

_HERE = Place("builtin")
# They wait for servers of somebody else.
_AT_SERVERS = Place("builtin", server="mcp_resources")
_SANDBOXED = frozenset({"run_code", "run_code_with_tools"})
_LANGUAGES = {"python": "python", "js": "javascript", "ts": "typescript"}
# Pages whose text is fetched for an engine that gives none.
_MOST_READ = 5

# Returns the value of a call, as JSON.
RunHere = Callable[[Work], Awaitable[Any]]


class BuiltinRunner:
    """`ports.Runner` of the type letta_builtin. `sandboxed` runs the programs.

    at_servers: the tools that ask MCP servers, by name.
    """

    def __init__(self, sandboxed: Runner, web: Web, at_servers: Mapping[str, RunHere] = MappingProxyType({})) -> None:
        self._sandboxed = sandboxed
        self._web = web
        self._at_servers = at_servers
        self._here: Mapping[str, RunHere] = {
            "web_search": self._search,
            "fetch_webpage": self._fetch,
            **at_servers,
        }

    async def place(self, tool: Tool) -> Place:
        """See `ports.Runner`."""
        if tool.name in _SANDBOXED:
            return await self._sandboxed.place(tool)
        return _AT_SERVERS if tool.name in self._at_servers else _HERE

    async def run(self, work: Work, on_output: Callable[[Output], None]) -> Result:
        """See `ports.Runner`."""
        name = work.tool.name
        if name == "run_code":
            return await self._run_code(work, on_output)
        if name == "run_code_with_tools":
            if not (work.call.agent_id and work.call.client_token):
                message = "run_code_with_tools calls the tools of an agent: it runs in an agent's turn only"
                return Result(reason=ExitReason.RAISED, error=ToolError(type="NoAgent", message=message))
            return _program_return(await self._sandboxed.run(_with_tools(work), on_output))
        if name not in self._here:
            raise SandboxUnavailable(f"this release does not know how to run {name}")
        try:
            async with asyncio.timeout(work.limits.seconds):
                return Result(reason=ExitReason.OK, result=_text(await self._here[name](work)))
        except TimeoutError:
            message = f"no result after {work.limits.seconds:g} s"
            return Result(reason=ExitReason.TIMEOUT, error=ToolError(type="TimeoutError", message=message))
        except (WebError, McpProblem) as error:
            return Result(reason=ExitReason.RAISED, error=ToolError(type=type(error).__name__, message=str(error)))

    async def close(self) -> None:
        """Closes connections."""
        await self._web.close()

    async def _run_code(self, work: Work, on_output: Callable[[Output], None]) -> Result:
        language = work.arguments["language"]
        if language not in _LANGUAGES:
            message = f"{language} is not installed in the sandbox; write it in {', '.join(_LANGUAGES)}"
            return Result(reason=ExitReason.RAISED, error=ToolError(type="UnknownLanguage", message=message))
        program = replace(work.tool, source_type=_LANGUAGES[language], source_code=work.arguments["code"])
        script = replace(work, tool=program, arguments={}, mode=Mode.SCRIPT)
        return _program_return(await self._sandboxed.run(script, on_output))

    async def _search(self, work: Work) -> Any:
        query = _query(work.arguments)
        engine, hits = await self._web.search(query, work.environment)
        if query.with_text and not engine.gives_text:
            hits = [await self._read(hit) for hit in hits[:_MOST_READ]] + hits[_MOST_READ:]
        return _search_return(query.text, engine, hits)

    async def _read(self, hit: Hit) -> Hit:
        """Returns the hit with its page's text; what cannot be read stays as the engine shows it."""
        try:
            return replace(hit, text=(await self._web.fetch(hit.url)).text)
        except WebError as error:
            return replace(hit, text=f"(not read: {error})")

    async def _fetch(self, work: Work) -> Any:
        page = await self._web.fetch(work.arguments["url"])
        title = f"Title: {page.title}\n" if page.title else ""
        return f"{title}Source: {page.url}\n\n{page.text}"


def _with_tools(work: Work) -> Work:
    return replace(work, tool=replace(work.tool, source_type="python", source_code=PROGRAM))


def _program_return(result: Result) -> Result:
    """Returns what the model sees of a program: its value and all that it printed, whether or not it failed."""
    logs = {"stdout": result.stdout.splitlines(), "stderr": result.stderr.splitlines()}
    if result.result is not None:
        value = json.loads(result.result)
        value_and_logs = {"results": [] if value is None else [value], "logs": logs}
        return replace(result, result=_text(value_and_logs))
    assert result.error is not None
    printed = [f"{name}:\n" + "\n".join(lines) for name, lines in logs.items() if lines]
    message = "\n".join([result.error.message, *printed])
    return replace(result, error=replace(result.error, message=message))


def _query(arguments: Mapping[str, Any]) -> Query:
    """Returns the query of web_search's arguments, which fit its schema."""
    return Query(
        text=arguments["query"],
        most=arguments.get("num_results", 10),
        category=arguments.get("category", ""),
        with_text=arguments.get("include_text", False),
        include_domains=tuple(arguments.get("include_domains", ())),
        exclude_domains=tuple(arguments.get("exclude_domains", ())),
        since=arguments.get("start_published_date", ""),
        until=arguments.get("end_published_date", ""),
        user_location=arguments.get("user_location", ""),
    )


def _search_return(query: str, engine: Engine, hits: list[Hit]) -> dict[str, Any]:
    results = [
        {
            "title": hit.title,
            "url": hit.url,
            "published_date": hit.published,
            "author": hit.author,
            "excerpt": hit.excerpt,
            "text": hit.text,
        }
        for hit in hits
    ]
    kept = [{name: value for name, value in result.items() if value} for result in results]
    return {"query": query, "engine": engine.name, "results": kept}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
