"""A fake Google AI and a fake Vertex AI: generateContent (whole and streamed), counts, embeddings and lists of models,
as the `google-genai` SDK expects them.

    with GoogleServer().in_thread() as fake:
        fake.reply(Reply(text="Hi"), Reply(calls=[ToolCall("roll_dice", {"num_sides": 6})]))
        client = genai.Client(api_key="any", http_options={"base_url": fake.base_url})

They refuse what the vendor refuses: no key or a token that was not given out, unknown models, routes and fields, roles
and empty parts that make no sense, results that do not match their calls, and from Gemini 3 on a step whose first call
has no thought signature.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tests.fakes import google_wire as wire
from tests.fakes import tool_rules
from tests.fakes.google_tokens import TokenServer
from tests.fakes.http import Request
from tests.fakes.script import DEFAULT_REPLY, Reply, RequestView, Usage
from tests.fakes.server import FakeServer, HttpReply, serve_forever

CHAT_MODELS = ("gemini-4-argon", "gemini-3.8-flash", "gemini-3-flash-preview", "gemini-2.5-flash")
EMBEDDING_MODELS = ("gemini-embedding-2", "gemini-embedding-001")
VERTEX_EMBEDDINGS = (*EMBEDDING_MODELS, "text-embedding-005")
FIELDS = frozenset(
    {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent"}
    | {"labels", "serviceTier", "continuationToken"}
)
CONFIG = frozenset(
    {"temperature", "topP", "topK", "seed", "maxOutputTokens", "stopSequences", "candidateCount", "responseMimeType"}
    | {"responseJsonSchema", "responseSchema", "responseLogprobs", "logprobs", "thinkingConfig"}
)
SCHEMA = frozenset(
    {"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems"}
    | {"minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required"}
    | {"propertyOrdering"}
)
PARTS = ("text", "inlineData", "fileData", "functionCall", "functionResponse")
# /v1beta/models/NAME:METHOD, and on Vertex with the project and the publisher before.
_AI = re.compile(r"/v1(?:beta)?/models/([^:/]+):(\w+)")
_VERTEX = re.compile(r"/v1(?:beta1)?/projects/([^/]+)/locations/([^/]+)/publishers/google/models/([^:/]+):(\w+)")
_Answer = tuple[Reply, HttpReply]


class GoogleServer(FakeServer):
    """A fake Gemini API."""

    route = _AI
    fields = FIELDS | {"store"}

    def __init__(self, port: int = 0, *, models: Sequence[str] = CHAT_MODELS, record: bool = True) -> None:
        super().__init__(port, record=record)
        self.chat_models = tuple(models)
        self._count = 0

    def respond(self, request: Request, body: Any) -> _Answer:
        if (refused := self.refused(request)) is not None:
            return DEFAULT_REPLY, refused
        if request.method == "GET":
            return self.listed(request)
        found = self.route.fullmatch(request.path)
        if found is None:
            return DEFAULT_REPLY, wire.error("model_not_found", f"{request.path} was not found on this server.")
        *_, model, method = found.groups()
        match method:
            case "generateContent" | "streamGenerateContent":
                return self._content(request, body, model, stream=method.startswith("stream"))
            case "countTokens":
                return self.counted(body, model)
            case _:
                return self.embedded(body, model, method)

    def refused(self, request: Request) -> HttpReply | None:
        """The refusal of who has no key."""
        return None if request.headers.get("x-goog-api-key") else wire.error("unregistered")

    def listed(self, request: Request) -> _Answer:
        """The list of models."""
        reply = self.script.choose(RequestView("", "", "", 0, False, (), {}, "models"))
        if not re.fullmatch(r"/v1(beta)?/models", request.path):
            return reply, wire.error("model_not_found", "Not found")
        return reply, _fault(reply) or wire.models(self.chat_models, EMBEDDING_MODELS, request.query)

    def _content(self, request: Request, body: Any, model: str, *, stream: bool) -> _Answer:
        if stream and request.query.get("alt") != "sse":
            return DEFAULT_REPLY, wire.error("bad_request", "this fake streams with alt=sse alone")
        if model not in self.chat_models:
            return DEFAULT_REPLY, wire.error("model_not_found", f"models/{model} is not found for API version v1beta.")
        if (complaint := refusal(body, model, self.fields)) is not None:
            return DEFAULT_REPLY, wire.error("bad_request", complaint)
        seen = request_view(body, model, stream)
        reply = self.script.choose(seen)
        self._count += 1
        usage = reply.usage or Usage(_size(body), max(1, len(reply.text) // 4 + 8 * len(reply.calls)))
        return reply, self.fault(reply) or wire.content(reply, seen, self._count, usage)

    def fault(self, reply: Reply) -> HttpReply | None:
        """The scripted error or raw body in place of a proper answer."""
        return _fault(reply)

    def counted(self, body: Any, model: str) -> _Answer:
        """countTokens, which takes a whole request in a field of its own."""
        inner = body.get("generateContentRequest") if isinstance(body, dict) else None
        asked = {name: value for name, value in (inner or body).items() if name != "model"}
        return self._counted(asked, model)

    def _counted(self, asked: dict[str, Any], model: str) -> _Answer:
        if (complaint := refusal(asked, model, self.fields)) is not None:
            return DEFAULT_REPLY, wire.error("bad_request", complaint)
        reply = self.script.choose(RequestView(model, "", "", 0, False, (), asked, "count"))
        return reply, _fault(reply) or wire.answer({"totalTokens": _size(asked)})

    def embedded(self, body: Any, model: str, method: str) -> _Answer:
        """batchEmbedContents."""
        reply = self.script.choose(RequestView(model, "", "", 0, False, (), body or {}, "embeddings"))
        if method != "batchEmbedContents" or model not in EMBEDDING_MODELS:
            return reply, wire.error("model_not_found", f"models/{model} is not found, or not supported for {method}.")
        asked = body["requests"]
        if any(one.get("model") != f"models/{model}" for one in asked):
            return reply, wire.error("bad_request", "the model of each request must be that of the batch")
        vectors = [wire.vector(_text(one["content"]), one.get("outputDimensionality", 3_072)) for one in asked]
        usage = {"promptTokenCount": _size(asked)}
        made = {"embeddings": [{"values": vector} for vector in vectors], "usageMetadata": usage}
        return reply, _fault(reply) or wire.answer(made)


class VertexServer(GoogleServer):
    """A fake Vertex AI, with the token endpoint of its service account at an address of its own."""

    route = _VERTEX
    fields = FIELDS

    def __init__(self, port: int = 0, *, models: Sequence[str] = CHAT_MODELS, record: bool = True) -> None:
        super().__init__(port, models=models, record=record)
        self.tokens = TokenServer()
        self.lists = True

    async def start(self) -> "VertexServer":
        await self.tokens.start()
        return await super().start()

    async def stop(self) -> None:
        await self.tokens.stop()
        await super().stop()

    def refused(self, request: Request) -> HttpReply | None:
        """The refusal of a token that was never given out."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        return None if token in self.tokens.given else wire.error("unauthenticated")

    def listed(self, request: Request) -> _Answer:
        reply = self.script.choose(RequestView("", "", "", 0, False, (), {}, "models"))
        if not self.lists or request.path != "/v1beta1/publishers/google/models":
            return reply, wire.error("model_not_found", "Not found")
        names = (*self.chat_models, *VERTEX_EMBEDDINGS, "imagen-4.0-generate-001")
        return reply, _fault(reply) or wire.published(names, request.query)

    def fault(self, reply: Reply) -> HttpReply | None:
        if reply.error == "authentication":
            return wire.error("unauthenticated", reply.message, reply.status, reply.retry_after)
        return super().fault(reply)

    def counted(self, body: Any, model: str) -> _Answer:
        return self._counted(body, model)

    def embedded(self, body: Any, model: str, method: str) -> _Answer:
        """batchEmbedContents of Gemini's models, predict of the older ones."""
        reply = self.script.choose(RequestView(model, "", "", 0, False, (), body or {}, "embeddings"))
        if model not in VERTEX_EMBEDDINGS:
            return reply, wire.error("model_not_found", f"Publisher Model {model} was not found.")
        if method == "batchEmbedContents" and "gemini" in model:
            asked = [(_text(one["content"]), one.get("embedContentConfig") or {}) for one in body["requests"]]
            vectors = [wire.vector(text, config.get("outputDimensionality", 3_072)) for text, config in asked]
            items = [{"values": one, "statistics": {"token_count": 3}} for one in vectors]
            return reply, _fault(reply) or wire.answer({"embeddings": items})
        if method == "predict" and "gemini" not in model:
            size = (body.get("parameters") or {}).get("outputDimensionality", 768)
            vectors = [wire.vector(one["content"], size) for one in body["instances"]]
            made = [{"embeddings": {"values": one, "statistics": {"token_count": 3}}} for one in vectors]
            return reply, _fault(reply) or wire.answer({"predictions": made})
        return reply, wire.error("bad_request", f"{method} is not supported for {model}")


