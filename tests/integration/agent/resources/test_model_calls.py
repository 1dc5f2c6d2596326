"""Model calls beside turns: what one would be sent, what fills its window, and one that nobody remembers."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from loci.agent.v1 import message_pb2
from loci.agent.v1 import message_service_pb2 as message_wire
from loci.agent.v1 import model_call_service_pb2 as wire
from loci.agent.v1.model_call_service_pb2_grpc import ModelCallServiceStub
from loci.llm.v1 import chat_pb2, chat_service_pb2
from services.common.channel import make_channel
from services.common.errors import InvalidArgument, NotFound
from services.common.ids import uuid7
from tests.integration.agent.admin_world import OTHER_ORGANIZATION, AdminWorld, ScriptedPeers, admin_world, block

TABLES = ("messages", "runs", "facts", "steps", "compiled_prompts")


class ShownPeers(ScriptedPeers):
    """Renders a request as what it is, and keeps what is generated."""

    generated: chat_service_pb2.GenerationRequest

    async def PreviewGeneration(
        self, request: chat_service_pb2.PreviewGenerationRequest, context: Any
    ) -> chat_service_pb2.PreviewGenerationResponse:
        asked = request.request
        body = {
            "model": asked.handle,
            "stream": request.stream,
            "messages": [
                [chat_pb2.ChatRole.Name(one.role), "".join(part.text.text for part in one.parts)]
                for one in asked.messages
            ],
            "tools": [tool.name for tool in asked.tools],
        }
        return chat_service_pb2.PreviewGenerationResponse(body_json=orjson.dumps(body).decode())

    async def Generate(
        self, request: chat_service_pb2.GenerateRequest, context: Any
    ) -> chat_service_pb2.GenerateResponse:
        self.generated = request.request
        return await super().Generate(request, context)


@pytest.fixture
def peers() -> ShownPeers:
    return ShownPeers()  # type: ignore[abstract]


@pytest.fixture
async def world(agent_url: str, tmp_path: Path, peers: ShownPeers) -> AsyncIterator[AdminWorld]:
    """The service with no agents."""
    async with admin_world(agent_url, tmp_path, peers=peers) as made:
        await made.pool.execute("DELETE FROM agent.agents")
        yield made


@pytest.fixture
async def calls(world: AdminWorld) -> AsyncIterator[Any]:
    """A stub of the service."""
    channel = make_channel(world.address)
    yield ModelCallServiceStub(channel)
    await channel.close()


async def _counts(world: AdminWorld) -> list[int]:
    return [await world.rows(table) for table in TABLES]


def _turn(agent_id: str, text: str, **fields: Any) -> message_wire.TurnRequest:
    said = message_pb2.InputMessage(content=[message_pb2.ContentPart(text=text)])
    return message_wire.TurnRequest(agent_id=agent_id, messages=[said], **fields)


async def test_a_preview_is_what_the_turn_then_sends(world: AdminWorld, calls: Any, peers: ShownPeers) -> None:
    agent = await world.create(system="You are Loci.", blocks=[block("human", "Ada")])
    await world.say(agent.id, "I am Ada.")
    before = await _counts(world)
    asked = wire.PreviewModelCallRequest(turn=_turn(agent.id, "Who am I?"), stream_tokens=True)
    body = orjson.loads((await world.call(calls.PreviewModelCall, asked)).body_json)
    assert await _counts(world) == before
    assert body["stream"] is True
    assert body["tools"] == ["memory_insert", "memory_replace", "conversation_search"]
    system, *said = body["messages"]
    assert system[0] == "CHAT_ROLE_SYSTEM"
    assert "Ada" in system[1]
    assert [text for _, text in said] == ["I am Ada.", "Noted.", "Who am I?"]
    await world.say(agent.id, "Who am I?")
    sent = [[chat_pb2.ChatRole.Name(one.role), one.parts[0].text.text] for one in peers.generated.messages]
    assert sent[1:] == body["messages"][1:]
    options = message_wire.TurnOptions(override_model="openai/large", override_system="Be brief.")
    other = wire.PreviewModelCallRequest(turn=_turn(agent.id, "Who am I?", options=options))
    body = orjson.loads((await world.call(calls.PreviewModelCall, other)).body_json)
    assert (body["model"], body["messages"][0][1], body["stream"]) == ("openai/large", "Be brief.", False)


async def test_what_fills_a_window(world: AdminWorld, calls: Any) -> None:
    agent = await world.create(system="You are Loci.", blocks=[block("human", "Ada")])
    await world.say(agent.id, "I am Ada.")
    view = await world.call(calls.GetContextWindow, wire.GetContextWindowRequest(agent_id=agent.id))
    assert view.context_window_size_max == agent.context_window_limit
    assert (view.num_messages, view.num_recall_memory) == (3, 2)
    assert view.system_prompt == "You are Loci."
    assert "<human>" in view.core_memory
    assert view.external_memory_summary.startswith("<memory_metadata>")
    assert view.external_memory_summary.endswith("</memory_metadata>")
    assert not view.HasField("summary_memory")
    assert view.functions_definitions[0].name == "memory_insert"
    assert [message.WhichOneof("message") for message in view.messages] == ["user_message", "assistant_message"]
    sizes = {name: getattr(view, name) for name in view.DESCRIPTOR.fields_by_name if name.startswith("num_tokens_")}
    assert view.context_window_size_current == sum(sizes.values()) > 0
    assert [name for name, size in sizes.items() if not size] == ["num_tokens_summary_memory"]


async def test_a_text_that_no_agent_remembers(world: AdminWorld, calls: Any, peers: ShownPeers) -> None:
    agent = await world.create(model_settings_json='{"provider_type": "openai", "temperature": 0.5}')
    before = await _counts(world)
    schema = '{"type": "object", "properties": {"ok": {"type": "boolean"}}}'
    asked = wire.GenerateTextRequest(agent_id=agent.id, prompt="May it?", response_schema_json=schema)
    said = await world.call(calls.GenerateText, asked)
    assert (said.content, said.model) == ("Noted.", "loci/demo")
    assert (said.usage.prompt_tokens, said.usage.completion_tokens, said.usage.step_count) == (10, 2, 1)
    assert await _counts(world) == before
    assert [chat_pb2.ChatRole.Name(one.role) for one in peers.generated.messages] == ["CHAT_ROLE_USER"]
    assert peers.generated.temperature == 0.5
    assert not peers.generated.tools
    form = orjson.loads(peers.generated.response_format_json)
    assert form["json_schema"]["schema"] == orjson.loads(schema)
    other = {"system_prompt": "Be brief.", "override_model": "openai/large"}
    await world.call(calls.GenerateText, wire.GenerateTextRequest(agent_id=agent.id, prompt="Hello", **other))
    assert peers.generated.handle == "openai/large"
    assert peers.generated.messages[0].parts[0].text.text == "Be brief."


@pytest.mark.parametrize(
    ("rpc", "request_of"),
    [
        ("GetContextWindow", lambda agent_id: wire.GetContextWindowRequest(agent_id=agent_id)),
        ("PreviewModelCall", lambda agent_id: wire.PreviewModelCallRequest(turn=_turn(agent_id, "Hello"))),
        ("GenerateText", lambda agent_id: wire.GenerateTextRequest(agent_id=agent_id, prompt="Hello")),
    ],
)
async def test_of_the_tenants_own_agents_alone(world: AdminWorld, calls: Any, rpc: str, request_of: Any) -> None:
    agent = await world.create()
    with pytest.raises(NotFound):
        await world.call(getattr(calls, rpc), request_of(f"agent-{uuid7()}"))
    with pytest.raises(NotFound):
        await world.call(getattr(calls, rpc), request_of(agent.id), OTHER_ORGANIZATION)


async def test_what_cannot_be_asked(world: AdminWorld, calls: Any) -> None:
    agent = await world.create()
    for request in (
        wire.GenerateTextRequest(agent_id=agent.id),
        wire.GenerateTextRequest(agent_id=agent.id, prompt="Hello", response_schema_json="["),
        wire.GenerateTextRequest(agent_id=agent.id, prompt="Hello", response_schema_json="[]"),
    ):
        with pytest.raises(InvalidArgument):
            await world.call(calls.GenerateText, request)
    says_nothing = wire.PreviewModelCallRequest(turn=message_wire.TurnRequest(agent_id=agent.id))
    with pytest.raises(InvalidArgument):
        await world.call(calls.PreviewModelCall, says_nothing)
    turn = _turn(agent.id, "Hello", options={"override_model": "nobody/at-all"})
    with pytest.raises(NotFound, match="no model"):
        await world.call(calls.PreviewModelCall, wire.PreviewModelCallRequest(turn=turn))
