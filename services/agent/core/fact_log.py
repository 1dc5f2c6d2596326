"""Facts as they are stored: a kind, a schema version and a body. Pure.

Messages are rows of their own and are not repeated in the body; the reader hands them back by fact number.
Facts of the previous release must stay readable: `from_row` judges by `schema_version`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from services.agent.core.facts import (
    FACT_VERSION,
    FIRST_FACT_VERSION,
    SCHEMA_VERSION,
    ClientSkill,
    ClientTool,
    Compacted,
    ContextOverflowed,
    Fact,
    Failure,
    MemberSpoke,
    ModelFailed,
    ModelReplied,
    Options,
    Reminded,
    RunEnded,
    Settings,
    StopReason,
    ToolsReturned,
    Usage,
    UserSpoke,
)
from services.agent.core.groups.words import ENDING
from services.agent.core.messages import Message
from services.agent.core.releases import NewerRelease
from services.agent.core.rules.rule_json import rules_from_json, rules_to_json
from services.agent.core.rules.tool_rules import ExitLoop
from services.agent.core.window.compaction import CompactionStats, Trigger

# The settings that a fact holds; the rest of them are the request's options.
_STORED = tuple(each.name for each in fields(Settings) if each.name != "options")
_USAGE = tuple(each.name for each in fields(Usage))


def to_row(fact: Fact) -> tuple[str, int, dict[str, Any]]:
    """Returns kind, schema version and body."""
    kind, body = _kind_and_body(fact)
    return kind, FIRST_FACT_VERSION if isinstance(fact, UserSpoke) else FACT_VERSION, body


def from_row(kind: str, schema_version: int, body: dict[str, Any], messages: Sequence[Message]) -> Fact:
    """Returns the fact, with its messages in order. Raises NewerRelease."""
    if schema_version > SCHEMA_VERSION:
        sentence = f"fact {kind} has schema version {schema_version}; this release reads up to {SCHEMA_VERSION}"
        raise NewerRelease(sentence)
    match kind:
        case "user_spoke":
            return UserSpoke(settings_from_body(body), tuple(messages))
        case "model_replied":
            return ModelReplied(
                body["step"],
                body["attempt"],
                messages[0] if messages else _reply_without_parts(body),
                Usage(**body["usage"]),
                body["finish"],
                tuple(body.get("offered", ())),
                body.get("outputs"),
                body.get("handle", ""),
            )
        case "model_failed":
            return ModelFailed(body["step"], body["attempt"], failure_from_json(body["failure"]))
        case "context_overflowed":
            return ContextOverflowed(**body)
        case "compacted":
            return Compacted(
                Trigger(body["trigger"]),
                messages[0] if messages else None,
                None if body["kept_from"] is None else UUID(body["kept_from"]),
                CompactionStats(**body["stats"] | {"trigger": Trigger(body["stats"]["trigger"])}),
                Usage(**body["usage"]),
            )
        case "tools_returned":
            return ToolsReturned(body["step"], messages[0], body.get("invalid", False))
        case "member_spoke":
            return MemberSpoke(
                body["step"],
                UUID(body["agent_id"]),
                messages[0] if messages else _reply_without_parts(body),
                Usage(**body["usage"]),
                body["chosen"],
                body["problem"],
            )
        case "reminded":
            return Reminded(messages[0])
        case "run_ended":
            failure = body["failure"]
            return RunEnded(StopReason(body["stop_reason"]), None if failure is None else failure_from_json(failure))
    raise NewerRelease(f"no fact is called {kind!r} in this release")


def settings_to_json(settings: Settings) -> dict[str, Any]:
    """Returns the body of a run's first fact."""
    stored = {name: getattr(settings, name) for name in _STORED}
    stored |= {"tool_ids": [str(tool_id) for tool_id in settings.tool_ids]}
    stored |= {"tool_rules": rules_to_json(settings.tool_rules)}
    return {"settings": stored, "options": options_to_json(settings.options)}