def _fault(reply: Reply) -> HttpReply | None:
    if reply.raw_body is not None:
        return HttpReply(reply.status or 200, {"content-type": reply.content_type}, reply.raw_body.encode())
    if reply.error is None:
        return None
    planned = wire.error(reply.error, reply.message, reply.status, reply.retry_after)
    return HttpReply(planned.status, {**planned.headers, **reply.headers}, planned.body)


def request_view(body: Mapping[str, Any], model: str, stream: bool) -> RequestView:
    """Returns a script's view of a request."""
    contents = body["contents"]
    step, question = 0, ""
    for content in reversed(contents):
        results = _of_kind(content, "functionResponse")
        if content["role"] == "user" and not results:
            question = _text(content)
            break
        step += bool(results)
    last = contents[-1]
    results = _of_kind(last, "functionResponse")
    declared = [one for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())]
    said = " ".join(str(result["response"].get("output", "")) for result in results) if results else _text(last)
    return RequestView(
        model=model,
        last_role="tool" if results else last["role"],
        last_text=said,
        step=step,
        stream=stream,
        tools=tuple(one["name"] for one in declared),
        body=body,
        question=question,
    )


def _text(content: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in content["parts"] if not part.get("thought"))


def _of_kind(content: Mapping[str, Any], kind: str) -> list[Any]:
    return [part[kind] for part in content["parts"] if kind in part]


