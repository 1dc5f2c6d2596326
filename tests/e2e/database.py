"""The database of a stack, for what no route tells."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import httpx

from cli.home import Home
from cli.names import DATABASE
from cli.postgres import SUPERUSER, url
from cli.secrets import passwords
from services.common.ids import from_public, to_public
from tests.e2e.stack import Stack
from tests.polling import wait_until


@asynccontextmanager
async def superuser(stack: Stack) -> AsyncIterator[Any]:
    """A connection that may read everything."""
    home = Home(stack.home)
    secret = passwords(home.secrets)[SUPERUSER]
    connection = await asyncpg.connect(url(home.sockets / "postgres", SUPERUSER, secret, DATABASE))
    try:
        yield connection
    finally:
        await connection.close()


def rows(stack: Stack, query: str, *arguments: Any) -> list[Any]:
    """Returns the rows of a query."""

    async def main() -> list[Any]:
        async with superuser(stack) as connection:
            return list(await connection.fetch(query, *arguments))

    # In a thread of its own: a browser that is open has an event loop in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, main()).result()


def value(stack: Stack, query: str, *arguments: Any) -> Any:
    """Returns the first value of the first row."""
    return rows(stack, query, *arguments)[0][0]


def wait_in_line(stack: Stack, agent_id: str, messages: int = 1) -> None:
    """Waits until so many messages to an agent wait for their turn."""
    query = """
        SELECT count(*) FROM agent.conversation_line JOIN agent.runs
        ON runs.organization_id = conversation_line.organization_id AND runs.id = run_id WHERE agent_id = $1
    """
    wait_until(lambda: value(stack, query, from_public("agent", agent_id)) == messages)


def wait_delivered(stack: Stack, prefix: str, subject: str) -> None:
    """Waits until what follows on the deletion of something is done."""
    query = "SELECT count(*) FROM agent.outbox WHERE subject_id = $1"
    wait_until(lambda: value(stack, query, from_public(prefix, subject)) == 0, 60)


def end_runs(stack: Stack) -> None:
    """Cancels what still runs, and waits for its end."""
    query = "SELECT agent_id, id FROM agent.runs WHERE status IN ('created', 'running')"
    active = rows(stack, query)
    if not active:
        return
    password = stack.environment.get("LETTA_SERVER_PASSWORD", "")
    headers = {"authorization": f"Bearer {password}"} if password else {}
    with httpx.Client(base_url=stack.url, headers=headers, timeout=30) as client:
        for agent_id, run_id in active:
            path = f"/v1/agents/{to_public('agent', agent_id)}/messages/cancel"
            client.post(path, json={"run_ids": [to_public("run", run_id)]})
    wait_until(lambda: not rows(stack, query), 60, problem=lambda: f"these do not end: {rows(stack, query)}")
