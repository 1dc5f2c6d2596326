"""web_search, fetch_webpage and the program tools as calls of a runner, over real HTTP on loopback."""

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest

from services.tool_runner.builtin import BUILTIN_TOOLS
from services.tool_runner.builtin.runner import BuiltinRunner
from services.tool_runner.core.job import ExitReason, Limits, Mode, Output, Result, ToolError
from services.tool_runner.core.model import Call, Tool
from services.tool_runner.core.ports import Place, Work
from services.tool_runner.web.lazy import Web
from services.tool_runner.web.rules import SearchSettings
from tests.fakes.http import Exchange, HttpServer, Request

TENANT = UUID(int=1)
ARTICLE = """<html><head><title>On  llamas &amp; alpacas</title></head><body><nav><a href="/">Home</a></nav><article>
<h1>Llamas</h1><p>The llama is a domesticated animal that has been used as a pack animal for a long time, and its wool
is soft. See <a href="/alpaca">the alpaca</a> for a smaller relative of it.</p><ul><li>wool</li><li>milk</li></ul>
</article><script>alert(1)</script></body></html>"""


@dataclass
class Sandboxed:
    """A runner that runs nothing; `works` are the calls that it was given."""

    result: Result = field(default_factory=lambda: Result(reason=ExitReason.OK, result="41", stdout="a\nb\n"))
    works: list[Work] = field(default_factory=list)

    async def place(self, tool: Tool) -> Place:
        return Place("held", "held:1")

    async def run(self, work: Work, on_output: Any) -> Result:
        self.works.append(work)
        return self.result


@asynccontextmanager
async def serving(
    pages: Mapping[str, tuple[int, Mapping[str, str], bytes]],
) -> AsyncIterator[tuple[str, list[Request]]]:
    """A server of these pages: its address and what it was asked."""
    asked: list[Request] = []

    async def answer(request: Request, exchange: Exchange) -> None:
        asked.append(request)
        await exchange.send(*pages.get(request.path, (404, {}, b"nothing here")))

    async with HttpServer(answer) as server:
        yield f"http://127.0.0.1:{server.port}", asked


def work(
    name: str, *, environment: Mapping[str, str] | None = None, call: Call | None = None, **arguments: Any
) -> Work:
    tool = next(tool for tool in BUILTIN_TOOLS if tool.name == name).of_tenant(TENANT)
    return Work(
        organization_id=TENANT,
        tool=tool,
        call=call or Call(call_key="k", tool_id=tool.id, arguments=json.dumps(arguments)),
        arguments=arguments,
        environment=environment or {},
        limits=Limits(),
    )


@asynccontextmanager
async def running(
    search: SearchSettings | None = None, sandboxed: Sandboxed | None = None, *, allow_private: bool = True
) -> AsyncIterator[BuiltinRunner]:
    web = Web(search or SearchSettings(), allow_private=allow_private)
    runner = BuiltinRunner(sandboxed or Sandboxed(), web)
    yield runner
    await runner.close()


async def value(runner: BuiltinRunner, asked: Work) -> Any:
    result = await runner.run(asked, _ignored)
    assert result.reason is ExitReason.OK, result
    return json.loads(result.result or "")


async def problem(runner: BuiltinRunner, asked: Work) -> str:
    result = await runner.run(asked, _ignored)
    assert result.reason is ExitReason.RAISED
    assert result.error is not None
    return result.error.message


def _ignored(output: Output) -> None:
    """Nothing here prints."""


async def test_a_search_goes_to_the_engine_there_is_a_key_for_and_an_agents_own_key_first() -> None:
    answer = json.dumps({"results": [{"title": "T", "url": "https://e.org", "highlights": ["x"]}] * 5}).encode()
    async with serving({"/search": (200, {}, answer)}) as (address, asked):
        settings = SearchSettings(keys={"EXA_API_KEY": "operator"}, addresses={"EXA_BASE_URL": address})
        async with running(settings) as runner:
            found = await value(runner, work("web_search", query="llamas", num_results=2))
            own = {"EXA_API_KEY": "own"}
            await value(runner, work("web_search", environment=own, query="llamas"))
    hit = {"title": "T", "url": "https://e.org", "excerpt": "x"}
    assert found == {"query": "llamas", "engine": "exa", "results": [hit, hit]}
    assert [request.headers["x-api-key"] for request in asked] == ["operator", "own"]


