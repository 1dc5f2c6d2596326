"""A tool that a model writes: asked for in a fixed form, and looked at as any other source before it is shown."""

from dataclasses import dataclass
from typing import Any

import orjson

from gateway.peers import Peers
from gateway.resources.tools.requests import WriteTool
from gateway.rest.convert import Rest, from_json
from loci.llm.v1 import chat_pb2, chat_service_pb2
from loci.tool.v1 import tool_service_pb2
from services.common.errors import Internal, InvalidArgument
from services.common.ids import to_public, uuid7

# Models that think take their time.
_SECONDS = 120.0
# The second time the model sees what was wrong.
_TRIES = 2
_INSTRUCTIONS = """\
You write tools for an assistant: one Python function that does one thing.

- The last function of the source is the tool, and its name is the one asked for. Helpers and imports stand above it.
- It has a Google-style docstring that tells a model what the tool does and, under "Args:", what each argument is.
- Every argument has a type hint: str, int, float, bool, list[T], dict[str, T], Literal[...], Optional[T].
- It returns something that JSON can hold, and raises an exception with a clear message where it fails.
- Use the standard library where that is enough. Read secrets from os.environ, never write them into the source.

Answer with `source_code`; with `sample_args_json`, an object of arguments for a first try, as JSON text; and with
`response`, one or two sentences for the person who asked: what the tool does, and what it needs, such as packages,
hosts to be allowed, or environment variables."""
_FIELDS = ("source_code", "sample_args_json", "response")
_FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "tool",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in _FIELDS},
            "required": list(_FIELDS),
            "additionalProperties": False,
        },
    },
}


@dataclass(frozen=True)
class _Reply:
    source: str
    sample_args: dict[str, Any]
    response: str


async def generate_tool_source(peers: Peers, body: WriteTool, handle: str) -> Rest:
    """Returns the reference's GenerateToolOutput; nothing is stored. Raises LociError, also for a model that cannot do
    it.
    """
    messages = [_message(chat_pb2.CHAT_ROLE_SYSTEM, _INSTRUCTIONS), _message(chat_pb2.CHAT_ROLE_USER, _prompt(body))]
    for last in (*(False,) * (_TRIES - 1), True):
        text = await _generate(peers, handle, messages)
        written = _read(text, handle)
        request = tool_service_pb2.GenerateToolSchemaRequest(source_code=written.source)
        try:
            response = await peers.call(peers.tools.GenerateToolSchema, request)
        except InvalidArgument as refusal:
            if last:
                raise
            problem = f"That is refused: {refusal.message}. Write it again, whole."
            messages += [_message(chat_pb2.CHAT_ROLE_ASSISTANT, text), _message(chat_pb2.CHAT_ROLE_USER, problem)]
        else:
            tool = _tool(written, from_json(response.json_schema_json))
            return {"tool": tool, "sample_args": written.sample_args, "response": written.response}
    raise AssertionError("the last try returns or raises")


async def _generate(peers: Peers, handle: str, messages: list[chat_pb2.ChatMessage]) -> str:
    request = chat_service_pb2.GenerateRequest(
        request=chat_service_pb2.GenerationRequest(
            handle=handle, messages=messages, response_format_json=orjson.dumps(_FORM).decode()
        )
    )
    answer = await peers.call(peers.chat.Generate, request, timeout=_SECONDS)
    return "".join(part.text.text for part in answer.generation.message.parts)


def _read(text: str, handle: str) -> _Reply:
    try:
        values = orjson.loads(text)
        source, sample, response = (values[name] for name in _FIELDS)
        arguments = orjson.loads(sample or "{}")
        if not isinstance(arguments, dict) or not isinstance(source, str) or not source.strip():
            raise TypeError
    except (ValueError, TypeError, KeyError):
        sentence = f"{handle} did not answer with a tool; name another model in `handle`"
        raise Internal(sentence, reason="LLM_EMPTY_RESPONSE") from None
    return _Reply(source, arguments, str(response))


def _prompt(body: WriteTool) -> str:
    parts = [f"Write the tool `{body.tool_name}`.", body.prompt]
    if body.starter_code:
        parts.append(f"Begin with this source:\n{body.starter_code}")
    if body.validation_errors:
        parts.append("Mend these problems:\n" + "\n".join(body.validation_errors))
    return "\n\n".join(parts)


def _tool(written: _Reply, schema: Rest) -> Rest:
    """Returns as a stored one looks, with an id of its own; `tools.create` makes it one."""
    return {
        "id": to_public("tool", uuid7()),
        "tool_type": "custom",
        "name": schema["name"],
        "description": schema.get("description", ""),
        "source_type": "python",
        "source_code": written.source,
        "json_schema": schema,
        "args_json_schema": None,
        "tags": [],
        "return_char_limit": 50_000,
        "pip_requirements": None,
        "npm_requirements": None,
        "default_requires_approval": False,
        "enable_parallel_execution": False,
        "created_by_id": None,
        "last_updated_by_id": None,
        "metadata_": {},
        "project_id": None,
    }


def _message(role: "chat_pb2.ChatRole.ValueType", text: str) -> chat_pb2.ChatMessage:
    return chat_pb2.ChatMessage(role=role, parts=[chat_pb2.ChatPart(text=chat_pb2.TextPart(text=text))])
