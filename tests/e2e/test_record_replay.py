"""A user's run is recorded by one Loci and looked at with another, which has no key, no provider and other ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from letta_client import APIStatusError

from tests.e2e.helpers import create
from tests.e2e.stack import running
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall

MODEL = "openai/gpt-4o-mini"


def walk(client: Any) -> list[tuple[str, str]]:
    """An agent that is told something, writes it down and answers, blocking and streamed."""
    agent_id = create(client, MODEL)
    reply = client.agents.messages.create(agent_id, input="I am Ada.")
    chunks = client.agents.messages.create(agent_id, input="Who am I?", streaming=True, stream_tokens=True)
    streamed = "".join(chunk.content for chunk in chunks if chunk.message_type == "assistant_message")
    human = client.agents.blocks.retrieve("human", agent_id=agent_id).value
    said = [(one.message_type, getattr(one, "content", "")) for one in reply.messages]
    return [*said, ("streamed", streamed), ("human", human)]


@pytest.mark.timeout(180)
def test_a_users_run_is_looked_at_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    note: Any = ToolCall("memory_insert", {"label": "human", "new_string": "Ada"})
    with OpenAIServer().in_thread() as fake:
        fake.reply(Reply(calls=(note,)), Reply(text="Hello Ada."), Reply(text="You are Ada."))
        environment = {"OPENAI_API_KEY": "sk-of-the-user-alone", "OPENAI_BASE_URL": fake.base_url}
        with running(environment | {"LOCI_LLM_RECORD": str(folder)}) as users:
            before = walk(users.client())
    assert before[-1][1].endswith("Ada")
    assert "sk-of-the-user-alone" not in (folder / "openai.jsonl").read_text()
    replay = {"LOCI_LLM_REPLAY": str(folder), "LOCI_LLM_REPLAY_MATCH": "order"}
    with running(replay) as ours:
        client = ours.client()
        assert walk(client) == before
        with pytest.raises(APIStatusError, match="does not hold this call"):
            walk(client)
