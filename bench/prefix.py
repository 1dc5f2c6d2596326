"""`make bench ARGS=prefix`: the input of model calls that their provider has seen before.

200 scripted turns, every fifth with a memory edit, against a fake that keeps what it is sent. Of each request the part
that it has in common with the one before is counted, in bytes from its beginning: that is what a provider's cache of
the prefix can serve. Beside it stands the same if the prompt were compiled anew in every turn, with its time and its
counts, as it would be without Loci's compilation by versions.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from os.path import commonprefix
from typing import Any

import orjson

from bench.common import Report, loci_with_provider
from bench.wire import Connection
from tests.e2e.stack import Stack

TURNS = 200
EDIT_EVERY = 5
_COMPILED = re.compile(r"System prompt last recompiled: [^\\n]*|\d+ previous messages between")
_NOTE = {"name": "core_memory_append", "arguments": {"label": "human", "content": "They like figures."}}


async def talk(stack: Stack, fake_port: int, turns: int) -> list[str]:
    """The inputs of all model calls of so many turns, oldest first."""
    async with Connection("127.0.0.1", fake_port) as fake, Connection("127.0.0.1", stack.port) as loci:
        script = {
            "default": {"text": "That is a number of which much could be said, and here is some of it."},
            "rules": [{"reply": {"text": "", "calls": [_NOTE]}, "contains": "Remember", "step": 0}],
        }
        assert (await fake.request("POST", "/_script", script)).status == 200
        agent = {
            "model": "openai/gpt-4o-mini",
            "memory_blocks": [{"label": "human", "value": ""}, {"label": "persona", "value": "I like numbers."}],
            "tools": ["core_memory_append"],
        }
        agent_id = (await loci.request("POST", "/v1/agents/", agent)).json()["id"]
        for turn in range(1, turns + 1):
            text = f"Remember: {turn} is mine." if turn % EDIT_EVERY == 0 else f"What do you say of the number {turn}?"
            body = {"messages": [{"role": "user", "content": text}]}
            answer = await loci.request("POST", f"/v1/agents/{agent_id}/messages", body)
            assert answer.status == 200, answer.body
        requests = (await fake.request("GET", "/_requests")).json()
    return [_input(request) for request in requests if "messages" in (request.get("body") or {})]


def _input(request: dict[str, Any]) -> str:
    """A request as a provider's cache sees it: tools, then messages, in order."""
    body = request["body"]
    return orjson.dumps([body.get("tools"), body["messages"]]).decode()


def compiled_each_time(inputs: Sequence[str]) -> Iterator[str]:
    """The inputs as they would be if each request told the time and the counts of its own."""
    numbers = count()
    for text in inputs:
        number = next(numbers)
        yield _COMPILED.sub(lambda found, number=number: f"{found.group(0)[:20]}{number:05}", text)  # type: ignore[misc]


def shared(inputs: Sequence[str]) -> float:
    """The part of all input, in percent, that follows upon the same beginning as in the request before."""
    # By characters, which is what is wanted here.
    common = sum(len(commonprefix(pair)) for pair in pairwise(inputs))  # noqa: RUF071
    return 100 * common / sum(map(len, inputs))


def main(arguments: Sequence[str]) -> None:
    """Prints the table."""
    turns = int(arguments[0]) if arguments else TURNS
    report = Report()
    with loci_with_provider(record=True) as (stack, port):
        inputs = asyncio.run(talk(stack, port, turns))
    report.add(f"model calls in {turns} turns", len(inputs))
    report.add("input that providers have seen before, %", shared(inputs))
    report.add("the same if the prompt were compiled anew, %", shared(list(compiled_each_time(inputs))))
