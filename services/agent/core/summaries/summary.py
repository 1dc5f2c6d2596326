"""The forms in which a summary is kept: in a message, or in a block. Pure. Source: LETTA V1 API, compaction."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

import orjson

from services.agent.core.messages import Message, Text
from services.agent.core.window.compaction import CompactionStats, Trigger
from services.agent.core.window.sizes import bytes_for, clip, clip_chars
from services.common.core.storable import storable

# Part of the window that a summary may fill.
SUMMARY_SHARE = 0.15
PREVIOUS = "\n\n--- Previous Summary ---\n\n"
_INTRODUCTION = (
    "Earlier messages of this conversation are not shown any more. This summary stands for them; "
    "conversation_search finds the messages themselves.\n\n"
)


def summary_tokens(window: int) -> int:
    """Returns tokens that a summary may have in a window."""
    return int(window * SUMMARY_SHARE)


def clip_summary(summary: str, chars: int | None, window: int) -> str:
    """Returns a summary as long as the settings and the window allow."""
    return clip(clip_chars(summary.strip(), chars), bytes_for(summary_tokens(window)))


def pack(summary: str, *, at: datetime, stats: CompactionStats) -> str:
    """Returns the text of the message that keeps a summary; `at` is in the agent's time zone."""
    return orjson.dumps(
        {
            "type": "system_alert",
            "message": _INTRODUCTION + storable(summary),
            "time": f"{at:%Y-%m-%d %I:%M:%S %p %Z%z}",
            "compaction_stats": asdict(stats),
        }
    ).decode()


def unpack(text: str) -> tuple[str, CompactionStats | None] | None:
    """Returns the summary in a packed text, and its statistics if it has any; None for any other text.

    Reads what other servers packed, too, with all that they say around their summary.
    """
    try:
        alert = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(alert, dict) or alert.get("type") != "system_alert" or not isinstance(alert.get("message"), str):
        return None
    return alert["message"].removeprefix(_INTRODUCTION), _stats(alert.get("compaction_stats"))


def summary_of(message: Message) -> str:
    """Returns the summary that a message of role summary holds, however it is packed."""
    text = "\n".join(part.text for part in message.parts if isinstance(part, Text))
    unpacked = unpack(text)
    return text if unpacked is None else unpacked[0]


def joined_block(old_value: str, summary: str, limit: int) -> str:
    """Returns the value of a block that collects summaries: the new one before older ones, which are cut at the `limit`
    (characters).
    """
    return f"{summary}{PREVIOUS}{old_value}"[:limit].rstrip() if old_value else summary[:limit]


def _stats(value: Any) -> CompactionStats | None:
    try:
        return CompactionStats(**value | {"trigger": Trigger(value["trigger"])})
    except (TypeError, KeyError, ValueError):
        # Of another release or server.
        return None
