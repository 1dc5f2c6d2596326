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
    """A table.

    columns: those that are read beside its key and `created_at`; vectors: read as arrays of numbers. owners: columns
    with the keys of rows without which this one cannot come, and their tables. unread: columns that are known and left
    out for what they are. left_behind: why no row of it is taken. otherwise: why a row is not, where nothing else
    explains it.
    """

    name: str
    columns: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    key: tuple[str, ...] = ("id",)
    owners: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()
    left_behind: str = ""
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class Join:
    """A table without ids that gives an `owner` its `other`s, by two columns; each: column and table it refers to."""

    name: str
    owner: tuple[str, str]
    other: tuple[str, str]
    unread: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """The same as a table."""
        owners = tuple(one for one in (self.owner, self.other) if one[1])
        return Table(self.name, key=(self.owner[0], self.other[0]), owners=owners, unread=self.unread)


# On nearly every table, and known.
COMMON = ("created_at", "updated_at", "is_deleted", "organization_id", "_created_by_id", "_last_updated_by_id")
# What the hosted product keeps of a row; null on other servers.
_PROJECT = ("project_id", "template_id", "base_template_id", "deployment_id")

PROVIDERS = Table(
    "providers",
    (
        *("name", "provider_type", "provider_category", "base_url", "region", "api_version"),
        *("api_key", "api_key_enc", "access_key", "access_key_enc"),
    ),
    unread=("last_synced",),
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
    "sandbox_environment_variables",
    ("key", "value", "value_enc", "description", "sandbox_config_id"),
    owners=(("sandbox_config_id", SANDBOX_CONFIGS.name),),
)
TOOLS = Table(
    "tools",
    (
        *("name", "description", "tool_type", "source_type", "source_code", "json_schema", "args_json_schema", "tags"),
        *("return_char_limit", "pip_requirements", "npm_requirements", "default_requires_approval"),
        *("enable_parallel_execution", "metadata_", "project_id"),
    ),
)
BLOCKS = Table(
    "block",
    (
        *("label", "value", "limit", "description", "metadata_", "is_template", "template_name", "read_only"),
        *("preserve_on_migration", "hidden", "entity_id", *_PROJECT),
    ),
    unread=("version", "current_history_entry_id"),
)
BLOCK_TAGS = Table("blocks_tags", ("block_id", "tag"), key=("block_id", "tag"), owners=(("block_id", BLOCKS.name),))
ARCHIVES = Table(
    "archives",
    ("name", "description", "metadata_", "embedding_config", "vector_db_provider"),
    unread=("_vector_db_namespace",),
)
PASSAGES = Table(
    "archival_passages",
    ("text", "tags", "metadata_", "archive_id", "embedding_config"),
    vectors=("embedding",),
    owners=(("archive_id", ARCHIVES.name),),
)
PASSAGE_TAGS = Table("passage_tags", ("tag", "passage_id", "archive_id"), owners=(("passage_id", PASSAGES.name),))
FOLDERS = Table(
    "sources",
    ("name", "description", "instructions", "metadata_", "embedding_config"),
    unread=("vector_db_provider",),
)
FILES = Table(
    "files",
    ("source_id", "file_name", "original_file_name", "file_type", "file_size", "processing_status"),
    owners=(("source_id", FOLDERS.name),),
    unread=(
        *("file_path", "file_creation_date", "file_last_modified_date"),
        *("error_message", "total_chunks", "chunks_embedded"),
    ),
)
FILE_CONTENTS = Table("file_contents", ("file_id", "text"), owners=(("file_id", FILES.name),))
AGENTS = Table(
    "agents",
    (
        *("name", "description", "system", "agent_type", "message_ids", "llm_config", "embedding_config"),
        *("tool_rules", "metadata_", "response_format", "compaction_settings", "message_buffer_autoclear"),
        *("enable_sleeptime", "timezone", "max_files_open", "per_file_view_window_char_limit", "hidden", "entity_id"),
        *_PROJECT,
    ),
    unread=("last_run_completion", "last_run_duration_ms", "last_stop_reason", "_vector_db_namespace"),
)
_OF_AGENT = ("agent_id", AGENTS.name)
AGENT_VARIABLES = Table(
    "agent_environment_variables", ("agent_id", "key", "value", "value_enc", "description"), owners=(_OF_AGENT,)
)
CONVERSATIONS = Table(
    "conversations",
    ("agent_id", "summary", "model", "model_settings"),
    owners=(_OF_AGENT,),
    unread=("last_message_at",),
)
MESSAGES = Table(
    "messages",
    (
        *("agent_id", "role", "content", "text", "tool_calls", "tool_call_id", "tool_returns", "approvals"),
        *("approval_request_id", "approve", "denial_reason", "name", "otid", "sender_id", "step_id"),
        *("conversation_id", "sequence_id"),
    ),
    owners=(_OF_AGENT, ("conversation_id", CONVERSATIONS.name)),
    unread=("model", "run_id", "group_id", "batch_item_id", "is_err"),
    otherwise="the conversation it was written in does not list it",
)
CONVERSATION_MESSAGES = Table(
    "conversation_messages",
    ("conversation_id", "message_id", "position", "in_context"),
    owners=(("conversation_id", CONVERSATIONS.name), ("message_id", MESSAGES.name)),
    unread=("agent_id",),
    otherwise="it names no conversation: the window of the agent is in its message_ids",
)
IDENTITIES = Table("identities", ("identifier_key", "name", "identity_type", "properties", "project_id"))
GROUPS = Table(
    "groups",
    (
        *("description", "manager_type", "manager_agent_id", "agent_ids", "max_turns", "termination_token"),
        *("sleeptime_agent_frequency", "max_message_buffer_length", "min_message_buffer_length", "hidden"),
        *("turns_counter", *_PROJECT),
    ),
    unread=("last_processed_message_id",),
)

