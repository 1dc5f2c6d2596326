"""The rules of passages and queries, and what is embedded."""

from dataclasses import replace
from math import hypot, inf, nan
from uuid import UUID, uuid4

import pytest

from services.common.core.refusals import Refused
from services.common.core.vectors import to_embed, unit_vector
from services.memory.passages.model import (
    PassageDraft,
    PassageFilter,
    PassageQuery,
    id_of_call,
    validate_drafts,
    validate_query,
)

DRAFT = PassageDraft(id=UUID(int=1), text="x")


def test_drafts_are_cleaned() -> None:
    [draft] = validate_drafts([replace(DRAFT, text="a\0b", tags=("y", "x\0", "y"), metadata={"k\0": "v\0"})])
    assert (draft.text, draft.tags, draft.metadata) == ("ab", ("x", "y"), {"k": "v"})


@pytest.mark.parametrize(
    "drafts",
    [
        [],
        [replace(DRAFT, text="")],
        [replace(DRAFT, text="x" * 1_000_001)],
        [replace(DRAFT, text=" \n")],
        [DRAFT, DRAFT],
        [replace(DRAFT, tags=("",))],
        [replace(DRAFT, id=uuid4()) for _ in range(1_001)],
    ],
)
def test_drafts_that_may_not_be_stored(drafts: list[PassageDraft]) -> None:
    with pytest.raises(Refused):
        validate_drafts(drafts)


def test_queries_are_cleaned_and_bounded() -> None:
    query = PassageQuery(text=" \0q ", filter=PassageFilter(tags=("b", "a", "b")))
    assert validate_query(query) == PassageQuery(text="q", filter=PassageFilter(tags=("a", "b")))
    for wrong in (
        replace(query, text=" "),
        replace(query, text="x" * 10_001),
        replace(query, top_k=0),
        replace(query, top_k=1_001),
    ):
        with pytest.raises(Refused):
            validate_query(wrong)


@pytest.mark.parametrize(("text", "length"), [("x" * 30_000, 20_000), ("é" * 30_000, 10_000), ("漢" * 9, 9)])
def test_long_texts_are_embedded_by_their_beginning(text: str, length: int) -> None:
    assert to_embed(text) == text[:length]


def test_vectors_get_length_one() -> None:
    assert unit_vector([3.0, 4.0]) == [0.6, 0.8]
    assert unit_vector([1e30, 1e30]) == pytest.approx([0.5**0.5] * 2)
    assert hypot(*(unit_vector([1e-30, 2e-30]) or ())) == pytest.approx(1)
    assert unit_vector([0.0, 0.0]) is None
    for wrong in (nan, inf):
        with pytest.raises(ValueError, match="not a finite number"):
            unit_vector([1.0, wrong])


def test_ids_derive_from_the_tenant_and_the_key() -> None:
    organization, other = UUID(int=1), UUID(int=2)
    assert id_of_call(organization, "k") == id_of_call(organization, "k")
    ids = {id_of_call(organization, "k"), id_of_call(organization, "l"), id_of_call(other, "k")}
    assert len(ids) == 3
