"""Agents and their other conversations. No I/O."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from cli.importing.mapping import models
from cli.importing.values import Json, Row, as_list, as_object, as_text, dump, public_id, storable
from loci.agent.v1 import agent_pb2
from loci.agent.v1 import transfer_service_pb2 as pb

_TYPES = {name.removeprefix("AGENT_TYPE_").lower(): number for name, number in agent_pb2.AgentType.items() if number}
_RULES = {
    "run_first",
    "continue_loop",
    "exit_loop",
    "required_before_exit",
    "requires_approval",
    "constrain_child_tools",
    "parent_last_tool",
    "conditional",
    "max_count_per_step",
}
_RULE = re.compile(r"tool_rules\[(\d+)\]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_MODES = ("all", "sliding_window", "self_compact_all", "self_compact_sliding_window")
_FORMATS = ("text", "json_object", "json_schema")
_MOST_FILES = 1_000
# Columns that mean something to clients alone.
_ECHOES = ("project_id", "template_id", "base_template_id", "deployment_id", "entity_id")
_LONGEST_TEXT = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachments:
    """The things attached to an agent, by their old ids; tools by their new ones."""

    block_ids: Sequence[str] = ()
    tool_ids: Sequence[str] = ()
    archive_ids: Sequence[str] = ()
    folder_ids: Sequence[str] = ()
    tags: Sequence[str] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)


def agent(row: Row, its: Attachments) -> tuple[pb.ImportedAgent, list[str]]:
    """Returns an agent, and the changes that it had to take."""
    changes = list[str]()
    kind = as_text(row["agent_type"])
    draft = agent_pb2.Agent(
        name=as_text(row["name"]) or "agent",
        description=row["description"],
        agent_type=_TYPES.get(kind, agent_pb2.AGENT_TYPE_LETTA_V1_AGENT),
        system=storable(as_text(row["system"])),
        tags=list(its.tags),
        metadata_json=None if row["metadata_"] is None else dump(as_object(row["metadata_"])),
        timezone=_timezone(row, changes),
        hidden=row["hidden"],
        tool_ids=list(its.tool_ids),
        tool_rules_json=dump(_rules(row, changes)),
        model_settings_json=dump(models.model_settings(row["llm_config"], _format(row["response_format"]))),
        response_format_json=dump(_format(row["response_format"])),
        message_buffer_autoclear=bool(row["message_buffer_autoclear"]),
        enable_sleeptime=row["enable_sleeptime"],
        secrets=dict(its.secrets),
        **{name: row[name] for name in _ECHOES},
    )
    if kind not in _TYPES:
        changes.append(f"its type {kind!r} is not known here; it is a letta_v1_agent now")
    if as_object(row["response_format"]) and not _format(row["response_format"]):
        changes.append(
            f"its response_format is of a type that is not known here: {row['response_format'].get('type')!r}"
        )
    if model := models.chat_handle(row["llm_config"]):
        draft.model = model
    else:
        changes.append("it names no model; it has the default one")
    if embedding := models.embedding_handle(row["embedding_config"]):
        draft.embedding = embedding
    if window := models.context_window(row["llm_config"]):
        draft.context_window_limit = window
    if compaction := _compaction(row["compaction_settings"], changes):
        draft.compaction_settings_json = dump(compaction)
    if type(files := row["max_files_open"]) is int and 0 <= files <= _MOST_FILES:
        draft.max_files_open = files
    if type(chars := row["per_file_view_window_char_limit"]) is int and 0 < chars < 2**31:
        draft.per_file_view_window_char_limit = chars
    imported = pb.ImportedAgent(
        agent_id=public_id("agent", row["id"]),
        agent=draft,
        block_ids=[public_id("block", one) for one in its.block_ids],
        folder_ids=[public_id("source", one) for one in its.folder_ids],
        archive_ids=[public_id("archive", one) for one in its.archive_ids],
    )
    if isinstance(row["created_at"], datetime):
        imported.created_at.FromDatetime(row["created_at"])
    return imported, changes


def conversation(row: Row, block_ids: Sequence[str]) -> tuple[pb.ImportedConversation, list[str]]:
    """Returns a conversation beside the default one, with the copies of blocks that are its own, and the changes that
    it had to take."""
    settings, model = as_object(row["model_settings"]), models.handle(as_text(row["model"]))
    imported = pb.ImportedConversation(
        conversation_id=public_id("conv", row["id"]),
        agent_id=public_id("agent", row["agent_id"]),
        summary=None if row["summary"] is None else storable(row["summary"])[:_LONGEST_TEXT],
        model=model or None,
        model_settings_json=dump(settings) if settings else None,
        isolated_block_ids=[public_id("block", one) for one in block_ids],
    )
    if isinstance(row["created_at"], datetime):
        imported.created_at.FromDatetime(row["created_at"])
    changes = ["it names no model that is known here; it has the agent's"] if row["model"] and not model else []
    if len(row["summary"] or "") > _LONGEST_TEXT:
        changes.append(f"its summary is cut to {_LONGEST_TEXT:,} characters")
    return imported, changes


def drop_refused(draft: agent_pb2.Agent, message: str) -> str:
    """Takes the setting that a refusal names off the agent, and returns its name; empty where that is not possible."""
    rule = _RULE.match(message)
    rules = json.loads(draft.tool_rules_json or "[]")
    if rule is not None and int(rule[1]) < len(rules):
        del rules[int(rule[1])]
        draft.tool_rules_json = dump(rules)
        return rule[0]
    if message.startswith("model_settings") and draft.model_settings_json:
        draft.ClearField("model_settings_json")
        return "model_settings"
    if message.startswith("response_format") and draft.response_format_json:
        draft.ClearField("response_format_json")
        return "response_format"
    if message.startswith("compaction_settings") and draft.compaction_settings_json:
        draft.ClearField("compaction_settings_json")
        return "compaction_settings"
    return ""


def is_variable(name: str) -> bool:
    """Returns whether a secret may have the name."""
    return _VARIABLE.fullmatch(name) is not None


def _timezone(row: Row, changes: list[str]) -> str:
    name = as_text(row["timezone"])
    try:
        ZoneInfo(name or "UTC")
    except (ValueError, OSError, KeyError):
        changes.append(f"its timezone {name[:60]!r} is not known; it has UTC")
        return "UTC"
    return name or "UTC"


def _rules(row: Row, changes: list[str]) -> list[Json]:
    """Returns the rules of types that are known here; `timeout_seconds` and the like stay as they are."""
    rules = [as_object(rule) for rule in as_list(row["tool_rules"])]
    known = [rule for rule in rules if rule.get("type") in _RULES and as_text(rule.get("tool_name"))]
    if kinds := ", ".join(dict.fromkeys(repr(rule.get("type")) for rule in rules if rule not in known)):
        changes.append(f"tool rules of a type that is not known here ({kinds}), or without a tool, are left out")
    return known


def _format(column: object) -> Json:
    response_format = as_object(column)
    return response_format if response_format.get("type") in _FORMATS else {}


def _compaction(column: object, changes: list[str]) -> Json:
    settings = dict(as_object(column))
    if settings.get("mode") not in (None, *_MODES):
        changes.append(f"compaction in mode {settings.pop('mode')!r} is not known here; it has the default one")
    settings["model"] = models.handle(as_text(settings.get("model"))) or None
    if not isinstance(settings.get("model_settings"), dict | None):
        settings["model_settings"] = None
    return settings if as_object(column) else {}
