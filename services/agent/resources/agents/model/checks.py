"""The rules for what clients set on an agent, beyond those of its declaration in agent.proto. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from services.agent.core import model_settings
from services.agent.core.rules.rule_json import rules_from_json, rules_to_json
from services.agent.core.rules.tool_rules import ToolRule
from services.agent.core.summaries.compaction_settings import settings_from_json
from services.agent.resources.agents.model.base_tools import BASE_TOOLS
from services.common.core.refusals import Refused
from services.common.core.storable import parse_storable, storable_name

MOST_TOOLS = 1_000
MOST_RULES = 1_000
_NAME = re.compile(r"[\w '-]{0,256}")
_HANDLE = re.compile(r"[^/\s]+/\S+")
# By the names of AgentSettings; None: the default.
SettingValues = Mapping[str, Any]


def check(values: SettingValues) -> SettingValues:
    """Returns the values as they can be stored: tags sorted, nothing twice.

    Raises Refused (AGENT_INVALID, MODEL_HANDLE_INVALID), naming the field and what is expected.
    """
    _check_words(values)
    _check_settings(values)
    checked = dict(values)
    if values.get("tool_ids"):
        checked["tool_ids"] = tuple(dict.fromkeys(values["tool_ids"]))
        check_tools(checked["tool_ids"])
    if values.get("tags"):
        checked["tags"] = tuple(sorted({storable_name(tag) for tag in values["tags"] if tag}))
    return checked


def check_tools(tool_ids: tuple[UUID, ...]) -> None:
    """Raises Refused (AGENT_INVALID) for more tools than an agent may have."""
    if len(tool_ids) > MOST_TOOLS:
        raise invalid("tool_ids", f"has {len(tool_ids)} tools; an agent has at most {MOST_TOOLS}")


def tool_rules(text: str) -> tuple[ToolRule, ...]:
    """Returns the tool rules in a client's text, each once; an empty text is none. Raises Refused (AGENT_INVALID)."""
    try:
        items = parse_storable(text or "[]")
    except ValueError as error:
        raise invalid("tool_rules", f"must be a JSON array; {error}") from None
    if not isinstance(items, list):
        raise invalid("tool_rules", f"must be a JSON array, not a {type(items).__name__}")
    if len(items) > MOST_RULES:
        raise invalid("tool_rules", f"has {len(items)} rules; an agent has at most {MOST_RULES}")
    try:
        rules = rules_from_json(items)
    except ValueError as error:
        raise Refused("AGENT_INVALID", str(error)) from None
    unique: dict[str, ToolRule] = {}
    for rule, stored in zip(rules, rules_to_json(rules), strict=True):
        unique.setdefault(json.dumps(stored, sort_keys=True), rule)
    return tuple(unique.values())


def invalid(name: str, problem: str) -> Refused:
    """Returns a refusal that names a field."""
    return Refused("AGENT_INVALID", f"{name} {problem}")


def _check_words(values: SettingValues) -> None:
    name, agent_type, timezone = values.get("name"), values.get("agent_type"), values.get("timezone")
    if name is not None and not _NAME.fullmatch(name):
        raise invalid("name", "must have at most 256 characters: letters, digits, spaces, '_', '-' and \"'\"")
    if agent_type not in (None, *BASE_TOOLS):
        raise invalid("agent_type", f"must be one of: {', '.join(BASE_TOOLS)}")
    for field in ("model", "embedding"):
        handle = values.get(field)
        if handle is not None and not _HANDLE.fullmatch(handle):
            sentence = f"{field} must be a handle 'provider/model', not {handle[:80]!r}"
            raise Refused("MODEL_HANDLE_INVALID", sentence)
    if timezone is not None and not _is_timezone(timezone):
        raise invalid("timezone", f"must be an IANA name such as 'Europe/Paris', not {timezone[:80]!r}")


def _check_settings(values: SettingValues) -> None:
    settings = values.get("model_settings") or {}
    if problem := model_settings.problem(settings):
        raise invalid("model_settings", f"cannot be used: {problem}")
    for name, value in (
        ("response_format", values.get("response_format")),
        ("model_settings.response_format", settings.get("response_format")),
    ):
        if not model_settings.is_response_format(value):
            raise invalid(name, f"must be {model_settings.RESPONSE_FORMATS}")
    if compaction_settings := values.get("compaction_settings"):
        try:
            settings_from_json(compaction_settings)
        except ValueError as error:
            raise invalid("compaction_settings", f"cannot be used: {error}") from None


def _is_timezone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # no such zone; a folder of zones; a path
        return False
    return True
