"""The generic rule from protobuf to REST, and the objects that differ from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from letta_client.types import AgentState, Archive, BlockResponse, EmbeddingConfig, LlmConfig, Passage, Step, Tool
from letta_client.types.agents import Run
from pydantic import BaseModel
from starlette.requests import Request

from gateway import VERSION
from gateway.resources.agents.relations import relations_of
from gateway.resources.agents.responses import Models, agent_state, embedding_config, model_settings
from gateway.resources.archives.responses import archive_to_rest, passage_to_rest
from gateway.resources.blocks.responses import block_to_rest
from gateway.resources.messages.requests import AttachRun
from gateway.resources.runs.responses import run_to_rest, run_usage_to_rest, step_to_rest
from gateway.resources.tools.responses import tool_to_rest
from gateway.rest import convert
from gateway.turns.views import View
from loci.agent.v1 import agent_pb2, agent_service_pb2, message_service_pb2, run_pb2
from loci.llm.v1 import model_pb2
from loci.memory.v1 import block_pb2, passage_pb2
from loci.tool.v1 import execution_service_pb2, tool_pb2
from services.common.fields import enum_names, enum_numbers

NOON = Timestamp(seconds=1_764_590_400, nanos=123_456_789)
NOTHING = Models({}, {})


@pytest.mark.parametrize(
    ("message", "name", "value"),
    [
        (block_pb2.Block(label="a"), "label", "a"),
        (block_pb2.Block(), "label", ""),
        (block_pb2.Block(), "description", None),
        (block_pb2.Block(description=""), "description", ""),
        (block_pb2.Block(limit=2**40), "limit", 2**40),
        (block_pb2.Block(), "metadata", {}),
        (block_pb2.Block(metadata_json='{"a":[1,null]}'), "metadata", {"a": [1, None]}),
        (block_pb2.Block(tags=["a", "b"]), "tags", ["a", "b"]),
        (block_pb2.Block(), "created_at", None),
        (block_pb2.Block(created_at=NOON), "created_at", "2025-12-01T12:00:00.123456+00:00"),
        (block_pb2.Block(), "created_by_id", None),
        (run_pb2.Run(), "status", None),
        (run_pb2.Run(status=run_pb2.RUN_STATUS_COMPLETED), "status", "completed"),
        (run_pb2.Run(stop_reason=agent_pb2.STOP_REASON_END_TURN), "stop_reason", "end_turn"),
        (run_pb2.Run(), "ttft_ns", None),
        (run_pb2.Run(ttft_ns=0), "ttft_ns", 0),
        (agent_pb2.Agent(tools=[tool_pb2.Tool(name="a")]), "tools", [convert.to_rest(tool_pb2.Tool(name="a"))]),
        (message_service_pb2.Retry(request_hash=b"\x00\xff"), "request_hash", "AP8="),
        (execution_service_pb2.ExecuteToolRequest(environment={"A": "b"}), "environment", {"A": "b"}),
    ],
)  # fmt: skip
def test_the_rule(message: Message, name: str, value: Any) -> None:
    assert convert.to_rest(message)[name] == value


def test_a_span_is_in_seconds() -> None:
    request = execution_service_pb2.ExecuteToolRequest()
    request.timeout.FromMilliseconds(1500)
    assert convert.to_rest(request)["timeout"] == 1.5


def test_an_unset_message_is_null() -> None:
    assert convert.to_rest(agent_service_pb2.GetAgentResponse())["agent"] is None


def test_a_value_that_is_younger_than_this_gateway_is_its_number() -> None:
    assert convert.to_rest(run_pb2.Run(status=99))["status"] == "99"  # type: ignore[arg-type]


def test_enum_names_and_numbers() -> None:
    names = enum_names(tool_pb2.ToolType.DESCRIPTOR)
    assert (names[0], names[tool_pb2.TOOL_TYPE_LETTA_CORE]) == (None, "letta_core")
    assert enum_numbers(tool_pb2.ToolType.DESCRIPTOR)["custom"] == tool_pb2.TOOL_TYPE_CUSTOM


@pytest.mark.parametrize(
    ("rest", "typed", "beside"),
    [
        (block_to_rest(block_pb2.Block()), BlockResponse, set()),
        (tool_to_rest(tool_pb2.Tool()), Tool, set()),
        (run_to_rest(run_pb2.Run()), Run, set()),
        (step_to_rest(run_pb2.Step(), "org-1"), Step, {"organization_id"}),
        (passage_to_rest(passage_pb2.Passage(), None, "org-1"), Passage, {"organization_id"}),
        (archive_to_rest(passage_pb2.Archive(), None, "org-1"), Archive, {"organization_id"}),
        (agent_state(agent_pb2.Agent(), NOTHING), AgentState, {"recall_passages"}),
        (agent_state(agent_pb2.Agent(model="a/b"), NOTHING)["llm_config"], LlmConfig, set()),
        (embedding_config("a/b", NOTHING), EmbeddingConfig, set()),
    ],
)
def test_objects_have_the_fields_of_the_sdks_types(
    rest: dict[str, Any], typed: type[BaseModel], beside: set[str]
) -> None:
    assert set(rest) == {info.alias or name for name, info in typed.model_fields.items()} | beside


def test_a_steps_tokens() -> None:
    step = step_to_rest(
        run_pb2.Step(model_handle="openai/gpt/x", prompt_tokens=5, completion_tokens=2, cached_input_tokens=3),
        "org-1",
    )
    assert (step["model"], step["provider_name"], step["total_tokens"]) == ("gpt/x", "openai", 7)
    assert step["prompt_tokens_details"] == {"cached_tokens": 3, "cache_read_tokens": 3, "cache_creation_tokens": 0}
    assert step["completion_tokens_details"] is None


def test_a_failed_steps_error() -> None:
    step = step_to_rest(run_pb2.Step(error_type="LLM_TIMEOUT", error_message="too slow"), "org-1")
    assert (step["error_type"], step["error_data"]) == ("LLM_TIMEOUT", {"message": "too slow"})
    detailed = step_to_rest(run_pb2.Step(error_message="too slow", error_detail="504"), "org-1")
    assert detailed["error_data"] == {"message": "too slow", "detail": "504"}
    assert step_to_rest(run_pb2.Step(), "org-1")["error_data"] is None


def test_what_became_of_a_callback() -> None:
    run = run_to_rest(run_pb2.Run(callback_url="https://x/y", callback_status_code=200, metadata_json='{"a":1}'))
    assert (run["callback_url"], run["callback_status_code"], run["callback_error"]) == ("https://x/y", 200, None)
    assert (run["metadata"], run_to_rest(run_pb2.Run())["callback_url"]) == ({"run_type": "send_message", "a": 1}, None)


def test_usage_of_a_run() -> None:
    usage = message_service_pb2.TurnUsage(completion_tokens=1, prompt_tokens=2, total_tokens=3, reasoning_tokens=0)
    assert run_usage_to_rest(usage) == {
        "completion_tokens": 1,
        "prompt_tokens": 2,
        "total_tokens": 3,
        # What is nothing is not broken down.
        "completion_tokens_details": None,
        "prompt_tokens_details": None,
    }
    usage.reasoning_tokens = 2
    assert run_usage_to_rest(usage)["completion_tokens_details"] == {"reasoning_tokens": 2}


CONFIG = {
    "use_assistant_message": True,
    "assistant_message_tool_name": "say",
    "assistant_message_tool_kwarg": "text",
    "include_return_message_types": None,
}


USUAL = CONFIG | {"assistant_message_tool_name": "send_message", "assistant_message_tool_kwarg": "message"}


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        (View(spoken=("say", "text")).json, CONFIG),
        (
            View(spoken=None, types=["assistant_message"]).json,
            USUAL | {"use_assistant_message": False, "include_return_message_types": ["assistant_message"]},
        ),
        # Nothing of its own, and what other callers keep in words of theirs.
        ("", USUAL),
        ("{}", USUAL),
        ("wide", USUAL),
        ("[1]", USUAL),
        ('{"types": null, "spoken": "loudly"}', USUAL),
    ],
)
def test_what_a_runs_request_wanted(kept: str, shown: dict[str, Any]) -> None:
    assert run_to_rest(run_pb2.Run(view_json=kept))["request_config"] == shown
    View.joined(kept, AttachRun())


@pytest.mark.parametrize(
    ("window", "limits"),
    [(0, (5, 50_000)), (8_000, (3, 5_000)), (8_001, (5, 15_000)), (128_000, (10, 25_000)), (200_000, (10, 40_000)),
     (1_000_000, (15, 40_000))],
)  # fmt: skip
def test_file_limits_follow_the_window(window: int, limits: tuple[int, int]) -> None:
    state = agent_state(agent_pb2.Agent(context_window_limit=window), NOTHING)
    assert (state["max_files_open"], state["per_file_view_window_char_limit"]) == limits


def test_file_limits_that_are_set_are_shown() -> None:
    agent = agent_pb2.Agent(context_window_limit=8_000, max_files_open=0, per_file_view_window_char_limit=77)
    state = agent_state(agent, NOTHING)
    assert (state["max_files_open"], state["per_file_view_window_char_limit"]) == (0, 77)


@pytest.mark.parametrize(
    ("fields", "own", "of_settings"),
    [
        ({"response_format_json": '{"type":"json_object"}'}, {"type": "json_object"}, None),
        ({"model_settings_json": '{"response_format":{"type":"json_object"}}'}, None, {"type": "json_object"}),
        ({}, None, None),
    ],
)
def test_the_form_of_replies_is_shown_where_it_was_set(fields: dict[str, Any], own: Any, of_settings: Any) -> None:
    state = agent_state(agent_pb2.Agent(model="openai/gpt", **fields), NOTHING)
    assert state["response_format"] == own
    assert state["model_settings"]["response_format"] == state["llm_config"]["response_format"] == of_settings


CLAUDE = model_pb2.Model(name="claude-haiku-4-5", provider_type="anthropic", usual_thinking_budget=1_024)
GPT_5 = model_pb2.Model(name="gpt-5", provider_type="openai", usual_reasoning_effort="minimal")
GPT_4O = model_pb2.Model(name="gpt-4o", provider_type="openai")


@pytest.mark.parametrize(
    ("model", "settings", "thinking", "budget"),
    [
        (CLAUDE, "", {"type": "enabled", "budget_tokens": 1_024}, 1_024),
        (CLAUDE, '{"provider_type":"anthropic"}', {"type": "enabled", "budget_tokens": 1_024}, 1_024),
        (CLAUDE, '{"thinking":{"type":"disabled"}}', {"type": "disabled"}, 0),
        (None, "", {"type": "disabled"}, 0),
    ],
)
def test_claude_is_shown_to_think(model: model_pb2.Model | None, settings: str, thinking: Any, budget: int) -> None:
    known = {} if model is None else {"anthropic/claude": model}
    agent = agent_pb2.Agent(model="anthropic/claude", model_settings_json=settings)
    state = agent_state(agent, Models(known, {}))
    assert state["model_settings"]["thinking"] == thinking
    assert (state["llm_config"]["enable_reasoner"], state["llm_config"]["max_reasoning_tokens"]) == (budget > 0, budget)


@pytest.mark.parametrize(
    ("model", "settings", "effort", "shown", "strict", "parallel"),
    [
        (GPT_4O, "", None, "minimal", False, False),
        (GPT_4O, '{"parallel_tool_calls":true}', None, "minimal", False, True),
        (GPT_4O, '{"provider_type":"openai"}', "high", "high", True, True),
        (GPT_4O, '{"provider_type":"openai","parallel_tool_calls":false}', "high", "high", True, False),
        (GPT_5, "", "minimal", "minimal", False, False),
        (GPT_5, '{"reasoning":{"reasoning_effort":"low"}}', "low", "low", False, False),
    ],
)
def test_settings_that_are_declared_have_other_defaults(
    model: model_pb2.Model, settings: str, effort: str | None, shown: str, strict: bool, parallel: bool
) -> None:
    agent = agent_pb2.Agent(model="openai/gpt", model_settings_json=settings)
    state = agent_state(agent, Models({"openai/gpt": model}, {}))
    config = state["llm_config"]
    assert (config["reasoning_effort"], config["strict"], config["parallel_tool_calls"]) == (effort, strict, parallel)
    assert state["model_settings"]["reasoning"]["reasoning_effort"] == shown


@pytest.mark.parametrize(
    ("headers", "include", "shown"),
    [
        ({}, None, None),
        ({}, ["agent.tools"], None),
        ({"user-agent": "letta-client/0.1.320"}, ["agent.tools"], None),
        ({"user-agent": "letta-client/1.12.1"}, ["agent.tools"], {"agent.tools"}),
        ({"x-stainless-package-version": "1.12.1"}, None, set()),
        ({"x-stainless-package-version": "1.12.1"}, ["agent.blocks"], {"agent.blocks"}),
    ],
)
def test_only_new_sdks_choose_relations(
    headers: dict[str, str], include: list[str] | None, shown: set[str] | None
) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    request = Request({"type": "http", "headers": raw})
    assert relations_of(request, include) == shown


def test_what_waits_for_the_client_is_shown_as_in_the_list_of_messages() -> None:
    pending = agent_pb2.PendingApproval(
        request_id="message-1",
        run_id="run-1",
        step_id="step-1",
        otid="o-1",
        tool_calls_json='[{"name":"roll","arguments":"{}","tool_call_id":"c1"},{"name":"b","tool_call_id":"c2"}]',
    )
    agent = agent_pb2.Agent(pending_approval=pending)
    shown = agent_state(agent, NOTHING)["pending_approval"]
    assert (shown["id"], shown["message_type"], shown["run_id"]) == ("message-1", "approval_request_message", "run-1")
    assert (shown["step_id"], shown["otid"]) == ("step-1", "o-1")
    assert [call["tool_call_id"] for call in shown["tool_calls"]] == ["c1", "c2"]
    assert shown["tool_call"] == {"name": "roll", "arguments": "{}", "tool_call_id": "c1"}
    assert agent_state(agent, NOTHING, frozenset({"agent.tools"}))["pending_approval"] is None
    assert agent_state(agent, NOTHING, frozenset({"agent.pending_approval"}))["pending_approval"] == shown


def test_older_agents_think_in_arguments() -> None:
    older = agent_pb2.Agent(agent_type=agent_pb2.AGENT_TYPE_MEMGPT_AGENT)
    assert agent_state(older, NOTHING)["llm_config"]["put_inner_thoughts_in_kwargs"]
    assert not agent_state(agent_pb2.Agent(), NOTHING)["llm_config"]["put_inner_thoughts_in_kwargs"]


def test_settings_of_an_openai_agent() -> None:
    model = model_pb2.Model(handle="openai/gpt-4o-mini", provider_type="openai", max_output_tokens=16_384)
    assert model_settings("openai/gpt-4o-mini", {"temperature": 0.2}, model) == {
        "provider_type": "openai",
        "max_output_tokens": 16_384,
        "parallel_tool_calls": True,
        "strict": False,
        "temperature": 0.2,
        "reasoning": {"reasoning_effort": "minimal"},
        "response_format": None,
    }


def test_what_is_known_of_a_model_is_shown() -> None:
    model = model_pb2.Model(handle="openai/gpt", name="gpt", provider_type="openai", endpoint="https://x/v1")
    agent = agent_pb2.Agent(model="openai/gpt", embedding="loci/hash", context_window_limit=9)
    embedding = model_pb2.EmbeddingModel(handle="loci/hash", name="hash", provider_type="loci", dimensions=256)
    state = agent_state(agent, Models({"openai/gpt": model}, {"loci/hash": embedding}))
    assert (state["llm_config"]["model_endpoint"], state["llm_config"]["context_window"]) == ("https://x/v1", 9)
    assert state["embedding_config"]["embedding_dim"] == 256


def test_an_agent_without_embedding_has_none() -> None:
    state = agent_state(agent_pb2.Agent(), NOTHING)
    assert (state["embedding"], state["embedding_config"]) == (None, None)


def test_the_version_is_that_of_the_project() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert f'\nversion = "{VERSION}"\n' in text
