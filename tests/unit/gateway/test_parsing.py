"""Bodies, paths, pages and keys of requests."""

from __future__ import annotations

import json
import time
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.auth import Authenticator
from gateway.errors.invalid import InvalidRequest
from gateway.resources.agents import requests as agents
from gateway.resources.blocks import requests as blocks
from gateway.resources.tools import requests as tools
from gateway.rest.json_body import MAX_DEPTH, MOST_CONTAINERS, InvalidJson, parse
from gateway.rest.paging import one_page, page_request, page_size
from gateway.rest.params import split, unsupported
from gateway.server.middleware import canonical_path
from gateway.settings import Settings, settings_from
from gateway.turns.idempotency import request_hash, retry_keys
from loci.agent.v1 import agent_pb2, message_pb2
from loci.memory.v1 import block_service_pb2
from services.common.errors import Unauthenticated
from services.common.settings import Env, SettingsError

ADDRESSES = {f"LOCI_{name}_ADDR": "unix:///x" for name in ("AGENT", "MEMORY", "LLM_GATEWAY", "TOOL_RUNNER")}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff", b"NaN", b"1e999", b'{"a": "\\u0000"}', b'["x", "\\u0000"]', b'{"\\u0000": 1}'],
)
def test_json_that_is_refused(body: bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        parse(body)


def test_half_a_character_is_no_reason_to_lose_the_rest() -> None:
    body = rb'{"tool_return": "Hi \ud83d", "other": ["\ud83d\ude00", "\\ud83d", "\uDE00\ud83d\ude00"]}'
    expected = {"tool_return": "Hi \ufffd", "other": ["\U0001f600", "\\ud83d", "\ufffd\U0001f600"]}
    assert parse(body) == expected


@pytest.mark.parametrize("body", [b'"\\\\u0000"', b'{"a": ["\\\\u0000"]}'])
def test_an_escaped_backslash_before_u0000_is_no_nul(body: bytes) -> None:
    assert parse(body) == json.loads(body)


def test_depth() -> None:
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(json.JSONDecodeError):
        parse(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))
    wide = orjson.dumps([{"a": []} for _ in range(1_000)])
    assert len(parse(wide)) == 1_000


def test_a_body_has_so_many_objects_and_lists() -> None:
    lists = b",".join([b"[]"] * (MOST_CONTAINERS - 1))
    assert len(parse(b"[" + lists + b"]")) == MOST_CONTAINERS - 1
    with pytest.raises(InvalidJson, match="send it in parts"):
        parse(b"[[]," + lists + b"]")
    # Brackets in texts are none, escaped quotes end no text.
    assert parse(b'["' + b'{\\"[' * MOST_CONTAINERS + b'"]')


def test_texts_without_an_end_cost_no_more_than_others() -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match="unexpected end"):
        parse(b'["' + b'{\\"[' * MOST_CONTAINERS)
    assert time.process_time() - began < 5


@given(st.recursive(st.none() | st.integers(-(2**53), 2**53) | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_what_is_accepted_can_be_stored(value: Any) -> None:
    try:
        body = orjson.dumps(value)
    except TypeError:
        return  # a lone surrogate
    try:
        parsed = parse(body)
    except json.JSONDecodeError:
        return
    assert "\\u0000" not in orjson.dumps(parsed).decode().replace("\\\\", "")


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("/v1/agents/", "/v1/agents"),
        ("/v1/agents", "/v1/agents"),
        ("/latest/agents/", "/v1/agents"),
        ("/latest", "/latest"),
        ("/latestly", "/latestly"),
        ("/", "/"),
        ("//", "/"),
    ],
)
def test_paths(path: str, canonical: str) -> None:
    assert canonical_path(path) == canonical
    assert canonical_path(path, "/loci") == canonical
    assert canonical_path(f"/loci{path}", "/loci") == canonical


def test_what_only_begins_like_the_base_path_is_another() -> None:
    assert canonical_path("/locity/v1/agents", "/loci") == "/locity/v1/agents"
    assert canonical_path("/loci", "/loci") == "/"


