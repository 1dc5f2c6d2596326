"""Pictures as heavy as a body may be, from a client to the model and back."""

from base64 import b64encode

from tests.e2e.helpers import BLOCKS
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply

# Two of them fill a body (LOCI_MAX_BODY_MIB).
HEAVY = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(12_200_000)).decode()


def test_the_heaviest_pictures_reach_the_model_and_come_back(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    agent = client.agents.create(model="openai/gpt-4o-mini", memory_blocks=BLOCKS)
    openai_fake.reply(Reply(text="Two black squares."))
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": HEAVY}}
    reply = client.agents.messages.create(agent.id, messages=[{"role": "user", "content": [picture, picture]}])
    assert reply.stop_reason.stop_reason == "end_turn"
    asked = openai_fake.bodies("/chat/completions")[-1]["messages"][-1]
    assert [part["image_url"]["url"] == f"data:image/png;base64,{HEAVY}" for part in asked["content"]] == [True, True]
    stored = next(one for one in client.agents.messages.list(agent.id).items if one.message_type == "user_message")
    assert [part.source.data == HEAVY for part in stored.content] == [True, True]
