"""A fake LM Studio: its lists of models beside OpenAI's dialect.

What it knows no route for it answers with 200 and an error, as the real one does. `api` is its newest list: 1 since
0.4.0, 0 before; without any (None) there is OpenAI's list alone.
"""

from typing import Any

from tests.fakes import openai_wire as wire
from tests.fakes.http import Request
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import DEFAULT_REPLY, Reply, RequestView
from tests.fakes.server import HttpReply, json_reply, serve_forever

CHAT = ("qwen2-vl-7b-instruct", "meta-llama-3.1-8b-instruct")
EMBEDDING = ("text-embedding-nomic-embed-text-v1.5", 768)
V0: list[dict[str, Any]] = [
    {"id": CHAT[0], "type": "vlm", "state": "not-loaded", "max_context_length": 32_768}
    | {"compatibility_type": "mlx", "arch": "qwen2_vl", "capabilities": ["tool_use"]},
    {"id": CHAT[1], "type": "llm", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 8_192}
    | {"compatibility_type": "gguf", "arch": "llama", "capabilities": []},
    {"id": EMBEDDING[0], "type": "embeddings", "state": "not-loaded", "max_context_length": 2_048}
    | {"compatibility_type": "gguf", "arch": "nomic-bert"},
]
V1: list[dict[str, Any]] = [
    {"key": CHAT[0], "type": "llm", "display_name": "Qwen2 VL 7B", "max_context_length": 32_768, "loaded_instances": []}
    | {"format": "mlx", "capabilities": {"vision": True, "trained_for_tool_use": True}},
    {"key": CHAT[1], "type": "llm", "display_name": "Llama 3.1 8B", "max_context_length": 131_072, "format": "gguf"}
    | {
        "loaded_instances": [
            {"id": CHAT[1], "config": {"context_length": 16_384}},
            {"id": f"{CHAT[1]}:2", "config": {"context_length": 8_192}},
        ],
        "capabilities": {"vision": False, "trained_for_tool_use": False},
    },
    {"key": EMBEDDING[0], "type": "embedding", "display_name": "Nomic Embed", "max_context_length": 2_048}
    | {"format": "gguf", "loaded_instances": []},
]


class LmStudioServer(OpenAIServer):
    """A fake LM Studio."""

    api_path = ""

    def __init__(self, port: int = 0, *, api: int | None = 1, record: bool = True) -> None:
        super().__init__(port, models=CHAT, record=record)
        self.api = api

    def respond(self, request: Request, body: Any) -> tuple[Reply, HttpReply]:
        match request.method, request.path:
            case "GET", "/api/v1/models" if self.api == 1:
                return DEFAULT_REPLY, json_reply({"models": V1})
            case "GET", "/api/v0/models" if self.api is not None:
                return DEFAULT_REPLY, json_reply({"object": "list", "data": V0})
            case "GET", "/v1/models":
                return DEFAULT_REPLY, wire.models((*CHAT, EMBEDDING[0]))
            case "POST", "/v1/embeddings" if isinstance(body, dict) and body.get("model") == EMBEDDING[0]:
                reply = self.script.choose(RequestView(EMBEDDING[0], "", "", 0, False, (), body, "embeddings"))
                return reply, wire.embeddings(body, EMBEDDING[1])
            case "POST", "/v1/chat/completions":
                return super().respond(request, body)
            case method, path:
                return DEFAULT_REPLY, json_reply({"error": f"Unexpected endpoint or method. ({method} {path})"})


if __name__ == "__main__":
    serve_forever(LmStudioServer)