@pytest.mark.parametrize(
    ("url", "base"),
    [("", ""), ("https://a.example", ""), ("https://a.example/", ""), ("https://a.example/my/loci/", "/my/loci")],
)
def test_the_path_behind_a_proxy(url: str, base: str) -> None:
    settings = settings_from(Env({**ADDRESSES, "LOCI_PUBLIC_URL": url}))
    assert (settings.base_path, settings.public_url) == (base, url.rstrip("/"))


@pytest.mark.parametrize(
    ("cursors", "expected"),
    [
        ({}, "ab"),
        ({"after": "b"}, "cd"),
        ({"after": "e"}, ""),
        ({"after": "?"}, "ab"),
        ({"before": "e"}, "cd"),
        ({"before": "b"}, "a"),
        ({"before": "?"}, "de"),
        ({"after": "a", "before": "c"}, "b"),
    ],
)
def test_pages_of_a_list(cursors: dict[str, Any], expected: str) -> None:
    page = one_page("abcde", page_request(2, **cursors), key=str)
    assert "".join(page) == expected


def test_sizes_and_lists_of_parameters() -> None:
    assert (page_size(None, 50), page_size(7, 50), page_size(10**9, 50)) == (50, 7, 1_000)
    assert split(["a,b", " c ", ""]) == ["a", "b", "c"]
    assert split(None) == []
    unsupported(a=None, b=False)
    with pytest.raises(InvalidRequest, match="`a`"):
        unsupported(a="x")


def test_the_hash_of_a_request_depends_on_each_part() -> None:
    parts: tuple[Any, ...] = (b"key", "user", "POST", "/v1/x", b"{}")
    hashes = {request_hash(*parts)}
    for index, other in enumerate((b"ke", "userP", "PUT", "/v1/y", b"{ }")):
        changed = (*parts[:index], other, *parts[index + 1 :])
        hashes.add(request_hash(*changed))
    assert len(hashes) == 6
    assert request_hash(*parts) in hashes


@pytest.mark.parametrize(
    ("count", "is_retry"), [(None, False), (b"0", False), (b"1", True), (b"2", True), (b"x", False)]
)
def test_retries_are_what_the_sdk_counts(count: bytes | None, is_retry: bool) -> None:
    headers = {} if count is None else {b"x-stainless-retry-count": count}
    keys = retry_keys(headers, credential=b"", user_id="u", method="POST", path="/", body=b"")
    assert keys.is_retry is is_retry


def test_an_agents_deprecated_model_fields() -> None:
    body = agents.CreateAgent.model_validate(
        {
            "llm_config": {"handle": "anthropic/claude", "context_window": 9_000, "temperature": 0.1, "max_tokens": 5},
            "embedding_config": {"handle": "openai/e"},
            "enable_reasoner": True,
            "max_reasoning_tokens": 2_048,
            "parallel_tool_calls": False,
        }
    )
    draft = agents.create_request(body).agent
    assert (draft.model, draft.embedding, draft.context_window_limit) == ("anthropic/claude", "openai/e", 9_000)
    assert orjson.loads(draft.model_settings_json) == {
        "temperature": 0.1,
        "max_output_tokens": 5,
        "parallel_tool_calls": False,
        "thinking": {"type": "enabled", "budget_tokens": 2_048},
    }


@pytest.mark.parametrize(
    ("body", "thinking"),
    [
        ({"model": "anthropic/claude", "reasoning": True}, {"type": "enabled", "budget_tokens": 1_024}),
        ({"model": "anthropic/claude", "enable_reasoner": False, "reasoning": True}, {"type": "disabled"}),
        ({"model": "openai/gpt", "reasoning": True}, None),
        ({"model": "anthropic/claude"}, None),
    ],
)
def test_whether_to_think_is_a_setting_of_anthropics_models(body: dict[str, Any], thinking: Any) -> None:
    draft = agents.create_request(agents.CreateAgent.model_validate(body)).agent
    assert orjson.loads(draft.model_settings_json or "{}").get("thinking") == thinking


def test_todays_fields_win_over_deprecated_ones() -> None:
    body = agents.CreateAgent.model_validate(
        {
            "model": "loci/demo",
            "llm_config": {"handle": "openai/gpt", "context_window": 9_000},
            "model_settings": {"max_output_tokens": 7},
            "max_tokens": 5,
        }
    )
    draft = agents.create_request(body).agent
    assert (draft.model, draft.HasField("context_window_limit")) == ("loci/demo", False)
    assert orjson.loads(draft.model_settings_json) == {"max_output_tokens": 7}


