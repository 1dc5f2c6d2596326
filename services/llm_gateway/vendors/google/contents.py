"""Messages as Google's contents: roles user and model in turn, results beside one another in the order of their calls.
Pure.

Thought signatures go back exactly where they were: in the call, text or thought that they came with, or in an empty
text. From Gemini 3 on a model refuses a step whose first call has none; for calls that another model made, or we, the
documentation gives one that is accepted instead (ai.google.dev/gemini-api/docs/thought-signatures, read in November
2026).
"""

import mimetypes
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never
from urllib.parse import urlsplit

import orjson

from services.llm_gateway.core.chat import (
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.vendors.shared.call_ids import ANY, with_valid_ids
from services.llm_gateway.vendors.shared.origins import own_value

GOOGLE = "google"
ANOTHERS_CALL = "skip_thought_signature_validator"
_GENERATION = re.compile(r"gemini-(\d+)")
# Names that always mean the newest.
_NEWEST = re.compile(r"gemini-.*-latest$")
_SIGNED = 3

Content = dict[str, Any]


def generation_of(model: ChatModel) -> int:
    """Returns the generation of a Gemini; 0 of any other model."""
    name = model.base_model or model.name
    if _NEWEST.search(name):
        return 99
    match = _GENERATION.search(name)
    return int(match.group(1)) if match else 0


def contents_of(messages: Sequence[Message], model: ChatModel) -> list[Content]:
    """Returns all but the system messages."""
    speaking = [message for message in messages if message.role is not Role.SYSTEM]
    writer = _Writer(generation_of(model))
    for message in with_valid_ids(speaking, ANY):
        writer.add(message)
    return writer.contents()


class _Writer:
    def __init__(self, generation: int) -> None:
        self._signs = generation >= _SIGNED
        # Whether a result may hold pictures itself.
        self._draws = generation >= _SIGNED
        self._contents: list[Content] = []
        self._names: dict[str, str] = {}

    def add(self, message: Message) -> None:
        is_model = message.role is Role.ASSISTANT
        parts = list(self._model_parts(message.parts) if is_model else self._user_parts(message.parts))
        if not parts:
            return
        role = "model" if is_model else "user"
        if self._contents and self._contents[-1]["role"] == role:
            self._contents[-1]["parts"] += parts
        else:
            self._contents.append({"role": role, "parts": parts})

    def contents(self) -> list[Content]:
        contents = self._contents
        if not contents or contents[0]["role"] == "model":
            contents.insert(0, _filler("(The conversation begins earlier.)"))
        if contents[-1]["role"] == "model":
            contents.append(_filler("(Continue.)"))
        order = {id: position for position, id in enumerate(self._names)}
        for content in contents:
            if content["role"] == "user":
                content["parts"].sort(key=lambda part: _place(part, order))
            elif self._signs:
                _sign(content["parts"])
        return contents

    def _model_parts(self, parts: Iterable[Part]) -> Iterator[Content]:
        signature = ""
        for part in parts:
            if signature and not isinstance(part, ToolCall):
                yield _with_signature({"text": ""}, signature)
                signature = ""
            match part:
                case RedactedReasoning():
                    signature = own_value(GOOGLE, part.data) or ""
                case ToolCall():
                    self._names[part.id] = part.name
                    call = {"id": part.id, "name": part.name, "args": _arguments(part)}
                    yield _with_signature({"functionCall": call}, signature)
                    signature = ""
                case Text():
                    own = own_value(GOOGLE, part.signature)
                    if part.text or own:
                        yield _with_signature({"text": part.text}, own)
                case Reasoning():
                    own = own_value(GOOGLE, part.signature)
                    if own is not None:
                        yield _with_signature({"text": part.text, "thought": True}, own)
                case Image():
                    yield _picture(part)
                case ToolResult():
                    pass
                case _:
                    assert_never(part)
        if signature:
            yield _with_signature({"text": ""}, signature)

    def _user_parts(self, parts: Iterable[Part]) -> Iterator[Content]:
        for part in parts:
            match part:
                case Text():
                    if part.text:
                        yield {"text": part.text}
                case Image():
                    yield _picture(part)
                case ToolResult():
                    yield from self._result(part)
                case Reasoning() | RedactedReasoning() | ToolCall():
                    pass
                case _:
                    assert_never(part)

    def _result(self, result: ToolResult) -> Iterator[Content]:
        text = "\n".join(item.text for item in result.content if isinstance(item, Text))
        pictures = [item for item in result.content if isinstance(item, Image)]
        name = self._names.get(result.tool_call_id)
        if name is None:
            # Without its call a result has no name, and is refused.
            yield {"text": f"(The result of an earlier call: {text})"}
            yield from map(_picture, pictures)
            return
        held = [picture for picture in pictures if self._draws and not picture.url]
        response: Content = {"error" if result.is_error else "output": text}
        answer: Content = {"id": result.tool_call_id, "name": name, "response": response}
        if held:
            answer["parts"] = [_picture(picture) for picture in held]
        yield {"functionResponse": answer}
        yield from (_picture(picture) for picture in pictures if picture not in held)


def _place(part: Content, order: Mapping[str, int]) -> int:
    """Returns the place of a part: results come first, as their calls did."""
    answer = part.get("functionResponse")
    return len(order) if answer is None else order[answer["id"]]


def _sign(parts: list[Content]) -> None:
    """The first of parallel calls is the one that has to have a signature."""
    first = next((part for part in parts if "functionCall" in part), None)
    if first is not None:
        first.setdefault("thoughtSignature", ANOTHERS_CALL)


def _with_signature(part: Content, signature: str | None) -> Content:
    return {**part, "thoughtSignature": signature} if signature else part


def _filler(text: str) -> Content:
    """Returns the turn that stands where a user's is demanded and there is none."""
    return {"role": "user", "parts": [{"text": text}]}


def _arguments(call: ToolCall) -> Any:
    """Returns the arguments object. Text of the model that is no object is shown to it as text."""
    try:
        value = orjson.loads(call.arguments_json)
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {"unparsed_arguments": call.arguments_json}


def _picture(image: Image) -> Content:
    if not image.url:
        return {"inlineData": {"mimeType": image.media_type, "data": image.data}}
    media_type = image.media_type or mimetypes.guess_type(urlsplit(image.url).path)[0]
    return {"fileData": {"fileUri": image.url} | ({"mimeType": media_type} if media_type else {})}
