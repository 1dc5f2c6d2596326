"""Settings of identities, by their declaration."""

from typing import Any
from uuid import UUID

import pytest

from loci.agent.v1.identity_pb2 import Identity
from services.agent.resources.identities.convert import drafts
from services.common.core.refusals import Refused
from services.common.errors import InvalidArgument

ONE, TWO = UUID(int=1), UUID(int=2)


def ids(prefix: str, *numbers: int) -> list[str]:
    """Public ids."""
    return [f"{prefix}-{UUID(int=number)}" for number in numbers]


def test_what_cannot_be_stored_is_left_out() -> None:
    message = Identity(identifier_key="a\0da", name="Ada", identity_type="org", agent_ids=ids("agent", 1, 2, 1))
    settings = drafts.draft(message).values
    assert (settings.identifier_key, settings.agent_ids) == ("ada", (ONE, TWO))
    # Of an update what it does not name does not count.
    draft = drafts.draft(Identity(name="x"), ["name"])
    assert (draft.values.name, draft.names) == ("x", frozenset({"name"}))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"identifier_key": ""}, "must have 1 to 256 characters, not 0"),
        ({"identifier_key": "x" * 257}, "must have 1 to 256 characters, not 257"),
        ({"name": "\0"}, "must have 1 to 256 characters, not 0"),
        ({"identity_type": ""}, "must be one of: org, user, other"),
        ({"agent_ids": ids("agent", *range(1_001))}, "must have at most 1,000 items, not 1,001"),
        ({"block_ids": ids("block", *range(1_001))}, "must have at most 1,000 items, not 1,001"),
        (
            {"properties_json": str([{"key": str(n), "value": 1, "type": "number"} for n in range(1_001)])},
            "must have at most 1,000 items, not 1,001",
        ),
    ],
)
def test_what_cannot_be(fields: dict[str, Any], says: str) -> None:
    fields = {name: value.replace("'", '"') if name == "properties_json" else value for name, value in fields.items()}
    message = Identity(**{"identifier_key": "ada", "name": "Ada", "identity_type": "user"} | fields)
    name = next(iter(fields)).removesuffix("_json")
    with pytest.raises(Refused, match=f"{name} {says}") as caught:
        drafts.draft(message)
    assert caught.value.reason == "IDENTITY_INVALID"


def test_what_an_update_may_name() -> None:
    assert drafts.mask(["name", "name", "block_ids", "properties_json"]) == {"name", "block_ids", "properties"}
    for name in ("project_id", "id", "colour"):
        with pytest.raises(InvalidArgument, match=f"on an identity: {name}") as caught:
            drafts.mask([name])
        assert caught.value.reason == "UPDATE_MASK_INVALID"
