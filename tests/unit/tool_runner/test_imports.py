"""Definitions of LangChain and Composio tools as ours: names, schemas, packages, hosts, and what is refused."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from services.common.core.refusals import Refused
from services.tool_runner.core import network_policy
from services.tool_runner.core.model import ToolChanges, ToolType
from services.tool_runner.tools.imports import import_tool
from services.tool_runner.tools.imports.definition import function_name

WIKIPEDIA: dict[str, Any] = {
    "module": "langchain_community.tools",
    "class": "WikipediaQueryRun",
    "arguments": {"api_wrapper": {"module": "langchain_community.utilities", "class": "WikipediaAPIWrapper"}},
    "description": "Look something up.",
    "args_schema": {"title": "X", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    "packages": ["wikipedia==1.4.0", {"name": "httpx", "version": ">=0.28"}, "mediawiki"],
}
ISSUE: dict[str, Any] = {
    "slug": "GITHUB_CREATE_AN_ISSUE",
    "description": "Open an issue.",
    "input_parameters": {"type": "object", "properties": {"title": {"type": "string"}}},
    "connected_account_id": "ca_1",
}


def test_a_langchain_tool() -> None:
    made = import_tool("langchain", WIKIPEDIA)
    assert (made.tool_type, made.name) == (ToolType.EXTERNAL_LANGCHAIN, "wikipedia_query_run")
    assert made.parameters == {
        "type": "object",
        "title": "X",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }
    assert made.packages == (
        {"name": "langchain-community"},
        {"name": "wikipedia", "version": "1.4.0"},
        {"name": "httpx", "version": ">=0.28"},
        {"name": "mediawiki"},
    )
    functions = [node for node in ast.parse(made.source_code).body if isinstance(node, ast.FunctionDef)]
    assert functions[-1].name == made.name
    assert import_tool("langchain", {"module": "a", "class": "B"}).parameters["required"] == ["tool_input"]


def test_a_composio_action() -> None:
    made = import_tool("composio", ISSUE)
    assert (made.tool_type, made.name) == (ToolType.EXTERNAL_COMPOSIO, "github_create_an_issue")
    assert made.parameters == ISSUE["input_parameters"]
    assert "https://backend.composio.dev/api/v3.1/tools/execute/GITHUB_CREATE_AN_ISSUE" in made.source_code
    found = network_policy.parse(json.dumps(made.network))
    assert found.meaning("backend.composio.dev", 443) is not None
    assert found.meaning("api.github.com", 443) is None
    assert list(found.secrets) == ["COMPOSIO_API_KEY"]
    assert import_tool("composio", {"name": "A", "parameters": ISSUE["input_parameters"]}).name == "a"


def test_settings_given_besides_add_up() -> None:
    given = ToolChanges(
        tags=("mine", "composio"),
        network='{"allow": ["example.com"], "secrets": {"OTHER": {"hosts": ["example.com"]}}}',
        pip_requirements='[{"name": "numpy"}]',
        source_code="ignored",
        idempotent=True,
    )
    draft = import_tool("composio", ISSUE).draft(given)
    assert draft["tags"] == ("mine", "composio")
    assert json.loads(draft["network"])["allow"] == ["example.com"]
    assert json.loads(draft["network"])["secrets"].keys() == {"COMPOSIO_API_KEY", "OTHER"}
    assert json.loads(draft["pip_requirements"]) == [{"name": "numpy"}]
    assert draft["idempotent"]
    assert "ignored" not in draft["source_code"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("duckduckgo_search", "duckduckgo_search"),
        ("Calculator", "calculator"),
        ("Human-in the loop!", "human_in_the_loop"),
        ("import", "tool_import"),
        ("json", "tool_json"),
        ("9lives", "tool_9lives"),
        ("__made", "made"),
        ("...", "tool"),
    ],
)
def test_names_that_functions_can_have(text: str, name: str) -> None:
    assert function_name(text) == name
    assert name.isidentifier()


def test_long_names_are_cut_and_stay_apart() -> None:
    first, second = (function_name("GITHUB_" + "LONG_" * 20 + end) for end in "ab")
    assert len(first) == len(second) == 48
    assert first != second


@pytest.mark.parametrize(
    ("library", "definition", "member"),
    [
        ("crewai", {}, "library"),
        ("langchain", {"class": "B"}, "module"),
        ("langchain", {"module": "a; import os", "class": "B"}, "module"),
        ("langchain", {"module": "a", "class": "B()"}, "class"),
        ("langchain", {"module": "a", "class": "B", "args_schema": {"type": "array"}}, "args_schema"),
        ("langchain", {"module": "a", "class": "B", "args_schema": []}, "args_schema"),
        ("langchain", {"module": "a", "class": "B", "packages": ["--index-url=x"]}, "packages"),
        (
            "langchain",
            {"module": "a", "class": "B", "arguments": {"x": {"module": "/", "class": "C"}}},
            "arguments.module",
        ),
        ("composio", {"slug": "a/../b"}, "slug"),
        ("composio", {"slug": 7}, "slug"),
        ("composio", {}, "name"),
        ("composio", {"slug": "A", "user_id": 1}, "user_id"),
    ],
)
def test_what_is_no_definition_is_refused_by_its_member(library: str, definition: Any, member: str) -> None:
    with pytest.raises(Refused, match=member) as caught:
        import_tool(library, definition)
    assert caught.value.reason == "TOOL_SCHEMA_INVALID"


def test_no_value_of_a_definition_becomes_source() -> None:
    hostile = "'''); __import__('os').system('x') #\\\n\"\"\"{}"
    for library, definition in (
        ("langchain", {"module": "a", "class": "B", "arguments": {hostile: hostile}, "description": hostile}),
        ("composio", {"slug": "A", "user_id": hostile, "description": hostile}),
    ):
        tree = ast.parse(import_tool(library, definition).source_code)
        calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert "__import__" not in calls