def settings_from_body(body: Mapping[str, Any]) -> Settings:
    """Returns the settings in the body of a run's first fact; what the request's options say wins. Where the system
    prompt is only named it is empty.

    Raises NewerRelease.
    """
    stored = {"system": ""} | body["settings"]
    # The first release had the step limit among the settings, and no options.
    old = {"max_steps": stored.pop("max_steps")} if "max_steps" in stored else {}
    options = options_from_json(body.get("options", old))
    stored |= {
        "tool_ids": tuple(UUID(tool_id) for tool_id in stored["tool_ids"]),
        "tool_rules": (
            *rules_from_json(stored.get("tool_rules", [])),
            *(ExitLoop(tool.name) for tool in options.group_tools if tool.name in ENDING),
        ),
        "options": options,
    }
    overrides = {"model": options.model, "system": options.system, "response_format": options.response_format}
    # Of another model's window no more is used than of the agent's own, nor than was learned of it.
    window = min(stored["context_window_limit"], options.context_window_limit or 2**31)
    present = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**stored | present | {"context_window_limit": window})
    except TypeError as error:
        raise NewerRelease(f"a setting is one that this release does not know: {error}") from error


def options_to_json(options: Options) -> dict[str, Any]:
    """Returns the stored form of a request's options; what is as usual is left out."""
    usual = Options()
    changed = {each.name: getattr(options, each.name) for each in fields(Options)}
    changed = {name: value for name, value in changed.items() if value != getattr(usual, name)}
    for name in ("client_tools", "client_skills", "group_tools"):
        if name in changed:
            changed[name] = [asdict(one) for one in changed[name]]
    return {"max_steps": options.max_steps} | changed


def options_from_json(stored: Mapping[str, Any]) -> Options:
    """Returns a request's options from their stored form. Raises NewerRelease."""
    values = dict(stored)
    for name in ("client_tools", "group_tools"):
        if name in values:
            values[name] = tuple(ClientTool(**one) for one in values[name])
    if "client_skills" in values:
        values["client_skills"] = tuple(ClientSkill(**one) for one in values["client_skills"])
    if "stop" in values:
        values["stop"] = tuple(values["stop"])
    try:
        return Options(**values)
    except TypeError as error:
        raise NewerRelease(f"an option is one that this release does not know: {error}") from error


def usage_to_json(usage: Usage) -> dict[str, int]:
    """Returns the stored form of usage; what no provider said is left out."""
    return {name: value for name in _USAGE if (value := getattr(usage, name)) is not None}


def failure_to_json(failure: Failure) -> dict[str, str]:
    """Returns the stored form of a failure."""
    return asdict(failure) | {"stop_reason": failure.stop_reason.value}


def failure_from_json(stored: dict[str, str]) -> Failure:
    """Returns a failure from its stored form."""
    return Failure(**stored | {"stop_reason": StopReason(stored["stop_reason"])})  # type: ignore[arg-type]


def _kind_and_body(fact: Fact) -> tuple[str, dict[str, Any]]:
    match fact:
        case UserSpoke():
            return "user_spoke", settings_to_json(fact.settings)
        case ModelReplied():
            return "model_replied", _reply_body(fact)
        case ModelFailed():
            body = {"step": fact.step, "attempt": fact.attempt, "failure": failure_to_json(fact.failure)}
            return "model_failed", body
        case ContextOverflowed():
            return "context_overflowed", asdict(fact)
        case Compacted():
            return "compacted", {
                "trigger": fact.trigger.value,
                "kept_from": None if fact.kept_from is None else str(fact.kept_from),
                "stats": asdict(fact.stats),
                "usage": usage_to_json(fact.usage),
            }
        case ToolsReturned():
            return "tools_returned", {"step": fact.step} | ({"invalid": True} if fact.invalid else {})
        case Reminded():
            return "reminded", {}
        case MemberSpoke():
            return "member_spoke", {
                "step": fact.step,
                "agent_id": str(fact.agent_id),
                "usage": usage_to_json(fact.usage),
                "chosen": fact.chosen,
                "problem": fact.problem,
                "message_id": str(fact.message.id),
                "at": fact.message.created_at.isoformat(),
            }
        case RunEnded():
            failure = None if fact.failure is None else failure_to_json(fact.failure)
            return "run_ended", {"stop_reason": fact.stop_reason.value, "failure": failure}
    assert_never(fact)


def _reply_body(fact: ModelReplied) -> dict[str, Any]:
    body: dict[str, Any] = {"step": fact.step, "attempt": fact.attempt, "finish": fact.finish}
    body |= {"usage": usage_to_json(fact.usage)}
    body |= {"message_id": str(fact.message.id), "at": fact.message.created_at.isoformat()}
    if fact.offered:
        body["offered"] = list(fact.offered)
    if fact.handle:
        body["handle"] = fact.handle
    return body if fact.outputs is None else body | {"outputs": fact.outputs}


def _reply_without_parts(body: dict[str, Any]) -> Message:
    return Message(UUID(body["message_id"]), "assistant", (), datetime.fromisoformat(body["at"]))
