"""A check of the schemas of a server's tools, in a limited child: a bad one harms no other."""

import asyncio
import contextlib
import json
from collections.abc import Sequence

from services.common.processes import Child
from services.tool_runner.child_processes.run import start
from services.tool_runner.mcp.protocol.server_tools import ServerTool, ServerTools

_CHILD = "services.tool_runner.mcp.schema_check_child"
# What really bounds it is its processor time: see child_processes/source_parser_child.py.
_WALL_SECONDS = 60.0
# A server that has more of those has no business with us.
_MOST_DEATHS = 3
_AT_ONCE = 2


class SchemaCheck:
    """Looks at lists of tools, a few at a time."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def check(self, listing: ServerTools) -> ServerTools:
        """Returns it without the tools whose schema is none, each of which is a problem with a reason."""
        good: list[ServerTool] = []
        problems = list(listing.problems)
        left, deaths = list(listing.offers), 0
        while left and deaths < _MOST_DEATHS:
            async with self._slots:
                answers = await _ask(left)
            for offer, problem in zip(left, answers, strict=False):
                if problem:
                    problems.append((offer.name, problem))
                else:
                    good.append(offer)
            left = left[len(answers) :]
            if left:
                problems.append((left.pop(0).name, "its inputSchema needs too much time or memory to read"))
                deaths += 1
        problems += [(offer.name, "it was not looked at: too many before it could not be read") for offer in left]
        return ServerTools(tuple(good), tuple(problems))


async def _ask(offers: Sequence[ServerTool]) -> list[str]:
    """Returns an answer for each, as far as the child came."""
    request = "".join(json.dumps([offer.name, offer.parameters]) + "\n" for offer in offers).encode()
    child = await start(_CHILD)
    answers: list[str] = []
    sending = asyncio.create_task(_send(child, request))
    try:
        async with asyncio.timeout(_WALL_SECONDS):
            while len(answers) < len(offers) and (line := await child.reader.readline()):
                answers.append(json.loads(line))
    except (TimeoutError, OSError, ValueError):
        pass
    finally:
        sending.cancel()
        await child.end()
    return answers


async def _send(child: Child, request: bytes) -> None:
    with contextlib.suppress(OSError):  # it died; how far it came is what counts
        await child.send(request)
        child.end_input()
