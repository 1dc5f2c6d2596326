"""The tables of the schema `agent` that resources read and write, for SQLAlchemy.

The migrations make them (with keys, defaults and indexes); a test compares these columns with theirs. What a dataclass
declares is taken from it.
"""

from collections.abc import Collection, Mapping
from dataclasses import fields
from datetime import datetime
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from services.agent.resources.access.model import ApiKeySettings
from services.agent.resources.agents.model.settings import AgentSettings
from services.agent.resources.conversations.model import ConversationSettings
from services.agent.resources.groups.model import GroupSettings
from services.agent.resources.identities.model import IdentitySettings
from services.agent.resources.templates.model import Template

metadata = MetaData(schema="agent")
# Of a field or of the items of a tuple; all else is JSON.
_TYPES: Mapping[Any, Any] = {
    str: Text,
    int: Integer,
    bool: Boolean,
    UUID: Uuid,
    datetime: DateTime(timezone=True),
}


def _table(name: str, key: str, *columns: Column[Any]) -> Table:
    """Returns a table whose primary key is organization_id and the columns named in `key`."""
    keys = {"organization_id", *key.split()}
    for column in columns:
        column.primary_key = column.name in keys
    return Table(name, metadata, *columns)


def _of(dataclass: type[Any], *, leave: Collection[str] = ()) -> list[Column[Any]]:
    """Returns a column for each field of a dataclass, but for those in `leave`."""
    hints = get_type_hints(dataclass)
    return [
        Column(each.name, _type(hints[each.name]), nullable=NoneType in get_args(hints[each.name]))
        for each in fields(dataclass)
        if each.name not in leave
    ]


def _type(hint: Any) -> Any:
    arguments = get_args(hint)
    if NoneType in arguments:
        return _type(next(each for each in arguments if each is not NoneType))
    if get_origin(hint) is tuple and arguments[0] in _TYPES:
        return ARRAY(_TYPES[arguments[0]])
    return _TYPES.get(hint) or JSONB(none_as_null=True)


def _id(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Uuid, nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Text, nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Integer, nullable=nullable)