async def test_without_an_engine_it_says_what_to_set() -> None:
    async with running() as runner:
        assert "EXA_API_KEY, TAVILY_API_KEY, BRAVE_API_KEY or LOCI_SEARXNG_URL" in await problem(
            runner, work("web_search", query="llamas")
        )


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((401, {}, b'{"error": "bad key"}'), 'exa answered 401: {"error": "bad key"}'),
        ((200, {}, b"<html>"), "exa answered in a form that is not its own (JSONDecodeError)"),
        ((200, {}, b"[" * 100_000), "exa answered in a form that is not its own (RecursionError)"),
        ((200, {}, b"x" * (9 * 2**20)), "the answer of exa is larger than 8 MiB"),
        ((403, {}, b"no such key: operator"), "exa answered 403: no such key: ********"),
    ],
)
async def test_what_an_engine_does_wrong_is_said(reply: tuple[int, dict[str, str], bytes], said: str) -> None:
    async with serving({"/search": reply}) as (address, _):
        settings = SearchSettings(keys={"EXA_API_KEY": "operator"}, addresses={"EXA_BASE_URL": address})
        async with running(settings) as runner:
            assert said in await problem(runner, work("web_search", query="llamas"))


async def test_an_engine_without_text_has_its_pages_read() -> None:
    pages: dict[str, tuple[int, Mapping[str, str], bytes]] = {
        "/page": (200, {"content-type": "text/html"}, ARTICLE.encode())
    }
    async with serving(pages) as (address, _):
        results = [{"title": "T", "url": f"{address}/page"}, {"title": "G", "url": f"{address}/gone"}]
        pages["/search"] = (200, {}, json.dumps({"results": results}).encode())
        async with running(SearchSettings(addresses={"LOCI_SEARXNG_URL": address})) as runner:
            found = await value(runner, work("web_search", query="llamas", include_text=True))
    assert "domesticated animal" in found["results"][0]["text"]
    assert found["results"][1]["text"] == f"(not read: {address}/gone answered 404 Not Found)"


async def test_a_page_is_read_as_markdown_after_redirects() -> None:
    pages = {
        "/old": (302, {"location": "/new"}, b""),
        "/new": (200, {"content-type": "text/html; charset=utf-8"}, ARTICLE.encode()),
    }
    async with serving(pages) as (address, _), running() as runner:
        text = await value(runner, work("fetch_webpage", url=f"{address}/old"))
    assert f"Source: {address}/new" in text
    assert "Title: On llamas & alpacas\n" in text
    assert "domesticated animal" in text
    assert f"[the alpaca]({address}/alpaca)" in text
    assert "alert(1)" not in text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/picture", "is image/png, which is neither a page nor text"),
        ("/large", "is larger than 8 MiB"),
        ("/round", "redirects more than 5 times"),
        ("/empty", "holds no text that could be read"),
        ("/gone", "answered 404 Not Found"),
        ("/bomb", "is larger than 8 MiB"),
        ("/bomb/in/bomb", "is packed as 'gzip, gzip', which was not asked for"),
        ("/garbled", "is not packed as it says"),
    ],
)
async def test_what_cannot_be_read_is_said(path: str, said: str) -> None:
    pages = {
        "/picture": (200, {"content-type": "image/png"}, b"x"),
        "/large": (200, {"content-type": "text/plain"}, b"x" * (9 * 2**20)),
        "/round": (302, {"location": "/round"}, b""),
        "/empty": (200, {"content-type": "text/html"}, b"<html><body></body></html>"),
        "/bomb": (200, {"content-type": "text/plain", "content-encoding": "gzip"}, gzip.compress(bytes(9 * 2**20))),
        "/bomb/in/bomb": (200, {"content-encoding": "gzip, gzip"}, gzip.compress(gzip.compress(b"x"))),
        "/garbled": (200, {"content-encoding": "gzip"}, b"not that"),
    }
    async with serving(pages) as (address, _), running() as runner:
        assert said in await problem(runner, work("fetch_webpage", url=address + path))


