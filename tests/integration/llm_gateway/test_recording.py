"""The llm gateway records a whole turn of an agent, and replays it without keys and with its providers gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest

from loci.llm.v1 import chat_pb2, model_service_pb2
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall
from tests.integration.llm_gateway.harness import Gateway, gateway_service, generation

TOOLS = [chat_pb2.ToolSpec(name="roll", description="Rolls.", parameters_json='{"type":"object","properties":{}}')]
MODELS = ("openai/gpt-4o-mini", "anthropic/claude-haiku-4-5")


def said(role: Any, *parts: chat_pb2.ChatPart) -> chat_pb2.ChatMessage:
    return chat_pb2.ChatMessage(role=role, parts=parts)


async def turn(gateway: Gateway, handle: str) -> list[Any]:
    """Makes the calls of a turn: a call of a tool, streamed; its return; an answer. Then lists the models."""
    events = [event async for event in gateway.stream(handle, "Roll!", tools=TOOLS)]
    reply = events[-1].completed.message
    [call] = [part.tool_call for part in reply.parts if part.HasField("tool_call")]
    result = chat_pb2.ToolResultPart(
        tool_call_id=call.id, content=[chat_pb2.ChatPart(text=chat_pb2.TextPart(text="4"))]
    )
    question = generation(handle, "Roll!").messages[0]
    returned = said(chat_pb2.CHAT_ROLE_TOOL, chat_pb2.ChatPart(tool_result=result))
    second = [event async for event in gateway.stream(handle, messages=[question, reply, returned], tools=TOOLS)]
    last = await gateway.generate(handle, "Well?")
    listed = await gateway.models.ListModels(model_service_pb2.ListModelsRequest())
    names = sorted(model.handle for model in listed.models)
    return [*told(events), *told(second), last.message, last.usage, names]


def told(events: list[Any]) -> list[Any]:
    """The text of the pieces (how many there are is a matter of time), and the whole reply."""
    pieces = "".join(event.text_delta.text for event in events if event.HasField("text_delta"))
    return [pieces, events[-1].completed]


async def test_a_whole_turn(gateway_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    before = {}
    with OpenAIServer().in_thread() as openai, AnthropicServer().in_thread() as anthropic:
        urls = {"OPENAI_BASE_URL": openai.base_url, "ANTHROPIC_BASE_URL": anthropic.base_url}
        async with gateway_service(gateway_url, tmp_path, urls | {"LOCI_LLM_RECORD": str(folder)}) as recording:
            for fake, handle in zip((openai, anthropic), MODELS, strict=True):
                fake.reply(Reply(calls=(ToolCall("roll", {}),)), Reply(text="It is a 4.", delta_delay=0.01))
                before[handle] = await turn(recording, handle)
    recorded = {path.name: path.read_text() for path in folder.iterdir()}
    assert recorded.keys() == {"openai.jsonl", "anthropic.jsonl"}
    assert "sk-openai" not in recorded["openai.jsonl"]
    assert "sk-ant" not in recorded["anthropic.jsonl"]
    # Another address, where nobody is: that of the recording counts.
    without = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": "", "OPENAI_BASE_URL": "http://127.0.0.1:9"}
    async with gateway_service(gateway_url, tmp_path, without | {"LOCI_LLM_REPLAY": str(folder)}) as replaying:
        for handle in MODELS:
            assert await turn(replaying, handle) == before[handle]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await replaying.generate(MODELS[0], "Something else?")
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "Something else?" in (caught.value.details() or "")
