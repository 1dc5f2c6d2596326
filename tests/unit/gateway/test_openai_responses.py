"""Requests and items of OpenAI's Responses."""

from itertools import groupby
from typing import Any

import pytest

from gateway.errors.invalid import InvalidRequest
from gateway.openai_api.responses.items import OutputItems
from gateway.openai_api.responses.requests import CreateResponse, response_id, run_of

RUN = "run-01a21fbc-0cfb-70dd-b4f0-a8a58a3c129a"
BARE = "01a21fbc0cfb70ddb4f0a8a58a3c129a"
SAID: Any = {"role": "user", "content": "hi"}


def request(*items: Any, **fields: Any) -> CreateResponse:
    return CreateResponse(model="agent", input=list(items) or "hi", **fields)


def told(*items: Any) -> list[str]:
    """Its messages: role and text, or the returns of calls."""
    return [
        f"{message.role}: {message.content}" if message.type is None else message.tool_returns[0].tool_call_id  # type: ignore[union-attr]
        for message in request(*items).turn().messages or ()
    ]


@pytest.mark.parametrize(
    ("items", "messages"),
    [
        ([SAID], ["user: hi"]),
        ([{"type": "message", **SAID}], ["user: hi"]),
        ([{"role": "developer", "content": "be kind"}, SAID], ["system: be kind", "user: hi"]),
        ([SAID, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "?"}], ["user: ?"]),
        ([SAID, {"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "?"}], ["user: ?"]),
        ([SAID, {"type": "function_call"}, {"type": "function_call_output", "call_id": "c", "output": "4"}], ["c"]),
        ([SAID, {"type": "function_call_output", "call_id": "c", "output": "4"}], ["c", "user: hi"]),
    ],
)
def test_what_the_agent_is_told(items: list[Any], messages: list[str]) -> None:
    assert told(*items) == messages


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ([{"role": "assistant", "content": "Hello."}], "agent's own"),
        ([{"type": "computer_call_output"}], "items of type computer_call_output"),
        ([{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}], "folder of the agent"),
        ([{"role": "user", "content": None}], "needs text"),
        ([{"type": "function_call_output", "output": "4"}], "call_id"),
        ([{"type": ["message"], "content": "hi"}], "items of type"),
        ([{"role": ["user"], "content": "hi"}], "items of type message"),
        ([{"role": "user", "content": [["hi"]]}], "is not taken"),
    ],
)
def test_input_that_is_refused(items: list[Any], problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        request(*items).turn()


def test_tools_and_forms() -> None:
    schema = {"type": "object"}
    tool = {"type": "function", "name": "ls", "parameters": schema}
    text = {"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}}
    turn = request(
        tools=[tool], tool_choice={"type": "function", "name": "ls"}, text=text, instructions="Be kind"
    ).turn()
    options = turn.options()
    assert (options.first_call.tool_name, options.client_tools[0].name, options.instructions) == ("ls", "ls", "Be kind")
    assert turn.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": schema, "strict": True},
    }


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search"},
        {"type": "function"},
        {"type": "function", "name": ""},
        {"type": "function", "name": "a" * 65},
        {"type": "function", "name": "ls", "parameters": []},
        {"type": "function", "name": "ls", "description": {}},
    ],
)
def test_tools_that_are_refused(tool: Any) -> None:
    with pytest.raises(InvalidRequest, match="tool"):
        request(tools=[tool]).turn()


def test_ids_name_runs() -> None:
    assert response_id(RUN) == f"resp_{BARE}"
    assert (run_of(f"resp_{BARE}"), run_of(f"msg_{BARE}_3"), run_of("resp_1"), run_of("chatcmpl-1")) == (
        RUN,
        RUN,
        None,
        None,
    )


def test_where_a_request_goes_on() -> None:
    answer = {"role": "assistant", "id": f"msg_{BARE}_0", "content": "Hello."}
    assert request(previous_response_id=f"resp_{BARE}").earlier_run() == RUN
    assert request(SAID, answer, SAID).earlier_run() == RUN
    assert request(SAID, {**answer, "id": "msg_of_another"}, SAID).earlier_run() is None
    assert request().earlier_run() is None
    # What some clients keep of a call is its id alone.
    returned = {"type": "function_call_output", "call_id": f"c_r{BARE}", "output": "4"}
    assert request(SAID, {"type": "function_call", "call_id": f"c_r{BARE}"}, returned).earlier_run() == RUN
    assert told(returned) == ["c"]
    with pytest.raises(InvalidRequest, match="no response"):
        request(previous_response_id="resp_1").earlier_run()


def test_items_grow_and_end() -> None:
    items = OutputItems(BARE)
    deltas: list[Any] = [
        {"reasoning_content": "hm"},
        {"content": "one "},
        {"content": "two"},
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "ls", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
        {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "cat", "arguments": "{}"}}]},
    ]
    events = [event for delta in deltas for event in items.add(delta)] + items.close()
    kinds = [event["type"].removeprefix("response.") for event in events]
    call = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    assert [kind for kind, _ in groupby(kinds)] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        *call,
        *call,
    ]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == items.items
    assert [item["type"] for item in done] == ["reasoning", "message", "function_call", "function_call"]
    assert done[1]["content"][0]["text"] == "one two"
    assert [(item["call_id"], item["name"], item["arguments"]) for item in done[2:]] == [
        (f"a_r{BARE}", "ls", "{}"),
        (f"b_r{BARE}", "cat", "{}"),
    ]
    begun = [event["item"] for event in events if event["type"] == "response.output_item.added"]
    assert (begun[0]["summary"], begun[1]["content"]) == ([], [])
