"""Calls of tools outside of a turn <-> protobuf."""

from loci.agent.v1 import agent_service_pb2
from services.agent.core.ports import ToolResult
from services.common.errors import InvalidArgument
from services.common.ids import uuid7

_LONGEST_KEY = 150


def direct_key(text: str) -> str:
    """The caller's part of a call key, minted where there is none. Raises InvalidArgument (CALL_KEY_INVALID)."""
    if len(text) > _LONGEST_KEY or "\x00" in text:
        sentence = f"a call key has at most {_LONGEST_KEY} characters, none of them NUL"
        raise InvalidArgument(sentence, reason="CALL_KEY_INVALID")
    return text or str(uuid7())


def outcome_to_proto(executed: ToolResult) -> agent_service_pb2.RunAgentToolResponse:
    """Returns the outcome of a call."""
    returned = executed.returned
    return agent_service_pb2.RunAgentToolResponse(
        tool_return=returned.text,
        is_error=returned.is_error,
        stdout=returned.stdout,
        stderr=returned.stderr,
        result_json=executed.result,
        sandbox_config_fingerprint=executed.settings,
        changed_memory=bool(executed.edits),
    )
