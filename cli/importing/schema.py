"""The database of the Letta V1 server 0.16.8 (retired): its tables and those of their columns that are read.

Older revisions lack some; a column that is not there reads as null, a table as empty.
"""

from dataclasses import dataclass

# What the newest revision calls itself; others are read as far as their columns go.
REVISION = "1c28e167b74f"
# Vectors are filled with zeros up to here.
PADDED = 4_096


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `columns` beside `id` and `created_at`; `vectors`: read as arrays of numbers."""

    name: str
    columns: tuple[str, ...]
    vectors: tuple[str, ...] = ()


PROVIDERS = Table(
    "providers",
    (
        *("name", "provider_type", "provider_category", "base_url", "region", "api_version"),
        *("api_key", "api_key_enc", "access_key", "access_key_enc"),
    ),
)
MCP_SERVERS = Table(
    "mcp_server",
    (
        *("server_name", "server_type", "server_url", "stdio_config", "metadata_"),
        *("token", "token_enc", "custom_headers", "custom_headers_enc"),
    ),
)
SANDBOX_CONFIGS = Table("sandbox_configs", ("type", "config"))
SANDBOX_VARIABLES = Table(
    "sandbox_environment_variables", ("key", "value", "value_enc", "description", "sandbox_config_id")
)
TOOLS = Table(
    "tools",
    (
        *("name", "description", "tool_type", "source_type", "source_code", "json_schema", "args_json_schema", "tags"),
        *("return_char_limit", "pip_requirements", "npm_requirements", "default_requires_approval"),
        *("enable_parallel_execution", "metadata_"),
    ),
)
BLOCKS = Table(
    "block",
    (
        *("label", "value", "limit", "description", "metadata_", "is_template", "template_name", "read_only"),
        *("preserve_on_migration", "hidden"),
    ),
)
BLOCK_TAGS = Table("blocks_tags", ("block_id", "tag"))
ARCHIVES = Table("archives", ("name", "description", "metadata_", "embedding_config", "vector_db_provider"))
PASSAGES = Table(
    "archival_passages", ("text", "tags", "metadata_", "archive_id", "embedding_config"), vectors=("embedding",)
)
FOLDERS = Table("sources", ("name", "description", "instructions", "metadata_", "embedding_config"))
FILES = Table("files", ("source_id", "file_name", "original_file_name", "file_type", "file_size", "processing_status"))
FILE_CONTENTS = Table("file_contents", ("file_id", "text"))
AGENTS = Table(
    "agents",
    (
        *("name", "description", "system", "agent_type", "message_ids", "llm_config", "embedding_config"),
        *("tool_rules", "metadata_", "response_format", "compaction_settings", "message_buffer_autoclear"),
        *("enable_sleeptime", "timezone", "max_files_open", "per_file_view_window_char_limit", "hidden"),
    ),
)
AGENT_VARIABLES = Table("agent_environment_variables", ("agent_id", "key", "value", "value_enc", "description"))
MESSAGES = Table(
    "messages",
    (
        *("agent_id", "role", "content", "text", "tool_calls", "tool_call_id", "tool_returns", "approvals"),
        *("approval_request_id", "approve", "denial_reason", "name", "otid", "sender_id", "step_id"),
        *("conversation_id", "sequence_id"),
    ),
)
CONVERSATIONS = Table("conversations", ("agent_id", "summary", "model", "model_settings"))
CONVERSATION_MESSAGES = Table("conversation_messages", ("conversation_id", "message_id", "position", "in_context"))
IDENTITIES = Table("identities", ("identifier_key", "name", "identity_type", "properties"))
GROUPS = Table(
    "groups",
    (
        *("description", "manager_type", "manager_agent_id", "agent_ids", "max_turns", "termination_token"),
        *("sleeptime_agent_frequency", "max_message_buffer_length", "min_message_buffer_length"),
    ),
)


@dataclass(frozen=True, slots=True)
class Join:
    """A table without ids that gives an `owner` its `other`s, by two columns."""

    table: str
    owner: str
    other: str


AGENT_BLOCKS = Join("blocks_agents", "agent_id", "block_id")
AGENT_TOOLS = Join("tools_agents", "agent_id", "tool_id")
AGENT_TAGS = Join("agents_tags", "agent_id", "tag")
AGENT_ARCHIVES = Join("archives_agents", "agent_id", "archive_id")
AGENT_FOLDERS = Join("sources_agents", "agent_id", "source_id")
CONVERSATION_BLOCKS = Join("blocks_conversations", "conversation_id", "block_id")
IDENTITY_AGENTS = Join("identities_agents", "identity_id", "agent_id")
IDENTITY_BLOCKS = Join("identities_blocks", "identity_id", "block_id")
GROUP_AGENTS = Join("groups_agents", "group_id", "agent_id")
GROUP_BLOCKS = Join("groups_blocks", "group_id", "block_id")

# Not taken, whatever is in them.
LEFT_BEHIND = {
    "runs": "what requests were made is history",
    "steps": "what models were asked is history",
    "jobs": "what was done in the background is history",
    "provider_traces": "raw requests to providers are history",
    "provider_trace_metadata": "raw requests to providers are history",
    "step_metrics": "figures are history",
    "run_metrics": "figures are history",
    "llm_batch_job": "batches are history",
    "llm_batch_items": "batches are history",
    "block_history": "earlier values of blocks are history; what they say now is taken",
    "prompts": "no route reads them",
    "provider_models": "a list that is made anew from each provider",
    "mcp_oauth": "authorisations hold for the old server's address; connect to the MCP server anew",
    "source_passages": "pieces of files are made anew from their texts",
}
# Rows that are marked as deleted are not taken, of any of these.
MARKED = (
    *("providers", "mcp_server", "sandbox_configs", "sandbox_environment_variables", "tools", "block", "archives"),
    *("archival_passages", "sources", "files", "agents", "agent_environment_variables", "conversations"),
    *("conversation_messages", "messages", "identities", "groups"),
)
# What people call them, in the report.
NAMES = {
    "providers": "providers",
    "mcp_server": "mcp servers",
    "sandbox_configs": "sandbox configs",
    "sandbox_environment_variables": "sandbox variables",
    "tools": "tools",
    "block": "blocks",
    "archives": "archives",
    "archival_passages": "passages",
    "sources": "folders",
    "files": "files",
    "agents": "agents",
    "agent_environment_variables": "secrets",
    "conversations": "conversations",
    "conversation_messages": "places of messages",
    "messages": "messages",
    "identities": "identities",
    "groups": "groups",
}
