"""The answers of tool calls: what a model is told, and what is kept under the key of a call."""

import json
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from services.common.errors import FailedPrecondition
from services.memory.agent_tools.model import CallRecord, ToolCall
from services.memory.search.service import SearchResult


def check_same_call(record: CallRecord, arguments_hash: bytes) -> None:
    """Raises FailedPrecondition (CALL_KEY_REUSED) unless the record answers this question."""
    if record.arguments_hash != arguments_hash:
        raise FailedPrecondition(
            f"the call key {record.call_key!r} was used for another call", reason="CALL_KEY_REUSED"
        )


def record_of(call: ToolCall, answer: str, *, is_error: bool) -> CallRecord:
    """Returns the call and what the model is told."""
    return CallRecord(
        call_key=call.call_key,
        agent_id=call.agent_id,
        tool_name=call.tool_name,
        arguments_hash=fingerprint(call),
        tool_return=answer,
        is_error=is_error,
    )


def fingerprint(call: ToolCall) -> bytes:
    """Returns the hash of the question: calls of one key ask the same."""
    return sha256("\n".join((call.tool_name, str(call.agent_id), call.arguments_json)).encode()).digest()


def zone_of(name: str) -> tzinfo:
    """Returns the timezone of that IANA name; UTC where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def _local(moment: datetime, zone: tzinfo) -> datetime:
    try:
        return moment.astimezone(zone)
    except OverflowError:  # at the ends of the calendar
        return moment


def render_result(result: SearchResult, zone: tzinfo) -> str:
    """Returns what the model reads: a JSON object of count, results (id, timestamp, content, tags), perhaps a note."""
    results = [
        {
            "id": f"passage-{hit.passage.id}",
            "timestamp": _local(hit.passage.created_at, zone).isoformat(timespec="seconds"),
            "content": hit.passage.text,
            "tags": list(hit.passage.tags),
        }
        for hit in result.hits
    ]
    answer: dict[str, object] = {"count": len(results), "results": results}
    if result.without_vectors:
        models = " and ".join(result.without_vectors)
        answer["note"] = f"{models} could not be reached, so this was found by words alone; other words may find more."
    return json.dumps(answer, ensure_ascii=False)
