"""Settings of agents: what is refused, what is filled in, what an update changes."""

from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loci.agent.v1 import agent_pb2
from services.agent.core.rules.tool_rules import ExitLoop, RunFirst
from services.agent.resources.agents.convert import setting_values
from services.agent.resources.agents.model.checks import check, tool_rules
from services.agent.resources.agents.model.instructions import INSTRUCTIONS
from services.agent.resources.agents.model.names import random_name
from services.agent.resources.agents.model.settings import (
    SETTABLE,
    AgentSettings,
    Defaults,
    begin,
    change,
    with_tools,
)
from services.common.core.refusals import Refused
from services.common.errors import InvalidArgument

DEFAULTS = Defaults("loci/demo", "loci/hash")
ONE, TWO = UUID(int=1), UUID(int=2)


def _begun(**fields: Any) -> AgentSettings:
    return begin(check(fields), fields.get("tool_ids", ()), window=200_000, defaults=DEFAULTS)


def test_defaults() -> None:
    settings = _begun()
    assert (settings.model, settings.embedding, settings.timezone) == ("loci/demo", "loci/hash", "UTC")
    assert settings.system == INSTRUCTIONS["letta_v1_agent"]
    assert settings.context_window_limit == 128_000
    assert (settings.hidden, settings.enable_sleeptime, settings.tags, settings.metadata) == (None, None, (), None)


@pytest.mark.parametrize("name", ["Ada", "a", "", "O'Hara-2_x y", "Zoë", "名前", "x" * 256])
def test_names_that_can_be(name: str) -> None:
    assert _begun(name=name).name == name


@pytest.mark.parametrize("name", ["a/b", "a\n", "a\tb", "x" * 257, "<b>", "50%"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(Refused, match="name must have") as caught:
        check({"name": name})
    assert caught.value.reason == "AGENT_INVALID"


def test_random_names_can_be() -> None:
    assert all(check({"name": random_name()}) for _ in range(500))


WRONG_SETTINGS: list[dict[str, Any]] = [
    {"temperature": "hot"},
    {"temperature": True},
    {"temperature": -0.1},
    {"temperature": 10**400},
    {"max_output_tokens": 1.5},
    {"max_output_tokens": 10**12},
    {"max_output_tokens": 0},
    {"max_output_tokens": True},
    {"parallel_tool_calls": "yes"},
    {"parallel_tool_calls": 1},
]


@pytest.mark.parametrize("settings", WRONG_SETTINGS)
def test_model_settings_that_cannot_be(settings: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=f"model_settings cannot be used: {next(iter(settings))} must be") as caught:
        check({"model_settings": settings})
    assert caught.value.reason == "AGENT_INVALID"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": None, "max_output_tokens": None},
        {"temperature": 1, "max_output_tokens": 4_096, "parallel_tool_calls": False, "reasoning": {"effort": "low"}},
    ],
)
def test_model_settings_that_can_be(settings: dict[str, Any]) -> None:
    assert check({"model_settings": settings})["model_settings"] == settings


@pytest.mark.parametrize("handle", ["gpt", "/gpt", "openai/", "", "open ai/gpt", "a/b c"])
def test_handles_that_cannot_be(handle: str) -> None:
    for fields in ({"model": handle}, {"embedding": handle}):
        with pytest.raises(Refused, match="provider/model"):
            check(fields)


@pytest.mark.parametrize("handle", ["openai/gpt-4o", "openrouter/meta/llama-3:free"])
def test_handles_that_can_be(handle: str) -> None:
    assert _begun(model=handle).model == handle


@pytest.mark.parametrize("timezone", ["", "Mars", "../etc/passwd", "/etc/passwd", "Europe", "x" * 5_000, "\x01"])
def test_timezones_that_cannot_be(timezone: str) -> None:
    with pytest.raises(Refused, match="IANA"):
        check({"timezone": timezone})


def test_what_cannot_be_stored_is_left_out() -> None:
    sent = agent_pb2.Agent(name="A\0da", system="\0Be\0", tags=("b\0", "a", "b", "\0"))
    settings = _begun(**setting_values(sent))
    assert (settings.name, settings.system, settings.tags) == ("Ada", "Be", ("a", "b"))