def test_an_agent_of_nothing() -> None:
    request = agents.create_request(agents.CreateAgent.model_validate({}))
    assert request.include_base_tools
    assert request.include_default_messages
    assert not request.agent.ListFields()


def test_what_a_conversation_begins_with() -> None:
    sent = [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": [{"type": "text", "text": "a"}]}]
    request = agents.create_request(agents.CreateAgent.model_validate({"initial_message_sequence": sent}))
    said = [(message.role, message.content[0].text) for message in request.initial_messages]
    assert said == [(message_pb2.MESSAGE_ROLE_ASSISTANT, "Hi"), (message_pb2.MESSAGE_ROLE_USER, "a")]
    empty = agents.create_request(agents.CreateAgent.model_validate({"initial_message_sequence": []}))
    assert (list(empty.initial_messages), empty.include_default_messages) == ([], False)


@pytest.mark.parametrize("name", get_args(get_args(agents.AgentTypeName)[0]))
def test_every_agent_type_is_passed_on(name: str) -> None:
    request = agents.create_request(agents.CreateAgent.model_validate({"agent_type": name}))
    assert agent_pb2.AgentType.Name(request.agent.agent_type) == f"AGENT_TYPE_{name.upper()}"


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, None),
        ({"name": None, "metadata": None}, None),
        ({"name": "a", "description": ""}, ["description", "name"]),
        ({"tags": [], "tool_ids": []}, ["tags", "tool_ids"]),
        ({"metadata": {}, "model_settings": {}}, ["metadata_json", "model_settings_json"]),
        ({"hidden": False}, ["hidden"]),
        (
            {"tool_rules": [], "message_buffer_autoclear": False, "compaction_settings": {}, "recall_passages": 0},
            ["compaction_settings_json", "message_buffer_autoclear", "recall_passages", "tool_rules_json"],
        ),
        ({"max_files_open": None, "response_format": None}, None),
    ],
)
def test_masks_of_agent_updates(body: dict[str, Any], paths: list[str] | None) -> None:
    request = agents.update_request("agent-1", agents.UpdateAgent.model_validate(body), {})
    assert (None if request is None else sorted(request.update_mask.paths)) == paths


def test_masks_of_block_and_tool_updates() -> None:
    key = block_service_pb2.BlockKey(block_id="block-1")
    block = blocks.update_request(
        key, blocks.UpdateBlock.model_validate({"value": "", "read_only": False, "limit": None, "tags": []})
    )
    assert block is not None
    assert sorted(block.update_mask.paths) == ["read_only", "tags", "value"]
    tool = tools.update_request("tool-1", tools.UpdateTool.model_validate({"tags": [], "metadata_": {}}))
    assert tool is not None
    assert sorted(tool.update_mask.paths) == ["metadata_json", "tags"]
    assert tools.update_request("tool-1", tools.UpdateTool.model_validate({})) is None


