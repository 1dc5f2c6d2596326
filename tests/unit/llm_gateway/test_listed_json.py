"""Listed models are stored as JSON and nothing of them is lost."""

from dataclasses import fields

import orjson
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.listing_json import from_json, to_json
from services.llm_gateway.core.models import Capabilities, ListedModel, ModelKind, Price, ValueSource

NUMBERS = st.one_of(st.none(), st.integers(1, 10**7))
PRICES = st.builds(
    Price,
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.one_of(st.none(), st.integers(0, 10**9)),
    st.one_of(st.none(), st.integers(0, 10**9)),
    st.just(ValueSource.ENDPOINT),
)
MODELS = st.builds(
    ListedModel,
    st.text(min_size=1),
    NUMBERS,
    NUMBERS,
    st.text(),
    st.sampled_from(ModelKind),
    st.dictionaries(st.sampled_from([one.name for one in fields(Capabilities)]), st.booleans()),
    NUMBERS,
    st.text(),
    st.one_of(st.none(), PRICES),
)


@given(st.lists(MODELS))
def test_there_and_back(models: list[ListedModel]) -> None:
    assert from_json(orjson.loads(orjson.dumps(to_json(models)))) == models
