"""SGLang's own route: streams that repeat or not, text that waits for the server's parsers."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.chat import FinishReason, ResponseFormat, Usage
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.vendors.sglang.reading import Held
from services.llm_gateway.vendors.sglang.replies import GenerateEvents
from services.llm_gateway.vendors.sglang.translate import generate_body_of
from services.llm_gateway.vendors.text.rendering import FORMATS, render_prompt
from tests.unit.llm_gateway.builders import request, tool, user

PIECES = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=8)


def event(pieces: list[str], first: int, last: int, *, finish: str | None = None, rows_from: int | None = None) -> Any:
    rows_first = first if rows_from is None else rows_from
    meta = {
        "id": "r",
        "completion_tokens": last,
        "prompt_tokens": 3,
        "finish_reason": {"type": finish} if finish else None,
        "output_token_logprobs": [[-0.5, number, pieces[number]] for number in range(rows_first, last)],
    }
    return {"text": "".join(pieces[first:last]), "output_ids": list(range(first, last)), "meta_info": meta}


@given(PIECES, st.sampled_from(["repeated", "incremental", "older incremental"]), st.integers(1, 3))
def test_whatever_the_stream_repeats_each_token_is_taken_once(pieces: list[str], kind: str, step: int) -> None:
    builder = ReplyBuilder()
    reader, text, size = GenerateEvents(builder), "", len(pieces)
    for first in range(0, size, step):
        last = min(size, first + step)
        begin = 0 if kind == "repeated" else first
        text += reader.more(event(pieces, begin, last, rows_from=0 if kind.startswith("older") else None))
    begin = 0 if kind == "repeated" else size
    text += reader.more(event(pieces, begin, size, finish="stop", rows_from=0 if kind.startswith("older") else None))
    assert text == "".join(pieces)
    assert builder.tokens.ids == list(range(size))
    rows = [[-0.5, number, piece] for number, piece in enumerate(pieces)]
    assert orjson.loads(builder.tokens.token_logprobs_json()) == rows
    assert (builder.finish, builder.usage) == (FinishReason.STOP, Usage(3, size))


@given(st.lists(st.sampled_from(["one ", "<tool_call>", "<tool", "<", "{", "\n"]), max_size=8), st.data())
def test_what_is_streamed_before_a_call_is_the_same_however_it_is_cut(
    fragments: list[str], data: st.DataObject
) -> None:
    text = "".join(fragments)
    held = Held("<tool_call>")
    cut = data.draw(st.integers(0, len(text)))
    streamed = held.feed(text[:cut]) + held.feed(text[cut:])
    before = text.partition("<tool_call>")[0]
    assert before.startswith(streamed)
    assert held.text == text
    assert streamed + held.rest(before) == before


def test_a_parser_that_is_not_known_holds_all() -> None:
    held = Held(None)
    assert held.feed("Hello ") + held.feed("you") == ""
    assert held.rest("Hello you") == "Hello you"


def test_the_request() -> None:
    wanted = ResponseFormat({"type": "object"})
    settings = {"stop": ["END"], "seed": 7, "tool_call_parser": "qwen25", "verbosity": "low"}
    asked = request(user("hello"), temperature=0.5, response_format=wanted, settings=settings, token_ids=True)
    sent = orjson.loads(generate_body_of(asked, render_prompt(FORMATS["llama3"], asked), stream=True))
    # The tokenizer adds what begins the prompt.
    assert sent.pop("text").startswith("<|start_header_id|>user")
    assert sent == {
        "stream": True,
        "return_logprob": True,
        "return_text_in_logprobs": True,
        "logprob_start_len": -1,
        "sampling_params": {
            "max_new_tokens": None,
            "temperature": 0.5,
            "stop": ["<|eot_id|>", "END"],
            "sampling_seed": 7,
            "json_schema": '{"type":"object"}',
        },
    }
    asked = request(user("hello"), tools=[tool("dice")], max_output_tokens=9)
    sent = orjson.loads(generate_body_of(asked, render_prompt(FORMATS["chatml"], asked), stream=False))
    assert sent["sampling_params"] == {"max_new_tokens": 9, "stop": ["<|im_end|>"], "skip_special_tokens": False}
    assert "return_logprob" not in sent


@pytest.mark.parametrize("kind", ["stop", "length", "odd"])
def test_why_it_ended(kind: str) -> None:
    builder = ReplyBuilder()
    GenerateEvents(builder).more(event(["a"], 0, 1, finish=kind))
    ends = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH, "odd": FinishReason.UNKNOWN}
    assert builder.finish is ends[kind]
