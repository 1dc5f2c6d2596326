"""`make bench`: what a turn costs beside a raw HTTP call to the same fake provider, in one run.

Everything runs on this machine: Loci as `make run` starts it, a fake OpenAI without delay in a process of its own, and
the load. Overheads are over the raw call, which is the floor; the vendor SDK's own overhead stands beside them.
"""

import argparse
import asyncio
import json
import platform
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import openai
import psutil

from bench.common import Report, loci_with_provider, superuser_url
from bench.wire import Connection
from cli.home import Home
from tests.e2e.stack import Stack

WARM_UP = 30
WINDOW_TURNS = 10
MEASURED_PER_AGENT = 5
HISTORY: list[dict[str, str]] = [{"role": "system", "content": "You are an agent. " * 60}] + [
    {"role": role, "content": "Something was said here, of ordinary length, as people do. " * 2}
    for _ in range(WINDOW_TURNS)
    for role in ("user", "assistant")
]
REPLY = "Here is a short answer that ends the turn."
NOTE = {"name": "core_memory_append", "arguments": {"label": "human", "content": "x"}}
CONCURRENT = (1, 8, 32, 64)


async def timed(count: int, action: Callable[[], Awaitable[Any]]) -> list[float]:
    """Seconds of each of `count` calls, after a warm-up."""
    for _ in range(WARM_UP):
        await action()
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        await action()
        taken.append(time.perf_counter() - start)
    return taken


