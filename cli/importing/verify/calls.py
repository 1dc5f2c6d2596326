"""The client calls that are compared. No I/O."""

from collections.abc import Callable
from dataclasses import dataclass, field

from cli.importing.values import Json, as_text

# Fields that are each server's own, whatever the resource.
_OWN = ("updated_at", "created_by_id", "last_updated_by_id", "organization_id")
# Imports mint these anew; docs/moving-in.md.
_TIMELESS = (*_OWN, "created_at")
# How a server reaches a model; its handle is compared.
_REACH = ("llm_config", "embedding_config")


@dataclass(frozen=True, slots=True)
class Call:
    """A list that both servers are asked for, page by page.

    path: `{id}` stands for the entry above it. key, then secondary: fields by which entries are paired; ignored: fields
    that are not compared; presence: whether only the keys are. own: whether entries that only this server has are fine.
    skip: entries that are not compared. inner: the field of the answer that holds the list, beside the cursor of the
    next page; empty: the answer is the list. cursor: the parameter that turns the page.
    """

    path: str
    key: str = "id"
    secondary: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    presence: bool = False
    own: bool = False
    skip: Callable[[Json], bool] = lambda entry: False
    inner: str = ""
    cursor: str = "after"
    children: tuple["Call", ...] = ()


def _is_prompt(message: Json) -> bool:
    """Compiled anew: its text has this server's blocks and times in it."""
    return message.get("message_type") == "system_message"


def _is_builtin(tool: Json) -> bool:
    return as_text(tool.get("tool_type")).startswith("letta_")


def _is_of_server(provider: Json) -> bool:
    return provider.get("provider_category") == "base"


_MESSAGE = frozenset({*_OWN, "run_id", "step_id", "seq_id"})
_AGENT = frozenset(
    {
        *(*_OWN, *_REACH, "message_ids", "tools", "blocks", "memory", "sources", "identities", "folders"),
        *("multi_agent_group", "managed_group", "last_run_completion", "last_run_duration_ms", "last_stop_reason"),
        *("secrets", "tool_exec_environment_variables"),
    }
)
_FILE = frozenset(
    {
        *(*_TIMELESS, "file_path", "file_size", "file_type", "file_creation_date", "file_last_modified_date"),
        *("processing_status", "total_chunks", "chunks_embedded", "content"),
    }
)
CALLS = (
    Call(
        "/v1/agents/",
        ignored=_AGENT,
        own=True,
        children=(
            Call("/v1/agents/{id}/core-memory/blocks", key="label", ignored=frozenset(_TIMELESS)),
            Call("/v1/agents/{id}/tools", key="name", presence=True),
            Call("/v1/agents/{id}/folders", presence=True),
            Call("/v1/agents/{id}/files", key="file_id", inner="files", cursor="cursor", presence=True),
            Call(
                "/v1/agents/{id}/messages",
                secondary="message_type",
                parameters={"conversation_id": "default"},
                ignored=_MESSAGE,
                skip=_is_prompt,
            ),
            Call(
                "/v1/agents/{id}/archival-memory",
                ignored=frozenset({*_OWN, *_REACH, "embedding", "file_id", "file_name", "source_id"}),
            ),
            Call(
                "/v1/conversations/",
                parameters={"agent_id": "{id}"},
                ignored=frozenset({*_OWN, "in_context_message_ids"}),
                children=(
                    # By their order: a fork has copies, with ids of their own.
                    Call(
                        "/v1/conversations/{id}/messages",
                        key="message_type",
                        ignored=_MESSAGE | {"id", "otid", "approval_request_id"},
                        skip=_is_prompt,
                    ),
                ),
            ),
        ),
    ),
    Call(
        "/v1/blocks/",
        ignored=frozenset(_TIMELESS),
        own=True,
        children=(Call("/v1/blocks/{id}/agents", presence=True),),
    ),
    Call("/v1/archives/", ignored=frozenset({*_TIMELESS, *_REACH, "vector_db_provider"}), own=True),
    Call(
        "/v1/folders/",
        ignored=frozenset({*_TIMELESS, *_REACH, "vector_db_provider"}),
        own=True,
        children=(
            Call("/v1/folders/{id}/files", ignored=_FILE),
            Call("/v1/folders/{id}/agents", presence=True),
        ),
    ),
    Call(
        "/v1/tools/",
        key="name",
        ignored=frozenset({*_TIMELESS, "id", "source_type", "metadata_", "metadata"}),
        own=True,
        skip=_is_builtin,
    ),
    Call("/v1/identities/", ignored=frozenset({*_TIMELESS, "agents", "blocks"}), own=True),
    Call("/v1/groups/", ignored=frozenset({*_TIMELESS, "turns_counter", "last_processed_message_id"}), own=True),
    Call("/v1/mcp-servers/", ignored=frozenset({*_TIMELESS, "auth_token", "token", "custom_headers"}), own=True),
    Call(
        "/v1/providers/",
        key="name",
        ignored=frozenset({*_TIMELESS, "api_key", "api_key_enc", "access_key", "access_key_enc", "last_synced"}),
        own=True,
        skip=_is_of_server,
    ),
)
NOT_COMPARED = (
    "system messages, which have other ids and are compiled anew",
    "runs and steps, which do not come",
    "times of creation of blocks, archives, folders, files, tools, identities and groups, which are new",
    "vectors, secrets, and how a server reaches a model",
    "built-in tools, and what only this server has",
)
