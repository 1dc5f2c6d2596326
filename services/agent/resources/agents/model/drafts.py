"""What clients want to set on an agent, checked: `check(draft)` is the draft as it can be stored. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from services.agent.core import model_settings
from services.agent.core.rules.rule_json import rules_from_json
from services.agent.core.rules.tool_rules import ToolRule
from services.agent.core.summaries.compaction_settings import settings_from_json
from services.agent.resources.agents.model.base_tools import BASE_TOOLS
from services.common.refusals import Refused
from services.common.storable import parsed, storable

MOST_TOOLS = 1_000
MOST_RULES = 1_000
_MOST = 2**31 - 1
# Numbers and what they may be; LETTA V1 API, create agent, and Loci's recall_passages.
_RANGES = {
    "context_window_limit": (1, _MOST),
    "max_files_open": (0, 1_000),
    "per_file_view_window_char_limit": (1, _MOST),
    "recall_passages": (0, 50),
}
_NAME = re.compile(r"[\w '-]{1,256}")
_HANDLE = re.compile(r"[^/\s]+/\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDraft:
    """What a client sets; None: not given. Fields as in AgentSettings."""

    name: str | None = None
    description: str | None = None
    agent_type: str | None = None
    system: str | None = None
    model: str | None = None
    embedding: str | None = None
    model_settings: Mapping[str, Any] | None = None
    response_format: Mapping[str, Any] | None = None
    context_window_limit: int | None = None
    tool_ids: tuple[UUID, ...] = ()
    tool_rules: tuple[ToolRule, ...] | None = None
    compaction_settings: Mapping[str, Any] | None = None
    message_buffer_autoclear: bool | None = None
    max_files_open: int | None = None
    per_file_view_window_char_limit: int | None = None
    recall_passages: int | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    timezone: str | None = None
    hidden: bool | None = None
    project_id: str | None = None
    enable_sleeptime: bool | None = None
    template_id: str | None = None
    base_template_id: str | None = None
    deployment_id: str | None = None
    entity_id: str | None = None


def check(draft: AgentDraft) -> AgentDraft:
    """The draft as it can be stored: NUL characters left out, tags sorted, nothing twice.

    Raises Refused (AGENT_INVALID), naming the field and what is expected.
    """
    draft = replace(draft, **{each.name: _storable(getattr(draft, each.name)) for each in fields(draft)})
    _check_words(draft)
    for name, (least, most) in _RANGES.items():
        value = getattr(draft, name)
        if value is not None and not least <= value <= most:
            raise invalid(name, f"must be at least {least} and at most {most}, not {value}")
    _check_settings(draft)
    tool_ids = tuple(dict.fromkeys(draft.tool_ids))
    check_tools(tool_ids)
    return replace(draft, tool_ids=tool_ids, tags=tuple(sorted({tag for tag in draft.tags if tag})))


def check_tools(tool_ids: tuple[UUID, ...]) -> None:
    """Raises Refused (AGENT_INVALID) for more tools than an agent may have."""
    if len(tool_ids) > MOST_TOOLS:
        raise invalid("tool_ids", f"has {len(tool_ids)} tools; an agent has at most {MOST_TOOLS}")


def json_object(name: str, text: str) -> Mapping[str, Any]:
    """The JSON object in a client's text; an empty text is an empty one. Raises Refused (AGENT_INVALID)."""
    found: Mapping[str, Any] = _json(name, text or "{}", dict, "object")
    return found


def tool_rules(text: str) -> tuple[ToolRule, ...]:
    """The tool rules in a client's text; an empty text is none. Raises Refused (AGENT_INVALID), naming the rule."""
    items = _json("tool_rules", text or "[]", list, "array")
    if len(items) > MOST_RULES:
        raise invalid("tool_rules", f"has {len(items)} rules; an agent has at most {MOST_RULES}")
    try:
        return rules_from_json(items)
    except ValueError as error:
        raise Refused("AGENT_INVALID", str(error)) from None


def invalid(name: str, problem: str) -> Refused:
    """A refusal that names a field."""
    return Refused("AGENT_INVALID", f"{name} {problem}")


def _check_words(draft: AgentDraft) -> None:
    if draft.name is not None and not _NAME.fullmatch(draft.name):
        raise invalid("name", "must have 1 to 256 characters: letters, digits, spaces, '_', '-' and \"'\"")
    if draft.agent_type not in (None, *BASE_TOOLS):
        raise invalid("agent_type", f"must be one of: {', '.join(BASE_TOOLS)}")
    for name, handle in (("model", draft.model), ("embedding", draft.embedding)):
        if handle is not None and not _HANDLE.fullmatch(handle):
            raise invalid(name, f"must be a handle 'provider/model', not {handle[:80]!r}")
    if draft.timezone is not None and not _is_timezone(draft.timezone):
        raise invalid("timezone", f"must be an IANA name such as 'Europe/Paris', not {draft.timezone[:80]!r}")


def _check_settings(draft: AgentDraft) -> None:
    settings = draft.model_settings or {}
    if wrong := model_settings.problem(settings):
        raise invalid("model_settings", f"cannot be used: {wrong}")
    for name, value in (
        ("response_format", draft.response_format),
        ("model_settings.response_format", settings.get("response_format")),
    ):
        if not _is_response_format(value):
            expected = '{"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}'
            raise invalid(name, f'must be {{"type": "text"}}, {{"type": "json_object"}} or {expected}')
    if draft.compaction_settings:
        try:
            settings_from_json(draft.compaction_settings)
        except ValueError as error:
            raise invalid("compaction_settings", f"cannot be used: {error}") from None


def _is_response_format(value: Any) -> bool:
    """Whether models can be asked to answer so; null and an empty object ask for nothing."""
    match value:
        case None | {"type": "text" | "json_object"}:
            return True
        case {"type": "json_schema", "json_schema": {"schema": dict()}}:
            return True
        case dict():
            return not value
    return False


def _json(name: str, text: str, wanted: type, called: str) -> Any:
    try:
        value = parsed(text)
    except ValueError as error:
        raise invalid(name, f"must be a JSON {called}; {error}") from None
    if not isinstance(value, wanted):
        raise invalid(name, f"must be a JSON {called}, not a {type(value).__name__}")
    return value


def _is_timezone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # no such zone; a folder of zones; a path
        return False
    return True


def _storable(value: Any) -> Any:
    """Texts with what can be stored; for JSON see `json_object`."""
    match value:
        case str():
            return storable(value)
        case tuple():
            return tuple(map(_storable, value))
        case _:
            return value
