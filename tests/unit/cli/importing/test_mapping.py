"""Rows of the old server, and what becomes of them."""

import json
from typing import Any

import pytest

from cli.importing.mapping import agents, groups, memory, models, providers, tools
from cli.importing.schema import (
    AGENTS,
    ARCHIVES,
    BLOCKS,
    CONVERSATIONS,
    FILES,
    FOLDERS,
    GROUPS,
    IDENTITIES,
    MCP_SERVERS,
    PASSAGES,
    PROVIDERS,
    TOOLS,
    Table,
)
from cli.importing.values import Row, Skip, decode_json, public_id, uuid_of
from loci.agent.v1 import agent_pb2
from tests.letta_database import BEGIN, embedding_config, identifier, llm_config

BLOCK, AGENT = identifier("block", 1), identifier("agent", 1)


def row(table: Table, **given: Any) -> Row:
    """A row that is null where nothing is given."""
    columns = (*table.key, "created_at", *table.columns, *table.vectors)
    unknown = given.keys() - set(columns)
    assert not unknown, unknown
    return {**dict.fromkeys(columns), "id": "thing-1", **given}


def test_ids_are_kept() -> None:
    assert public_id("source", identifier("source", 3)) == identifier("source", 3)
    assert public_id("file", identifier("file_agent", 3))[5:] == identifier("file_agent", 3)[11:]
    assert uuid_of("agent-of-old") == uuid_of("agent-of-old") != uuid_of("agent-of-new")


def test_json_without_what_cannot_be_stored() -> None:
    assert decode_json(r'{"a\u0000": ["b\ud800c", "\u00e9", 1]}') == {"a": ["b\ufffdc", "é", 1]}
    assert decode_json("null") is None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (llm_config("gpt-4o"), "openai/gpt-4o"),
        (llm_config("gpt-4o", handle="openai-proxy/gpt-4o"), "openai/gpt-4o"),
        (llm_config("gpt-4o", handle=None, provider_name="mine"), "mine/gpt-4o"),
        ({"model": "x", "model_endpoint_type": "hugging_face"}, "hugging-face/x"),
        ({"model": "meta/llama", "model_endpoint_type": "together"}, "together/meta/llama"),
        ({"handle": "no model"}, ""),
        (None, ""),
    ],
)
def test_handles_of_models(config: Any, expected: str) -> None:
    assert models.chat_handle(config) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"temperature": 0.3, "max_tokens": 900, "parallel_tool_calls": True},
            {"provider_type": "openai", "temperature": 0.3, "max_output_tokens": 900, "parallel_tool_calls": True},
        ),
        ({"temperature": 7, "max_tokens": 0}, {"provider_type": "openai", "parallel_tool_calls": False}),
        (
            {"reasoning_effort": "high", "verbosity": "low"},
            {
                "provider_type": "openai",
                "parallel_tool_calls": False,
                "reasoning": {"reasoning_effort": "high"},
                "verbosity": "low",
            },
        ),
        (
            {"model_endpoint_type": "anthropic", "enable_reasoner": True, "max_reasoning_tokens": 2048},
            {
                "provider_type": "anthropic",
                "parallel_tool_calls": False,
                "thinking": {"type": "enabled", "budget_tokens": 2048},
            },
        ),
    ],
)
def test_settings_of_models(given: Any, expected: Any) -> None:
    assert models.model_settings(llm_config("m", **given)) == expected


@pytest.mark.parametrize(
    ("values", "own", "wanted", "size"),
    [
        ([1.0, 2.0, 0.0, 0.0], embedding_config("m", 2), embedding_config("m", 2), 2),
        # A zero at the end is a number like any other.
        ([1.0, 0.0, 0.0, 0.0], embedding_config("m", 2), embedding_config("m", 2), 2),
        ([1.0, 2.0, 0.5, 0.0], embedding_config("m", 2), embedding_config("m", 2), 0),
        ([1.0, 2.0, 0.0, 0.0], embedding_config("m", 2), embedding_config("m", 3), 0),
        ([1.0, 2.0, 0.0, 0.0], embedding_config("m", 2), embedding_config("n", 2), 0),
        ([1.0, 2.0], embedding_config("m", 4), embedding_config("m", 4), 0),
        (None, embedding_config("m", 2), embedding_config("m", 2), 0),
        ([1.0, 2.0], None, embedding_config("m", 2), 0),
    ],
)
def test_vectors(values: Any, own: Any, wanted: Any, size: int) -> None:
    assert list(memory.vector(values, own, wanted)) == (values[:size] if size else [])