@pytest.mark.parametrize(
    ("headers", "known"),
    [
        ({}, False),
        ({b"authorization": b"Bearer secret"}, True),
        ({b"authorization": b"bearer  secret"}, True),
        ({b"authorization": b"Bearer secret2"}, False),
        ({b"authorization": b"Basic secret"}, False),
        ({b"x-bare-password": b"password secret"}, True),
        ({b"x-bare-password": b"secret"}, False),
        ({b"authorization": "Bearer sécret".encode("latin-1")}, False),
    ],
)
async def test_passwords(headers: dict[bytes, bytes], known: bool) -> None:
    authenticator = Authenticator("secret")
    if known:
        caller = await authenticator.caller("GET", "/v1/agents", headers)
        assert caller.credential == b"secret"
    else:
        with pytest.raises(Unauthenticated):
            await authenticator.caller("GET", "/v1/agents", headers)
    await authenticator.caller("GET", "/v1/health", headers)


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({}, "LOCI_AGENT_ADDR"),
        ({**ADDRESSES, "LOCI_PORT": "high"}, "LOCI_PORT"),
        ({**ADDRESSES, "LOCI_PORT": "70000"}, "LOCI_PORT"),
        ({**ADDRESSES, "LOCI_ON_DISCONNECT": "maybe"}, "LOCI_ON_DISCONNECT"),
        ({**ADDRESSES, "LOCI_HOST": "0.0.0.0"}, "LETTA_SERVER_PASSWORD"),
        ({**ADDRESSES, "LOCI_HOST": "::"}, "LETTA_SERVER_PASSWORD"),
        ({**ADDRESSES, "LETTA_SERVER_SECURE": "true"}, "set LETTA_SERVER_PASSWORD"),
        ({**ADDRESSES, "LETTA_SERVER_PASSWORD": "x", "LOCI_REQUIRE_API_KEY": "true"}, "both set"),
        ({**ADDRESSES, "LOCI_PUBLIC_URL": "loci.example.com"}, "LOCI_PUBLIC_URL"),
        ({**ADDRESSES, "LOCI_PUBLIC_URL": "https://loci.example.com/?a=1"}, "LOCI_PUBLIC_URL"),
        ({**ADDRESSES, "LOCI_PUBLIC_URL": "https://loci.example.com/v1"}, "does not begin with /v1"),
        ({**ADDRESSES, "LOCI_TRUSTED_PROXIES": "nginx"}, "LOCI_TRUSTED_PROXIES names 'nginx'"),
        ({**ADDRESSES, "LOCI_TRUSTED_PROXIES": "10.1.2.3/16"}, "LOCI_TRUSTED_PROXIES"),
        ({**ADDRESSES, "LOCI_KEY_CACHE_SECONDS": "11"}, "LOCI_KEY_CACHE_SECONDS"),
        ({**ADDRESSES, "LOCI_RATE_LIMIT": "0"}, "LOCI_RATE_LIMIT"),
        ({**ADDRESSES, "LOCI_CORS_ORIGINS": "app.example.com"}, "LOCI_CORS_ORIGINS"),
        ({**ADDRESSES, "LOCI_ALLOWED_HOSTS": "https://loci.example.com"}, "LOCI_ALLOWED_HOSTS"),
        ({**ADDRESSES, "LOCI_CORS_ORIGINS": "https://app.example.com/path"}, "LOCI_CORS_ORIGINS"),
        ({**ADDRESSES, "LOCI_CORS_ORIGINS": "*"}, "LOCI_CORS_ORIGINS is \\*, and nobody is asked"),
        ({**ADDRESSES, "LOCI_ALLOWED_HOSTS": "a, *"}, "LOCI_ALLOWED_HOSTS is \\*, and nobody is asked"),
    ],
)
def test_settings_that_are_refused(variables: dict[str, str], names: str) -> None:
    with pytest.raises(SettingsError, match=names) as caught:
        settings_from(Env(variables))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"LOCI_HOST": "localhost"},
        {"LOCI_HOST": "127.0.0.2"},
        {"LOCI_HOST": "::1"},
        {"LOCI_HOST": "0.0.0.0", "LETTA_SERVER_PASSWORD": "x"},
        {"LOCI_HOST": "0.0.0.0", "LOCI_ALLOW_UNAUTHENTICATED": "true"},
        {"LOCI_HOST": "0.0.0.0", "LOCI_REQUIRE_API_KEY": "true", "LETTA_SERVER_SECURE": "true"},
        {"LETTA_SERVER_SECURE": "true", "LETTA_SERVER_PASSWORD": "x"},
        {"LOCI_CORS_ORIGINS": "https://app.example.com/, http://localhost:3000", "LOCI_RATE_LIMIT": "60"},
        {"LOCI_CORS_ORIGINS": "*", "LOCI_REQUIRE_API_KEY": "true"},
        {"LOCI_ALLOWED_HOSTS": "loci.example.com, loci.internal"},
        {"LOCI_ALLOWED_HOSTS": "*", "LETTA_SERVER_PASSWORD": "x"},
    ],
)
def test_settings_that_are_accepted(variables: dict[str, str]) -> None:
    settings = settings_from(Env({**ADDRESSES, **variables}))
    assert (settings.port, settings.max_body_bytes) == (Settings.port, 32 * 1024 * 1024)