AGENT_BLOCKS = Join("blocks_agents", _OF_AGENT, ("block_id", BLOCKS.name), unread=("block_label",))
AGENT_TOOLS = Join("tools_agents", _OF_AGENT, ("tool_id", TOOLS.name))
AGENT_TAGS = Join("agents_tags", _OF_AGENT, ("tag", ""))
AGENT_ARCHIVES = Join("archives_agents", _OF_AGENT, ("archive_id", ARCHIVES.name), unread=("is_owner",))
AGENT_FOLDERS = Join("sources_agents", _OF_AGENT, ("source_id", FOLDERS.name))
CONVERSATION_BLOCKS = Join(
    "blocks_conversations", ("conversation_id", CONVERSATIONS.name), ("block_id", BLOCKS.name), unread=("block_label",)
)
IDENTITY_AGENTS = Join("identities_agents", ("identity_id", IDENTITIES.name), _OF_AGENT)
IDENTITY_BLOCKS = Join("identities_blocks", ("identity_id", IDENTITIES.name), ("block_id", BLOCKS.name))
GROUP_AGENTS = Join("groups_agents", ("group_id", GROUPS.name), _OF_AGENT)
GROUP_BLOCKS = Join("groups_blocks", ("group_id", GROUPS.name), ("block_id", BLOCKS.name))
JOINS = (
    *(AGENT_BLOCKS, AGENT_TOOLS, AGENT_TAGS, AGENT_ARCHIVES, AGENT_FOLDERS, CONVERSATION_BLOCKS),
    *(IDENTITY_AGENTS, IDENTITY_BLOCKS, GROUP_AGENTS, GROUP_BLOCKS),
)

_FIGURES, _BATCHES = "figures are history", "batches are history"
_TRACES = "raw requests to providers are history"
LEFT_BEHIND = (
    Table("alembic_version", key=("version_num",), left_behind="it says of which revision the tables are"),
    Table("organizations", left_behind="its rows go to the organization here that --into names; its name does not"),
    Table("users", left_behind="everything belongs to the user of the organization here"),
    Table("files_agents", left_behind="the files of an agent's folders are opened here anew"),
    Table("runs", left_behind="what requests were made is history"),
    Table("steps", left_behind="what models were asked is history"),
    Table("jobs", left_behind="what was done in the background is history"),
    Table("provider_traces", left_behind=_TRACES),
    Table("provider_trace_metadata", left_behind=_TRACES),
    Table("step_metrics", left_behind=_FIGURES),
    Table("run_metrics", left_behind=_FIGURES),
    Table("llm_batch_job", left_behind=_BATCHES),
    Table("llm_batch_items", left_behind=_BATCHES),
    Table("block_history", left_behind="earlier values of blocks are history; what they say now is taken"),
    Table("prompts", left_behind="no route reads them"),
    Table("provider_models", left_behind="the list is made anew from each provider"),
    Table("mcp_oauth", left_behind="it holds for the old server's address; connect to the MCP server anew"),
    Table("mcp_tools", left_behind="the list is made anew from each MCP server"),
    Table("source_passages", left_behind="pieces of files are made anew from their texts"),
)
# All tables, owners first.
TABLES = (
    *(PROVIDERS, MCP_SERVERS, SANDBOX_CONFIGS, SANDBOX_VARIABLES, TOOLS, BLOCKS, BLOCK_TAGS, ARCHIVES, PASSAGES),
    *(PASSAGE_TAGS, FOLDERS, FILES, FILE_CONTENTS, AGENTS, AGENT_VARIABLES, CONVERSATIONS, MESSAGES),
    *(CONVERSATION_MESSAGES, IDENTITIES, GROUPS, *(join.table for join in JOINS), *LEFT_BEHIND),
)
