"""Messages of models."""

from dataclasses import replace

import pytest

from services.llm_gateway.core.known_models import known
from services.llm_gateway.core.models import Capabilities
from services.llm_gateway.models.servicer import model_message
from tests.unit.llm_gateway.builders import model


def test_a_model_without_tools_makes_no_parallel_calls() -> None:
    told = model_message(replace(model("ollama/llava:7b"), capabilities=Capabilities(tools=False))).capabilities
    assert (told.tools, told.parallel_tool_calls) == (False, False)


@pytest.mark.parametrize(
    ("name", "expected"), [("gpt-4o-mini", True), ("gpt-4.1", True), ("o3", False), ("gpt-5", False)]
)
def test_openais_models_that_do_not_reason_give_log_probabilities(name: str, expected: bool) -> None:
    row = known("openai", name, "")
    assert row is not None
    assert row.capabilities.logprobs is expected
