"""Google AI, and Vertex with the token endpoint of its service account."""

from dataclasses import replace

from services.llm_gateway.core.chat import Reasoning, Usage
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.vendors.google.client import GoogleProvider
from services.llm_gateway.vendors.vertex.client import VertexProvider
from tests.contract.llm_gateway.worlds import WorldSpec
from tests.fakes.google_server import GoogleServer, VertexServer
from tests.fakes.google_tokens import PROJECT
from tests.fakes.google_wire import WINDOW

# A token endpoint has an address of its own, which the account's key names.
_fakes: list[VertexServer] = []


def _vertex_fake() -> VertexServer:
    _fakes.append(VertexServer())
    return _fakes[-1]


def _vertex(config: ProviderConfig) -> VertexProvider:
    # The suite's own key stays a secret of the configuration.
    return VertexProvider(replace(config, api_key=_fakes[-1].tokens.account(), access_key=config.api_key))


def _spec(name: str, handle: str, **fields: object) -> WorldSpec:
    return WorldSpec(
        name,
        handle=handle,
        carries=frozenset({"images", "result_images", "reasoning", "parallel", "count", "embeddings", "json_schema"})
        | {"forced_call", "response_id"},
        length="MAX_TOKENS",
        usage=Usage(100, 7, cached_input_tokens=40),
        overflow=(WINDOW, 1_200_000),
        embedding=("gemini-embedding-001", 3_072),
        schema_in=lambda sent: sent["generationConfig"]["responseJsonSchema"],
        thoughts=(Reasoning("two and two", "google:"),),
        **fields,  # type: ignore[arg-type]
    )


WORLDS = [
    _spec(
        "google_ai",
        "google_ai/gemini-3-flash-preview",
        make=GoogleProvider,
        fake=GoogleServer,
        credential=("x-goog-api-key", "sk-test"),
    ),
    _spec(
        "google_vertex",
        "google_vertex/gemini-2.5-flash",
        make=_vertex,
        fake=_vertex_fake,
        options={"options": {"project": PROJECT}, "region": "europe-west1"},
        credential=("authorization", "Bearer ya29.fake-1"),
    ),
]