@pytest.mark.parametrize(
    ("value", "limit", "expected", "changed"),
    [
        ("abc", 100, 100, 0),
        ("abc", 2, 3, 1),
        ("", 0, 1, 1),
        ("abc", 99_000_000, 10_000_000, 1),
        ("a\0bc", 3, 3, 0),
    ],
)
def test_blocks(value: str, limit: int, expected: int, changed: int) -> None:
    made = memory.block(row(BLOCKS, id=BLOCK, label="human", value=value, limit=limit, metadata_=None), ["a", "a"])
    assert not isinstance(made, Skip)
    assert (made[0].id, made[0].value, made[0].limit, len(made[1])) == (
        BLOCK,
        value.replace("\0", ""),
        expected,
        changed,
    )
    assert list(made[0].tags) == ["a"]
    assert not made[0].HasField("description")


def test_a_block_without_a_label_is_left_out() -> None:
    assert isinstance(memory.block(row(BLOCKS, id=BLOCK, label=""), []), Skip)


def test_archives_and_passages() -> None:
    config = embedding_config("m", 2)
    archive = row(ARCHIVES, id=identifier("archive", 1), name=" ", embedding_config=config)
    named, changes = memory.archive(archive)
    assert (named.name, named.embedding, named.dimensions) == ("archive", "openai/m", 2)
    assert changes == ["its name is 'archive' now"]
    plain, changes = memory.archive(row(ARCHIVES, id=identifier("archive", 1), name="Plain"))
    assert (plain.embedding, plain.dimensions, changes) == ("", 0, [])
    elsewhere = row(ARCHIVES, name="Odd", embedding_config=embedding_config("m", 0), vector_db_provider="TPUF")
    numberless, changes = memory.archive(elsewhere)
    assert (numberless.embedding, numberless.dimensions, len(changes)) == ("", 0, 2)
    passage = row(
        PASSAGES,
        id=identifier("passage", 1),
        text="owl",
        tags=["a", "a", "", None],
        embedding=[3.0, 4.0, 0.0],
        embedding_config=config,
        created_at=BEGIN,
    )
    mapped = memory.passage(passage, archive, ["a", "in a row of its own"])
    assert not isinstance(mapped, Skip)
    draft, changes = mapped
    assert (list(draft.tags), list(draft.embedding), draft.created_at.ToJsonString(), changes) == (
        ["a", "in a row of its own"],
        [3.0, 4.0],
        "2025-03-01T12:00:00Z",
        [],
    )
    mapped = memory.passage({**passage, "embedding_config": embedding_config("n", 2)}, archive)
    assert not isinstance(mapped, Skip)
    assert (list(mapped[0].embedding), len(mapped[1])) == ([], 1)
    assert isinstance(memory.passage({**passage, "text": " \n"}, archive), Skip)
    assert isinstance(memory.passage({**passage, "text": "x" * 1_000_001}, archive), Skip)


@pytest.mark.parametrize(
    ("source", "told", "expected"),
    [
        ("def f(a: int) -> str:\n    return ''", "json", "python"),
        ("import os\n\nasync def f():\n    pass", None, "python"),
        ("export function f(a: number): string { return '' }", "json", "typescript"),
        ("const f = (a: number) => a", "json", "typescript"),
        ("?", "typescript", "typescript"),
        ("?", "json", ""),
    ],
)
def test_languages_of_tools(source: str, told: str | None, expected: str) -> None:
    assert tools.source_type(source, told or "") == expected