def _size(value: Any) -> int:
    return max(1, len(orjson.dumps(value)) // 4)


def refusal(body: Any, model: str, fields: frozenset[str] = FIELDS) -> str | None:
    """Returns the vendor's refusal of a request, or None."""
    if not isinstance(body, dict):
        return "Invalid JSON payload received."
    config = body.get("generationConfig") or {}
    for given, known in ((body, fields), (config, CONFIG)):
        if unknown := set(given) - known:
            return f'Invalid JSON payload received. Unknown name "{min(unknown)}": Cannot find field.'
    thinking = config.get("thinkingConfig") or {}
    # Names are taken in either spelling, and the SDK sends these in its own.
    if {"thinkingBudget", "thinking_budget"} & set(thinking) and {"thinkingLevel", "thinking_level"} & set(thinking):
        return "You can only set only one of thinking budget and thinking level."
    if config.get("responseMimeType") and body.get("tools") and model.startswith("gemini-2"):
        return "Function calling with a response mime type: 'application/json' is unsupported"
    schemas = [
        one.get("parametersJsonSchema") for tool in body.get("tools", ()) for one in tool["functionDeclarations"]
    ]
    declarations = [one for tool in body.get("tools", ()) for one in tool["functionDeclarations"]]
    if complaint := tool_rules.google_refusal(declarations):
        return complaint
    for schema in (*schemas, config.get("responseJsonSchema")):
        if unknown := set(keywords(schema)) - SCHEMA:
            return f'Invalid schema: unknown name "{min(unknown)}"'
    return _contents_refusal(body.get("contents"), is_signed=not model.startswith("gemini-2"))


def keywords(schema: Any) -> Iterator[str]:
    """The keywords of a schema and of all in it."""
    if not isinstance(schema, dict):
        return
    yield from schema if "$ref" not in schema else (name for name in schema if not name.startswith("$"))
    for name in ("properties", "$defs"):
        for inner in (schema.get(name) or {}).values():
            yield from keywords(inner)
    for inner in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
        yield from keywords(inner)


_PICTURES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})


def _contents_refusal(contents: Any, *, is_signed: bool) -> str | None:
    if not contents:
        return "* GenerateContentRequest.contents: contents is not specified"
    calls: list[dict[str, Any]] = []
    for index, content in enumerate(contents):
        role, parts = content.get("role"), content.get("parts")
        if role not in ("user", "model"):
            return "Please use a valid role: user, model."
        if not parts or any(sum(kind in part for kind in PARTS) != 1 for part in parts):
            return f"* GenerateContentRequest.contents[{index}].parts: must hold one of its kinds each"
        for part in parts:
            if (picture := part.get("inlineData")) and picture["mimeType"] not in _PICTURES:
                return f"Unsupported MIME type: {picture['mimeType']}"
        if any(part.get("text") == "" and "thoughtSignature" not in part for part in parts):
            return "Unable to submit request because it has an empty text parameter."
        if (complaint := _results_refusal(_of_kind(content, "functionResponse"), calls)) is not None:
            return complaint
        calls = _of_kind(content, "functionCall")
        if calls and (index == 0 or contents[index - 1]["role"] != "user" or role != "model"):
            return "Please ensure that function call turn comes immediately after a user turn."
        first: dict[str, Any] = next((part for part in parts if "functionCall" in part), {})
        if calls and is_signed and "thoughtSignature" not in first:
            return f"Function call `{calls[0]['name']}` is missing a `thought_signature`."
    return _results_refusal([], calls)


def _results_refusal(results: list[dict[str, Any]], calls: list[dict[str, Any]]) -> str | None:
    if len(results) != len(calls):
        return "Please ensure that the number of function response parts is equal to the number of function call parts."
    for result, call in zip(results, calls, strict=True):
        if (result.get("name"), result.get("id")) != (call.get("name"), call.get("id")):
            return "Please ensure that function responses have the names and ids of their calls."
    return None


if __name__ == "__main__":
    serve_forever(GoogleServer)
