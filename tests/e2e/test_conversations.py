"""Conversations with the official client, through every service: copies of blocks, forks, order, deletion."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from letta_client import AsyncLetta, BadRequestError, ConflictError, DefaultAsyncHttpxClient, NotFoundError

from tests.e2e.database import wait_delivered
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, by_step
from tests.polling import wait_until

BLOCKS: list[Any] = [
    {"label": "human", "value": "Nothing is known yet."},
    {"label": "persona", "value": "I am a helpful agent."},
]
# How many conversations of one agent speak at once.
MANY = 60
ISOLATED = {"isolated_block_labels": ["human"]}


@pytest.fixture
def agent_id(client: Any) -> str:
    """An agent that takes notes."""
    created: str = client.agents.create(memory_blocks=BLOCKS, model="loci/demo").id
    return created


def say(client: Any, conversation_id: str, text: str, **options: Any) -> str:
    """Says something in a conversation; the agent's answer, put together from its stream."""
    chunks = client.conversations.messages.create(conversation_id, input=text, **options)
    return "".join(chunk.content for chunk in chunks if chunk.message_type == "assistant_message")


def said(client: Any, conversation_id: str, **options: Any) -> list[str]:
    """Returns the user's messages of a conversation, oldest first."""
    page = client.conversations.messages.list(conversation_id, order="asc", limit=100, **options)
    return [message.content for message in page if message.message_type == "user_message"]


def human_of(client: Any, conversation_id: str) -> str:
    """The value of a conversation's own copy."""
    (block_id,) = client.conversations.retrieve(conversation_id).isolated_block_ids
    value: str = client.blocks.retrieve(block_id).value
    return value


def together(*calls: Callable[[], str]) -> list[str]:
    """Makes calls that begin at the same moment; returns their results."""
    barrier = threading.Barrier(len(calls))

    def call(made: Callable[[], str]) -> str:
        barrier.wait()
        return made()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(call, calls))


def test_two_at_once_each_with_its_own_copy(client: Any, agent_id: str) -> None:
    one, two = [client.conversations.create(agent_id=agent_id, extra_body=ISOLATED).id for _ in range(2)]
    together(
        lambda: say(client, one, "My name is Ada and I like Haskell."),
        lambda: say(client, two, "My name is Grace and I like COBOL."),
    )
    assert ("Ada" in human_of(client, one), "Grace" in human_of(client, one)) == (True, False)
    assert ("Ada" in human_of(client, two), "Grace" in human_of(client, two)) == (False, True)
    assert client.agents.blocks.retrieve("human", agent_id=agent_id).value == "Nothing is known yet."
    # Each turn's prompt shows the copy of its conversation, and the default one the agent's block.
    answers = together(
        lambda: say(client, one, "What is my name?"),
        lambda: say(client, two, "What is my name?"),
        lambda: say(client, "default", "What is my name?", agent_id=agent_id),
    )
    assert ["Ada" in answers[0], "Grace" in answers[1], "do not know your name" in answers[2]] == [True] * 3
    assert "Name: Ada" in client.conversations.recompile(one, dry_run=True)
    assert "Nothing is known yet." in client.agents.recompile(agent_id, dry_run=True)
    assert said(client, one) == ["My name is Ada and I like Haskell.", "What is my name?"]
    assert said(client, "default", agent_id=agent_id) == said(client, agent_id) == ["What is my name?"]


def test_shared_blocks_are_the_agents(client: Any, agent_id: str) -> None:
    one, two = [client.conversations.create(agent_id=agent_id).id for _ in range(2)]
    say(client, one, "My name is Ada.")
    assert "Ada" in client.agents.blocks.retrieve("human", agent_id=agent_id).value
    assert "Ada" in say(client, two, "What is my name?")
    with pytest.raises(BadRequestError, match="mood"):
        client.conversations.create(agent_id=agent_id, extra_body={"isolated_block_labels": ["mood"]})


