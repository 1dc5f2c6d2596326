"""What may be set on identities."""

from typing import Any
from uuid import UUID

import pytest

from services.agent.core.refusals import Refused
from services.agent.resources.identities.model import IdentityDraft, check, check_mask, merged, properties

ADA = IdentityDraft(identifier_key="ada", name="Ada", identity_type="user")


@pytest.mark.parametrize(
    ("value", "of_type"),
    [("", "string"), ("36", "string"), (36, "number"), (0.5, "number"), (False, "boolean"), ({}, "json")],
)
def test_properties_that_can_be(value: Any, of_type: str) -> None:
    text = {"": '""', "36": '"36"'}.get(str(value) if isinstance(value, str) else "-", str(value).lower())
    assert properties(f'[{{"key":"a","value":{text},"type":"{of_type}"}}]') == (
        {"key": "a", "value": value, "type": of_type},
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "must be a JSON array, not a dict"),
        ("[", "must be a JSON array"),
        ("[1]", r"properties\[0\] must be an object"),
        ('[{"key":"a","type":"string"}]', "must be an object"),
        ('[{"key":"","value":"","type":"string"}]', "1 to 256 characters"),
        ('[{"key":"a","value":"1","type":"number"}]', "a value of it, not 'number'"),
        ('[{"key":"a","value":true,"type":"number"}]', "number"),
        ('[{"key":"a","value":1,"type":"boolean"}]', "boolean"),
        ('[{"key":"a","value":[1],"type":"json"}]', "json"),
        ('[{"key":"a","value":null,"type":"string"}]', "string"),
        ('[{"key":"a","value":"","type":"text"}]', "text"),
        ('[{"key":"a","value":""}]', "None"),
        ('[{"key":"a","value":1,"type":"number"},{"key":"a","value":2,"type":"number"}]', "a key twice"),
        (
            "[" + ",".join(f'{{"key":"{number}","value":1,"type":"number"}}' for number in range(1_001)) + "]",
            "has 1001 of them",
        ),
    ],
)
def test_properties_that_cannot_be(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as caught:
        properties(text)
    assert caught.value.reason == "IDENTITY_INVALID"


def test_properties_are_laid_over_those_that_are_there() -> None:
    one, two, new = ({"key": key, "value": value, "type": "number"} for key, value in (("a", 1), ("b", 2), ("a", 3)))
    assert merged((one, two), (new,)) == (new, two)
    assert merged((), (two, one)) == (two, one)
    full = tuple({"key": str(number), "value": 1, "type": "number"} for number in range(1_000))
    with pytest.raises(Refused, match="has 1001 of them"):
        merged(full, (one,))


def test_what_cannot_be_stored_is_left_out() -> None:
    one, two = UUID(int=1), UUID(int=2)
    draft = check(IdentityDraft(identifier_key="a\0da", name="Ada", identity_type="org", agent_ids=(one, two, one)))
    assert (draft.identifier_key, draft.agent_ids) == ("ada", (one, two))
    # Of an update what it does not name does not count.
    assert check(IdentityDraft(name="x"), frozenset({"name"})).name == "x"


@pytest.mark.parametrize(
    "given",
    [
        {"identifier_key": ""},
        {"identifier_key": "x" * 257},
        {"name": "\0"},
        {"identity_type": ""},
        {"agent_ids": tuple(UUID(int=number) for number in range(1_001))},
        {"block_ids": tuple(UUID(int=number) for number in range(1_001))},
    ],
)
def test_what_cannot_be(given: dict[str, Any]) -> None:
    fields = {"identifier_key": "ada", "name": "Ada", "identity_type": "user"} | given
    with pytest.raises(Refused, match=next(iter(given))) as caught:
        check(IdentityDraft(**fields))
    assert caught.value.reason == "IDENTITY_INVALID"


def test_what_an_update_may_name() -> None:
    assert check_mask(["name", "name", "block_ids"]) == {"name", "block_ids"}
    for name in ("project_id", "id", "colour"):
        with pytest.raises(Refused, match=name):
            check_mask([name])
