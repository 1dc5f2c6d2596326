"""A fake vLLM: OpenAI's dialect with token ids, completions of rendered prompts, /tokenize, models with their window.

`window` None: a version or a server in front that leaves max_model_len out. Keys guard what is below /v1 alone.
"""

from typing import Any

import orjson

from tests.fakes import openai_wire, vllm_wire
from tests.fakes.http import Request
from tests.fakes.openai_server import OpenAIServer, fault
from tests.fakes.script import DEFAULT_REPLY, Reply, RequestView
from tests.fakes.server import JSON_HEADERS, HttpReply, serve_forever

CHAT = "Qwen/Qwen3-8B"
ADAPTER = "my-adapter"
EMBEDDING = ("BAAI/bge-m3", 1_024)
_PARAMETERS = frozenset(
    {"model", "prompt", "max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "logprobs", "stream"}
    | {"stream_options", "return_token_ids", "add_special_tokens", "response_format", "frequency_penalty"}
    | {"presence_penalty"}
)


class VllmServer(OpenAIServer):
    """A fake vLLM."""

    api_path = ""

    def __init__(
        self, port: int = 0, *, window: int | None = 40_960, tokenizes: bool = True, record: bool = True
    ) -> None:
        super().__init__(port, models=(CHAT, ADAPTER), record=record)
        self.window, self.tokenizes = window, tokenizes

    def respond(self, request: Request, body: Any) -> tuple[Reply, HttpReply]:
        match request.method, request.path:
            case "POST", "/tokenize" if self.tokenizes:
                return DEFAULT_REPLY, self._tokenize(body)
            case "GET", "/v1/models":
                return DEFAULT_REPLY, self._models()
            case "POST", "/v1/completions":
                return self._complete(body)
            case "POST", "/v1/embeddings" if isinstance(body, dict) and body.get("model") == EMBEDDING[0]:
                reply = self.script.choose(RequestView(EMBEDDING[0], "", "", 0, False, (), body, "embeddings"))
                return reply, openai_wire.embeddings(body, EMBEDDING[1])
            case "POST", "/v1/chat/completions":
                return super().respond(request, body)
            case _:
                return DEFAULT_REPLY, HttpReply(404, JSON_HEADERS, b'{"detail":"Not Found"}')

    def _tokenize(self, body: Any) -> HttpReply:
        if body.get("model") not in self.chat_models:
            return openai_wire.error("model_not_found", f"The model `{body.get('model')}` does not exist.")
        return vllm_wire.tokenized(body, self.window)

    def _models(self) -> HttpReply:
        base: dict[str, Any] = {"id": CHAT, "object": "model", "owned_by": "vllm", "root": CHAT, "parent": None}
        if self.window:
            base["max_model_len"] = self.window
        adapter = {**base, "id": ADAPTER, "parent": CHAT, "max_model_len": None}
        return HttpReply(200, JSON_HEADERS, orjson.dumps({"object": "list", "data": [base, adapter]}))

    def _complete(self, body: Any) -> tuple[Reply, HttpReply]:
        if not isinstance(body, dict) or not isinstance(body.get("prompt"), str) or not body["prompt"]:
            return DEFAULT_REPLY, openai_wire.error("bad_request", "Either prompt or prompt_embeds must be provided.")
        if body.get("model") not in self.chat_models:
            return DEFAULT_REPLY, openai_wire.error("model_not_found", f"The model `{body['model']}` does not exist.")
        if unknown := body.keys() - _PARAMETERS:
            return DEFAULT_REPLY, openai_wire.error("bad_request", f"unknown fields {sorted(unknown)}")
        prompt, stream = body["prompt"], bool(body.get("stream"))
        seen = RequestView(body["model"], "user", prompt, 0, stream, (), body, question=prompt)
        reply = self.script.choose(seen)
        self._count += 1
        return reply, fault(reply) or vllm_wire.completion(reply, seen, self._count)


if __name__ == "__main__":
    serve_forever(VllmServer)
