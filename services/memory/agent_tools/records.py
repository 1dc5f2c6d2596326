"""What is kept under the key of a call."""

from hashlib import sha256

from services.common.errors import FailedPrecondition
from services.memory.agent_tools.model import CallRecord, ToolCall


def refuse_another(record: CallRecord, arguments_hash: bytes) -> None:
    """Raises FailedPrecondition (CALL_KEY_REUSED) unless the record answers this question."""
    if record.arguments_hash != arguments_hash:
        raise FailedPrecondition(
            f"the call key {record.call_key!r} was used for another call", reason="CALL_KEY_REUSED"
        )


def record_of(call: ToolCall, told: str, *, is_error: bool) -> CallRecord:
    """The call and what the model is told."""
    return CallRecord(
        call_key=call.call_key,
        agent_id=call.agent_id,
        tool_name=call.tool_name,
        arguments_hash=fingerprint(call),
        tool_return=told,
        is_error=is_error,
    )


def fingerprint(call: ToolCall) -> bytes:
    """Of what is asked: calls of one key ask the same."""
    return sha256("\n".join((call.tool_name, str(call.agent_id), call.arguments_json)).encode()).digest()
