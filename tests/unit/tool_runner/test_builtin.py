"""The built-in tools: names, types and schemas as clients of the reference know them."""

import json
from uuid import UUID, uuid5

import pytest

from services.tool_runner.builtin import BUILTIN_TOOLS
from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType
from services.tool_runner.core.schemas.rules import check_schema
from services.tool_runner.core.schemas.validation import check_parameters

# name: (type, arguments, required). Facts of the reference API.
EXPECTED = {
    "memory_insert": ("letta_sleeptime_core", "label new_string insert_line", "label new_string"),
    "memory_replace": ("letta_sleeptime_core", "label old_string new_string", "label old_string new_string"),
    "core_memory_append": ("letta_memory_core", "label content", "label content"),
    "core_memory_replace": ("letta_memory_core", "label old_content new_content", "label old_content new_content"),
    "archival_memory_insert": ("letta_core", "content tags", "content"),
    "archival_memory_search": (
        "letta_core", "query tags tag_match_mode top_k start_datetime end_datetime", "query"),
    "memory_rethink": ("letta_sleeptime_core", "label new_memory", "label new_memory"),
    "memory_apply_patch": ("letta_memory_core", "label patch", "label patch"),
    "memory": (
        "letta_memory_core",
        "command path file_text description old_string new_string insert_line insert_text old_path new_path",
        "command"),
    "memory_finish_edits": ("letta_sleeptime_core", "", ""),
    "rethink_memory": ("letta_memory_core", "new_memory target_block_label", "new_memory target_block_label"),
    "rethink_user_memory": ("letta_voice_sleeptime_core", "new_memory", "new_memory"),
    "finish_rethinking_memory": ("letta_voice_sleeptime_core", "", ""),
    "send_message": ("letta_core", "message", "message"),
    "conversation_search": ("letta_core", "query roles limit start_date end_date", ""),
    "open_files": ("letta_files_core", "file_requests close_all_others", "file_requests"),
    "grep_files": ("letta_files_core", "pattern include context_lines offset", "pattern"),
    "semantic_search_files": ("letta_files_core", "query limit", "query"),
    "run_code": ("letta_builtin", "code language files", "code language"),
    "run_code_with_tools": ("letta_builtin", "code", "code"),
    "web_search": (
        "letta_builtin",
        "query num_results category include_text include_domains exclude_domains start_published_date "
        "end_published_date user_location", "query"),
    "fetch_webpage": ("letta_builtin", "url", "url"),
    "send_message_to_agent_and_wait_for_reply": (
        "letta_multi_agent_core", "message other_agent_id", "message other_agent_id"),
    "send_message_to_agent_async": ("letta_multi_agent_core", "message other_agent_id", "message other_agent_id"),
    "send_message_to_agents_matching_tags": (
        "letta_multi_agent_core", "message match_all match_some", "message match_all match_some"),
    "list_mcp_resources": ("letta_builtin", "server", ""),
    "read_mcp_resource": ("letta_builtin", "server uri", "server uri"),
}  # fmt: skip

PARALLEL = {"grep_files", "semantic_search_files", "run_code", "fetch_webpage"} | {
    "list_mcp_resources",
    "read_mcp_resource",
}


def test_these_are_all() -> None:
    assert {tool.name for tool in BUILTIN_TOOLS} == EXPECTED.keys()


@pytest.mark.parametrize("builtin", BUILTIN_TOOLS, ids=lambda tool: tool.name)
def test_built_in_tools(builtin: BuiltinTool) -> None:
    tenant = UUID(int=5)
    tool = builtin.of_tenant(tenant)
    tool_type, arguments, required = EXPECTED[tool.name]
    schema = json.loads(tool.json_schema)
    check_schema(schema)
    check_parameters(tool.name, schema["parameters"])
    assert (tool.tool_type, tool.tags) == (ToolType(tool_type), (tool_type,))
    assert list(schema["parameters"]["properties"]) == arguments.split()
    assert schema["parameters"]["required"] == required.split()
    assert all(part["description"] for part in schema["parameters"]["properties"].values())
    assert schema["description"] == tool.description
    assert tool.id == uuid5(tenant, tool.name)
    parallel = tool.name.endswith("_search") or tool.name in PARALLEL
    assert tool.enable_parallel_execution == parallel