class Load:
    """The measurements, over one stack and one fake."""

    def __init__(self, stack: Stack, fake_port: int, report: Report, count: int) -> None:
        self.stack, self.fake_port, self.report, self.count = stack, fake_port, report, count

    def connection(self) -> Connection:
        """Opens a connection to Loci."""
        return Connection("127.0.0.1", self.stack.port)

    async def agent(self, connection: Connection) -> str:
        """A new agent; its id."""
        body = {
            "model": "openai/gpt-4o-mini",
            "memory_blocks": [{"label": "human", "value": ""}, {"label": "persona", "value": "I am brief."}],
            "tools": ["core_memory_append"],
        }
        answer = await connection.request("POST", "/v1/agents/", body)
        assert answer.status == 200, answer.body
        return str(answer.json()["id"])

    async def turn(self, connection: Connection, agent_id: str, text: str = "Hello.") -> None:
        """One blocking turn."""
        body = {"messages": [{"role": "user", "content": text}]}
        answer = await connection.request("POST", f"/v1/agents/{agent_id}/messages", body)
        assert answer.status == 200, answer.body
        assert answer.json()["stop_reason"]["stop_reason"] == "end_turn", answer.body

    @asynccontextmanager
    async def talking(self) -> AsyncIterator[tuple[Connection, str]]:
        """A connection and an agent with 20 messages in its window."""
        async with self.connection() as connection:
            yield connection, await self.experienced_agent(connection)

    async def experienced_agent(self, connection: Connection) -> str:
        """An agent with 20 messages in its window."""
        agent_id = await self.agent(connection)
        for _ in range(WINDOW_TURNS):
            await self.turn(connection, agent_id)
        return agent_id

    async def of_experienced_agents(self, measure: Callable[[Connection, str], Awaitable[float]]) -> list[float]:
        """`count` measurements, a few on each of many agents, so that their windows stay about the same size."""
        taken: list[float] = []
        async with self.connection() as connection:
            while len(taken) < WARM_UP + self.count:
                agent_id = await self.experienced_agent(connection)
                taken += [await measure(connection, agent_id) for _ in range(MEASURED_PER_AGENT)]
        return taken[WARM_UP:]

    async def floor(self) -> tuple[float, float]:
        """The raw call and its first token, and what the vendor's SDK makes of the same call; p50 in ms."""
        request = {"model": "gpt-4o-mini", "messages": [*HISTORY, {"role": "user", "content": "Hello."}]}
        async with Connection("127.0.0.1", self.fake_port) as connection:
            raw = self.report.spread(
                "raw HTTP call (the floor)",
                await timed(self.count, lambda: connection.request("POST", "/v1/chat/completions", request)),
            )
            stream = request | {"stream": True}
            chunks = [
                await self.first_token(connection, "/v1/chat/completions", stream, b'"content":"H')
                for _ in range(WARM_UP + self.count)
            ]
            first = self.report.spread("raw HTTP, first token", chunks[WARM_UP:])
        client = openai.AsyncOpenAI(api_key="sk-bench", base_url=f"http://127.0.0.1:{self.fake_port}/v1")
        sdk = self.report.spread(
            "openai SDK call",
            await timed(self.count, lambda: client.chat.completions.create(**request)),  # type: ignore[call-overload]
        )
        await client.close()
        self.report.add("openai SDK over raw, p50 ms", sdk - raw)
        return raw, first

    async def first_token(self, connection: Connection, path: str, body: Any, marker: bytes) -> float:
        """Seconds to the first chunk with `marker`."""
        start = time.perf_counter()
        answer = await connection.request("POST", path, body, marker=marker)
        assert answer.marked_at is not None, answer.body
        return answer.marked_at - start

    async def one_at_a_time(self, floor: float, floor_first: float) -> None:
        """Turns and first tokens of a single client."""

        async def one_step(connection: Connection, agent_id: str) -> float:
            start = time.perf_counter()
            await self.turn(connection, agent_id)
            return time.perf_counter() - start

        async def three_steps(connection: Connection, agent_id: str) -> float:
            start = time.perf_counter()
            await self.turn(connection, agent_id, "Take three steps.")
            return time.perf_counter() - start

        async def first(connection: Connection, agent_id: str) -> float:
            body = {"messages": [{"role": "user", "content": "Hello."}], "streaming": True, "stream_tokens": True}
            return await self.first_token(connection, f"/v1/agents/{agent_id}/messages", body, b'"assistant_message"')

        median = self.report.spread("one-step turn", await self.of_experienced_agents(one_step))
        self.report.add("one-step turn over raw, p50 ms", median - floor)
        median = self.report.spread("first token", await self.of_experienced_agents(first))
        self.report.add("first token over raw, p50 ms", median - floor_first)
        median = self.report.spread(
            "three-step turn with two memory edits", await self.of_experienced_agents(three_steps)
        )
        self.report.add("three-step turn over three raw calls, p50 ms", median - 3 * floor)

    async def throughput(self, concurrent: int, seconds: float) -> None:
        """Turns per second of many agents, each with its own client."""
        ready, started, done = asyncio.Semaphore(0), asyncio.Event(), 0

        async def client() -> None:
            nonlocal done
            async with self.talking() as (connection, agent_id):
                ready.release()
                await started.wait()
                end = time.perf_counter() + seconds
                while time.perf_counter() < end:
                    await self.turn(connection, agent_id)
                    done += 1

        async with asyncio.TaskGroup() as clients:
            for _ in range(concurrent):
                clients.create_task(client())
            for _ in range(concurrent):
                await ready.acquire()
            cpu, begin = self._cpu(), time.perf_counter()
            started.set()
        taken, cpu = time.perf_counter() - begin, self._cpu() - cpu
        self.report.add(f"turns/s, {concurrent} agents at once", done / taken)
        self.report.add(f"CPU ms per turn, {concurrent} agents at once", 1e3 * cpu / max(done, 1))

    async def crowd(self, conversations: int = 200, at_once: int = 32) -> None:
        """Turns per second of one agent's conversations that all write one block."""
        async with self.connection() as connection:
            agent_id = await self.agent(connection)
        left = iter(range(conversations))

        async def client() -> None:
            async with self.connection() as own:
                for _ in left:
                    made = await own.request("POST", f"/v1/conversations/?agent_id={agent_id}", {})
                    path = f"/v1/conversations/{made.json()['id']}/messages"
                    answer = await own.request("POST", path, {"input": "one note", "streaming": False})
                    assert answer.json()["stop_reason"]["stop_reason"] == "end_turn", answer.body

        begin = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(at_once)))
        taken = time.perf_counter() - begin
        self.report.add(f"turns/s that write one block, {at_once} conversations at once", conversations / taken)

    async def creation(self) -> None:
        """Agents created per second by one client and by eight."""
        async with self.connection() as connection:
            taken = await timed(self.count, lambda: self.agent(connection))
            self.report.spread("create an agent", taken)

            async def eighth() -> None:
                async with self.connection() as own:
                    for _ in range(self.count // 8):
                        await self.agent(own)

            begin = time.perf_counter()
            await asyncio.gather(*(eighth() for _ in range(8)))
            self.report.add(
                "agents created per second, 8 clients", 8 * (self.count // 8) / (time.perf_counter() - begin)
            )

    async def statements(self) -> None:
        """SQL of the agent service in one one-step turn, as Postgres itself logs it."""
        home = Home(self.stack.home)
        superuser = await asyncpg.connect(superuser_url(home))
        log = home.logs / "postgres.log"
        async with self.talking() as (connection, agent_id):
            for setting in ("log_statement = 'all'", "log_line_prefix = '%u|'"):
                await superuser.execute(f"ALTER SYSTEM SET {setting}")
            await superuser.execute("SELECT pg_reload_conf()")
            await asyncio.sleep(0.5)
            start = log.stat().st_size
            turns = 20
            for _ in range(turns):
                await self.turn(connection, agent_id)
            await superuser.execute("ALTER SYSTEM RESET ALL")
            await superuser.execute("SELECT pg_reload_conf()")
            await asyncio.sleep(0.3)
        await superuser.close()
        statements, transactions = _count(log.read_bytes()[start:].decode(errors="replace"))
        self.report.add("SQL statements of the agent service per one-step turn", statements / turns)
        self.report.add("transactions of the agent service per one-step turn", transactions / turns)

    def memory(self) -> None:
        """Memory of all processes, Postgres apart: what they take together, and the sum of what each shows."""
        infos = [process.memory_full_info() for process in self._processes()]
        # Most of the pages of the interpreter and its libraries are there once for all.
        self.report.add(
            "memory of all processes when idle, shared pages once, MB", sum(info.pss for info in infos) / 1e6
        )
        self.report.add("the same, shared pages once for each, MB", sum(info.rss for info in infos) / 1e6)

    def _processes(self) -> list[psutil.Process]:
        family = [self.stack.supervisor, *self.stack.supervisor.children(recursive=True)]
        return [process for process in family if "postgres" not in process.name()]

    def _cpu(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._processes())


def _count(log: str) -> tuple[int, int]:
    """Statements and transactions of the role loci_agent in a log, without the beats of its lease."""
    statements = transactions = 0
    open_blocks = 0
    for line in re.findall(
        r"^loci_agent\|LOG:  (?:statement|execute [^:]*): (.*(?:\n(?!\w*\|).*)*)", log, re.MULTILINE
    ):
        text = line.strip()
        if "beat AS (" in text or "agent.outbox" in text:
            continue
        if text.upper().startswith(("COMMIT", "ROLLBACK")):
            open_blocks -= 1
            continue
        if text.upper().startswith("BEGIN"):
            open_blocks += 1
            transactions += 1
            continue
        statements += 1
        transactions += open_blocks == 0
    return statements, transactions


async def measure(stack: Stack, fake_port: int, count: int, seconds: float) -> Report:
    """Measures everything in one run."""
    report = Report()
    async with Connection("127.0.0.1", fake_port) as control:
        note = {"text": "", "calls": [NOTE]}
        script = {
            "default": {"text": REPLY},
            "rules": [
                *({"reply": note, "contains": "three steps", "step": step} for step in (0, 1)),
                {"reply": note, "contains": "one note", "step": 0},
            ],
        }
        assert (await control.request("POST", "/_script", script)).status == 200
    load = Load(stack, fake_port, report, count)
    await asyncio.sleep(3)
    load.memory()
    floor, floor_first = await load.floor()
    await load.one_at_a_time(floor, floor_first)
    await load.statements()
    await load.creation()
    for concurrent in CONCURRENT:
        await load.throughput(concurrent, seconds)
    await load.crowd()
    return report


def main(arguments: Sequence[str]) -> None:
    """Prints a table while it measures, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="calls per figure (300)")
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds per throughput figure (8)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args(arguments)
    print(f"{platform.machine()}, {psutil.cpu_count()} cores, Python {platform.python_version()}")
    with loci_with_provider() as (stack, port):
        report = asyncio.run(measure(stack, port, options.count, options.seconds))
    document = json.dumps(report.figures, indent=2)
    print(document)
    if options.json is not None:
        options.json.write_text(document + "\n")
