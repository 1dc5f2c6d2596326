"""Older agents on a model that reasons by itself: it is asked for no thoughts in its calls' arguments."""

from typing import Any

import httpx

from tests.e2e.stack import Stack
from tests.e2e.test_agent_types import functions, made, speech
from tests.fakes.openai_compatible import CompatibleServer
from tests.fakes.script import Reply


def test_deepseek_reasoner_is_asked_for_no_inner_thoughts(stack: Stack) -> None:
    client: Any = stack.client()
    with CompatibleServer("deepseek").in_thread() as fake, httpx.Client(base_url=stack.url, timeout=30) as http:
        own = {"name": "thinkers", "provider_type": "deepseek", "api_key": "sk-deep", "base_url": fake.base_url}
        provider = http.post("/v1/providers", json=own).json()
        fake.reply(Reply(calls=speech("Hello.").calls, reasoning="A greeting is due."))
        agent_id = made(client, "memgpt_v2_agent", model="thinkers/deepseek-reasoner")
        reply = client.agents.messages.create(agent_id, input="Hi")
        said = [(one.message_type, getattr(one, "reasoning", None)) for one in reply.messages]
        assert ("reasoning_message", "A greeting is due.") in said
        asked = functions(fake.bodies("/chat/completions")[-1])
        assert set(asked["send_message"]["properties"]) == {"message"}
        assert not any("thinking" in parameters["properties"] for parameters in asked.values())
        client.agents.delete(agent_id)
        assert http.delete(f"/v1/providers/{provider['id']}").status_code == 200
