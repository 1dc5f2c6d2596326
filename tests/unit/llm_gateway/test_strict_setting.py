"""`strict` in an agent's model settings holds for all its tools."""

import pytest

from loci.llm.v1 import chat_pb2, chat_service_pb2
from services.llm_gateway.calls.convert import chat_request


@pytest.mark.parametrize(
    ("settings", "own", "strict"),
    [
        ("", False, False),
        ("", True, True),
        ('{"strict": true}', False, True),
        ('{"strict": false}', True, True),
        ('{"strict": null}', False, False),
    ],
)
def test_strict(settings: str, own: bool, strict: bool) -> None:
    user = chat_pb2.ChatMessage(
        role=chat_pb2.CHAT_ROLE_USER, parts=[chat_pb2.ChatPart(text=chat_pb2.TextPart(text="x"))]
    )
    tools = [chat_pb2.ToolSpec(name="a", strict=own), chat_pb2.ToolSpec(name="b", strict=own)]
    message = chat_service_pb2.GenerationRequest(
        handle="openai/m", messages=[user], tools=tools, settings_json=settings
    )
    assert [tool.strict for tool in chat_request(message).tools] == [strict, strict]
