"""OpenAI's Responses, over HTTP and over a WebSocket: a reasoning model at the vendor itself."""

from dataclasses import replace

from services.llm_gateway.core.chat import Reasoning, RedactedReasoning, Usage
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from tests.contract.llm_gateway.worlds import WorldSpec
from tests.fakes.responses_server import ResponsesServer

CARRIES = frozenset({"images", "result_images", "reasoning", "signatures", "redacted", "parallel", "json_schema"}) | {
    "forced_call",
    "response_id",
}
USAGE = Usage(100, 7, cached_input_tokens=40, cache_write_tokens=10, reasoning_tokens=0)
HTTP = WorldSpec(
    "responses",
    OpenAIProvider,
    "openai/gpt-5",
    ResponsesServer,
    CARRIES | {"count", "embeddings"},
    {"is_vendor": True},
    dialect="responses",
    thoughts=(
        Reasoning("two and two", "openai:rs_fake0:sig-of-the-fake"),
        RedactedReasoning("openai:rs_fake1:opaque"),
    ),
    chat_paths=("/responses",),
    usage=USAGE,
    schema_in=lambda sent: sent["text"]["format"]["schema"],
)
WORLDS = [
    HTTP,
    replace(
        HTTP,
        name="responses_websocket",
        framing="websocket",
        asks={"websocket": True, "run_key": "run-1"},
        # On the connection, on a new one, over HTTP.
        tries=3,
    ),
]
