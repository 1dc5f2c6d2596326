"""What may be set on identities."""

from typing import Any

import pytest

from services.agent.resources.identities.model import merge_properties, properties
from services.common.core.refusals import Refused


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
    ],
)
def test_properties_that_cannot_be(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as caught:
        properties(text)
    assert caught.value.reason == "IDENTITY_INVALID"


def test_properties_are_laid_over_those_that_are_there() -> None:
    one, two, new = ({"key": key, "value": value, "type": "number"} for key, value in (("a", 1), ("b", 2), ("a", 3)))
    assert merge_properties((one, two), (new,)) == (new, two)
    assert merge_properties((), (two, one)) == (two, one)
    full = tuple({"key": str(number), "value": 1, "type": "number"} for number in range(1_000))
    with pytest.raises(Refused, match="at most 1,000 items, not 1,001"):
        merge_properties(full, (one,))