def test_a_fork_shares_the_history_and_diverges(stack: Stack, client: Any, agent_id: str) -> None:
    made = client.conversations.create(agent_id=agent_id, summary="Names", extra_body=ISOLATED)
    say(client, made.id, "My name is Ada.")
    forked = client.conversations.fork(made.id)
    assert (forked.agent_id, forked.summary, forked.in_context_message_ids) == (agent_id, "Names", [])
    forked = client.conversations.retrieve(forked.id)
    shared = client.conversations.retrieve(made.id).in_context_message_ids[1:]
    assert forked.in_context_message_ids[1:] == shared
    assert len(shared) == 4
    say(client, made.id, "My name is Grace.")
    say(client, forked.id, "I like Haskell.")
    assert said(client, made.id) == ["My name is Ada.", "My name is Grace."]
    assert said(client, forked.id) == ["My name is Ada.", "I like Haskell."]
    assert "Grace" not in human_of(client, forked.id)
    assert "Haskell" not in human_of(client, made.id)

    # Up to a message; and of the default conversation, by both of its names.
    early = client.conversations.fork(made.id, message_id=shared[0], hidden=True)
    assert said(client, early.id) == ["My name is Ada."]
    say(client, "default", "Good morning.", agent_id=agent_id)
    by_name = client.conversations.fork("default", agent_id=agent_id)
    by_agent = client.conversations.fork(agent_id)
    say(client, by_name.id, "Good night.")
    assert said(client, by_name.id) == ["Good morning.", "Good night."]
    assert said(client, by_agent.id) == ["Good morning."]

    # What a fork shares outlives the other.
    client.conversations.delete(made.id)
    wait_delivered(stack, "conv", made.id)
    assert said(client, forked.id) == ["My name is Ada.", "I like Haskell."]
    assert "Ada" in say(client, forked.id, "What is my name?")
    listed = {each.id for each in client.conversations.list(agent_id=agent_id)}
    assert listed == {forked.id, by_name.id, by_agent.id}


def test_lists_and_their_order(client: Any, agent_id: str) -> None:
    names = ("one", "two", "three")
    made = [client.conversations.create(agent_id=agent_id, summary=f"Talk {name}").id for name in names]
    say(client, made[0], "Hello")
    say(client, made[1], "Hello")

    def ids(**options: Any) -> list[str]:
        return [each.id for each in client.conversations.list(agent_id=agent_id, **options)]

    assert ids() == made[::-1]
    assert ids(order="asc", limit=2) == made[:2]
    assert ids(after=made[2]) == [made[1], made[0]]
    assert ids(order_by="last_message_at") == [made[1], made[0], made[2]]
    assert ids(order_by="last_run_completion") == [made[1], made[0], made[2]]
    assert ids(summary_search="TALK T") == [made[2], made[1]]
    changed = client.conversations.update(made[1], archived=True, summary="Put away")
    assert (changed.archived, changed.summary) == (True, "Put away")
    assert ids() == [made[2], made[0]]
    assert ids(archive_status="archived") == [made[1]]
    assert len(ids(archive_status="all")) == 3


def test_deleting(client: Any, agent_id: str) -> None:
    made = client.conversations.create(agent_id=agent_id, extra_body=ISOLATED)
    say(client, made.id, "My name is Ada.")
    (block_id,) = made.isolated_block_ids
    assert client.conversations.delete(made.id) is None
    for call in (client.conversations.retrieve, client.conversations.delete, client.conversations.fork):
        with pytest.raises(NotFoundError, match=f"Conversation {made.id} not found"):
            call(made.id)
    with pytest.raises(NotFoundError):
        say(client, made.id, "Hello?")
    assert client.conversations.messages.list(made.id).items == []
    wait_until(lambda: not _is_there(client, block_id), 60, pause=0.1)


def _is_there(client: Any, block_id: str) -> bool:
    try:
        client.blocks.retrieve(block_id)
    except NotFoundError:
        return False
    return True


def test_models_of_their_own_and_cancelling(client: Any, agent_id: str, openai_fake: OpenAIServer) -> None:
    made = client.conversations.create(agent_id=agent_id, model="openai/gpt-4o-mini").id
    openai_fake.rules(*by_step(Reply(text="I am another model.")))
    assert say(client, made, "Who speaks?") == "I am another model."
    assert "loci/demo" in say(client, "default", "Who speaks?", agent_id=agent_id)
    client.conversations.update(made, model=None)
    assert "loci/demo" in say(client, made, "Who speaks?")
    with pytest.raises(ConflictError, match="No active runs to cancel"):
        client.conversations.cancel(made)


async def test_many_at_once_lose_no_note(stack: Stack) -> None:
    http = DefaultAsyncHttpxClient(limits=httpx.Limits(max_connections=MANY))
    client = AsyncLetta(base_url=stack.url, timeout=60.0, max_retries=0, http_client=http)
    try:
        agent = await client.agents.create(memory_blocks=BLOCKS, model="loci/demo")

        async def note(number: int) -> None:
            made = await client.conversations.create(agent_id=agent.id)
            async for _ in await client.conversations.messages.create(made.id, input=f"I like thing{number:03d}x."):
                pass

        await asyncio.gather(*map(note, range(MANY)))
        human = (await client.agents.blocks.retrieve("human", agent_id=agent.id)).value
    finally:
        await client.close()
    assert [number for number in range(MANY) if human.count(f"thing{number:03d}x") != 1] == []
