"""Returns of tools, through the official client: pictures, and texts longer than any window."""

import orjson
import pytest

from tests.e2e.helpers import BLOCKS
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall

pytestmark = pytest.mark.sandbox

MODEL = "openai/gpt-4o-mini"
PLOT = '''
def plot() -> list:
    """Draw the plot."""
    import base64
    data = base64.b64encode(b"\\x89PNG\\r\\n\\x1a\\n" + bytes(60_000)).decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    return [{"type": "text", "text": "The plot:"}, picture]
'''
LOG = '''
def read_log() -> str:
    """Read the log."""
    return " ".join(f"line{n}" for n in range(20_000)) + " needle " + " ".join(f"line{n}" for n in range(20_000))
'''


def test_a_tool_returns_a_picture(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    tool = client.tools.upsert(source_code=PLOT)
    agent = client.agents.create(model=MODEL, memory_blocks=BLOCKS, tool_ids=[tool.id])
    openai_fake.reply(Reply(calls=(ToolCall("plot", {}),)), Reply(text="A flat line."))
    reply = client.agents.messages.create(agent.id, input="Draw it.")
    assert reply.stop_reason.stop_reason == "end_turn"
    returned = next(one for one in reply.messages if one.message_type == "tool_return_message")
    assert "The plot:" in str(returned.tool_return)
    asked = openai_fake.bodies("/chat/completions")[-1]["messages"]
    assert [message["role"] for message in asked][-2:] == ["tool", "user"]
    assert asked[-2]["content"].startswith("The plot:")
    (picture,) = asked[-1]["content"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert len(picture["image_url"]["url"]) > 80_000


def test_a_long_return_is_kept_whole_and_found(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    tool = client.tools.upsert(source_code=LOG, return_char_limit=1_000_000)
    search = client.tools.list(name="conversation_search").items[0]
    agent = client.agents.create(
        model=MODEL, memory_blocks=BLOCKS, tool_ids=[tool.id, search.id], context_window_limit=32_000
    )
    look = ToolCall("conversation_search", {"query": "needle"})
    openai_fake.reply(Reply(calls=(ToolCall("read_log", {}),)), Reply(calls=(look,)), Reply(text="There it is."))
    client.agents.messages.create(agent.id, input="Is there a needle in the log?")
    asked = openai_fake.bodies("/chat/completions")[-1]["messages"]
    shown, found = (message["content"] for message in asked if message["role"] == "tool")
    assert len(shown) <= 25_600
    assert "needle" not in shown
    assert "line19999 needle line0" in orjson.loads(found)[0]["content"]
    kept = [one for one in client.agents.messages.list(agent.id) if one.message_type == "tool_return_message"]
    assert max(len(str(one.tool_return)) for one in kept) > 370_000