def test_a_subagent_is_hidden() -> None:
    assert _begun(tags=("role:subagent",), hidden=False).hidden


def test_tools_are_there_once() -> None:
    assert with_tools(_begun(), [ONE, TWO, ONE]).tool_ids == (ONE, TWO)
    many = [UUID(int=number) for number in range(1_001)]
    with pytest.raises(Refused, match="1001"):
        with_tools(_begun(), many)
    with pytest.raises(Refused, match="1001"):
        check({"tool_ids": tuple(many)})


def test_the_window_bounds_its_limit() -> None:
    assert _begun(context_window_limit=200_000).context_window_limit == 200_000
    with pytest.raises(Refused, match="200000"):
        _begun(context_window_limit=200_001)


def _metadata(text: str) -> Any:
    return setting_values(agent_pb2.Agent(metadata_json=text))["metadata"]


def test_json_that_can_be() -> None:
    assert _metadata("") is None
    assert _metadata("{}") == {}
    assert _metadata(r'{"a\u0000": "\\u0000 \u0000\\\u0000"}') == {"a": "\\u0000 \\"}


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "1",
        '"x"',
        "null",
        "{",
        '{"a": NaN}',
        '"\\ud800"',
        "{" * 9,
        '{"a":' * 300 + "1" + "}" * 300,
    ],
)
def test_json_that_cannot_be(text: str) -> None:
    with pytest.raises(Refused, match="metadata must be a JSON object"):
        _metadata(text)


@given(
    st.dictionaries(
        st.text(),
        st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8),
    )
)
def test_json_keeps_all_but_nul(value: dict[str, Any]) -> None:
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return
    assert _metadata(text) == _without_nul(value)


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [_without_nul(each) for each in value]
    return {_without_nul(name): _without_nul(each) for name, each in value.items()}


def test_a_change_touches_the_mask_only() -> None:
    before = _begun(name="One", tags=("a",), description="x", context_window_limit=5_000)
    after = change(before, check({"name": "Two"}), window=0, defaults=DEFAULTS)
    assert (after.name, after.tags, after.description) == ("Two", ("a",), "x")
    after = change(before, check({"tags": ("b",), "description": None}), window=0, defaults=DEFAULTS)
    assert (after.name, after.tags, after.description) == ("One", ("b",), None)
    assert after.context_window_limit == 5_000


def test_another_model_brings_its_own_window() -> None:
    before = _begun(context_window_limit=5_000)
    draft = check({"model": "openai/large"})
    assert change(before, draft, window=64_000, defaults=DEFAULTS).context_window_limit == 64_000
    kept = change(before, check({"model": "loci/demo"}), window=64_000, defaults=DEFAULTS)
    assert kept.context_window_limit == 5_000
    named = check({"model": "openai/large", "context_window_limit": 9_000})
    assert change(before, named, window=64_000, defaults=DEFAULTS).context_window_limit == 9_000
    with pytest.raises(Refused, match="8000"):
        change(before, named, window=8_000, defaults=DEFAULTS)


def test_every_setting_can_be_changed_but_the_type() -> None:
    before = _begun(name="One")
    for name in SETTABLE:
        if name == "agent_type":
            with pytest.raises(InvalidArgument, match="agent_type"):
                setting_values(agent_pb2.Agent(), [name])
        else:
            assert change(before, {name: None}, window=64_000, defaults=DEFAULTS)
    settable = [name for name in SETTABLE if name != "agent_type"]
    assert setting_values(agent_pb2.Agent(), settable) == dict.fromkeys(settable)
    with pytest.raises(InvalidArgument, match="blocks") as caught:
        setting_values(agent_pb2.Agent(), ["blocks"])
    assert caught.value.reason == "UPDATE_MASK_INVALID"


@pytest.mark.parametrize(
    "form",
    [
        None,
        {},
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": True}},
    ],
)
def test_forms_of_replies_that_can_be(form: dict[str, Any] | None) -> None:
    assert _begun(response_format=form).response_format == (form or None)
    assert check({"model_settings": {"response_format": form}})


