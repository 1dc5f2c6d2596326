"""Facts as they are stored: a kind, a schema version and a body. Pure.

Messages are rows of their own and are not repeated in the body; the reader hands them back by fact number.
Facts of the previous release must stay readable: `from_row` judges by `schema_version`.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from services.agent.messages import Message
from services.agent.turn import (
    SCHEMA_VERSION,
    Fact,
    Failure,
    ModelFailed,
    ModelReplied,
    RunEnded,
    Settings,
    StopReason,
    ToolsReturned,
    Usage,
    UserSpoke,
)


def to_row(fact: Fact) -> tuple[str, int, dict[str, Any]]:
    """Kind, schema version and body."""
    match fact:
        case UserSpoke():
            return "user_spoke", SCHEMA_VERSION, {"settings": settings_to_json(fact.settings)}
        case ModelReplied():
            body = {
                "step": fact.step,
                "attempt": fact.attempt,
                "usage": usage_to_json(fact.usage),
                "finish": fact.finish,
            }
            body["message_id"] = str(fact.message.id)
            body["at"] = fact.message.created_at.isoformat()
            return "model_replied", SCHEMA_VERSION, body
        case ModelFailed():
            body = {"step": fact.step, "attempt": fact.attempt, "failure": failure_to_json(fact.failure)}
            return "model_failed", SCHEMA_VERSION, body
        case ToolsReturned():
            return "tools_returned", SCHEMA_VERSION, {"step": fact.step}
        case RunEnded():
            return (
                "run_ended",
                SCHEMA_VERSION,
                {
                    "stop_reason": fact.stop_reason.value,
                    "failure": None if fact.failure is None else failure_to_json(fact.failure),
                },
            )
    assert_never(fact)


def from_row(kind: str, schema_version: int, body: dict[str, Any], messages: Sequence[Message]) -> Fact:
    """The fact, with its messages in order. Raises ValueError for one that a newer release wrote."""
    if schema_version > SCHEMA_VERSION:
        raise ValueError(f"fact {kind} has schema version {schema_version}; this release reads up to {SCHEMA_VERSION}")
    match kind:
        case "user_spoke":
            return UserSpoke(settings_from_json(body["settings"]), tuple(messages))
        case "model_replied":
            return ModelReplied(
                body["step"],
                body["attempt"],
                messages[0] if messages else _silence(body),
                Usage(**body["usage"]),
                body["finish"],
            )
        case "model_failed":
            return ModelFailed(body["step"], body["attempt"], failure_from_json(body["failure"]))
        case "tools_returned":
            return ToolsReturned(body["step"], messages[0])
        case "run_ended":
            failure = body["failure"]
            return RunEnded(StopReason(body["stop_reason"]), None if failure is None else failure_from_json(failure))
    raise ValueError(f"no fact is called {kind!r}")


def settings_to_json(settings: Settings) -> dict[str, Any]:
    """The stored form of settings."""
    return asdict(settings) | {"tool_ids": [str(tool_id) for tool_id in settings.tool_ids]}


def settings_from_json(stored: dict[str, Any]) -> Settings:
    """Settings from their stored form."""
    return Settings(**stored | {"tool_ids": tuple(UUID(tool_id) for tool_id in stored["tool_ids"])})


def usage_to_json(usage: Usage) -> dict[str, int]:
    """The stored form of usage; what no provider said is left out."""
    return {name: value for name, value in asdict(usage).items() if value is not None}


def failure_to_json(failure: Failure) -> dict[str, str]:
    """The stored form of a failure."""
    return asdict(failure) | {"stop_reason": failure.stop_reason.value}


def failure_from_json(stored: dict[str, str]) -> Failure:
    """A failure from its stored form."""
    return Failure(**stored | {"stop_reason": StopReason(stored["stop_reason"])})  # type: ignore[arg-type]


def _silence(body: dict[str, Any]) -> Message:
    return Message(UUID(body["message_id"]), "assistant", (), datetime.fromisoformat(body["at"]))
