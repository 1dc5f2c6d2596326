"""A fake Ollama: /api/tags, /api/show, /api/chat (whole and NDJSON), /api/embed, /api/version.

It refuses what Ollama refuses: unknown models, tools, images and thinking for models without them, arguments that are
no object, images that are no base64, options of a wrong type, prompts longer than num_ctx where `truncate` is false.
`old`: a version before 0.6.4, which shows no capabilities and knows no `truncate`.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from tests.fakes import ollama_wire as wire
from tests.fakes.http import Request
from tests.fakes.script import DEFAULT_REPLY, Reply, Seen
from tests.fakes.server import FakeServer, Planned, json_reply, scripted_fault, serve_forever

ROLES = ("system", "user", "assistant", "tool")
_TOOLS_TEMPLATE = (
    "{{- if .Tools }}tools: {{ .Tools }}{{ end }}{{ range .Messages }}{{ .Role }}: {{ .Content }}{{ end }}"
)
_INTEGERS = ("num_ctx", "num_predict", "seed", "top_k")

_fault = partial(scripted_fault, error=wire.error)


@dataclass(frozen=True)
class FakeModel:
    """A model that was pulled. `architecture` prefixes its figures, as in the weights' metadata."""

    architecture: str
    capabilities: tuple[str, ...] = ("completion", "tools", "vision", "thinking")
    context_length: int | None = 131_072
    embedding_length: int = 1_536
    parameters: str = ""
    template: str = _TOOLS_TEMPLATE
    thinking: Mapping[str, Any] | None = None
    families: tuple[str, ...] = ()
    more_info: Mapping[str, Any] = field(default_factory=dict)


MODELS: Mapping[str, FakeModel] = {
    "qwen3-vl:8b": FakeModel("qwen3vl", thinking={"values": [True, False], "default": True}),
    "llama3.2:latest": FakeModel("llama", ("completion", "tools"), parameters="num_ctx    8192\nstop    <|eot_id|>"),
    "tinydolphin:1.1b": FakeModel("llama", ("completion",), 4_096, template="{{ .Prompt }}"),
    "llava:7b": FakeModel(
        "llama", ("completion", "vision"), 32_768, template="{{ .Prompt }}", families=("llama", "clip")
    ),
    "nomic-embed-text:latest": FakeModel(
        "nomic-bert", ("embedding",), 2_048, 768, template="{{ .Prompt }}", more_info={"nomic-bert.pooling_type": 1}
    ),
}


