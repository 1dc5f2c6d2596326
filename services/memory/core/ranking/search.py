"""Hybrid search: how the answers of several searches become one. Pure.

Text is ranked by BM25 over the archives searched, vectors by cosine, and the scores are fused
(`services/common/core/fusion.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from services.common.core.fusion import FusedScore, VectorScores, fuse_ranks, fuse_scores
from services.common.core.ranking import any_of
from services.memory.archives.model import Archive, EmbeddingModel
from services.memory.passages.model import Passage, PassageKey, SearchMode


@dataclass(frozen=True, slots=True)
class Part:
    """Archives: those of `archive_ids`, or with None all of the tenant that are not a folder's; and their passages."""

    archive_ids: tuple[UUID, ...] | None
    passages: int


@dataclass(frozen=True, slots=True)
class Scope:
    """The archives of a search, with the counts that ranking needs. by_model: the part with vectors of each model."""

    whole: Part
    words: int
    by_model: Mapping[EmbeddingModel, Part]


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage in the answer of one search; higher scores first.

    whole: in a search by words, the score of a passage of usual length in which every word of the query stands once.
    """

    archive_id: UUID
    passage_id: UUID
    score: float
    whole: float = 0.0


@dataclass(frozen=True, slots=True)
class VectorRanking:
    """The answer by the vectors of one model; `weight`: see `fusion.VectorScores`."""

    passages: Sequence[RankedPassage]
    weight: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found, with its scores; before, after: its neighbours, where the query asks for them."""

    passage: Passage
    score: float
    vector_score: float | None
    text_score: float | None
    before: Sequence[Passage] = ()
    after: Sequence[Passage] = ()


def scope_of(archives: Sequence[Archive]) -> Scope:
    """Returns the scope of some archives; those without passages are left out."""
    archives = [archive for archive in archives if archive.passage_count]
    by_model: dict[EmbeddingModel, list[Archive]] = {}
    for archive in archives:
        if archive.model is not None:
            by_model.setdefault(archive.model, []).append(archive)
    return Scope(
        _part(archives),
        sum(archive.word_count for archive in archives),
        {model: _part(members) for model, members in by_model.items()},
    )


def _part(archives: Sequence[Archive]) -> Part:
    return Part(tuple(archive.id for archive in archives), sum(archive.passage_count for archive in archives))


def fuse(
    rankings: Sequence[VectorRanking], texts: Sequence[RankedPassage], mode: SearchMode
) -> list[FusedScore[PassageKey]]:
    """Returns one order of all rankings, one for each embedding model and that by words.

    A search of one kind by one ranking has its scores; one by vectors of several models goes by their ranks.
    """
    if mode is SearchMode.TEXT:
        return [FusedScore(key, score, None, score) for key, score in _scores(texts).items()]
    vectors = [VectorScores(_scores(one.passages), one.weight) for one in rankings]
    if mode is SearchMode.HYBRID:
        return fuse_scores(vectors, _scores(texts), texts[0].whole if texts else 0.0)
    if len(vectors) == 1:
        return [FusedScore(key, score, score, None) for key, score in vectors[0].scores.items()]
    return fuse_ranks(vectors)


def _scores(hits: Iterable[RankedPassage]) -> dict[PassageKey, float]:
    return {(hit.archive_id, hit.passage_id): hit.score for hit in hits}


def archive_lexeme(archive_id: UUID) -> str:
    """Returns the lexeme that every passage of an archive carries.

    A GIN index over tsvector alone would walk all tenants' passages for a common word; asked for together with
    this lexeme, it walks those of the archive. No word has an "@".
    """
    return f"@{archive_id.hex}"


def tenant_lexeme(organization_id: UUID) -> str:
    """Returns the lexeme of every passage of a tenant's archives; pieces of files have that of their folder alone."""
    return f"@@{organization_id.hex}"


def scope_lexemes(organization_id: UUID, archive_ids: Iterable[UUID] | None) -> list[str]:
    """Returns lexemes of which a passage in these archives carries one; None: in any archive of the tenant."""
    if archive_ids is None:
        return [tenant_lexeme(organization_id)]
    return [archive_lexeme(archive_id) for archive_id in archive_ids]


def tsquery(scope: Iterable[str], query: str) -> str:
    """Returns a tsquery that restricts a query, in its notation, to passages with one of the scope's lexemes."""
    return f"{any_of(scope)} & {query}"
