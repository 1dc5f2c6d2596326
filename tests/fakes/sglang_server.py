"""A fake SGLang: OpenAI's dialect, and its own /generate, /tokenize, /parse_function_call, /separate_reasoning.

`info` is what /server_info tells beside the model; None: it is for the administrator alone. `incremental`: started with
--incremental-streaming-output. `old`: the infos have their older names alone, and there is no /tokenize.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.fakes import openai_wire, sglang_wire, vllm_wire
from tests.fakes.http import Request
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import DEFAULT_REPLY, Reply, RequestView
from tests.fakes.server import JSON_HEADERS, HttpReply, json_reply, scripted_fault, serve_forever

CHAT = "qwen/qwen3-8b"
EMBEDDING = ("Alibaba-NLP/gte-Qwen2-1.5B-instruct", 1_536)
_FIELDS = frozenset(
    {"text", "input_ids", "sampling_params", "stream", "return_logprob", "return_text_in_logprobs"}
    | {"logprob_start_len", "top_logprobs_num"}
)
_SAMPLING = frozenset(
    {"max_new_tokens", "temperature", "top_p", "top_k", "min_p", "stop", "json_schema", "skip_special_tokens"}
    | {"frequency_penalty", "presence_penalty", "sampling_seed"}
)

_fault = partial(scripted_fault, error=sglang_wire.error)


class SglangServer(OpenAIServer):
    """A fake SGLang."""

    api_path = ""

    def __init__(
        self,
        port: int = 0,
        *,
        info: Mapping[str, Any] | None = None,
        incremental: bool = False,
        old: bool = False,
        record: bool = True,
    ) -> None:
        super().__init__(port, models=(CHAT,), record=record)
        self.info, self.incremental, self.old = info, incremental, old

    def respond(self, request: Request, body: Any) -> tuple[Reply, HttpReply]:
        prefix = "/get_" if self.old else "/"
        if request.method == "GET" and request.path == f"{prefix}model_info":
            info = {"model_path": CHAT, "is_generation": True, "has_image_understanding": False}
            return DEFAULT_REPLY, json_reply(info)
        if request.method == "GET" and request.path == f"{prefix}server_info":
            refused = sglang_wire.error("authentication")
            return DEFAULT_REPLY, refused if self.info is None else json_reply({"model_path": CHAT, **self.info})
        match request.method, request.path:
            case "POST", "/generate":
                return self._generate(body)
            case "POST", "/parse_function_call":
                return DEFAULT_REPLY, sglang_wire.calls_in(body)
            case "POST", "/separate_reasoning":
                return DEFAULT_REPLY, sglang_wire.separated(body)
            case "POST", "/tokenize" if not self.old:
                return DEFAULT_REPLY, vllm_wire.tokenized(body, 40_960)
            case "GET", "/v1/models":
                model = {"id": CHAT, "object": "model", "owned_by": "sglang", "root": CHAT, "max_model_len": 40_960}
                return DEFAULT_REPLY, json_reply({"object": "list", "data": [model]})
            case "POST", "/v1/embeddings" if isinstance(body, dict) and body.get("model") == EMBEDDING[0]:
                reply = self.script.choose(RequestView(EMBEDDING[0], "", "", 0, False, (), body, "embeddings"))
                return reply, openai_wire.embeddings(body, EMBEDDING[1])
            case "POST", "/v1/chat/completions":
                return super().respond(request, body)
            case _:
                return DEFAULT_REPLY, HttpReply(404, JSON_HEADERS, b'{"detail":"Not Found"}')

    def _generate(self, body: Any) -> tuple[Reply, HttpReply]:
        sampling = (body or {}).get("sampling_params") or {}
        if not isinstance(body, dict) or not isinstance(body.get("text"), str) or not body["text"]:
            message = "Either text, input_ids or input_embeds should be provided."
            return DEFAULT_REPLY, sglang_wire.error("bad_request", message)
        if unknown := (body.keys() - _FIELDS) | (sampling.keys() - _SAMPLING):
            return DEFAULT_REPLY, sglang_wire.error("bad_request", f"Unexpected keyword argument {sorted(unknown)}")
        text, stream = body["text"], bool(body.get("stream"))
        seen = RequestView(CHAT, "user", text, 0, stream, (), body, question=text)
        reply = self.script.choose(seen)
        self._count += 1
        planned = sglang_wire.generated(reply, seen, self._count, incremental=self.incremental)
        return reply, _fault(reply) or planned


if __name__ == "__main__":
    serve_forever(SglangServer)
