"""Runs the history of a seed through the baseline and the product; who has what figure."""

from pathlib import Path

from bench.memory_score.baseline import Baseline
from bench.memory_score.concepts import ConceptEmbedding
from bench.memory_score.history import Size, make
from bench.memory_score.metrics import figures
from bench.memory_score.product import MODES, Embedding, Product, memory_with
from services.llm_gateway.vendors.demo import hashing

BASELINE = "BM25 library"


async def score(url: str, folder: Path, seed: int, size: Size) -> dict[str, dict[str, float]]:
    """Column -> figure -> value, 0 to 1; `url` is a migrated database of memory's."""
    history = make(seed, size)
    baseline = Baseline(history)
    columns = {BASELINE: figures([baseline.answer(question) for question in history.questions])}
    models: dict[str, Embedding] = {"concepts": ConceptEmbedding(history.words).embed, "loci/hash": hashing.embed}
    for name, embedding in models.items():
        async with memory_with(url, folder, embedding, {"loci/hash": 0.0}) as memory:
            product = Product(memory, history)
            await product.load(name if "/" in name else f"bench/{name}")
            for mode in MODES:
                if mode != "text" or name == "concepts":  # the words are the same under every model
                    title = mode if mode == "text" else f"{mode}, {name}"
                    columns[title] = figures(await product.answers(mode))
    return columns
