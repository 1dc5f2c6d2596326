"""`make bench ARGS=mcp`: a quick call of one MCP server, alone and beside slow calls of another.

The times of each round are those of one run: alone, beside 8, beside 64, and again. What counts are the ratios.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from bench.common import Report
from bench.wire import Connection
from tests.e2e.stack import Stack, running
from tests.fakes.mcp_server import McpServer
from tests.polling import until

SLOW = (8, 64)
ROUNDS, CALLS = 5, 100
# Longer than the quick calls of a round take together.
SECONDS = 8.0


class Server:
    """A server in Loci's registry, and the paths by which its tools are run."""

    def __init__(self, stack: Stack, fake: McpServer) -> None:
        self.stack, self.fake = stack, fake
        self.paths: dict[str, str] = {}

    async def register(self, loci: Connection, name: str) -> None:
        """Stores it, and learns its tools."""
        config = {"mcp_server_type": "streamable_http", "server_url": self.fake.url}
        answer = await loci.request("POST", "/v1/mcp-servers/", {"server_name": name, "config": config})
        assert answer.status == 200, answer.body
        base = f"/v1/mcp-servers/{answer.json()['id']}/tools"
        for tool in (await loci.request("GET", base)).json():
            self.paths[tool["metadata_"]["mcp"].get("tool_name", tool["name"])] = f"{base}/{tool['id']}/run"

    async def run(self, loci: Connection, tool: str, **arguments: object) -> None:
        """Calls a tool to its end."""
        answer = await loci.request("POST", self.paths[tool], {"args": arguments})
        assert (answer.status, answer.json()["status"]) == (200, "success"), answer.body


async def measure(stack: Stack, quick_fake: McpServer, slow_fake: McpServer, report: Report) -> None:
    """Measures the rounds, and adds up what they come to."""
    quick, slow = Server(stack, quick_fake), Server(stack, slow_fake)
    async with Connection("127.0.0.1", stack.port) as loci:
        await quick.register(loci, "quick")
        await slow.register(loci, "slow")
        taken: dict[int, list[float]] = {beside: [] for beside in (0, *SLOW)}
        await _quick_calls(quick, loci)  # the first ones open connections
        for _ in range(ROUNDS):
            for beside, times in taken.items():
                times += await _beside(quick, slow, loci, beside)
    alone = report.spread("an echo alone", taken[0])
    for beside in SLOW:
        median = report.spread(f"an echo beside {beside} slow calls", taken[beside])
        report.add(f"beside {beside} slow calls, of alone", median / alone)


async def _beside(quick: Server, slow: Server, loci: Connection, number: int) -> list[float]:
    async with AsyncExitStack() as connections:
        begun = len(slow.fake.calls)
        calls = []
        for _ in range(number):
            connection = await connections.enter_async_context(Connection("127.0.0.1", slow.stack.port))
            calls.append(asyncio.create_task(slow.run(connection, "slow", seconds=SECONDS)))
        await until(lambda: len(slow.fake.calls) == begun + number)
        taken = await _quick_calls(quick, loci)
        assert not any(call.done() for call in calls), "the slow calls ended before the quick ones did"
        await asyncio.gather(*calls)
    return taken


async def _quick_calls(quick: Server, loci: Connection) -> list[float]:
    taken = []
    for number in range(CALLS):
        begin = time.perf_counter()
        await quick.run(loci, "echo", text=str(number))
        taken.append(time.perf_counter() - begin)
    return taken


def main(arguments: Sequence[str]) -> None:
    """Prints the table."""
    private = {"LOCI_ALLOW_PRIVATE_URLS": "1"}
    with (
        McpServer().in_thread() as quick,
        McpServer().in_thread() as slow,
        running(private, durable=True) as stack,
    ):
        asyncio.run(measure(stack, quick, slow, Report()))
