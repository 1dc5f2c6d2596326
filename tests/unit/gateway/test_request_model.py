"""Request bodies derived from the declaration of a resource."""

from typing import Any, Literal

import pytest
from pydantic import ValidationError

from gateway.rest.body import sent_fields
from gateway.rest.request_model import RequestModel
from loci.agent.v1.group_pb2 import Group
from loci.agent.v1.identity_pb2 import Identity
from services.common.fields import When


class NewIdentity(RequestModel, of=Identity, when=When.CREATION):
    """A body of a creation."""


class ChangedIdentity(RequestModel, of=Identity, when=When.CHANGE, leave=("block_ids",)):
    """A body of a change."""

    # Takes the place of the derived one.
    identity_type: Literal["user"] | None = None


ADA = {"identifier_key": "ada", "name": "Ada", "identity_type": "user"}


def test_a_body_has_what_a_client_may_set_then() -> None:
    assert set(NewIdentity.model_fields) == {
        *("identifier_key", "name", "identity_type", "properties", "project_id", "agent_ids", "block_ids")
    }
    assert set(ChangedIdentity.model_fields) == {
        *("identifier_key", "name", "identity_type", "properties", "agent_ids")
    }


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"name": None}, "name"),
        ({"name": 5}, "name"),
        ({"identity_type": "robot"}, "identity_type"),
        ({"agent_ids": "agent-1"}, "agent_ids"),
        ({"properties": {}}, "properties"),
    ],
)
def test_a_creation_is_checked(change: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError) as caught:
        NewIdentity.model_validate(ADA | change)
    assert [each["loc"][0] for each in caught.value.errors()] == [place]


def test_what_is_required_at_creation_is_optional_in_a_change() -> None:
    with pytest.raises(ValidationError) as caught:
        NewIdentity.model_validate({})
    assert {each["loc"][0] for each in caught.value.errors()} == {"identifier_key", "name", "identity_type"}
    assert sent_fields(ChangedIdentity.model_validate({"name": None})) == {}
    with pytest.raises(ValidationError):
        ChangedIdentity.model_validate({"identity_type": "org"})


def test_the_message_and_the_mask_have_what_was_sent() -> None:
    body = NewIdentity.model_validate(ADA | {"properties": [{"key": "a"}], "block_ids": None, "unknown": 1})
    expected = Identity(
        identifier_key="ada", name="Ada", identity_type="user", properties_json='[{"key":"a"}]', agent_ids=["agent-1"]
    )
    assert body.message(agent_ids=["agent-1"]) == expected
    assert body.mask(leave={"name"}).paths == ["identifier_key", "identity_type", "properties_json"]


def test_a_number_has_its_bounds() -> None:
    class Members(RequestModel, of=Group, when=When.CHANGE):
        """A body of a change."""

    assert Members.model_validate({"hidden": True}).message() == Group(hidden=True)
    assert Members.model_json_schema()["properties"]["manager_type"]["anyOf"][0]["enum"][0] == "round_robin"
