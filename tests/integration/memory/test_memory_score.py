"""The memory score, small, as a gate: `make bench-memory` measures the same at length."""

from __future__ import annotations

from pathlib import Path

from bench.memory_score.history import Size
from bench.memory_score.score import BASELINE, score, score_talk
from bench.memory_score.talk import TalkSize

SMALL = Size(tenants=2, people=24, sessions=24, facts=14, talk=14, questions=48)
SEED, POINT = 4, 0.01


async def test_what_was_said_is_found_and_what_was_taken_back_is_not(memory_url: str, tmp_path: Path) -> None:
    columns = await score(memory_url, tmp_path, SEED, SMALL)
    text, hybrid = columns["text"], columns["hybrid, concepts"]
    for figure in ("recall@5", "recall@10"):
        assert text[figure] >= columns[BASELINE][figure], figure
        assert hybrid[figure] > max(text[figure], columns["vector, concepts"][figure]), figure
        assert columns["halves, loci/hash"][figure] >= text[figure] - POINT, figure
        # Neighbours have nothing to do with one another here.
        assert columns["hybrid, loci/hash"][figure] >= text[figure] - 3 * POINT, figure
    for title, column in columns.items():
        assert column["deleted or corrected texts"] == 0, title
        assert column["other tenants' notes"] == 0, title
    assert hybrid["as-of correctness"] >= 0.95


async def test_what_people_said_is_found_as_they_say_it(memory_url: str, tmp_path: Path) -> None:
    """A hash is far worse than words here, and does not spoil them; an embedding that knows meanings adds to them."""
    columns = await score_talk(memory_url, tmp_path, 1, TalkSize(tenants=2, sessions=14))
    text, hybrid, vector = columns["text"], columns["hybrid, concepts"], columns["vector, concepts"]
    for figure in ("recall@5", "recall@10", "recall@20"):
        assert text[figure] > columns["vector, loci/hash"][figure] + POINT, figure
        assert columns["hybrid, loci/hash"][figure] >= text[figure] - POINT, figure
        assert hybrid[figure] >= max(text[figure], vector[figure]) - POINT, figure
        assert hybrid[figure] > columns["halves, concepts"][figure] + 10 * POINT, figure
    for kind in ("same words", "other words", "picture", "several sessions", "turn after", "speaker"):
        figure = f"recall@10, {kind}"
        assert hybrid[figure] >= max(text[figure], vector[figure]) - POINT, figure
        assert columns["hybrid, loci/hash"][figure] >= text[figure] - POINT, figure
    # The embedding takes whatever a speaker says for what a question with the name asks for.
    assert hybrid["recall@10, month"] >= 0.7
    for kind in ("turn after", "speaker"):
        figure = f"recall@10, {kind}"
        assert text[figure] == columns["halves, loci/hash"][figure] == 0, figure
        assert columns["hybrid, loci/hash"][figure] > 0.2, figure
        assert hybrid[figure] > 0.7, figure


async def test_the_same_seed_gives_the_same_figures(memory_url: str, tmp_path: Path) -> None:
    tiny = Size(tenants=1, people=8, sessions=4, facts=6, talk=4, questions=12)
    assert await score(memory_url, tmp_path, 7, tiny) == await score(memory_url, tmp_path, 7, tiny)