def test_a_tool() -> None:
    given = row(
        TOOLS,
        id=identifier("tool", 1),
        name="f",
        tool_type="custom",
        source_type="json",
        source_code="def f():\n    pass",
        json_schema={"name": "f"},
        return_char_limit=9_000_000,
        pip_requirements=[{"name": "six", "version": None}, {"name": "yarl", "version": "1.0"}, {}],
        default_requires_approval=True,
    )
    mapped = tools.tool(given)
    assert not isinstance(mapped, Skip)
    request, changes = mapped
    assert changes == ["its returns may have 1 to 1,000,000 characters, not 9,000,000"]
    assert (request.tool_id, request.tool.source_type, request.tool.return_char_limit) == (
        identifier("tool", 1),
        "python",
        1_000_000,
    )
    assert json.loads(request.tool.pip_requirements_json) == [{"name": "six"}, {"name": "yarl", "version": "1.0"}]
    assert request.tool.default_requires_approval
    mapped = tools.tool({**given, "tool_type": "external_langchain", "return_char_limit": 1})
    assert not isinstance(mapped, Skip)
    assert mapped[1] == ["it was of type 'external_langchain'; it is a custom tool now"]
    assert isinstance(tools.tool({**given, "source_code": None}), Skip)
    assert tools.is_builtin({**given, "tool_type": "letta_memory_core"})
    assert not tools.is_builtin(given)
    assert tools.is_mcp_tool({**given, "tool_type": "external_mcp"})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"server_type": "sse", "server_url": "https://a/sse"}, ("sse", "https://a/sse", "Bearer t")),
        ({"server_type": "streamable_http", "server_url": "https://a"}, ("streamable_http", "https://a", "Bearer t")),
        ({"server_type": "stdio", "stdio_config": {"command": "npx", "args": ["x"]}}, ("stdio", "npx", "")),
    ],
)
def test_mcp_servers(given: Any, expected: tuple[str, str, str]) -> None:
    made = tools.mcp_server(row(MCP_SERVERS, id=identifier("mcp_server", 1), server_name="s", **given), "t", {"x": "y"})
    assert not isinstance(made, Skip)
    kind = made.transport.WhichOneof("transport")
    one = getattr(made.transport, str(kind))
    told = (one.command, "") if kind == "stdio" else (one.server_url, one.auth_token)
    assert (kind, *told) == expected


def test_an_mcp_server_of_a_kind_that_is_not_known() -> None:
    assert isinstance(tools.mcp_server(row(MCP_SERVERS, server_type="pigeon"), "", {}), Skip)


@pytest.mark.parametrize(("text", "expected"), [("", {}), ('{"a": 1}', {"a": "1"}), ("[]", None), ("{", None)])
def test_headers(text: str, expected: Any) -> None:
    assert tools.headers_of(text) == expected


def test_providers() -> None:
    given = row(PROVIDERS, id=identifier("provider", 1), name="mine", provider_type="openai", provider_category="byok")
    made = providers.provider(given, "key", "")
    assert not isinstance(made, Skip)
    assert (made.id, made.provider.name, made.provider.api_key) == (identifier("provider", 1), "mine", "key")
    assert isinstance(providers.provider({**given, "provider_type": "carrier"}, "", ""), Skip)
    assert not providers.is_byok({**given, "provider_category": "base"})


def test_folders_and_files() -> None:
    folder, changes = memory.folder(row(FOLDERS, id=identifier("source", 1), name="a/b", embedding_config=None))
    assert (folder.id, folder.name, folder.embedding) == (identifier("source", 1), "a_b", "")
    assert changes == ["its name is 'a_b' now"]
    given = row(FILES, id=identifier("file", 1), source_id=folder.id, file_name="old name/report.pdf")
    mapped = memory.file({**given, "file_type": "application/pdf"}, "text")
    assert not isinstance(mapped, Skip)
    header, changes = mapped
    assert (header.file_id, header.name, header.is_text) == (identifier("file", 1), "report.pdf", True)
    assert changes == ["it was application/pdf; its text comes, the original bytes are not in the database"]
    mapped = memory.file({**given, "file_type": "text/markdown"}, "text")
    assert not isinstance(mapped, Skip)
    assert mapped[1] == []
    assert isinstance(memory.file(given, None), Skip)
    assert isinstance(memory.file(given, " "), Skip)


