"""The options of a request <- protobuf."""

from typing import Any

from loci.agent.v1 import message_service_pb2 as wire
from services.agent.core.facts import ClientSkill, ClientTool, Options
from services.agent.core.model_settings import RESPONSE_FORMATS, is_response_format
from services.agent.core.summaries.compaction_settings import settings_from_json
from services.common.core.storable import parse_storable, storable
from services.common.errors import InvalidArgument

DEFAULT_MAX_STEPS = 50
MOST_STEPS = 1_000
MOST_CLIENT_TOOLS = 500
LONGEST_TOOL_NAME = 64
MOST_LOGPROBS = 20
MOST_STOPS = 16
LONGEST_VIEW = 4_096
_OF_ONE = ("override_model", "override_system", "client_tools", "client_skills", "instructions", "response_format_json")


def options_from_proto(turn: wire.TurnRequest) -> Options:
    """Raises InvalidArgument (MESSAGE_INVALID), naming the field and what is expected."""
    options = turn.options
    max_steps = turn.max_steps if turn.HasField("max_steps") else DEFAULT_MAX_STEPS
    _check(1 <= max_steps <= MOST_STEPS, f"max_steps must be from 1 to {MOST_STEPS}, not {max_steps}")
    tools = tuple(map(_client_tool, options.client_tools))
    _check(len(tools) <= MOST_CLIENT_TOOLS, f"client_tools has {len(tools)} tools; at most {MOST_CLIENT_TOOLS}")
    top = options.top_logprobs if options.HasField("top_logprobs") else None
    _check(top is None or 0 <= top <= MOST_LOGPROBS, f"top_logprobs must be from 0 to {MOST_LOGPROBS}, not {top}")
    stops = tuple(map(storable, options.stop))
    _check(len(stops) <= MOST_STOPS and all(stops), f"stop takes at most {MOST_STOPS} texts, and none that is empty")
    view_length = len(options.view_json)
    _check(view_length <= LONGEST_VIEW, f"view_json has {view_length} characters; at most {LONGEST_VIEW}")
    return Options(
        max_steps=max_steps,
        model=storable(options.override_model) if options.HasField("override_model") else None,
        system=storable(options.override_system) if options.HasField("override_system") else None,
        client_tools=tuple({tool.name: tool for tool in tools}.values()),
        client_skills=tuple(
            ClientSkill(storable(skill.name), storable(skill.description), storable(skill.location))
            for skill in options.client_skills
        ),
        return_logprobs=options.return_logprobs,
        top_logprobs=top,
        return_token_ids=options.return_token_ids,
        include_trace=options.include_trace,
        callback_url=options.callback_url if options.HasField("callback_url") else None,
        websocket=options.websocket,
        view=storable(options.view_json) or None,
        locks=turn.locks,
        response_format=_response_format(options.response_format_json),
        first_call=_first_call(options.first_call),
        parallel_tool_calls=options.parallel_tool_calls if options.HasField("parallel_tool_calls") else None,
        stop=stops,
        instructions=storable(options.instructions),
    )


def check_round(options: wire.TurnOptions) -> None:
    """Raises InvalidArgument (MESSAGE_INVALID) for options that are about one agent: a group's round is of several."""
    for name in _OF_ONE:
        _check(not getattr(options, name), f"a round of a group takes no {name}; set it on the group's agents")


def compaction_from_proto(text: str) -> dict[str, Any]:
    """Returns compaction settings of one request. Raises InvalidArgument (MESSAGE_INVALID)."""
    try:
        value = parse_storable(text or "{}")
        if not isinstance(value, dict):
            raise ValueError("expected an object")  # noqa: TRY004 - said to the client below, as every wrong value is
        settings_from_json(value)
    except ValueError as error:
        raise InvalidArgument(f"compaction_settings cannot be used: {error}", reason="MESSAGE_INVALID") from None
    return value


def _response_format(text: str) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        form = parse_storable(text)
    except ValueError as error:
        raise InvalidArgument(f"response_format is not JSON: {error}", reason="MESSAGE_INVALID") from None
    _check(is_response_format(form), f"response_format must be {RESPONSE_FORMATS}")
    return form or None


def _first_call(call: wire.FirstCall) -> str | None:
    if call.WhichOneof("call") == "tool_name":
        _check(bool(call.tool_name), "first_call needs the name of a tool")
        return storable(call.tool_name)
    return "" if call.any_tool else None


def _client_tool(tool: wire.ClientTool) -> ClientTool:
    name = storable(tool.name)
    _check(0 < len(name) <= LONGEST_TOOL_NAME, f"a client tool's name must have 1 to {LONGEST_TOOL_NAME} characters")
    try:
        parameters = parse_storable(tool.parameters_json or "{}")
    except ValueError as error:
        raise InvalidArgument(f"the parameters of {name} are not JSON: {error}", reason="MESSAGE_INVALID") from None
    _check(isinstance(parameters, dict), f"the parameters of {name} must be a JSON Schema, an object")
    return ClientTool(name, storable(tool.description), parameters)


def _check(holds: bool, sentence: str) -> None:
    if not holds:
        raise InvalidArgument(sentence, reason="MESSAGE_INVALID")
