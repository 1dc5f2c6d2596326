"""`make bench ARGS=history`: a turn of an agent with 100 stored messages beside one with 10,000."""

import asyncio
import statistics
import time
from collections.abc import Sequence

import asyncpg

from bench.common import Report, loci_with_provider, superuser_url
from bench.wire import Connection
from cli.home import Home
from services.common.ids import from_public
from tests.e2e.stack import Stack

SIZES = (100, 10_000)
TURNS = 60
WARM_UP = 15

# Messages of a life that was compacted on its way: the window holds the last of them.
_FILL = """
WITH head AS (
    UPDATE agent.conversation_heads SET next_seq = $2 + 1, window_seq = $2 - 19 WHERE conversation_id = $1
    RETURNING organization_id, log_id
)
INSERT INTO agent.messages (organization_id, log_id, seq, id, agent_id, conversation_id, role, content, search)
SELECT head.organization_id, head.log_id, n, gen_random_uuid(), $1, $1,
       CASE WHEN n % 2 = 1 THEN 'user' ELSE 'assistant' END,
       jsonb_build_array(jsonb_build_object('type', 'text', 'text', 'Something was said here, number ' || n)),
       to_tsvector('english', 'Something was said here, number ' || n)
FROM head, generate_series(1, $2) n
"""


async def measure(stack: Stack, report: Report) -> None:
    """Turns of both agents in turn, so that what else the machine does meets both."""
    superuser = await asyncpg.connect(superuser_url(Home(stack.home)))
    taken: dict[int, list[float]] = {size: [] for size in SIZES}
    async with Connection("127.0.0.1", stack.port) as loci:
        agents = {size: await agent_with(loci, superuser, size) for size in SIZES}
        await superuser.execute("VACUUM ANALYZE agent.messages")
        for _ in range(WARM_UP + TURNS):
            for size, agent_id in agents.items():
                body = {"messages": [{"role": "user", "content": "Hello."}]}
                begin = time.perf_counter()
                answer = await loci.request("POST", f"/v1/agents/{agent_id}/messages", body)
                taken[size].append(time.perf_counter() - begin)
                assert answer.status == 200, answer.body
    await superuser.close()
    medians = {size: statistics.median(seconds[WARM_UP:]) for size, seconds in taken.items()}
    for size, median in medians.items():
        report.add(f"one-step turn with {size:,} messages stored, p50 ms", 1e3 * median)
    report.add(
        f"a turn with {SIZES[1]:,} messages stored, over one with {SIZES[0]}", medians[SIZES[1]] / medians[SIZES[0]]
    )


async def agent_with(loci: Connection, superuser: asyncpg.Connection, size: int) -> str:
    """A new agent with so many messages stored; its id."""
    answer = await loci.request("POST", "/v1/agents/", {"model": "openai/gpt-4o-mini"})
    agent_id: str = answer.json()["id"]
    await superuser.execute(_FILL, from_public("agent", agent_id), size)
    return agent_id


def main(arguments: Sequence[str]) -> None:
    """Prints the table."""
    report = Report()
    with loci_with_provider() as (stack, _):
        asyncio.run(measure(stack, report))
