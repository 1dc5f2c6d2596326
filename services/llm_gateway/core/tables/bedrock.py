"""Models that only Bedrock has, by their names there without region, vendor and version. Pure.

Other vendors' models on Bedrock are in the tables of their vendors. Sources, read in November 2026:
docs.aws.amazon.com/bedrock/latest/userguide, model cards and model-parameters (windows, lengths of vectors); prices of
the region us-east-1 by AWS's price list as others quote it (aws.amazon.com/bedrock/pricing shows it to browsers alone).
Where no price was found there is none.
"""

import re
from collections.abc import Mapping

from services.llm_gateway.core.models import Capabilities
from services.llm_gateway.core.tables.rows import KnownEmbedding, KnownModel, usd

_BLIND = Capabilities()
_SEEING = Capabilities(vision=True)
_THINKING = Capabilities(vision=True, reasoning=True)

# How much a model may write is left to Bedrock, which takes the model's most where it is not told.
MODELS: Mapping[str, KnownModel] = {
    "nova-2-lite": KnownModel(1_000_000, None, _THINKING, usd(0.3, 2.5, cached=0.075)),
    "nova-pro": KnownModel(300_000, None, _SEEING, usd(0.8, 3.2, cached=0.2)),
    "nova-lite": KnownModel(300_000, None, _SEEING, usd(0.06, 0.24)),
    "nova-micro": KnownModel(128_000, None, _BLIND, usd(0.035, 0.14)),
    "gpt-oss-120b": KnownModel(128_000, None, Capabilities(reasoning=True)),
    "gpt-oss-20b": KnownModel(128_000, None, Capabilities(reasoning=True)),
}
# Titan takes one text in a call: a batch is so many calls at once.
EMBEDDINGS: Mapping[str, KnownEmbedding] = {
    "titan-embed-text-v2": KnownEmbedding(1_024, 8),
    "titan-embed-text-v1": KnownEmbedding(1_536, 8),
    "embed-v4": KnownEmbedding(1_536, 96),
    "embed-english-v3": KnownEmbedding(1_024, 96),
    "embed-multilingual-v3": KnownEmbedding(1_024, 96),
}

_REGION = re.compile(r"^(global|apac|[a-z]{2}(-gov)?)\.")
_VENDOR = re.compile(r"^[a-z0-9]+\.")
# -20250929-v1:0, -v1:0, -1:0, -v1 (of Claude), and what is behind a second colon.
_VERSION = re.compile(r"(-\d{8})?(-v?\d+)?(:\d+)(:\w+)?$")
_CLAUDE_VERSION = re.compile(r"(-\d{8})?(-v\d+)?$")


def base_name(model: str) -> str:
    """The vendor's name of a model from its id or ARN, or an inference profile's:
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0" is "claude-sonnet-4-5".
    """
    name = _REGION.sub("", model.rpartition("/")[2])
    name = _VENDOR.sub("", name)
    if name.startswith(("titan-embed", "embed-")):
        return name.partition(":")[0]
    name = _VERSION.sub("", name)
    return _CLAUDE_VERSION.sub("", name) if name.startswith("claude-") else name


def foundation_id(model: str) -> str:
    """The id of the model behind a profile of a region: "us.anthropic.claude-..." is "anthropic.claude-..."."""
    return _REGION.sub("", model.rpartition("/")[2])
