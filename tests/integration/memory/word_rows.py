"""Many passages whose words follow Zipf's law, copied into the database: the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from uuid import UUID, uuid4

import asyncpg
import numpy as np
import numpy.typing as npt

from services.memory.core.ranking.search import Part, Scope, archive_lexeme, tenant_lexeme

VOCABULARY = 50_000
# So many of the commonest are like stop words: no query has them.
STOP = 20
_COLUMNS = [
    "organization_id", "archive_id", "id", "text", "tags", "words", "word_count", "created_by_id", "last_updated_by_id",
    "created_at",
]  # fmt: skip
_ARCHIVE = """
INSERT INTO memory.archives (
    organization_id, id, name, passage_count, word_count, created_by_id, last_updated_by_id)
VALUES ($1, $2, '', $3, $4, $2, $2)
"""
_TAGS = """
INSERT INTO memory.passage_tags (organization_id, archive_id, passage_id, tag)
SELECT organization_id, archive_id, id, unnest(tags) FROM memory.passages WHERE organization_id = $1 AND archive_id = $2
"""
FIRST_MINUTE = datetime(2026, 1, 1, tzinfo=UTC)

Words = npt.NDArray[np.int64]


def zipf(count: int, seed: int, *, average: int = 18) -> list[Words]:
    """Texts as numbers of words; half of a text's words are of one of 100 topics."""
    fixed, drawn = np.random.default_rng(1), np.random.default_rng(seed)
    common = np.cumsum(1 / (np.arange(VOCABULARY) + 2.7))
    topics = fixed.integers(STOP, 5_000, (100, 100))
    of_topic = np.cumsum(1 / (np.arange(100) + 3.0))
    texts = []
    for length in np.clip(drawn.lognormal(np.log(average), 0.4, count), 5, 200).astype(int):
        general = np.searchsorted(common, drawn.random(length) * common[-1])
        special = topics[drawn.integers(100), np.searchsorted(of_topic, drawn.random(length) * of_topic[-1])]
        texts.append(np.where(drawn.random(length) < 0.5, general, special))
    return texts


def named(words: Sequence[int] | Words) -> list[str]:
    """As texts have them; no stemmer touches these."""
    return [f"w{word}" for word in words]


@dataclass
class Tenant:
    """One archive; passage n has n as its id and is made n minutes after the year began.

    One passage in 3 has the tag "common", one in 1,000 "rare".
    """

    organization_id: UUID
    archive_id: UUID
    texts: list[Words]

    @property
    def scope(self) -> Scope:
        """All of it."""
        return Scope(Part((self.archive_id,), len(self.texts)), sum(map(len, self.texts)), {})


async def stored(connection: asyncpg.Connection, count: int, seed: int) -> Tenant:
    """A new tenant with so many passages."""
    tenant = Tenant(uuid4(), uuid4(), zipf(count, seed))
    key = tenant.organization_id, tenant.archive_id
    await connection.execute(_ARCHIVE, *key, count, tenant.scope.words)
    lines = "".join(_line(tenant, number) for number in range(count)).encode()
    await connection.copy_to_table("passages", schema_name="memory", columns=_COLUMNS, source=BytesIO(lines))
    await connection.execute(_TAGS, *key)
    return tenant


def _line(tenant: Tenant, number: int) -> str:
    """A row in COPY's text format."""
    names = named(tenant.texts[number])
    places: dict[str, list[str]] = {}
    for place, name in enumerate(names, 1):
        places.setdefault(name, []).append(str(place))
    lexemes = [f"{name}:{','.join(at)}" for name, at in places.items()]
    lexemes += [f"'{archive_lexeme(tenant.archive_id)}'", f"'{tenant_lexeme(tenant.organization_id)}'"]
    tags = ["common"] * (number % 3 == 0) + ["rare"] * (number % 1_000 == 0)
    values = [
        tenant.organization_id, tenant.archive_id, UUID(int=number), " ".join(names), f"{{{','.join(tags)}}}",
        " ".join(lexemes), len(names), tenant.archive_id, tenant.archive_id, FIRST_MINUTE + timedelta(minutes=number),
    ]  # fmt: skip
    return "\t".join(map(str, values)) + "\n"