@pytest.mark.parametrize(
    "form",
    [
        {"type": "xml"},
        {"type": None},
        {"kind": "text"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": []},
        {"type": "json_schema", "json_schema": {"schema": "text"}},
    ],
)
def test_forms_of_replies_that_cannot_be(form: Any) -> None:
    with pytest.raises(Refused, match=r"^response_format must be"):
        check({"response_format": form})
    with pytest.raises(Refused, match=r"^model_settings\.response_format must be"):
        check({"model_settings": {"response_format": form}})


@pytest.mark.parametrize("form", ["text", 5, [{"type": "text"}]])
def test_a_form_of_replies_is_an_object(form: Any) -> None:
    with pytest.raises(Refused, match="response_format must be"):
        check({"model_settings": {"response_format": form}})


@pytest.mark.parametrize(
    ("name", "least", "most", "says"),
    [
        ("context_window_limit", 1, 2**31 - 1, "at least 1"),
        ("max_files_open", 0, 1_000, "0 to 1,000"),
        ("per_file_view_window_char_limit", 1, 2**31 - 1, "at least 1"),
        ("recall_passages", 0, 50, "0 to 50"),
    ],
)
def test_numbers_have_their_range(name: str, least: int, most: int, says: str) -> None:
    def sent(value: int) -> agent_pb2.Agent:
        fields: dict[str, Any] = {name: value}
        return agent_pb2.Agent(**fields)

    for value in (least, most):
        assert setting_values(sent(value)) == {name: value}
    for value in (least - 1, min(most + 1, 2**31 - 1)):
        if not least <= value <= most:
            with pytest.raises(Refused, match=f"{name} must be {says}, not {value:,}"):
                setting_values(sent(value))


def test_tool_rules_of_a_client() -> None:
    assert tool_rules("") == tool_rules("[]") == ()
    given = r'[{"type": "exit_loop", "tool_name": "a\u0000"}, {"type": "run_first", "tool_name": "b"}]'
    assert tool_rules(given) == (ExitLoop("a"), RunFirst("b"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "tool_rules must be a JSON array, not a dict"),
        ("[", "tool_rules must be a JSON array"),
        ('[{"type": "exit_loop", "tool_name": "a"}, {"type": "exit_loop"}]', r"tool_rules\[1\]\.tool_name"),
        ("[" + ",".join(['{"type": "exit_loop", "tool_name": "a"}'] * 1_001) + "]", "at most 1000"),
    ],
)
def test_tool_rules_that_cannot_be(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as caught:
        tool_rules(text)
    assert caught.value.reason == "AGENT_INVALID"


@pytest.mark.parametrize(
    ("given", "says"),
    [({"mode": "partial_evict"}, "mode"), ({"clip_chars": "many"}, "clip_chars"), ({"model": 5}, "model")],
)
def test_compaction_settings_that_cannot_be(given: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=f"compaction_settings cannot be used: {says}"):
        check({"compaction_settings": given})


def test_what_depends_on_the_type_stays_with_it() -> None:
    before = _begun(agent_type="workflow_agent", message_buffer_autoclear=False)
    after = change(before, {"message_buffer_autoclear": False, "system": None}, window=0, defaults=DEFAULTS)
    assert before.message_buffer_autoclear
    assert after.message_buffer_autoclear
    assert after.system == INSTRUCTIONS["workflow_agent"]


def test_a_tool_rule_is_kept_once_and_in_its_order() -> None:
    first = {"type": "run_first", "tool_name": "a", "args": {"x": 1, "y": 2}}
    again = {"type": "run_first", "tool_name": "a", "args": {"y": 2, "x": 1}}
    other = {"type": "run_first", "tool_name": "a", "args": {"x": 2}}
    children = [{"type": "constrain_child_tools", "tool_name": "b", "children": names} for names in (["c"], ["c", "d"])]
    stop = {"type": "exit_loop", "tool_name": "b"}
    rules = tool_rules(orjson.dumps([stop, first, again, other, *children, stop]).decode())
    assert rules == tool_rules(orjson.dumps([stop, first, other, *children]).decode())
    assert len(rules) == 5
