"""Notes to the model, in words, for demands that a wire has no field for. Pure."""

import orjson

from services.llm_gateway.core.chat import ChatRequest, ResponseFormat, ToolMode


def call_demand(choice: ToolMode | str) -> str:
    """Returns the demand of a call of a tool, or of one tool."""
    if isinstance(choice, str):
        return f"(Reply now with a call of the tool {choice}, and with nothing else.)"
    return "(Reply now with a call of a tool; a reply without one is of no use.)"


def call_ban() -> str:
    """Returns the ban of calls."""
    return "(Reply now in words: tools may not be called.)"


def json_demand(format: ResponseFormat) -> str:
    """Returns the demand of a reply that is one JSON object."""
    if format.schema is None:
        return "(Reply with one JSON object and nothing else, without a code fence.)"
    schema = orjson.dumps(format.schema).decode()
    return f"(Reply with one JSON object of this JSON Schema and nothing else, without a code fence: {schema})"


def note_for(
    request: ChatRequest, *, must_call: bool = False, may_not_call: bool = False, in_json: bool = False
) -> str:
    """Returns the note for a request, "" for none."""
    sentences = []
    if must_call:
        sentences.append(call_demand(request.tool_choice))
    if may_not_call:
        sentences.append(call_ban())
    if in_json and request.response_format is not None:
        sentences.append(json_demand(request.response_format))
    return " ".join(sentences)
