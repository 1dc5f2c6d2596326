"""Ids, references and numbers of an agent file: all of them, before anything is made. Pure."""

import re
from collections.abc import Iterable, Sequence

from gateway.agent_files.schema import AgentFile, FileAgent, FileGroup
from loci.agent.v1 import agent_pb2
from services.common.errors import InvalidArgument
from services.common.fields import enum_numbers

_ID = re.compile(r"[a-z_]+-\d{1,12}")
# More of them are no accident.
MOST = {
    "agents": 1_000,
    "groups": 1_000,
    "blocks": 10_000,
    "files": 10_000,
    "sources": 1_000,
    "tools": 2_000,
    "mcp_servers": 200,
}
MOST_MESSAGES = 1_000_000
_PREFIXES = {
    "agents": "agent",
    "groups": "group",
    "blocks": "block",
    "files": "file",
    "sources": "source",
    "tools": "tool",
    "mcp_servers": "mcp_server",
}
ROLES = frozenset(("system", "user", "assistant", "tool", "approval", "summary", "function"))
AGENT_TYPES = frozenset(enum_numbers(agent_pb2.AgentType.DESCRIPTOR))


def invalid_file(sentence: str) -> InvalidArgument:
    """Returns a file that cannot be taken: 400, and nothing was made."""
    return InvalidArgument(sentence, reason="AGENT_FILE_INVALID")


def check(file: AgentFile) -> None:
    """Raises InvalidArgument (AGENT_FILE_INVALID) with a sentence that names what is wrong."""
    if not file.agents:
        raise invalid_file("The agent file has no agents.")
    ids_by_kind = _known(file)
    for each in file.files:
        _refer(ids_by_kind["sources"], [each.source_id], f"{each.id}.source_id")
    for agent in file.agents:
        _check_agent(agent, ids_by_kind)
    for group in file.groups:
        _check_group(group, ids_by_kind)


def _known(file: AgentFile) -> dict[str, set[str]]:
    """Returns the ids of each list; over the whole file there are no two of one."""
    seen: set[str] = set()
    ids_by_kind: dict[str, set[str]] = {}
    for name, prefix in _PREFIXES.items():
        entities = getattr(file, name)
        if len(entities) > MOST[name]:
            raise invalid_file(f"{name} has {len(entities)} entries; at most {MOST[name]} are taken.")
        ids_by_kind[name] = {_checked(each.id, prefix, seen) for each in entities}
    messages = sum(len(agent.messages or ()) for agent in file.agents)
    if messages > MOST_MESSAGES:
        raise invalid_file(f"The agent file has {messages} messages; at most {MOST_MESSAGES} are taken.")
    for agent in file.agents:
        for message in agent.messages or ():
            _checked(message.id, "message", seen)
    return ids_by_kind


def _checked(entity_id: str, prefix: str, seen: set[str]) -> str:
    if not _ID.fullmatch(entity_id) or not entity_id.startswith(f"{prefix}-"):
        raise invalid_file(f"Invalid ID format: {entity_id[:80]!r} should be {prefix}- with an integer suffix.")
    if entity_id in seen:
        raise invalid_file(f"Duplicate ID: {entity_id} is that of two entities.")
    seen.add(entity_id)
    return entity_id


def _check_agent(agent: FileAgent, ids_by_kind: dict[str, set[str]]) -> None:
    if agent.agent_type is not None and agent.agent_type not in AGENT_TYPES:
        raise invalid_file(
            f"{agent.id}.agent_type is {agent.agent_type[:80]!r}; it must be one of {', '.join(AGENT_TYPES)}."
        )
    _refer(ids_by_kind["tools"], agent.tool_ids, f"{agent.id}.tool_ids")
    _refer(ids_by_kind["blocks"], agent.block_ids, f"{agent.id}.block_ids")
    # A folder without files is an id without an entity: the exporter leaves it out.
    message_ids = {message.id for message in agent.messages or ()}
    _refer(message_ids, agent.in_context_message_ids, f"{agent.id}.in_context_message_ids")
    for message in agent.messages or ():
        if message.role not in ROLES:
            raise invalid_file(
                f"{message.id}.role is {message.role[:40]!r}; it must be one of {', '.join(sorted(ROLES))}."
            )
    for opened in agent.files_agents or ():
        _refer(ids_by_kind["files"], [opened.file_id], f"{agent.id}.files_agents")
        if opened.source_id is not None:
            _refer(ids_by_kind["sources"], [opened.source_id], f"{agent.id}.files_agents")
        if opened.agent_id is not None:
            _refer(ids_by_kind["agents"], [opened.agent_id], f"{agent.id}.files_agents")


def _check_group(group: FileGroup, ids_by_kind: dict[str, set[str]]) -> None:
    manager = (group.manager_config or {}).get("manager_agent_id")
    members: Sequence[str] = [*group.agent_ids, *([manager] if isinstance(manager, str) else [])]
    _refer(ids_by_kind["agents"], members, f"{group.id}.agent_ids")
    if not group.agent_ids:
        raise invalid_file(f"{group.id} has no agents.")


def _refer(known_ids: set[str], ids: Iterable[str] | None, where: str) -> None:
    for each in ids or ():
        if each not in known_ids:
            raise invalid_file(f"{where} names {each[:80]!r}, which is not in the file.")
