"""Imports: agents, their conversations and messages, groups. Pure.

A log is written in order: first what is not in the window of its conversation, then the window.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.core.approvals import pending_message
from services.agent.core.messages import Message, gated_calls
from services.agent.resources.agents.model.checks import SettingValues
from services.common.core.refusals import Refused
from services.common.core.storable import parse_storable, storable

MOST_MESSAGES = 1_000
MOST_MEMBERS = 100
# What a manager type asks for beside its agent; LETTA V1 API, groups.
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "round_robin": ("max_turns",),
    "supervisor": (),
    "dynamic": ("termination_token", "max_turns"),
    "sleeptime": ("sleeptime_agent_frequency",),
    "voice_sleeptime": ("min_message_buffer_length", "max_message_buffer_length"),
    "swarm": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedAgent:
    """See loci.agent.v1.ImportedAgent."""

    id: UUID
    settings: SettingValues
    block_ids: tuple[UUID, ...] = ()
    folder_ids: tuple[UUID, ...] = ()
    archive_ids: tuple[UUID, ...] = ()
    identity_ids: tuple[UUID, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    include_base_tools: bool = False
    prompt: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """See loci.agent.v1.ImportedConversation."""

    id: UUID
    agent_id: UUID
    settings: SettingValues = field(default_factory=dict)
    isolated_block_ids: tuple[UUID, ...] = ()
    prompt: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ImportedMessages:
    """Messages, each with whether it is in the window. The default conversation has the id of its agent."""

    conversation_id: UUID
    messages: Sequence[tuple[Message, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedGroup:
    """See loci.agent.v1.ImportedGroup; `manager_settings` by name."""

    id: UUID
    description: str
    agent_ids: tuple[UUID, ...]
    manager_type: str
    manager_agent_id: UUID | None = None
    manager_settings: Mapping[str, Any] = field(default_factory=dict)
    shared_block_ids: tuple[UUID, ...] = ()
    template_id: str | None = None
    base_template_id: str | None = None
    deployment_id: str | None = None

    @property
    def members(self) -> tuple[UUID, ...]:
        """All its agents, the manager too."""
        return self.agent_ids if self.manager_agent_id is None else (*self.agent_ids, self.manager_agent_id)


ImportPart = ImportedAgent | ImportedConversation | ImportedMessages | ImportedGroup


@dataclass(frozen=True, slots=True)
class Importer:
    """Who imports; `import_id` tells one import from another."""

    organization_id: UUID
    user_id: UUID
    import_id: UUID


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The outcome of an import."""

    agent_ids: tuple[UUID, ...]
    messages: int


@dataclass(slots=True)
class Log:
    """The log of a conversation, as far as its head describes it."""

    agent_id: UUID
    conversation_id: UUID
    log_id: UUID
    next_seq: int = 1
    # Where the window begins; None: nothing is in it yet.
    window_seq: int | None = None
    summary_id: UUID | None = None
    last_message_at: datetime | None = None
    # From the newest message on whose calls may wait for the client.
    _asking: list[Message] = field(default_factory=list)

    @property
    def pending_message_id(self) -> UUID | None:
        """The message whose calls wait for the client."""
        pending = pending_message(self._asking)
        return None if pending is None else pending.id

    def add(self, imported: ImportedMessages) -> None:
        """Raises Refused (IMPORT_INVALID)."""
        for message, in_context in imported.messages:
            if in_context:
                self._show(message)
            elif self.window_seq is not None:
                raise invalid(
                    f"message-{message.id} is not in context and comes after one that is: first those that are not"
                )
            self.next_seq += 1
            self.last_message_at = max(message.created_at, self.last_message_at or message.created_at)

    def _show(self, message: Message) -> None:
        if self.window_seq is None:
            self.window_seq = self.next_seq
        if message.role == "summary":
            self.summary_id = message.id
        if gated_calls(message):
            self._asking = [message]
        elif self._asking:
            self._asking.append(message)


def manager_of(text: str) -> tuple[str, str | None, Mapping[str, Any]]:
    """The type of a manager, its agent's id and its settings, of a `manager_config`; an empty text is round_robin.

    Raises Refused (IMPORT_INVALID).
    """
    try:
        config = parse_storable(text) if text else {}
    except ValueError as error:
        raise invalid(f"manager_config_json must be a JSON object; {error}") from None
    if not isinstance(config, dict):
        raise invalid("manager_config_json must be a JSON object")
    manager_type = config.get("manager_type") or "round_robin"
    if manager_type not in _SETTINGS:
        raise invalid(f"manager_type must be one of: {', '.join(_SETTINGS)}")
    manager_agent_id = config.get("manager_agent_id")
    if manager_agent_id is not None and not isinstance(manager_agent_id, str):
        raise invalid("manager_agent_id must be an agent's id")
    settings = {name: config[name] for name in _SETTINGS[manager_type] if config.get(name) is not None}
    for name, value in settings.items():
        expected: type = str if name == "termination_token" else int
        if not isinstance(value, expected) or isinstance(value, bool):
            raise invalid(f"{name} must be {'a text' if expected is str else 'a number'}")
    return manager_type, manager_agent_id, settings


def words(text: str | None) -> str:
    """Returns a text as it can be stored; none is an empty one."""
    return storable(text or "")


def invalid(sentence: str) -> Refused:
    """Returns a refusal of an import."""
    return Refused("IMPORT_INVALID", sentence)
