"""Prompts of the built-in formats, and chats as models' own templates know them."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.chat import ChatRequest, Image, ToolCall, ToolMode
from services.llm_gateway.core.errors import LlmImagesUnsupported
from services.llm_gateway.vendors.text.rendering import FORMATS, messages_of, opening_of, render_prompt, split_beginning
from services.llm_gateway.vendors.text.tool_text import CallPiece, ToolText
from tests.unit.llm_gateway.builders import assistant, call, request, results, system, tool, user

CHAT = request(system("Be kind."), user("hello"), assistant("Hi."), user("again"))


@pytest.mark.parametrize(
    ("name", "begin", "text", "stop"),
    [
        (
            "chatml",
            "",
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n"
            "<|im_start|>assistant\nHi.<|im_end|>\n<|im_start|>user\nagain<|im_end|>\n<|im_start|>assistant\n",
            "<|im_end|>",
        ),
        (
            "llama3",
            "<|begin_of_text|>",
            "<|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nhello<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHi.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nagain<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
            "<|eot_id|>",
        ),
        ("mistral", "<s>", "[INST] Be kind.\n\nhello [/INST] Hi.</s>[INST] again [/INST]", "</s>"),
        (
            "gemma",
            "<bos>",
            "<start_of_turn>user\nBe kind.\n\nhello<end_of_turn>\n<start_of_turn>model\nHi.<end_of_turn>\n"
            "<start_of_turn>user\nagain<end_of_turn>\n<start_of_turn>model\n",
            "<end_of_turn>",
        ),
    ],
)
def test_built_in_formats(name: str, begin: str, text: str, stop: str) -> None:
    prompt = render_prompt(FORMATS[name], CHAT)
    assert (prompt.begin, prompt.text, prompt.stops, prompt.opening) == (begin, text, (stop,), "")


def test_tools_calls_and_results_are_told_in_words() -> None:
    history = (user("roll"), assistant("On it.", call("c1", "dice", n=6)), results(("c1", "4")), user("again"))
    text = render_prompt(FORMATS["chatml"], request(*history, tools=[tool("dice", n="integer")])).text
    assert '<tools>\n{"type":"function","function":{"name":"dice"' in text
    assert 'On it.\n<tool_call>\n{"name":"dice","arguments":{"n":6}}\n</tool_call><|im_end|>' in text
    assert '<|im_start|>user\n<tool_response>\n{"name":"dice","content":"4"}\n</tool_response><|im_end|>' in text
    without = render_prompt(FORMATS["chatml"], request(*history, tools=[tool("dice")], tool_choice=ToolMode.NONE)).text
    assert "<tools>" not in without
    joined = render_prompt(FORMATS["mistral"], request(*history)).text
    assert joined.endswith("</tool_response>\n\nagain [/INST]")


@pytest.mark.parametrize(
    ("choice", "opening"),
    [
        (ToolMode.AUTO, ""),
        (ToolMode.NONE, ""),
        (ToolMode.REQUIRED, "<tool_call>\n"),
        ("dice", '<tool_call>\n{"name": "dice", "arguments": '),
    ],
)
def test_a_call_that_is_demanded_is_begun(choice: ToolMode | str, opening: str) -> None:
    asked = request(user("roll"), tools=[tool("dice")], tool_choice=choice)
    prompt = render_prompt(FORMATS["chatml"], asked)
    assert prompt.opening == opening_of(asked) == opening
    assert prompt.text.endswith(f"<|im_start|>assistant\n{opening}")


def test_messages_for_templates() -> None:
    history = (system("S"), assistant(call("c1", "dice", n=6)), results(("c1", "4")))
    said, called, result = messages_of(request(*history))
    assert said == {"role": "system", "content": "S"}
    assert called["tool_calls"][0]["function"] == {"name": "dice", "arguments": {"n": 6}}
    assert result == {"role": "tool", "name": "dice", "tool_call_id": "c1", "content": "4"}


def test_text_holds_no_images() -> None:
    with pytest.raises(LlmImagesUnsupported):
        render_prompt(FORMATS["chatml"], request(user(Image("eA==", media_type="image/png"))))


def test_what_tokenizers_add_is_taken_off() -> None:
    assert (split_beginning("<s>[INST] a").begin, split_beginning("<s>[INST] a").text) == ("<s>", "[INST] a")
    assert (split_beginning("<mine>a", "<mine>").begin, split_beginning("a").begin) == ("<mine>", "")


_TEXTS = st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=30)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _TEXTS, lambda inner: st.lists(inner, max_size=3)
)


@given(st.sampled_from(sorted(FORMATS)), st.lists(_TEXTS.filter(str.strip), min_size=1, max_size=4))
def test_no_text_is_lost_and_all_stand_in_order(name: str, texts: list[str]) -> None:
    prompt = render_prompt(FORMATS[name], request(system("Be kind."), *map(user, texts)))
    at = 0
    for text in texts:
        at = prompt.text.index(text, at) + len(text)


@given(st.dictionaries(_TEXTS, _VALUES, max_size=4))
def test_a_call_that_was_written_is_read_again(arguments: dict[str, object]) -> None:
    made = ToolCall("c1", "f", orjson.dumps(arguments).decode())
    text = render_prompt(FORMATS["chatml"], ChatRequest("h/m", [assistant(made)])).text
    written = text.removeprefix("<|im_start|>assistant\n").removesuffix("<|im_end|>\n<|im_start|>assistant\n")
    reader = ToolText(calls=True)
    assert reader.feed(written) + reader.close() == [CallPiece("f", made.arguments_json)]
