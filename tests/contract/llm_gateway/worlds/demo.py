"""loci/demo, which has no vendor behind it."""

from services.llm_gateway.vendors.demo.client import DemoProvider
from tests.contract.llm_gateway.worlds import WorldSpec

WORLDS = [
    WorldSpec(
        "demo",
        DemoProvider,
        "loci/demo",
        carries=frozenset({"parallel", "embeddings", "response_id"}),
        embedding=("hash", 384),
    )
]
