"""A fake Bedrock: runtime (Converse, ConverseStream, CountTokens, InvokeModel) and control plane at one address.

    with BedrockServer().in_thread() as fake:
        client = botocore.session.get_session().create_client("bedrock-runtime", endpoint_url=fake.base_url, ...)

It refuses what AWS refuses: signatures that are not those of its key (or an empty bearer token), unknown models and
routes, fields that AWS's own description of the API does not know, histories whose calls and results do not match.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote

import orjson

from tests.fakes import bedrock_rules as rules
from tests.fakes import bedrock_signature
from tests.fakes import bedrock_wire as wire
from tests.fakes.http import Request
from tests.fakes.script import DEFAULT_REPLY, Reply, Seen, Usage
from tests.fakes.server import FakeServer, Planned, scripted_fault, serve_forever

ACCESS_KEY, SECRET = "AKIDTEST", "sk-test"
_TEXT = {"outputModalities": ["TEXT"], "responseStreamingSupported": True}
_PROFILE_ONLY = {"inferenceTypesSupported": ["INFERENCE_PROFILE"]}
_ON_DEMAND = {"inferenceTypesSupported": ["ON_DEMAND"]}
_EMBEDDING = {"outputModalities": ["EMBEDDING"], **_ON_DEMAND}
MODELS: Mapping[str, Mapping[str, Any]] = {
    **{name: {**_TEXT, **_PROFILE_ONLY, "inputModalities": ["TEXT", "IMAGE"]} for name in rules.CLAUDES},
    "amazon.nova-lite-v1:0": {**_TEXT, **_ON_DEMAND, "inputModalities": ["TEXT", "IMAGE", "VIDEO"]},
    "openai.gpt-oss-120b-1:0": {**_TEXT, **_ON_DEMAND, "inputModalities": ["TEXT"]},
    "meta.llama3-3-70b-instruct-v1:0": {**_TEXT, **_ON_DEMAND, "inputModalities": ["TEXT"]},
    "anthropic.claude-3-haiku-20240307-v1:0:48k": {**_TEXT, "inferenceTypesSupported": ["PROVISIONED"]},
    "amazon.titan-embed-text-v2:0": {**_EMBEDDING, "inputModalities": ["TEXT"]},
    "cohere.embed-v4:0": {**_EMBEDDING, "inputModalities": ["TEXT", "IMAGE"]},
    "amazon.nova-canvas-v1:0": {"outputModalities": ["IMAGE"], **_ON_DEMAND, "inputModalities": ["TEXT"]},
}
_SYSTEM = "SYSTEM_DEFINED"
PROFILES = (
    *((f"{region}.{name}", _SYSTEM, name) for name in rules.CLAUDES for region in ("us", "global")),
    ("us.amazon.nova-lite-v1:0", _SYSTEM, "amazon.nova-lite-v1:0"),
    ("a1b2c3d4e5f6", "APPLICATION", "anthropic.claude-sonnet-5"),
)
_MODEL_PATH = re.compile(r"/model/([^/]+)/(converse|converse-stream|count-tokens|invoke)")
_OPERATIONS = {"converse": "Converse", "converse-stream": "ConverseStream"}

# A script is text, a stream bytes.
_fault = partial(scripted_fault, error=wire.error, encoding="latin-1")


class BedrockServer(FakeServer):
    """A fake Bedrock; `page` is the most of one page of its lists."""

    def __init__(self, port: int = 0, *, record: bool = True, page: int = 4) -> None:
        super().__init__(port, record=record)
        self.page = page
        self._cached: set[int] = set()
        self._count = 0
        self._secrets = [SECRET]

    def takes_key(self, key: str) -> None:
        """See FakeServer.takes_key."""
        self._secrets.append(key)

    def respond(self, request: Request, body: Any) -> tuple[Reply, Planned]:
        """See FakeServer.respond."""
        if (complaint := self._complain_of_caller(request)) is not None:
            return DEFAULT_REPLY, wire.error("authentication", complaint)
        match request.method, request.path:
            case "GET", "/foundation-models":
                reply = self.script.choose(Seen("", "", "", 0, False, (), {}, "models"))
                return reply, _fault(reply) or wire.foundation_models(MODELS)
            case "GET", "/inference-profiles":
                return DEFAULT_REPLY, wire.inference_profiles(PROFILES, request.query, self.page)
        found = _MODEL_PATH.fullmatch(request.path)
        if request.method != "POST" or found is None:
            return DEFAULT_REPLY, wire.error("bad_request", "unknown operation", 404)
        return self._call(unquote(found[1]), found[2], body)

    def _complain_of_caller(self, request: Request) -> str | None:
        authorization = request.headers.get("authorization", "")
        if authorization.startswith("Bearer "):
            return None if len(authorization) > 7 else "Authentication failed: no token."
        complaints = [bedrock_signature.complain(request, ACCESS_KEY, secret) for secret in self._secrets]
        return None if None in complaints else complaints[0]

    def _call(self, model: str, operation: str, body: Any) -> tuple[Reply, Planned]:
        profiles = {name: foundation for name, _, foundation in PROFILES}
        foundation = profiles.get(model.rpartition("/")[2], model)
        if foundation not in MODELS:
            return DEFAULT_REPLY, wire.error("model_not_found")
        if operation == "invoke":
            return DEFAULT_REPLY, wire.embeddings(foundation, body)
        if operation == "count-tokens":
            return self._count_only(model, foundation, body)
        if foundation == model and "ON_DEMAND" not in MODELS[model]["inferenceTypesSupported"]:
            text = f"Invocation of model ID {model} with on-demand throughput isn't supported."
            return DEFAULT_REPLY, wire.error("bad_request", text)
        if (complaint := _complain_of_body(_OPERATIONS[operation], model, foundation, body)) is not None:
            return DEFAULT_REPLY, wire.error("bad_request", complaint)
        seen = look(model, body, stream=operation == "converse-stream")
        reply = self.script.choose(seen)
        self._count += 1
        usage = reply.usage or self._usage(body, reply)
        return reply, _fault(reply) or wire.message(reply, seen, self._count, usage)

    def _count_only(self, model: str, foundation: str, body: Any) -> tuple[Reply, Planned]:
        if model not in rules.CLAUDES:
            return DEFAULT_REPLY, wire.error("bad_request", "The provided model doesn't support counting tokens.")
        if (complaint := rules.complain_of_shape("CountTokens", model, body)) is not None:
            return DEFAULT_REPLY, wire.error("bad_request", complaint)
        converse = body["input"]["converse"]
        if (complaint := rules.complain(foundation, converse)) is not None:
            return DEFAULT_REPLY, wire.error("bad_request", complaint)
        reply = self.script.choose(Seen(model, "", "", 0, False, (), body, "count"))
        return reply, _fault(reply) or wire.counted(len(orjson.dumps(converse)) // 4)

    def _usage(self, body: Mapping[str, Any], reply: Reply) -> Usage:
        """A rough count; what is before the last cache point of the instructions is cached."""
        total, output = max(1, len(orjson.dumps(body["messages"])) // 4), max(1, len(reply.text) // 4)
        head = [*(body.get("toolConfig") or {}).get("tools", ()), *(body.get("system") or ())]
        if not any("cachePoint" in block for block in head):
            return Usage(total, output)
        prefix = orjson.dumps(head)
        known, size = hash(prefix) in self._cached, len(prefix) // 4
        self._cached.add(hash(prefix))
        return Usage(total, output, cached=size if known else 0, cache_write=0 if known else size)


def _complain_of_body(operation: str, model: str, foundation: str, body: Any) -> str | None:
    if not isinstance(body, dict):
        return "Malformed input request"
    return rules.complain_of_shape(operation, model, body) or rules.complain(foundation, body)


def look(model: str, body: Mapping[str, Any], *, stream: bool) -> Seen:
    """Returns a script's view of a Converse request."""
    step, question = 0, ""
    for message in reversed(body["messages"]):
        results = _results(message)
        if message["role"] == "user" and not results:
            question = _text(message["content"])
            break
        step += bool(results)
    last = body["messages"][-1]
    results = _results(last)
    tools = (body.get("toolConfig") or {}).get("tools", ())
    return Seen(
        model=model,
        last_role="tool" if results else last["role"],
        last_text="".join(_text(result["content"]) for result in results) if results else _text(last["content"]),
        step=step,
        stream=stream,
        tools=tuple(tool["toolSpec"]["name"] for tool in tools if "toolSpec" in tool),
        body=body,
        question=question,
    )


def _results(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [block["toolResult"] for block in message["content"] if "toolResult" in block]


def _text(blocks: list[dict[str, Any]]) -> str:
    return "".join(block.get("text", "") for block in blocks)


if __name__ == "__main__":
    serve_forever(BedrockServer)
