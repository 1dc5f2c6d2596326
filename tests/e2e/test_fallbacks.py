"""A model that cannot answer, and another vendor's that does, through the official client."""

from typing import Any

import orjson

from tests.e2e.stack import Stack
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule, ToolCall

OPENAI, ANTHROPIC = "openai/gpt-4o-mini", "anthropic/claude-haiku-4-5"


def note(text: str, id: str) -> ToolCall:
    """A memory edit under an id of the vendor's."""
    return ToolCall("memory_insert", {"label": "human", "new_string": text}, id=id)


def test_a_turn_goes_on_with_another_vendor_and_back(
    stack: Stack, openai_fake: OpenAIServer, anthropic_fake: AnthropicServer
) -> None:
    client: Any = stack.client()
    agent = client.agents.create(
        model=OPENAI,
        memory_blocks=[{"label": "human", "value": ""}],
        model_settings={"provider_type": "openai", "fallback_handles": [ANTHROPIC]},
    )
    # The first vendor calls a tool and then goes down; the second takes its call, and makes one of its own.
    openai_fake.rules(Rule(Reply(error="overloaded"), step=1), Rule(Reply(error="authentication"), step=2))
    openai_fake.reply(Reply(reasoning="OpenAI's thought", calls=[note("Ada", "call:of|the first")]))
    anthropic_fake.reply(
        Reply(reasoning="Anthropic's thought", calls=[note("likes Haskell", "toolu_" + "x" * 60)]),
        Reply(text="Noted, Ada."),
    )
    reply = client.agents.messages.create(agent.id, input="I am Ada and I like Haskell.")
    assert reply.messages[-1].content == "Noted, Ada."
    value = client.agents.blocks.retrieve("human", agent_id=agent.id).value
    assert "Ada" in value
    assert "likes Haskell" in value
    assert "OpenAI's thought" not in orjson.dumps(anthropic_fake.bodies("/messages")).decode()
    # Steps tell who answered, their run's usage how often each was asked.
    [run] = client.runs.list(agent_id=agent.id)
    steps = list(client.runs.steps.list(run.id, order="asc"))
    assert [step.api_model_handle for step in steps] == [OPENAI, ANTHROPIC, ANTHROPIC]
    assert [(step.provider_name, step.model) for step in steps[1:]] == [("anthropic", "claude-haiku-4-5")] * 2
    usage = client.get(f"/v1/runs/{run.id}/usage", cast_to=object)
    assert {row["model"]: row["requests"] for row in usage["by_model"]} == {OPENAI: 1, ANTHROPIC: 2}
    assert usage["total_tokens"] == sum(step.total_tokens for step in steps)
    # Back at the first, which refuses ids that are too long and calls without returns.
    openai_fake.reset()
    openai_fake.reply(Reply(text="Back."))
    assert client.agents.messages.create(agent.id, input="And now?").messages[-1].content == "Back."
    assert "Anthropic's thought" not in orjson.dumps(openai_fake.bodies("/chat/completions")).decode()
    client.agents.delete(agent.id)
