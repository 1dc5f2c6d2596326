"""A fake OpenAI: Chat Completions (whole and streamed), models and embeddings, as the `openai` SDK expects
them.

    with OpenAIServer().in_thread() as fake:
        fake.reply(Reply(text="Hi"), Reply(calls=[ToolCall("roll_dice", {"num_sides": 6})]))
        client = AsyncOpenAI(base_url=fake.base_url, api_key="any")

It refuses what the vendor refuses: no key, unknown models and routes, histories whose tool calls and results
do not match, parameters a reasoning model does not take.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tests.fakes import openai_wire as wire
from tests.fakes import picture_rules, tool_rules
from tests.fakes.http import Request
from tests.fakes.script import DEFAULT_REPLY, Reply, RequestView
from tests.fakes.server import FakeServer, HttpReply, scripted_fault, serve_forever

CHAT_MODELS = ("gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini", "gpt-5", "gpt-5-mini", "gpt-6-sol", "o3", "o4-mini")
EMBEDDING_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
ROLES = ("system", "developer", "user", "assistant", "tool")
_REASONING = re.compile(r"^(o\d|gpt-[5-9])")
_NO_EFFORT_WITH_TOOLS = re.compile(r"^gpt-(5\.[4-9]|[6-9])")
_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")

fault = partial(scripted_fault, error=wire.error)


class OpenAIServer(FakeServer):
    """A fake OpenAI server."""

    api_path = "/v1"

    def __init__(self, port: int = 0, *, models: Sequence[str] = CHAT_MODELS, record: bool = True) -> None:
        super().__init__(port, record=record)
        self.chat_models = tuple(models)
        self._count = 0

    def respond(self, request: Request, body: Any) -> tuple[Reply, HttpReply]:
        if not request.headers.get("authorization", "").startswith("Bearer "):
            return DEFAULT_REPLY, wire.error("authentication", "You didn't provide an API key.")
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                return self._chat(body)
            case "POST", "/v1/embeddings":
                return self._embeddings(body)
            case "GET", "/v1/models":
                reply = self.script.choose(RequestView("", "", "", 0, False, (), {}, "models"))
                names = self.chat_models + tuple(EMBEDDING_DIMENSIONS)
                return reply, fault(reply) or wire.models(names)
            case method, path:
                return DEFAULT_REPLY, wire.error("bad_request", f"Invalid URL ({method} {path})", 404)

    def _chat(self, body: Any) -> tuple[Reply, HttpReply]:
        if (complaint := refusal(body)) is not None:
            return DEFAULT_REPLY, wire.error("bad_request", *complaint)
        if body["model"] not in self.chat_models:
            return DEFAULT_REPLY, wire.error("model_not_found", f"The model `{body['model']}` does not exist.")
        seen = request_view(body)
        reply = self.script.choose(seen)
        self._count += 1
        return reply, fault(reply) or wire.chat(reply, seen, self._count)

    def _embeddings(self, body: Any) -> tuple[Reply, HttpReply]:
        if not isinstance(body, dict):
            return DEFAULT_REPLY, wire.error("bad_request", "We could not parse the JSON body of your request.")
        reply = self.script.choose(RequestView(body.get("model", ""), "", "", 0, False, (), body, "embeddings"))
        if planned := fault(reply):
            return reply, planned
        if (size := EMBEDDING_DIMENSIONS.get(str(body.get("model")))) is None:
            return DEFAULT_REPLY, wire.error("model_not_found")
        if not body.get("input") or "" in list(body["input"]):
            return DEFAULT_REPLY, wire.error("bad_request", "'input' must not be empty.", None, "input")
        return reply, wire.embeddings(body, size)


def request_view(body: Mapping[str, Any]) -> RequestView:
    """Returns a script's view of a chat request."""
    messages = body["messages"]
    step, question = 0, ""
    for index, message in reversed(list(enumerate(messages))):
        if message["role"] == "user":
            question = text_of(message.get("content"))
            break
        step += message["role"] == "tool" and messages[index - 1]["role"] == "assistant"
    last = messages[-1]
    return RequestView(
        model=body["model"],
        last_role=last["role"],
        last_text=text_of(last.get("content")),
        step=step,
        stream=bool(body.get("stream")),
        tools=tuple(tool["function"]["name"] for tool in body.get("tools", ())),
        body=body,
        question=question,
    )


def text_of(content: Any) -> str:
    """The text in a message's content, a string or a list of parts."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part.get("text", "") for part in content if isinstance(part, dict))


def refusal(body: Any) -> tuple[str, int | None, str | None] | None:
    """Returns the vendor's refusal of a chat request: (message, status, parameter), or None."""
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        return "you must provide a model parameter", None, "model"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "Invalid 'messages': empty array.", None, "messages"
    if text := _history_refusal(messages):
        return text, None, "messages"
    if complaint := tool_rules.openai_refusal([tool["function"] for tool in body.get("tools", ())]):
        return complaint[0], None, complaint[2]
    if _REASONING.match(body["model"]):
        if "max_tokens" in body:
            return (
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                None,
                "max_tokens",
            )
        if body.get("temperature", 1) != 1:
            return "Unsupported value: 'temperature' does not support this value.", None, "temperature"
        if body.get("logprobs"):
            return "logprobs are not supported with reasoning models.", None, "logprobs"
        if body.get("tools") and _NO_EFFORT_WITH_TOOLS.match(body["model"]) and body.get("reasoning_effort") != "none":
            return "Function tools with reasoning_effort are not supported here.", None, "reasoning_effort"
    elif not 0 <= body.get("top_logprobs", 0) <= 20 or ("top_logprobs" in body and not body.get("logprobs")):
        return "Invalid 'top_logprobs': 0 to 20, and only with 'logprobs'.", None, "top_logprobs"
    elif "reasoning_effort" in body:
        return "Unrecognized request argument supplied: reasoning_effort", None, "reasoning_effort"
    return None


def _history_refusal(messages: list[dict[str, Any]]) -> str | None:
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            return f"Invalid value: '{role}' for messages[{index}].role."
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            return f"'tool_calls' must be followed by tool messages: {sorted(open_calls)}"
        if message.get("content") is None and not (role == "assistant" and message.get("tool_calls")):
            return f"Invalid value for 'content': expected a string, got null at messages[{index}]."
        for number, call in enumerate(message.get("tool_calls") or ()):
            at = f"messages[{index}].tool_calls[{number}]"
            if not _TOOL_NAME.match(call["function"]["name"]):
                return f"Invalid '{at}.function.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'."
            if not isinstance(call["function"]["arguments"], str):
                return f"Invalid type for '{at}.function.arguments': expected a string."
        if message.get("content") == [] or message.get("tool_calls") == []:
            return f"Invalid 'messages[{index}]': empty array. Expected an array with minimum length 1."
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if (image := part.get("image_url")) and (complaint := picture_rules.address_refusal(image["url"])):
                return complaint
        open_calls = {call["id"] for call in message.get("tool_calls") or ()}
    return f"'tool_calls' without response: {sorted(open_calls)}" if open_calls else None


if __name__ == "__main__":
    serve_forever(OpenAIServer)
