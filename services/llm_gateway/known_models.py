"""What is known of a model without asking its endpoint: the tables, by provider type. Pure.

Rows are found by the longest name that the model's name equals or continues after "-" (dates, "preview"), ":" or "@".
"""

from collections.abc import Mapping

from services.llm_gateway.provider import Capabilities
from services.llm_gateway.tables import anthropic, openai
from services.llm_gateway.tables.rows import Known, KnownEmbedding

_TABLES: Mapping[str, Mapping[str, Known]] = {"openai": openai.MODELS, "anthropic": anthropic.MODELS}
_HASH = {"hash": KnownEmbedding(384, 2_048)}
EMBEDDINGS: Mapping[str, Mapping[str, KnownEmbedding]] = {"loci": _HASH, "openai": openai.EMBEDDINGS}
# What is assumed of a model that is in no table: whoever serves it says no only when asked.
UNLISTED = Capabilities(vision=True)


def known(provider_type: str, name: str) -> Known | None:
    """The row for a model, or None. Models that are not for chat have none."""
    table = _TABLES.get(provider_type, {})
    if provider_type == "openai" and openai.NOT_CHAT.search(name):
        return None
    if name.startswith("ft:"):  # a fine-tuned model is named ft:<base>:<organisation>:...
        name = name.split(":")[1]
    rows = [row for row in table if name == row or (name.startswith(row) and name[len(row)] in "-:@")]
    return table[max(rows, key=len)] if rows else None
