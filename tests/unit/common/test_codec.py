"""Dataclass <-> message by the declaration."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest

from loci.agent.v1.group_pb2 import Group
from loci.agent.v1.identity_pb2 import Identity
from loci.tool.v1.tool_pb2 import Tool
from loci.tool.v1.tool_service_pb2 import SearchToolsResponse
from services.common.codec import Codec
from services.common.errors import InvalidArgument

TIME = datetime(2026, 1, 31, 9, 30, 0, 123456, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Some of a group's fields."""

    description: str = "none"
    agent_ids: tuple[UUID, ...] = ()
    manager_agent_id: UUID | None = None
    manager_settings: dict[str, Any] | None = None
    project_id: str | None = None
    template_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Whole(Settings):
    """A group of these."""

    id: UUID
    created_at: datetime


WHOLE = Whole(
    id=UUID(int=1),
    created_at=TIME,
    description="d",
    agent_ids=(UUID(int=2),),
    manager_agent_id=UUID(int=3),
    manager_settings={"a": 1},
    project_id="",
)


def test_there_and_back() -> None:
    codec = Codec(Whole, Group)
    message = codec.encode(WHOLE)
    assert message.id == f"group-{UUID(int=1)}"
    assert message.manager_agent_id == f"agent-{UUID(int=3)}"
    assert message.manager_settings_json == '{"a":1}'
    assert message.HasField("project_id")
    assert codec.decode(message) == WHOLE


def test_what_is_not_set_is_none() -> None:
    settings = Codec(Settings, Group).decode(Group())
    assert (settings.manager_agent_id, settings.project_id, settings.template_id) == (None, None, None)
    assert (settings.agent_ids, settings.manager_settings) == ((), {})


def test_a_draft_has_the_defaults_of_the_dataclass() -> None:
    drafts = Codec(Settings, Group)
    draft = drafts.draft(Group(project_id="p"))
    assert draft.values == Settings(project_id="p", manager_settings={})
    assert "id" not in draft.names
    change = drafts.draft(Group(description="x", project_id="p"), ["description"])
    assert (change.values, change.names) == (Settings(description="x"), frozenset({"description"}))


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (Group(description="x" * 10_001), "description must have at most 10,000 characters, not 10,001"),
        (Group(agent_ids=["group-1"]), "is not a valid id; expected agent-<uuid>"),
        (Group(manager_settings_json="[]"), "manager_settings must be a JSON object, not a list"),
        (Group(manager_settings_json="null"), "manager_settings must be a JSON object, not a NoneType"),
        (Group(manager_settings_json="{"), "manager_settings must be a JSON object; "),
    ],
)
def test_what_breaks_a_rule_is_refused(message: Group, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        Codec(Settings, Group).draft(message)


class Mode(IntEnum):
    """Numbers of SearchMode in the proto."""

    NONE = 0
    TEXT = 2


@dataclass(frozen=True)
class Found:
    """Some of a response's fields."""

    mode: Mode = Mode.NONE


@dataclass(frozen=True)
class Kept:
    """A tool whose JSON is kept as it came."""

    json_schema: str
    metadata: str = "{}"


@pytest.mark.parametrize("mode", Mode)
def test_numbers_stay_numbers(mode: Mode) -> None:
    codec = Codec(Found, SearchToolsResponse)
    message = codec.encode(Found(mode))
    assert int(message.mode) == mode
    assert codec.decode(message).mode is mode


def test_json_that_is_a_text_is_kept_as_it_is() -> None:
    codec = Codec(Kept, Tool)
    kept = Kept('{ "b": 1,  "a": 1.0 }', "{}")
    message = codec.encode(kept)
    assert (message.json_schema_json, message.metadata_json) == (kept.json_schema, "{}")
    assert codec.decode(message) == kept


def test_a_field_that_is_not_declared_is_found_at_once() -> None:
    @dataclass
    class Other:
        colour: str = ""

    with pytest.raises(KeyError, match="colour"):
        Codec(Other, Identity)
    assert Codec(Other, Identity, leave=["colour"]).encode(Other()) == Identity()


def test_a_mask_names_what_can_be_set() -> None:
    drafts = Codec(Settings, Group)
    assert drafts.mask(["description", "manager_settings_json"]) == {"description", "manager_settings"}
    with pytest.raises(InvalidArgument, match="on a group: id, name"):
        drafts.mask(["name", "id"])
