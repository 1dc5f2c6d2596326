"""Figures of models that are known without asking an endpoint: the tables, by provider type. Pure.

Rows are found by the longest name that the model's name equals or continues after "-" (dates, "preview"), ":" or "@";
a number of one or two digits does not continue a name, since that is another version (claude-fable-5-2).
A provider that serves other vendors' models has no rows for those: they are looked up in the table of their vendor, by
`anthropic/claude-...` (OpenRouter, Together), `us.anthropic.claude-...` (Bedrock), or the base model of a deployment.
What they cost there is not what they cost at their vendor's, so prices are left out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from services.llm_gateway.core.models import Capabilities
from services.llm_gateway.core.tables import anthropic, bedrock, compatible, google, minimax, openai
from services.llm_gateway.core.tables.rows import KnownEmbedding, KnownModel

_TABLES: Mapping[str, Mapping[str, KnownModel]] = {
    "openai": openai.MODELS,
    "anthropic": anthropic.MODELS,
    "bedrock": bedrock.MODELS,
    "minimax": minimax.MODELS,
    "google_ai": google.MODELS,
    **compatible.MODELS,
}
_HASH = {"hash": KnownEmbedding(384, 2_048)}
EMBEDDINGS: Mapping[str, Mapping[str, KnownEmbedding]] = {
    "loci": _HASH,
    "bedrock": bedrock.EMBEDDINGS,
    "openai": openai.EMBEDDINGS,
    "google_ai": google.EMBEDDINGS,
    "google_vertex": google.VERTEX_EMBEDDINGS,
    **compatible.EMBEDDINGS,
}
# What is assumed of a model that is in no table: whoever serves it says no only when asked.
UNLISTED = Capabilities(vision=True)
# Whose models a type serves under their own names.
_HOSTED: Mapping[str, tuple[str, ...]] = {
    "azure": ("openai",),
    "bedrock": ("anthropic",),
    "google_vertex": ("google_ai", "anthropic"),
}
# The vendor in a model's name, and its provider type.
_VENDORS: Mapping[str, str] = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "deepseek-ai": "deepseek",
    "google": "google_ai",
    "minimax": "minimax",
    "minimaxai": "minimax",
    "mistral": "mistral",
    "mistralai": "mistral",
    "moonshotai": "moonshot",
    "openai": "openai",
    "x-ai": "xai",
    "xai": "xai",
    "z-ai": "zai",
    "zai-org": "zai",
}

_DOTTED = re.compile(rf"(?:[a-z-]+\.)?({'|'.join(_VENDORS)})\.(.+)")

# What may be behind a row's name in a model's.
_CONTINUED = re.compile(r"$|[:@]|-(?!\d{1,2}(?![\da-z]))")


# Asked for by every call; names that tenants make up are forgotten again.
@lru_cache(maxsize=4_096)
def known(provider_type: str, name: str, base_model: str = "") -> KnownModel | None:
    """Returns the row for a model, or None. Models that are not for chat have none."""
    for vendor, model in _names(provider_type, name, base_model):
        if vendor == "openai" and openai.NOT_CHAT.search(model):
            return None
        if row := _row(_TABLES.get(vendor, {}), model):
            return row if vendor == provider_type else replace(row, price=None)
    return None


def known_embedding(provider_type: str, name: str, base_model: str = "") -> KnownEmbedding | None:
    """Returns the row of an embedding model, or None; its name must be the row's, since other versions have other
    lengths.
    """
    for vendor, model in _names(provider_type, name, base_model):
        if row := EMBEDDINGS.get(vendor, {}).get(model):
            return row if vendor == provider_type else replace(row, price=None)
    return None


def _names(provider_type: str, name: str, base_model: str) -> Iterator[tuple[str, str]]:
    """Yields tables to look into, and the name to look for."""
    names = (base_model, name) if base_model else (name,)
    for text in names:
        yield provider_type, bedrock.base_name(text) if provider_type == "bedrock" else text
    for text in names:
        if known := _of_vendor(text):
            yield known
    for vendor in _HOSTED.get(provider_type, ()):
        yield vendor, names[0]


def _of_vendor(text: str) -> tuple[str, str] | None:
    """Returns the vendor and its own name of a model from `vendor/model` or `[region.]vendor.model`."""
    lowered = text.lower()
    head, slash, model = lowered.partition("/")
    if not slash:
        # Names have dots of their own ("gpt-4.1"): they are split behind a vendor alone.
        match = _DOTTED.match(lowered)
        if match is None:
            return None
        head, model = match.groups()
    vendor = _VENDORS.get(head)
    if vendor is None:
        return None
    # Elsewhere versions are written with dots: claude-sonnet-4.5.
    return vendor, model.replace(".", "-") if vendor == "anthropic" else model


def _row(table: Mapping[str, KnownModel], name: str) -> KnownModel | None:
    if name.startswith("ft:"):  # a fine-tuned model is named ft:<base>:<organisation>:...
        name = name.split(":")[1]
    # Others write the names of vendors in small letters.
    lowered = name.lower()
    rows = [row for row in table if lowered.startswith(row.lower()) and _CONTINUED.match(lowered[len(row) :])]
    return table[max(rows, key=len)] if rows else None
