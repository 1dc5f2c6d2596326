"""Names of fields in the SDK's releases before 1.0. A body with one of them is told today's name, and nothing is done.

The reference ignores what it does not know: such a request would be answered, and be another than was meant.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from gateway.rest.body import Body

# Old name -> today's.
AGENT: Mapping[str, str] = {
    "llm": "model",
    "llm_model": "model",
    "model_name": "model",
    "embedding_model": "embedding",
    "system_prompt": "system",
    "human": "memory_blocks",
    "persona": "memory_blocks",
    "tool_names": "tools",
}
TURN: Mapping[str, str] = {
    "text": "input",
    "message": "input",
    "prompt": "input",
    "stream": "streaming",
    "stream_steps": "streaming",
    "assistant_message_function_name": "assistant_message_tool_name",
    "assistant_message_function_kwarg": "assistant_message_tool_kwarg",
}
MESSAGE: Mapping[str, str] = {"text": "content", "message": "content"}
# Two ways to say the same thing: who says it in either is understood.
_SAID_BY: Mapping[str, frozenset[str]] = {"input": frozenset({"input", "messages"})}


class BodyWithOldNames(Body):
    """A body some of whose fields had other names."""

    old_names: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, body: Any) -> Any:
        if isinstance(body, dict) and not cls.old_names.keys().isdisjoint(body):
            _check(body, cls.old_names)
        return body


def _check(body: Mapping[Any, Any], names: Mapping[str, str]) -> None:
    """Raises PydanticCustomError (renamed_field) for an old name that asks for something nobody else here asks for."""
    for old, today in names.items():
        if body.get(old) in (None, False) or not _SAID_BY.get(today, frozenset({today})).isdisjoint(body):
            continue
        raise PydanticCustomError(
            "renamed_field",
            "`{old}` is of an older SDK: the field is called `{today}` now",
            {"old": old, "today": today},
        )
