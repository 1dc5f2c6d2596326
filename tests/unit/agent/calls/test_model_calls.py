"""The model gateway as the agent calls it: what is sent, what is made of its answer."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from loci.agent.v1.message_service_pb2 import TurnOptions, TurnRequest
from loci.llm.v1 import chat_pb2, chat_service_pb2
from services.agent.adapters.catalogues import GrpcModelCatalogue
from services.agent.adapters.chat_wire import generation_request
from services.agent.adapters.models import GrpcModels
from services.agent.convert.options import options_from_proto
from services.agent.core.calls.failures import failure_of, refuses_history
from services.agent.core.facts import Settings, Usage
from services.agent.core.messages import Text
from services.agent.core.ports import ModelRequest, PartDelta, PeerLost, Reply
from services.common.context import CallContext, use_context
from services.common.errors import InvalidArgument, LociError, OutOfRange, ResourceExhausted, Unavailable

Event = chat_service_pb2.StreamGenerateResponse
HELLO = Event(text_delta=chat_service_pb2.TextDelta(text="Hello"))
UNKNOWN = Event()
DONE = Event(
    completed=chat_pb2.Generation(
        message=chat_pb2.ChatMessage(parts=[chat_pb2.ChatPart(text=chat_pb2.TextPart(text="Hello"))]),
        finish_reason=chat_pb2.FINISH_REASON_STOP,
    )
)


def request(**model_settings: Any) -> ModelRequest:
    settings = Settings(1, "loci/demo", "loci/hash", "", 32_000, model_settings=model_settings)
    return ModelRequest(settings, "Be kind.", [], [], UUID(int=1), UUID(int=2), stream=True)


class Stream:
    """A server stream that gives these events and ends well."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    async def __aiter__(self) -> AsyncIterator[Event]:
        for event in self._events:
            yield event

    def cancel(self) -> None:
        """Does nothing."""


class Channel:
    """Every method of it gives the same stream."""

    def __init__(self, *events: Event) -> None:
        self._events = events

    def _method(self, *_: Any, **__: Any) -> Any:
        return lambda _: Stream(self._events)

    unary_unary = unary_stream = stream_unary = stream_stream = _method


async def generated(*events: Event) -> list[PartDelta | Reply]:
    channel: Any = Channel(*events)
    models = GrpcModels(channel, GrpcModelCatalogue(channel))
    return [part async for part in models.generate(request())]


async def test_events_of_a_newer_release_are_passed_over() -> None:
    assert await generated(HELLO, UNKNOWN, DONE) == [
        PartDelta(0, "content", "Hello"),
        Reply((Text("Hello"),), Usage(), "stop"),
    ]


@pytest.mark.parametrize("events", [(), (HELLO,), (HELLO, UNKNOWN)])
async def test_a_stream_that_ends_without_a_reply_is_a_lost_peer(events: tuple[Event, ...]) -> None:
    with pytest.raises(PeerLost):
        await generated(*events)


@pytest.mark.parametrize("websocket", [False, True])
def test_a_run_on_one_websocket_asks_for_it_with_every_call(websocket: bool) -> None:
    options = options_from_proto(TurnRequest(options=TurnOptions(websocket=websocket)))
    asked = request()
    assert options.websocket is websocket
    assert generation_request(replace(asked, settings=replace(asked.settings, options=options))).websocket is websocket


def test_a_call_says_for_which_run_it_is() -> None:
    run_id = UUID(int=3)
    with use_context(CallContext(UUID(int=1), UUID(int=2), "agent", ("agent",), run_id=run_id)):
        assert generation_request(request()).run_id == f"run-{run_id}"
    assert generation_request(request()).run_id == ""


def test_settings_go_where_they_belong() -> None:
    wire = generation_request(request(temperature=0, max_output_tokens=5, parallel_tool_calls=False, top_p=1))
    assert (wire.temperature, wire.max_output_tokens, wire.parallel_tool_calls) == (0, 5, False)
    assert wire.settings_json == '{"top_p":1}'


@pytest.mark.parametrize(
    "settings", [{"temperature": "hot"}, {"max_output_tokens": 10**12}, {"parallel_tool_calls": "yes"}]
)
def test_bad_settings_that_are_stored_fail_the_call_in_words(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=f"model_settings.*{next(iter(settings))}") as caught:
        generation_request(request(**settings))
    assert caught.value.reason == "LLM_BAD_REQUEST"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OutOfRange("long", reason="LLM_CONTEXT_OVERFLOW"), True),
        (InvalidArgument("no images", reason="LLM_BAD_REQUEST"), True),
        (ResourceExhausted("message larger than max"), True),
        (ResourceExhausted("slow down", reason="LLM_RATE_LIMIT"), False),
        (Unavailable("gone", reason="LLM_CONNECTION"), False),
    ],
)
def test_what_another_history_may_mend(error: LociError, expected: bool) -> None:
    assert refuses_history(error) is expected


def test_a_failure_can_be_stored() -> None:
    failure = failure_of(InvalidArgument("a\0b", reason="LLM_BAD_REQUEST", metadata={"status": "4\x0000"}))
    assert (failure.message, failure.detail) == ("ab", "status=400")
