"""Identities and groups between REST and protobuf."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gateway.resources.groups import requests as groups
from gateway.resources.groups.responses import group
from gateway.resources.identities import requests as identities
from gateway.rest.convert import to_rest
from loci.agent.v1 import group_pb2, identity_pb2

ADA = {"identifier_key": "ada", "name": "Ada", "identity_type": "user"}


def test_an_identity_without_anything() -> None:
    assert to_rest(identity_pb2.Identity(id="identity-1", identity_type="org")) == {
        "id": "identity-1",
        "identifier_key": "",
        "name": "",
        "identity_type": "org",
        "properties": [],
        "project_id": None,
        "agent_ids": [],
        "block_ids": [],
    }


def test_a_groups_settings_stand_beside_its_own_fields() -> None:
    message = group_pb2.Group(id="group-1", manager_type="round_robin", manager_settings_json='{"max_turns": 3}')
    rest = group(message)
    assert (rest["max_turns"], rest["termination_token"], rest["turns_counter"]) == (3, None, None)
    assert (rest["manager_agent_id"], rest["template_id"], rest["hidden"]) == (None, None, False)
    assert "manager_settings" not in rest


def test_an_upsert_changes_what_was_sent() -> None:
    body = identities.CreateIdentity.model_validate(ADA | {"project_id": "p", "agent_ids": [], "block_ids": None})
    request = identities.upsert_request(body)
    assert sorted(request.update_mask.paths) == ["agent_ids", "identity_type", "name"]
    assert (request.identity.identifier_key, request.identity.project_id) == ("ada", "p")
    assert request.identity_id.startswith("identity-")


def test_a_change_of_nothing_is_none() -> None:
    assert identities.update_request("identity-1", identities.UpdateIdentity.model_validate({"name": None})) is None
    assert groups.update_request("group-1", groups.UpdateGroup(manager_config=None)) is None
    cleared = identities.update_request("identity-1", identities.UpdateIdentity(properties=[]))
    assert cleared is not None
    assert (list(cleared.update_mask.paths), cleared.identity.properties_json) == (["properties_json"], "[]")


@pytest.mark.parametrize(
    ("value", "json"), [(True, "true"), (1, "1"), (1.5, "1.5"), ("1", '"1"'), ({"a": 1}, '{"a":1}')]
)
def test_values_of_properties_keep_their_types(value: Any, json: str) -> None:
    body = identities.IdentityProperty(key="a", value=value, type="string")
    request = identities.properties_request("identity-1", [body])
    assert request.properties_json == f'[{{"key":"a","value":{json},"type":"string"}}]'


@pytest.mark.parametrize("value", [None, [1]])
def test_values_that_no_property_has(value: Any) -> None:
    with pytest.raises(ValidationError):
        identities.IdentityProperty(key="a", value=value, type="json")


def test_a_new_group_is_a_round_robin() -> None:
    request = groups.create_request(
        groups.CreateGroup.model_validate({"agent_ids": ["agent-1"], "description": "x", "hidden": True})
    )
    draft = request.group
    assert (draft.manager_type, draft.manager_settings_json, list(draft.agent_ids)) == ("round_robin", "", ["agent-1"])
    assert draft.hidden


def test_a_setting_that_is_sent_as_null_is_taken_away() -> None:
    config = TypeAdapter[Any](groups.ManagerConfigUpdate).validate_python(
        {"manager_type": "dynamic", "max_turns": None, "manager_agent_id": None}
    )
    request = groups.update_request("group-1", groups.UpdateGroup(manager_config=config))
    assert request is not None
    assert sorted(request.update_mask.paths) == ["manager_settings_json", "manager_type"]
    assert request.group.manager_settings_json == '{"max_turns":null}'
