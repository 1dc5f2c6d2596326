"""A client that cannot wait, and a conversation that makes it wait."""

import time
from concurrent.futures import ThreadPoolExecutor

from tests.e2e.helpers import create
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule

HANDLE = "openai/gpt-4o-mini"
BUSY_SECONDS = 5.0


def test_retries_of_an_impatient_client_attach(stack: Stack, openai_fake: OpenAIServer) -> None:
    """The SDK gives up after a second and tries again, and again: it is one message all the time."""
    patient = stack.client(timeout=60)
    agent_id = create(patient, HANDLE)
    openai_fake.rules(
        Rule(Reply(text="That took long.", first_delay=BUSY_SECONDS), contains="Take your time"),
        Rule(Reply(text="Here I am."), contains="Are you there?"),
    )
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(patient.agents.messages.create, agent_id, input="Take your time.")
        time.sleep(0.5)
        began = time.monotonic()
        reply = stack.client(timeout=1, max_retries=10).agents.messages.create(agent_id, input="Are you there?")
        assert time.monotonic() - began > BUSY_SECONDS / 2
        assert reply.messages[-1].content == "Here I am."
        assert slow.result().messages[-1].content == "That took long."
    said = [one.content for one in patient.agents.messages.list(agent_id) if one.message_type == "user_message"]
    assert sorted(said) == ["Are you there?", "Take your time."]
    assert len(list(patient.runs.list(agent_id=agent_id))) == 2
