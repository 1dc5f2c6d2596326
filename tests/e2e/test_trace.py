"""One trace from REST to model and sandbox, and the RPCs it counts."""

import pytest

from tests.e2e.collector import Collector
from tests.e2e.helpers import DICE, create
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall, by_step
from tests.polling import wait_until

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.sandbox
def test_one_trace(open_stack: Stack, collector: Collector, openai_fake: OpenAIServer) -> None:
    client = open_stack.client()
    tool = client.tools.upsert(source_code=DICE)
    agent_id = create(client, "openai/gpt-4o-mini", tool_ids=[tool.id])
    openai_fake.rules(*by_step(Reply(calls=(ToolCall("roll_dice", {"num_sides": 1}),)), Reply(text="One.")))
    headers = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}
    client.agents.messages.create(agent_id, input="Roll.", extra_headers=headers)
    wait_until(lambda: collector.is_whole(TRACE_ID), 60, problem=lambda: str(collector.of(TRACE_ID)))
    seen = collector.of(TRACE_ID)
    assert {service for service, _ in seen} == {"gateway", "agent", "memory", "llm_gateway", "tool_runner"}
    # One, unless a machine that stands still loses the lease on the turn.
    attempts = seen["agent", "run"]
    # One RPC to memory per turn, one to the model gateway per step.
    assert seen["memory", "loci.memory.v1.AgentMemoryService/GetAgentMemory"] == attempts
    assert 2 <= seen["llm_gateway", "loci.llm.v1.ChatService/Generate"] <= 2 * attempts
    assert any(service == "tool_runner" and "sandbox" in name for service, name in seen)
    client.agents.delete(agent_id)
