"""Azure OpenAI: the dated API with deployments, v1, and Responses by both."""

from dataclasses import dataclass, replace

from services.llm_gateway.core.chat import Reasoning, RedactedReasoning
from services.llm_gateway.core.known_models import UNLISTED, known
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.vendors.azure.client import AzureProvider
from tests.contract.llm_gateway.worlds import WorldSpec
from tests.contract.llm_gateway.worlds.responses import CARRIES, HTTP
from tests.fakes.azure_server import DEPLOYMENTS, AzureServer


@dataclass(frozen=True)
class AzureWorld(WorldSpec):
    """The model is the deployment's."""

    def model(self) -> ChatModel:
        made = super().model()
        row = known("azure", made.name, DEPLOYMENTS[made.name])
        return replace(made, base_model=DEPLOYMENTS[made.name], capabilities=row.capabilities if row else UNLISTED)


_DATED = {"api_version": "2025-04-01-preview"}
_CHAT = AzureWorld(
    "azure",
    AzureProvider,
    "azure/my-mini",
    AzureServer,
    frozenset({"images", "result_images", "reasoning", "parallel", "logprobs", "embeddings", "json_schema"})
    | {"forced_call", "response_id"},
    _DATED,
    dialect="openai",
    credential=("api-key", "sk-test"),
    chat_paths=("/chat/completions",),
)
_RESPONSES = AzureWorld(
    "azure_v1_responses",
    AzureProvider,
    "azure/my-five",
    AzureServer,
    CARRIES | {"embeddings"},
    dialect="responses",
    credential=("api-key", "sk-test"),
    thoughts=(
        Reasoning("two and two", "azure:rs_fake0:sig-of-the-fake"),
        RedactedReasoning("azure:rs_fake1:opaque"),
    ),
    chat_paths=("/responses",),
    usage=HTTP.usage,
    schema_in=HTTP.schema_in,
)
WORLDS = [
    _CHAT,
    replace(_CHAT, name="azure_v1", options={}),
    _RESPONSES,
    replace(_RESPONSES, name="azure_responses", options=_DATED),
]
