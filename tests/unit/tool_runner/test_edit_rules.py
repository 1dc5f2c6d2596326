"""Rules for changes of tools, by who made them."""

from __future__ import annotations

from uuid import UUID

import pytest

from services.tool_runner.core.model import Tool, ToolChanges, ToolType
from services.tool_runner.tools import rules


def tool(tool_type: ToolType) -> Tool:
    return Tool(
        id=UUID(int=1),
        name="t",
        description="D.",
        tool_type=tool_type,
        source_type="python",
        source_code="",
        json_schema='{"name": "t"}',
        tags=("a",),
    )


@pytest.mark.parametrize("kind", list(ToolType))
def test_every_type_has_its_rule(kind: ToolType) -> None:
    changes = ToolChanges(
        tags=("b",), return_char_limit=5, default_requires_approval=True, idempotent=True, source_code="x", network="{}"
    )
    refused = rules.read_only(tool(kind), changes)
    if kind in (ToolType.CUSTOM, ToolType.EXTERNAL_LANGCHAIN, ToolType.EXTERNAL_COMPOSIO):
        assert refused == []
    elif kind is ToolType.EXTERNAL_MCP:
        assert refused == ["source_code", "network"]
        assert "MCP server" in rules.refusal(tool(kind), refused)
    else:
        assert refused == ["idempotent", "source_code", "network"]
        assert "idempotent, source_code, network cannot be changed" in rules.refusal(tool(kind), refused)


def test_what_is_sent_back_as_it_is_changes_nothing() -> None:
    same = ToolChanges(
        description="D.",
        source_code="",
        json_schema='{ "name":"t" }',
        args_json_schema=None,
        idempotent=False,
        network="",
    )
    assert rules.read_only(tool(ToolType.LETTA_CORE), same) == []
    assert rules.read_only(tool(ToolType.LETTA_CORE), ToolChanges(json_schema="{}")) == ["json_schema"]
