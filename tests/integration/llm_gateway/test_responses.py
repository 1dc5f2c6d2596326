"""A run over one WebSocket, and Azure's deployments, through the service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loci.llm.v1 import chat_pb2, model_service_pb2
from tests.fakes.azure_server import AzureServer
from tests.fakes.responses_server import ResponsesServer
from tests.fakes.script import Reply, ToolCall
from tests.integration.llm_gateway.harness import gateway_service

DICE = chat_pb2.ToolSpec(name="roll", description="Rolls.", parameters_json='{"type":"object","properties":{}}')


def text(role: chat_pb2.ChatRole.ValueType, said: str) -> chat_pb2.ChatMessage:
    return chat_pb2.ChatMessage(role=role, parts=[chat_pb2.ChatPart(text=chat_pb2.TextPart(text=said))])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_runs_second_call_sends_what_is_new_on_the_same_connection(
    gateway_url: str, tmp_path: Path, stream: bool
) -> None:
    with ResponsesServer().in_thread() as fake:
        fake.reply(
            Reply(reasoning="a roll", redacted="opaque", calls=[ToolCall("roll", {}, id="c1")]), Reply(text="It is 4.")
        )
        environment = {"OPENAI_BASE_URL": fake.base_url, "OPENAI_RESPONSES": "1"}
        async with gateway_service(gateway_url, tmp_path, environment) as gateway:
            asked: dict[str, Any] = {"tools": [DICE], "websocket": True, "stream": stream}
            first = await gateway.outcome("openai/gpt-5", **asked)
            result = chat_pb2.ToolResultPart(
                tool_call_id="c1", content=[chat_pb2.ChatPart(text=chat_pb2.TextPart(text="4"))]
            )
            tool = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_TOOL, parts=[chat_pb2.ChatPart(tool_result=result)])
            history = [text(chat_pb2.CHAT_ROLE_USER, "hello"), first.message, tool]
            second = await gateway.outcome("openai/gpt-5", messages=history, **asked)
        kinds = [part.WhichOneof("part") for part in first.message.parts]
        assert kinds == ["reasoning", "redacted_reasoning", "tool_call"]
        assert second.message.parts[0].text.text == "It is 4."
        assert [one.method for one in fake.requests] == ["WEBSOCKET"] * 2
        assert fake.requests[1].body["previous_response_id"] == first.provider_response_id
        assert [item["type"] for item in fake.requests[1].body["input"]] == ["function_call_output"]
        assert fake.opened == 1


async def test_azures_deployments_are_listed_and_called(gateway_url: str, tmp_path: Path) -> None:
    with AzureServer().in_thread() as fake:
        environment = {"AZURE_API_KEY": "key", "AZURE_BASE_URL": fake.base_url}
        async with gateway_service(gateway_url, tmp_path, environment) as gateway:
            asked = model_service_pb2.ListModelsRequest(provider_names=["azure"])
            listed = (await gateway.models.ListModels(asked)).models
            assert {one.handle: one.context_window for one in listed} == {
                "azure/my-five": 400_000,
                "azure/my-mini": 128_000,
                "azure/old": 16_385,
            }
            for handle, path in (("azure/my-five", "responses"), ("azure/my-mini", "chat/completions")):
                reply = await gateway.generate(handle)
                assert reply.message.parts[0].text.text == "Hello from the fake model."
                assert fake.requests[-1].path == f"/openai/v1/{path}"
                assert fake.requests[-1].headers["api-key"] == "key"
            assert (await gateway.embed("azure/text-embedding-3-small", "a cat")).dimensions == 1_536
