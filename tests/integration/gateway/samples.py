"""Objects that services answer with in these tests."""

from __future__ import annotations

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from loci.agent.v1 import agent_pb2, message_pb2, message_service_pb2, run_pb2
from loci.llm.v1 import model_pb2
from loci.memory.v1 import block_pb2
from loci.tool.v1 import tool_pb2

AGENT_ID = "agent-00000000-0000-4000-8000-00000000000a"
BLOCK_ID = "block-00000000-0000-4000-8000-00000000000b"
TOOL_ID = "tool-00000000-0000-4000-8000-00000000000c"
RUN_ID = "run-00000000-0000-4000-8000-00000000000d"
STEP_ID = "step-00000000-0000-4000-8000-00000000000e"
NOON = Timestamp(seconds=1_764_590_400, nanos=123_456_000)  # 2025-12-01T12:00:00.123456Z


def block(**fields: Any) -> block_pb2.Block:
    """A block called human."""
    given: dict[str, Any] = {"id": BLOCK_ID, "label": "human", "value": "Ada", "limit": 100_000, "version": 1} | fields
    return block_pb2.Block(**given, created_at=NOON, updated_at=NOON)


def tool(number: int = 0, **fields: Any) -> tool_pb2.Tool:
    """A custom tool; `number` makes its id, name and age."""
    given: dict[str, Any] = {
        "id": f"{TOOL_ID[:-2]}{number:02x}",
        "name": f"tool_{number}",
        "tool_type": tool_pb2.TOOL_TYPE_CUSTOM,
        "source_type": "python",
        "source_code": "def f(): ...",
        "json_schema_json": '{"name":"f","parameters":{"type":"object"}}',
        "created_at": Timestamp(seconds=NOON.seconds + number),
    }
    return tool_pb2.Tool(**(given | fields))


def agent(**fields: Any) -> agent_pb2.Agent:
    """An agent with one block and one tool."""
    given: dict[str, Any] = {
        "id": AGENT_ID,
        "name": "Ada's agent",
        "agent_type": agent_pb2.AGENT_TYPE_LETTA_V1_AGENT,
        "system": "Be kind.",
        "model": "loci/demo",
        "embedding": "loci/hash",
        "context_window_limit": 32_000,
        "timezone": "Europe/Berlin",
        "tags": ["a"],
        "created_at": NOON,
        "updated_at": NOON,
        "blocks": [block()],
        "tools": [tool()],
        "message_ids": ["message-1"],
        "recall_passages": 0,
    }
    return agent_pb2.Agent(**(given | fields))


def model(**fields: Any) -> model_pb2.Model:
    """loci/demo."""
    given: dict[str, Any] = {
        "handle": "loci/demo",
        "name": "demo",
        "provider_type": "loci",
        "provider_name": "loci",
        "context_window": 32_000,
        "max_output_tokens": 4_096,
        "display_name": "Demo",
    }
    return model_pb2.Model(**(given | fields))


def embedding_model() -> model_pb2.EmbeddingModel:
    """loci/hash."""
    return model_pb2.EmbeddingModel(
        handle="loci/hash", name="hash", provider_type="loci", provider_name="loci", dimensions=256, batch_size=512
    )


def said(text: str, *, number: int = 1, otid: str = "o-1", **fields: Any) -> message_pb2.Message:
    """Something an agent said; `number` makes its id."""
    return message_pb2.Message(
        id=f"message-{number}",
        date=NOON,
        otid=otid,
        step_id=STEP_ID,
        run_id=RUN_ID,
        assistant_message=message_pb2.AssistantMessage(content=text),
        **fields,
    )


def thought(text: str, *, number: int = 1, otid: str = "o-0", signature: str | None = None) -> message_pb2.Message:
    """Something an agent thought."""
    reasoning = message_pb2.ReasoningMessage(reasoning=text, source="reasoner_model", signature=signature)
    return message_pb2.Message(
        id=f"message-{number}", date=NOON, otid=otid, step_id=STEP_ID, run_id=RUN_ID, reasoning_message=reasoning
    )


def called(*calls: tuple[str, str, str], number: int = 1, otid: str = "o-2") -> message_pb2.Message:
    """Calls an agent made: (id, name, arguments)."""
    made = [message_pb2.ToolCall(tool_call_id=key, name=name, arguments=given) for key, name, given in calls]
    message = message_pb2.ToolCallMessage(tool_calls=made)
    return message_pb2.Message(
        id=f"message-{number}", date=NOON, otid=otid, step_id=STEP_ID, run_id=RUN_ID, tool_call_message=message
    )


def returned(text: str, *, number: int = 2, otid: str = "o-3", call_id: str = "c1") -> message_pb2.Message:
    """What a call returned."""
    one = message_pb2.ToolReturn(
        tool_call_id=call_id, status="success", tool_return=text, stdout=["printed"], name="roll_dice"
    )
    message = message_pb2.ToolReturnMessage(tool_returns=[one])
    return message_pb2.Message(
        id=f"message-{number}",
        date=NOON,
        name="roll_dice",
        otid=otid,
        step_id=STEP_ID,
        run_id=RUN_ID,
        tool_return_message=message,
    )


def event(sequence: int = 0, **fields: Any) -> message_service_pb2.TurnEvent:
    """An event of a turn."""
    return message_service_pb2.TurnEvent(sequence=sequence, **fields)


def attached(run_id: str = RUN_ID) -> message_service_pb2.TurnEvent:
    """The first event."""
    return event(attached=message_service_pb2.RunAttached(run_id=run_id, started=True))


def run(**fields: Any) -> run_pb2.Run:
    """A completed run."""
    given: dict[str, Any] = {
        "id": RUN_ID,
        "agent_id": AGENT_ID,
        "status": run_pb2.RUN_STATUS_COMPLETED,
        "stop_reason": agent_pb2.STOP_REASON_END_TURN,
        "created_at": NOON,
    }
    return run_pb2.Run(**(given | fields))


def turn_end(
    stop_reason: agent_pb2.StopReason.ValueType = agent_pb2.STOP_REASON_END_TURN,
    error: message_service_pb2.TurnError | None = None,
) -> message_service_pb2.TurnEnd:
    """How a turn ends."""
    usage = message_service_pb2.TurnUsage(completion_tokens=3, prompt_tokens=7, total_tokens=10, step_count=1)
    return message_service_pb2.TurnEnd(run=run(), stop_reason=stop_reason, usage=usage, error=error)


def ended(
    sequence: int = 99,
    stop_reason: agent_pb2.StopReason.ValueType = agent_pb2.STOP_REASON_END_TURN,
    error: message_service_pb2.TurnError | None = None,
) -> message_service_pb2.TurnEvent:
    """The last event."""
    return event(sequence, end=turn_end(stop_reason, error))
