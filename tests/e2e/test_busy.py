"""A client that cannot wait, and a conversation that makes it wait."""

from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.e2e.helpers import create
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule
from tests.polling import wait_until

HANDLE = "openai/gpt-4o-mini"


def test_retries_of_an_impatient_client_attach(stack: Stack, openai_fake: OpenAIServer) -> None:
    """The SDK gives up after a second and tries again, and again: it is one message all the time."""
    patient = stack.client(timeout=60)
    agent_id = create(patient, HANDLE)
    model, tries = openai_fake.gate(), list[httpx.Request]()
    openai_fake.rules(
        Rule(Reply(text="That took long.", gate=model), contains="Take your time"),
        Rule(Reply(text="Here I am."), contains="Are you there?"),
    )
    with httpx.Client(event_hooks={"request": [tries.append]}) as http, ThreadPoolExecutor() as threads:
        slow = threads.submit(patient.agents.messages.create, agent_id, input="Take your time.")
        model.wait_reached()
        impatient = stack.client(timeout=1, max_retries=10, http_client=http)
        reply = threads.submit(impatient.agents.messages.create, agent_id, input="Are you there?")
        wait_until(lambda: len(tries) >= 3, 60)
        model.open()
        assert reply.result().messages[-1].content == "Here I am."
        assert slow.result().messages[-1].content == "That took long."
    said = [one.content for one in patient.agents.messages.list(agent_id) if one.message_type == "user_message"]
    assert sorted(said) == ["Are you there?", "Take your time."]
    assert len(list(patient.runs.list(agent_id=agent_id))) == 2
