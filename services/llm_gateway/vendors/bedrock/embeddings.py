"""Requests to embedding models by InvokeModel, where each vendor has a body of its own; and their replies. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from services.llm_gateway.core.models import EmbeddingModel
from services.llm_gateway.core.tables.bedrock import base_name


def bodies_of(model: EmbeddingModel, texts: Sequence[str]) -> Iterator[bytes]:
    """Yields one body for all texts (Cohere), or one for each (Titan)."""
    name = base_name(model.name)
    if name.startswith("embed-"):
        # Whether a text will be searched for or searched with, nobody says.
        fields: dict[str, Any] = {"texts": list(texts), "input_type": "search_document", "embedding_types": ["float"]}
        if name.startswith("embed-v"):
            fields["output_dimension"] = model.dimensions
        yield orjson.dumps(fields)
        return
    sizes = {} if name == "titan-embed-text-v1" else {"dimensions": model.dimensions, "normalize": True}
    for text in texts:
        yield orjson.dumps({"inputText": text, **sizes})


def vectors_in(reply: Mapping[str, Any]) -> Sequence[Sequence[float]]:
    """Returns the vectors of one reply; none where it has none."""
    if isinstance(reply.get("embedding"), list):
        return [reply["embedding"]]
    embeddings = reply.get("embeddings")
    if isinstance(embeddings, dict):
        embeddings = embeddings.get("float")
    return embeddings if isinstance(embeddings, list) else ()