def _long(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, BigInteger, nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


def _flag(name: str) -> Column[Any]:
    return Column(name, Boolean, nullable=False)


def _json(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, JSONB(none_as_null=True), nullable=nullable)


def _bytes(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, LargeBinary, nullable=nullable)


agents = _table(
    "agents",
    "id",
    _id("organization_id"),
    _id("id"),
    _long("version"),
    *_of(AgentSettings),
    _id("created_by_id"),
    _id("last_updated_by_id"),
    _time("created_at"),
    _time("updated_at"),
    _time("deleted_at", nullable=True),
)

organizations = _table(
    "organizations",
    "",
    _id("organization_id"),
    _text("name"),
    _time("created_at"),
    _time("deleted_at", nullable=True),
)

users = _table(
    "users",
    "id",
    _id("organization_id"),
    _id("id"),
    _text("name"),
    _time("created_at"),
    _time("deleted_at", nullable=True),
)

api_keys = _table(
    "api_keys",
    "id",
    _id("organization_id"),
    _id("id"),
    _id("user_id"),
    *_of(ApiKeySettings, leave=("user_id",)),
    _text("hint"),
    _id("created_by_id"),
    _time("created_at"),
    _time("last_used_at", nullable=True),
)

client_tokens = _table(
    "client_tokens",
    "id",
    _id("organization_id"),
    _id("id"),
    _id("user_id"),
    _text("hostname"),
    _json("policy"),
    _time("created_at"),
    _time("expires_at"),
    _id("key_id", nullable=True),
)

identities = _table(
    "identities",
    "id",
    _id("organization_id"),
    _id("id"),
    *_of(IdentitySettings, leave=("agent_ids", "block_ids")),
    _id("created_by_id"),
    _id("last_updated_by_id"),
    _time("created_at"),
    _time("updated_at"),
)

agent_identities = _table(
    "agent_identities",
    "agent_id identity_id",
    _id("organization_id"),
    _id("agent_id"),
    _id("identity_id"),
    _time("attached_at"),
)

groups = _table(
    "groups",
    "id",
    _id("organization_id"),
    _id("id"),
    *_of(GroupSettings, leave=("agent_ids",)),
    _id("created_by_id"),
    _id("last_updated_by_id"),
    _time("created_at"),
    _time("updated_at"),
)

group_agents = _table(
    "group_agents",
    "group_id agent_id",
    _id("organization_id"),
    _id("group_id"),
    _id("agent_id"),
    _number("position"),
)

schedules = _table(
    "schedules",
    "id",
    _id("organization_id"),
    _id("id"),
    _id("agent_id"),
    _id("user_id"),
    Column("schema_version", SmallInteger, nullable=False),
    _json("input"),
    _text("cron", nullable=True),
    _text("timezone"),
    _time("due_at"),
    _time("next_at", nullable=True),
    Column("attempts", SmallInteger, nullable=False),
    _time("last_at", nullable=True),
    _id("last_run_id", nullable=True),
    _text("last_error", nullable=True),
    _time("created_at"),
    _json("ceiling", nullable=True),
)

devices = _table(
    "devices",
    "id",
    _id("organization_id"),
    _id("id"),
    _text("device_id"),
    _text("name"),
    _id("user_id"),
    _text("source"),
    _id("connection_id"),
    _time("connected_at", nullable=True),
    _time("heartbeat_at", nullable=True),
    _text("current_mode", nullable=True),
    _json("metadata"),
    _time("first_seen_at"),
    _time("last_seen_at"),
)

device_messages = _table(
    "device_messages",
    "device_id id",
    _id("organization_id"),
    _id("device_id"),
    _id("id"),
    _json("body"),
    _time("created_at"),
)

templates = _table("templates", "id", _id("organization_id"), *_of(Template), _id("created_by_id"))

template_versions = _table(
    "template_versions",
    "template_id version",
    _id("organization_id"),
    _id("template_id"),
    _number("version"),
    _json("agent_file"),
    _text("message", nullable=True),
    _id("created_by_id"),
    _time("created_at"),
)

conversations = _table(
    "conversations",
    "id",
    _id("organization_id"),
    _id("id"),
    _id("agent_id"),
    *_of(ConversationSettings, leave=("last_message_at",)),
    Column("isolated_labels", ARRAY(Text), nullable=False),
    _id("created_by_id"),
    _id("last_updated_by_id", nullable=True),
    _time("created_at"),
    _time("updated_at"),
    _time("deleted_at", nullable=True),
)

conversation_heads = _table(
    "conversation_heads",
    "conversation_id",
    _id("organization_id"),
    _id("conversation_id"),
    _id("log_id"),
    _long("next_seq"),
    _id("active_run_id", nullable=True),
    _number("waiting"),
    _number("window_ordinal"),
    _long("window_seq"),
    _bytes("prompt_hash", nullable=True),
    _json("prompt_versions", nullable=True),
    _id("summary_id", nullable=True),
    _id("pending_message_id", nullable=True),
    _time("approval_due", nullable=True),
    _time("last_message_at", nullable=True),
    _number("estimated_tokens"),
    _number("reported_tokens"),
)

conversation_segments = _table(
    "conversation_segments",
    "conversation_id ordinal",
    _id("organization_id"),
    _id("conversation_id"),
    _number("ordinal"),
    _id("log_id"),
    _long("from_seq"),
    _long("to_seq", nullable=True),
)

conversation_line = _table(
    "conversation_line",
    "conversation_id run_id",
    _id("organization_id"),
    _id("conversation_id"),
    _id("run_id"),
    _flag("front"),
    Column("schema_version", SmallInteger, nullable=False),
    _json("input"),
    _time("entered_at"),
)

runs = _table(
    "runs",
    "id",
    _id("organization_id"),
    _id("id"),
    _id("agent_id"),
    _id("conversation_id"),
    _id("user_id"),
    _text("status"),
    _text("stop_reason", nullable=True),
    _flag("background"),
    _id("worker_id", nullable=True),
    _id("home_id"),
    _number("fence"),
    _number("facts"),
    _flag("cancel_requested"),
    _time("deadline"),
    Column("ancestors", ARRAY(Uuid), nullable=False),
    _json("ceiling", nullable=True),
    _bytes("request_hash", nullable=True),
    _json("usage"),
    _json("error", nullable=True),
    _time("created_at"),
    _time("started_at", nullable=True),
    _time("first_token_at", nullable=True),
    _time("completed_at", nullable=True),
    _json("options"),
    _time("callback_sent_at", nullable=True),
    Column("callback_status_code", Integer, nullable=True),
    _text("callback_error", nullable=True),
)

steps = _table(
    "steps",
    "id",
    _id("organization_id"),
    _id("id"),
    _id("run_id"),
    _id("agent_id"),
    _number("number"),
    _text("status"),
    _text("stop_reason", nullable=True),
    _text("model_handle"),
    _number("attempts"),
    _number("context_window_limit"),
    _json("usage"),
    _json("error", nullable=True),
    _bytes("prompt_hash", nullable=True),
    _json("block_versions"),
    _text("trace_id", nullable=True),
    _time("created_at"),
    _time("completed_at", nullable=True),
    _json("metrics"),
    _text("feedback", nullable=True),
    Column("tags", ARRAY(Text), nullable=False),
    _text("tid", nullable=True),
)

provider_traces = _table(
    "provider_traces",
    "step_id",
    _id("organization_id"),
    _id("step_id"),
    _id("run_id"),
    _id("agent_id"),
    _text("trace"),
    _time("created_at"),
)

messages = _table(
    "messages",
    "log_id seq",
    _id("organization_id"),
    _id("log_id"),
    _long("seq"),
    _id("id"),
    _id("agent_id"),
    _id("conversation_id"),
    _id("run_id", nullable=True),
    _id("step_id", nullable=True),
    Column("fact", Integer, nullable=True),
    _text("role"),
    _json("content"),
    _text("name", nullable=True),
    _text("otid", nullable=True),
    _text("sender_id", nullable=True),
    Column("search", TSVECTOR, nullable=True),
    _time("created_at"),
    Column("search_more", ARRAY(TSVECTOR), nullable=True),
)

# What `rows.message_from_row` reads, and their places; not what they are searched by.
MESSAGE_COLUMNS = tuple(column for column in messages.c if column.name not in ("search", "search_more"))

message_revisions = _table(
    "message_revisions",
    "message_id number",
    _id("organization_id"),
    _id("message_id"),
    _number("number"),
    _json("content"),
    _id("replaced_by_id"),
    _time("replaced_at"),
)

compiled_prompts = _table(
    "compiled_prompts",
    "agent_id hash",
    _id("organization_id"),
    _id("agent_id"),
    _bytes("hash"),
    _text("text"),
    _time("created_at"),
)

outbox = _table(
    "outbox",
    "id",
    _id("organization_id"),
    _id("id"),
    _text("kind"),
    _id("subject_id"),
    _json("payload"),
    _time("not_before"),
    _number("attempts"),
    _text("last_error", nullable=True),
    _time("created_at"),
)
