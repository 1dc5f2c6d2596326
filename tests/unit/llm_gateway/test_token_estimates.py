"""Estimates of tokens, and the tokens of a reply."""

import orjson
import pytest

from services.llm_gateway.core.chat import Image, Message, Reasoning, RedactedReasoning, Text, ToolResult
from services.llm_gateway.core.reply_builder import ReplyTokens
from services.llm_gateway.core.token_estimates import estimate, estimate_request
from tests.unit.llm_gateway.builders import assistant, call, request, system, tool, user


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (4_000, 1_000)])
def test_four_characters_are_a_token(characters: int, tokens: int) -> None:
    assert estimate(characters) == tokens


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (system("x" * 40), 14),
        (user("x" * 40, "y" * 40), 24),
        (user("x" * 40, Image("z" * 1_000_000, media_type="image/png")), 1_214),
        (assistant(Reasoning("x" * 40), RedactedReasoning("y" * 40), call("c1", "f" * 10, a=1)), 29),
        (assistant(ToolResult("c1", [Text("x" * 40)])), 14),
    ],
)
def test_a_message_costs_its_parts_and_a_little(message: Message, tokens: int) -> None:
    assert estimate_request(request(message)) == tokens


def test_tools_cost_too() -> None:
    offered = tool("roll", n="integer")
    bare, with_tool = request(user("x")), request(user("x"), tools=[offered])
    size = len(offered.name) + len(offered.description) + len(offered.parameters_json)
    assert estimate_request(with_tool) == estimate_request(bare) + estimate(size)


def test_ids_that_are_not_one_for_each_token_stand_alone() -> None:
    tokens = ReplyTokens()
    tokens.add_logprobs({"content": [{"token": "a", "logprob": -1.0}], "refusal": None})
    tokens.add_logprobs({"content": [{"token": "b", "logprob": -2.0}], "refusal": None})
    tokens.ids += [1, 2, 3]
    assert orjson.loads(tokens.token_logprobs_json()) == [[-1.0, None, "a"], [-2.0, None, "b"]]
    assert orjson.loads(tokens.logprobs_json())["content"][1] == {"token": "b", "logprob": -2.0}


def test_none_are_none() -> None:
    assert (ReplyTokens().logprobs_json(), ReplyTokens().token_logprobs_json()) == ("", "")
    refused = ReplyTokens()
    refused.add_logprobs({"content": None, "refusal": [{"token": "no", "logprob": -1.0}]})
    assert refused.token_logprobs_json() == ""
    assert orjson.loads(refused.logprobs_json())["refusal"] == [{"token": "no", "logprob": -1.0}]