def test_identities() -> None:
    given = row(
        IDENTITIES,
        id=identifier("identity", 1),
        identifier_key="ada",
        identity_type="robot",
        properties=[{"key": "a", "value": 1, "type": "number"}, {"key": "b", "value": 1, "type": "odd"}],
    )
    request, changes = groups.identity(given, [AGENT], [BLOCK])
    draft = request.identity
    assert (draft.name, draft.identity_type, list(draft.agent_ids)) == ("ada", "other", [AGENT])
    assert json.loads(draft.properties_json) == [{"key": "a", "value": 1, "type": "number"}]
    assert len(changes) == 2


def test_groups() -> None:
    other = identifier("agent", 2)
    given = row(
        GROUPS,
        id=identifier("group", 1),
        manager_type="dynamic",
        manager_agent_id=AGENT,
        agent_ids=[other, identifier("agent", 3)],
        max_turns=3,
        sleeptime_agent_frequency=5,
        turns_counter=7,
    )
    mapped = groups.group(given, [], [BLOCK], frozenset({AGENT, other}))
    assert not isinstance(mapped, Skip)
    draft = mapped[0].group
    assert (draft.manager_agent_id, list(draft.agent_ids)) == (AGENT, [other])
    assert json.loads(draft.manager_settings_json) == {"max_turns": 3}
    assert mapped[1] == [f"its member {identifier('agent', 3)} is not here", "its count of turns begins anew"]
    assert isinstance(groups.group(given, [], [], frozenset({other})), Skip)
    assert isinstance(groups.group({**given, "manager_type": "choir"}, [], [], frozenset({AGENT})), Skip)
    joined = groups.group({**given, "agent_ids": None}, [other], [], frozenset({AGENT, other}))
    assert not isinstance(joined, Skip)
    assert list(joined[0].group.agent_ids) == [other]


def test_an_agent() -> None:
    rule = {"type": "max_count_per_step", "tool_name": "f", "max_count_limit": 2}
    given = row(
        AGENTS,
        id=AGENT,
        name=None,
        agent_type="of_tomorrow",
        system="Be kind.\0",
        llm_config=llm_config("gpt-4o"),
        embedding_config=embedding_config("m", 2),
        tool_rules=[rule, {"type": "odd", "tool_name": "f"}],
        compaction_settings={"mode": "odd", "model": "openai-proxy/x", "clip_chars": 5},
        timezone="Nowhere/Atlantis",
        response_format={"type": "json_object"},
        max_files_open=3,
        created_at=BEGIN,
    )
    attachments = agents.Attachments(block_ids=[BLOCK], secrets={"KEY": "value"}, tags=["a"])
    imported, changes = agents.agent(given, attachments)
    draft = imported.agent
    assert (imported.agent_id, draft.name, draft.system, draft.model) == (AGENT, "agent", "Be kind.", "openai/gpt-4o")
    assert (draft.embedding, draft.context_window_limit, draft.timezone) == ("openai/m", 30_000, "UTC")
    assert draft.agent_type == agent_pb2.AGENT_TYPE_LETTA_V1_AGENT
    assert json.loads(draft.tool_rules_json) == [rule]
    assert json.loads(draft.compaction_settings_json) == {"model": "openai/x", "clip_chars": 5}
    assert json.loads(draft.model_settings_json)["response_format"] == {"type": "json_object"}
    assert (dict(draft.secrets), list(imported.block_ids)) == ({"KEY": "value"}, [BLOCK])
    assert len(changes) == 4
    assert imported.created_at.ToJsonString() == "2025-03-01T12:00:00Z"


def test_a_conversation() -> None:
    given = row(CONVERSATIONS, id=identifier("conv", 1), agent_id=AGENT, summary="s", model="openai-proxy/m")
    imported, changes = agents.conversation(given, [BLOCK])
    assert (imported.conversation_id, imported.model, list(imported.isolated_block_ids)) == (
        identifier("conv", 1),
        "openai/m",
        [BLOCK],
    )
    assert (imported.HasField("model_settings_json"), changes) == (False, [])
    imported, changes = agents.conversation({**given, "model": "no handle"}, [])
    assert (imported.model, len(changes)) == ("", 1)
