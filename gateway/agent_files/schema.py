"""The current form of an agent file, as far as it is read. Pure.

Fields came one by one over the years: what is not marked as required may be absent, and what is unknown is ignored.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field

T = TypeVar("T")

Json = dict[str, Any]
# Only the first fault is told: all those of a million objects would take minutes to put together.
Each = Annotated[list[T], Field(fail_fast=True)]


def _in_utc(value: datetime) -> datetime:
    """Older files have times without a zone."""
    try:
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("must be a time between the years 1 and 9999 in UTC") from None


Number = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Moment = Annotated[datetime, AfterValidator(_in_utc)]


class FileModel(BaseModel):
    """An object of the file."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class FileMessage(FileModel):
    """agents[].messages[]"""

    id: str
    role: str
    content: str | Each[Json] | None = None
    name: str | None = None
    tool_calls: Each[Json] | None = None
    tool_call_id: str | None = None
    tool_returns: Each[Json] | None = None
    approvals: Each[Json] | None = None
    approve: bool | None = None
    denial_reason: str | None = None
    created_at: Moment | None = None
    otid: str | None = None
    sender_id: str | None = None


class FileOpened(FileModel):
    """agents[].files_agents[]"""

    file_id: str
    source_id: str | None = None
    agent_id: str | None = None
    is_open: bool = False


class FileAgent(FileModel):
    """agents[]"""

    id: str
    name: str | None = None
    description: str | None = None
    system: str | None = None
    agent_type: str | None = None
    timezone: str | None = None
    llm_config: Json | None = None
    embedding_config: Json | None = None
    model: str | None = None
    embedding: str | None = None
    model_settings: Json | None = None
    compaction_settings: Json | None = None
    tool_ids: list[str] | None = None
    block_ids: list[str] | None = None
    source_ids: list[str] | None = None
    tool_rules: Each[Json] | None = None
    tags: list[str] | None = None
    metadata: Json | None = None
    secrets: dict[str, str | None] | None = None
    tool_exec_environment_variables: dict[str, str | None] | None = None
    in_context_message_ids: list[str] | None = None
    messages: Each[FileMessage] | None = None
    files_agents: Each[FileOpened] | None = None
    group_ids: list[str] | None = None
    message_buffer_autoclear: bool | None = None
    response_format: Json | None = None
    max_files_open: Number | None = None
    per_file_view_window_char_limit: Number | None = None
    enable_sleeptime: bool | None = None
    hidden: bool | None = None
    include_base_tools: bool | None = None

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Returns the names of the variables that an agent's tools look for."""
        return tuple({**(self.tool_exec_environment_variables or {}), **(self.secrets or {})})


class FileBlock(FileModel):
    """blocks[]"""

    id: str
    label: str
    value: str
    limit: Number | None = None
    description: str | None = None
    read_only: bool | None = None
    is_template: bool | None = None
    template_name: str | None = None
    preserve_on_migration: bool | None = None
    metadata: Json | None = None
    hidden: bool | None = None
    tags: list[str] | None = None


class FileTool(FileModel):
    """tools[]"""

    id: str
    name: str | None = None
    tool_type: str | None = None
    description: str | None = None
    source_type: str | None = None
    source_code: str | None = None
    json_schema: Json | None = None
    args_json_schema: Json | None = None
    tags: list[str] | None = None
    return_char_limit: Number | None = None
    pip_requirements: Each[Json] | None = None
    npm_requirements: Each[Json] | None = None
    default_requires_approval: bool | None = None
    enable_parallel_execution: bool | None = None
    metadata: Json | None = Field(None, validation_alias=AliasChoices("metadata_", "metadata"))


class FileServer(FileModel):
    """mcp_servers[]"""

    id: str
    server_type: str
    server_name: str
    server_url: str | None = None
    stdio_config: Json | None = None
    metadata: Json | None = Field(None, validation_alias=AliasChoices("metadata_", "metadata"))


class FileFolder(FileModel):
    """sources[]"""

    id: str
    name: str
    description: str | None = None
    instructions: str | None = None
    metadata: Json | None = None
    embedding_config: Json | None = None


class FileFile(FileModel):
    """files[]"""

    id: str
    source_id: str
    file_name: str | None = None
    original_file_name: str | None = None
    file_type: str | None = None
    content: str | None = None

    @property
    def name(self) -> str:
        """Its own, without folders."""
        return (self.original_file_name or self.file_name or "").rpartition("/")[2] or "file.txt"


class FileGroup(FileModel):
    """groups[]"""

    id: str
    agent_ids: list[str]
    description: str | None = None
    manager_config: Json | None = None
    shared_block_ids: list[str] | None = None


class AgentFile(FileModel):
    """The document."""

    agents: Each[FileAgent]
    groups: Each[FileGroup] = []
    blocks: Each[FileBlock] = []
    files: Each[FileFile] = []
    sources: Each[FileFolder] = []
    tools: Each[FileTool] = []
    mcp_servers: Each[FileServer] = []
    created_at: Moment | None = None
