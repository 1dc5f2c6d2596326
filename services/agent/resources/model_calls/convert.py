"""Windows as they are looked at, and single model calls <-> protobuf."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from loci.agent.v1 import message_pb2
from loci.agent.v1 import model_call_service_pb2 as wire
from services.agent.convert.inputs import messages_from_proto
from services.agent.convert.messages import messages_to_proto
from services.agent.convert.turns import usage_to_proto
from services.agent.core.facts import Options
from services.agent.core.messages import Message
from services.agent.resources.model_calls.service import Said, WindowView
from services.common.core.storable import parse_storable, storable
from services.common.errors import InvalidArgument
from services.common.ids import uuid7


def window_to_proto(view: WindowView) -> wire.GetContextWindowResponse:
    """Returns how a window is filled."""
    parts = (view.system, view.core, view.outside, view.summary)
    tokens = [0 if part is None else part.tokens for part in parts]
    return wire.GetContextWindowResponse(
        context_window_size_max=view.limit,
        context_window_size_current=sum(tokens) + view.tool_tokens + view.message_tokens,
        num_messages=1 + len(view.messages) + (view.summary is not None),
        num_archival_memory=view.passages,
        num_recall_memory=view.stored,
        num_tokens_system=tokens[0],
        system_prompt=view.system.text,
        num_tokens_core_memory=tokens[1],
        core_memory=view.core.text,
        num_tokens_external_memory_summary=tokens[2],
        external_memory_summary=view.outside.text,
        num_tokens_summary_memory=tokens[3],
        summary_memory=None if view.summary is None else view.summary.text,
        num_tokens_functions_definitions=view.tool_tokens,
        functions_definitions=[
            wire.FunctionDefinition(
                name=tool.name, description=tool.description, parameters_json=orjson.dumps(tool.parameters).decode()
            )
            for tool in view.tools
        ],
        num_tokens_messages=view.message_tokens,
        messages=[piece for message in view.messages for piece in messages_to_proto(message)],
    )


def prompt_of(request: wire.GenerateTextRequest) -> Message:
    """Returns the prompt and the messages for the model. Raises InvalidArgument (MESSAGES_EMPTY, MESSAGE_INVALID)."""
    sent = message_pb2.InputMessage(content=[message_pb2.ContentPart(text=request.prompt)])
    return messages_from_proto([sent], uuid7(), datetime.now(UTC))[0]


def options_of(request: wire.GenerateTextRequest) -> Options:
    """Returns the model that is wanted."""
    return Options(model=storable(request.override_model) if request.HasField("override_model") else None)


def schema_of(request: wire.GenerateTextRequest) -> Mapping[str, Any] | None:
    """Returns the form of the answer; None: text. Raises InvalidArgument (MESSAGE_INVALID)."""
    if not request.response_schema_json:
        return None
    try:
        schema = parse_storable(request.response_schema_json)
    except ValueError as error:
        raise InvalidArgument(f"response_schema is not JSON: {error}", reason="MESSAGE_INVALID") from None
    if not isinstance(schema, dict):
        raise InvalidArgument("response_schema must be a JSON Schema, an object", reason="MESSAGE_INVALID")
    return schema


def answer_to_proto(answer: Said) -> wire.GenerateTextResponse:
    """Returns a model's answer."""
    return wire.GenerateTextResponse(
        content=answer.text, model=answer.handle, usage=usage_to_proto(answer.usage, 1, answer.usage.prompt_tokens)
    )