class OllamaServer(FakeServer):
    """A fake Ollama server."""

    def __init__(
        self,
        port: int = 0,
        *,
        models: Mapping[str, FakeModel] = MODELS,
        old: bool = False,
        key: str = "",
        record: bool = True,
    ) -> None:
        super().__init__(port, record=record)
        self.models, self.old, self.key = dict(models), old, key

    def respond(self, request: Request, body: Any) -> tuple[Reply, Planned]:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return DEFAULT_REPLY, wire.error("authentication")
        match request.method, request.path:
            case "POST", "/api/chat":
                return self._chat(body)
            case "POST", "/api/embed":
                return self._embed(body)
            case "POST", "/api/show":
                return DEFAULT_REPLY, self._show(body)
            case "GET", "/api/tags":
                reply = self.script.choose(Seen("", "", "", 0, False, (), {}, "models"))
                return reply, _fault(reply) or json_reply({"models": [self._tag(name) for name in self.models]})
            case "GET", "/api/version":
                return DEFAULT_REPLY, json_reply({"version": "0.5.7" if self.old else "0.31.0"})
            case _:
                return DEFAULT_REPLY, Planned(404, {"content-type": "text/plain"}, b"404 page not found")

    def _tag(self, name: str) -> dict[str, Any]:
        return {"name": name, "model": name, "digest": f"sha256:{name}", "size": 1, "details": self._details(name)}

    def _details(self, name: str) -> dict[str, Any]:
        model = self.models[name]
        families = list(model.families or (model.architecture,))
        return {"format": "gguf", "family": model.architecture, "families": families, "parameter_size": "8B"}

    def _show(self, body: Any) -> Planned:
        name = body.get("name" if self.old else "model", "") if isinstance(body, dict) else ""
        model = self.models.get(name)
        if model is None:
            return wire.error("model_not_found", f"model '{name}' not found")
        info: dict[str, Any] = {
            "general.architecture": model.architecture,
            f"{model.architecture}.embedding_length": model.embedding_length,
            f"{model.architecture}.vision.embedding_length": 1_280,
            **model.more_info,
        }
        if model.context_length:
            info[f"{model.architecture}.context_length"] = model.context_length
        if "vision" not in model.capabilities or model.families:
            del info[f"{model.architecture}.vision.embedding_length"]
        shown = {"parameters": model.parameters, "template": model.template, "model_info": info}
        shown["details"] = self._details(name)
        if not self.old:
            shown["capabilities"] = list(model.capabilities)
            shown |= {} if model.thinking is None else {"thinking": model.thinking}
        return json_reply(shown)

    def _chat(self, body: Any) -> tuple[Reply, Planned]:
        if complaint := self._complain(body):
            return DEFAULT_REPLY, complaint
        seen = look(body)
        reply = self.script.choose(seen)
        if fault := _fault(reply):
            return reply, fault
        window = (body.get("options") or {}).get("num_ctx", 4_096)
        if not self.old and body.get("truncate") is False and len(orjson.dumps(body["messages"])) > 4 * window:
            return reply, wire.error("context_overflow")
        return reply, wire.chat(reply, seen)

    def _complain(self, body: Any) -> Planned | None:
        if not isinstance(body, dict) or not body.get("model"):
            return wire.error("bad_request", "model is required")
        name, model = body["model"], self.models.get(body["model"])
        if model is None:
            tail = ", try pulling it first" if self.old else ""
            return wire.error("model_not_found", f"model '{name}' not found{tail}")
        for wanted, is_wanted in (("tools", body.get("tools")), ("thinking", body.get("think"))):
            if is_wanted and wanted not in model.capabilities:
                return wire.error("bad_request", f"registry.ollama.ai/library/{name} does not support {wanted}")
        if "completion" not in model.capabilities:
            return wire.error("bad_request", f'"{name}" does not support chat')
        return complain_of_options(body) or complain_of_messages(body, model)

    def _embed(self, body: Any) -> tuple[Reply, Planned]:
        reply = self.script.choose(Seen(str((body or {}).get("model")), "", "", 0, False, (), body, "embeddings"))
        if fault := _fault(reply):
            return reply, fault
        model = self.models.get(body["model"])
        if model is None:
            return reply, wire.error("model_not_found", f'model "{body["model"]}" not found, try pulling it first')
        if body.get("truncate") is False and any(len(text) > 4 * (model.context_length or 0) for text in body["input"]):
            return reply, wire.error("context_overflow")
        return reply, wire.embeddings(body, model.embedding_length)


def complain_of_options(body: Mapping[str, Any]) -> Planned | None:
    """Options of a wrong type, which stop the request while it is read."""
    options = body.get("options") or {}
    for name in _INTEGERS:
        if name in options and type(options[name]) is not int:
            return wire.error("bad_request", f'option "{name}" must be of type integer')
    if "stop" in options and not isinstance(options["stop"], list):
        return wire.error("bad_request", 'option "stop" must be of type array')
    if isinstance(body.get("keep_alive"), str) and body["keep_alive"].lstrip("-").isdigit():
        return wire.error("bad_request", f'time: missing unit in duration "{body["keep_alive"]}"')
    wanted = body.get("format")
    if wanted is not None and wanted != "json" and not isinstance(wanted, dict):
        return wire.error("bad_request", f'invalid format: "{wanted}"; expected "json" or a valid JSON Schema object')
    return None


def complain_of_messages(body: Mapping[str, Any], model: FakeModel) -> Planned | None:
    """Messages that Ollama cannot read."""
    for message in body.get("messages") or ():
        if message.get("role") not in ROLES or not isinstance(message.get("content"), str):
            return wire.error("bad_request", f"json: cannot unmarshal message with role {message.get('role')}")
        for call in message.get("tool_calls") or ():
            if not isinstance(call["function"].get("arguments"), dict):
                return wire.error("bad_request", "json: cannot unmarshal string into Go struct field .arguments")
        for image in message.get("images") or ():
            try:
                base64.b64decode(image, validate=True)
            except binascii.Error:
                return wire.error("bad_request", "illegal base64 data at input byte 4")
            if "vision" not in model.capabilities:
                return wire.error("bad_request", "this model is missing data required for image input")
    return None


def look(body: Mapping[str, Any]) -> Seen:
    """Returns a script's view of a chat request."""
    messages = body.get("messages") or [{"role": "user", "content": ""}]
    step, question = 0, ""
    for index, message in reversed(list(enumerate(messages))):
        if message["role"] == "user":
            question = message["content"]
            break
        step += message["role"] == "tool" and messages[index - 1]["role"] == "assistant"
    names = tuple(tool["function"]["name"] for tool in body.get("tools") or ())
    last = messages[-1]
    stream = bool(body.get("stream", True))
    return Seen(body["model"], last["role"], last["content"], step, stream, names, body, question=question)


if __name__ == "__main__":
    serve_forever(OllamaServer)
