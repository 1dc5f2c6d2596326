"""`make bench ARGS=groups`: what many agents cost over the turns that they are made of, in one run.

Each ratio is of what was done in turn, with agents whose windows grow alike: a round of five agents over a turn of each
of five that are told as much; turns of an agent that another one tends, while that one thinks, over turns of one that
nobody tends; a turn in which an agent asks another over the two turns that it consists of (of two steps and of one).
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from bench.common import Report, loci_with_provider
from bench.wire import Connection
from tests.e2e.stack import Stack

PAIRS, WARM_UP = 60, 5
# Turns of a tended agent in a row, and seconds in which its companion comes to rest before those of another.
IN_A_ROW, REST = 5, 0.2
MEMBERS = 5
ASK = "send_message_to_agent_and_wait_for_reply"
REPLY = "Here is a short answer that ends the turn."
# What a member is told in a round: what was said since it spoke.
TOLD = "\n\n".join(["Hello.", *(f"[Agent] {REPLY}" for _ in range(MEMBERS - 1))])
NOTE = {"name": "core_memory_append", "arguments": {"label": "human", "content": "x"}}
BLOCKS = [{"label": "human", "value": ""}, {"label": "persona", "value": "I am brief."}]

Act = Callable[[], Awaitable[None]]


class Talk:
    """Requests to one Loci."""

    def __init__(self, loci: Connection) -> None:
        self._loci = loci

    async def ask(self, method: str, path: str, body: Any) -> Any:
        """Returns the JSON of an answer."""
        answer = await self._loci.request(method, path, body)
        assert answer.status == 200, answer.body
        return answer.json()

    async def agent(self, **settings: Any) -> Any:
        """A new agent."""
        body = {"model": "openai/gpt-4o-mini", "memory_blocks": BLOCKS, "tools": ["core_memory_append"], **settings}
        return await self.ask("POST", "/v1/agents/", body)

    async def turn(self, path: str, text: str = "Hello.") -> None:
        """A turn of an agent, or a round of a group."""
        answer = await self.ask("POST", f"/v1/{path}/messages", {"input": text})
        assert answer["stop_reason"]["stop_reason"] == "end_turn", answer


async def ratio(report: Report, name: str, act: Act, base: Act, *, in_a_row: int = 1, rest: float = 0.0) -> None:
    """Times both in turn, so many in a row with a rest behind them, and the median of the pairs' ratios.

    The machine is not the same from one second to the next; two that are neighbours see the same of it.
    """
    taken: tuple[list[float], list[float]] = ([], [])
    while len(taken[1]) < (WARM_UP + PAIRS) * in_a_row:
        for each, seconds in zip((act, base), taken, strict=True):
            for _ in range(in_a_row):
                begin = time.perf_counter()
                await each()
                seconds.append(time.perf_counter() - begin)
            await asyncio.sleep(rest)
    one, other = (_medians(seconds, in_a_row)[WARM_UP:] for seconds in taken)
    report.add(f"{name}, p50 ms", 1e3 * statistics.median(one))
    report.add("what it is over, p50 ms", 1e3 * statistics.median(other))
    report.add("ratio", statistics.median(first / second for first, second in zip(one, other, strict=True)))


def _medians(seconds: Sequence[float], in_a_row: int) -> list[float]:
    return [statistics.median(seconds[at : at + in_a_row]) for at in range(0, len(seconds), in_a_row)]


async def rounds(talk: Talk, report: Report) -> None:
    """A round of five."""
    members = [(await talk.agent())["id"] for _ in range(MEMBERS)]
    others = [(await talk.agent())["id"] for _ in range(MEMBERS)]
    made = {"agent_ids": members, "description": "Five.", "manager_config": {"manager_type": "round_robin"}}
    group = (await talk.ask("POST", "/v1/groups/", made))["id"]

    async def turns() -> None:
        for agent_id in others:
            await talk.turn(f"agents/{agent_id}", TOLD)

    await ratio(report, f"a round of {MEMBERS} agents", lambda: talk.turn(f"groups/{group}"), turns)


async def tended(talk: Talk, report: Report, frequency: int) -> None:
    """Turns of an agent with sleep-time."""
    one = await talk.agent(enable_sleeptime=True, embedding="loci/hash")
    other = (await talk.agent(embedding="loci/hash"))["id"]
    config = {"manager_type": "sleeptime", "sleeptime_agent_frequency": frequency}
    await talk.ask("PATCH", f"/v1/groups/{one['managed_group']['id']}", {"manager_config": config})
    name = f"a turn with sleep-time every {frequency}"
    act, base = (lambda: talk.turn(f"agents/{one['id']}")), (lambda: talk.turn(f"agents/{other}"))
    await ratio(report, name, act, base, in_a_row=IN_A_ROW, rest=REST)


async def asks(talk: Talk, report: Report, caller: str) -> None:
    """A turn in which an agent asks another."""
    one, other = [(await talk.agent())["id"] for _ in range(2)]

    async def two_turns() -> None:
        await talk.turn(f"agents/{one}", "Take a note.")
        await talk.turn(f"agents/{other}")

    await ratio(report, "a turn that asks another agent", lambda: talk.turn(f"agents/{caller}", "Ask."), two_turns)


async def measure(stack: Stack, fake_port: int) -> None:
    """Measures everything in one run."""
    report = Report()
    async with Connection("127.0.0.1", stack.port) as loci, Connection("127.0.0.1", fake_port) as control:
        talk = Talk(loci)
        caller, asked = (await talk.agent(tools=[ASK]))["id"], (await talk.agent())["id"]
        call = {"name": ASK, "arguments": {"message": "Hello.", "other_agent_id": asked}}
        script = {
            "default": {"text": REPLY},
            "rules": [
                {"reply": {"calls": [NOTE]}, "contains": "Take a note.", "step": 0},
                {"reply": {"calls": [call]}, "contains": "Ask.", "step": 0},
            ],
        }
        assert (await control.request("POST", "/_script", script)).status == 200
        await rounds(talk, report)
        for frequency in (5, 1):
            await tended(talk, report, frequency)
        await asks(talk, report, caller)


def main(_arguments: Sequence[str]) -> None:
    """Prints a table while it measures."""
    with loci_with_provider() as (stack, port):
        asyncio.run(measure(stack, port))