async def test_a_cookie_of_one_call_is_not_shown_by_the_next() -> None:
    """Another tenant's would be signed in as the first."""
    pages = {"/in": (200, {"content-type": "text/plain", "set-cookie": "session=mine; Path=/"}, b"welcome")}
    async with serving(pages) as (address, asked), running() as runner:
        for _ in range(2):
            assert "welcome" in await value(runner, work("fetch_webpage", url=f"{address}/in"))
    assert [request.headers.get("cookie") for request in asked] == [None, None]


async def test_a_packed_page_is_unpacked() -> None:
    pages = {"/": (200, {"content-type": "text/plain", "content-encoding": "gzip"}, gzip.compress(b"hello"))}
    async with serving(pages) as (address, _), running() as runner:
        assert "hello" in await value(runner, work("fetch_webpage", url=f"{address}/"))


async def test_a_page_that_never_ends_does_not_hold_its_call() -> None:
    async def drip(request: Request, exchange: Exchange) -> None:
        await exchange.start(200, {"content-type": "text/plain"})
        while True:
            await exchange.write(b"x")
            await asyncio.sleep(0.05)

    async with HttpServer(drip) as server, asyncio.timeout(30), running() as runner:
        asked = work("fetch_webpage", url=f"http://127.0.0.1:{server.port}/")
        result = await runner.run(replace(asked, limits=Limits(seconds=0.3)), _ignored)
    assert result.reason is ExitReason.TIMEOUT


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8283/v1/agents",
        "https://169.254.169.254/latest/meta-data",
        "https://[::ffff:127.0.0.1]/",
        "https://localhost/",
        "file:///etc/passwd",
        "https://user:secret@example.com/",
    ],
)
async def test_private_addresses_are_not_fetched(url: str) -> None:
    async with running(allow_private=False) as runner:
        assert "was not fetched" in await problem(runner, work("fetch_webpage", url=url))


async def test_http_becomes_https_where_it_is_not_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    # What the machine's own resolver says, and when, is no part of the promise.
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    async with running(allow_private=False) as runner:
        said = await problem(runner, work("fetch_webpage", url="http://no-such-host.invalid/page"))
    assert said == "http://no-such-host.invalid/page could not be fetched: no-such-host.invalid cannot be resolved"


@pytest.mark.parametrize(("asked", "source_type"), [("python", "python"), ("js", "javascript"), ("ts", "typescript")])
async def test_run_code_runs_a_script_and_shows_all_of_it(asked: str, source_type: str) -> None:
    sandboxed = Sandboxed()
    async with running(sandboxed=sandboxed) as runner:
        shown = await value(runner, work("run_code", code="40 + 1", language=asked))
    assert shown == {"results": [41], "logs": {"stdout": ["a", "b"], "stderr": []}}
    [given] = sandboxed.works
    assert (given.mode, given.tool.source_type, given.tool.source_code) == (Mode.SCRIPT, source_type, "40 + 1")
    assert given.arguments == {}


async def test_a_program_that_fails_shows_what_it_printed_before() -> None:
    error = ToolError(type="ZeroDivisionError", message="division by zero", traceback="line 2")
    sandboxed = Sandboxed(Result(reason=ExitReason.RAISED, error=error, stdout="so far\n"))
    async with running(sandboxed=sandboxed) as runner:
        assert (
            await problem(runner, work("run_code", code="x", language="python")) == "division by zero\nstdout:\nso far"
        )
        assert "write it in python, js, ts" in await problem(runner, work("run_code", code="x", language="r"))


async def test_run_code_with_tools_needs_an_agents_turn() -> None:
    sandboxed = Sandboxed()
    call = Call(call_key="k", tool_id=UUID(int=2), arguments="{}", agent_id=UUID(int=3), client_token="t")
    async with running(sandboxed=sandboxed) as runner:
        assert "in an agent's turn only" in await problem(runner, work("run_code_with_tools", code="1"))
        await value(runner, work("run_code_with_tools", call=call, code="1"))
    [given] = sandboxed.works
    assert (given.mode, given.arguments) == (Mode.CALL, {"code": "1"})
    assert "def run_code_with_tools(code)" in given.tool.source_code
