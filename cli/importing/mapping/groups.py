"""Identities and groups. No I/O."""

from collections.abc import Iterable, Sequence

from cli.importing.values import Json, Row, Skip, as_list, as_object, as_text, dump, public_id, uuid_of
from loci.agent.v1 import group_pb2, group_service_pb2, identity_pb2, identity_service_pb2

_LONGEST_IDENTITY = 256
_PROPERTIES = ("string", "number", "boolean", "json")
# What each manager type asks for beside its agent.
_SETTINGS = {
    "round_robin": ("max_turns",),
    "dynamic": ("max_turns", "termination_token"),
    "sleeptime": ("sleeptime_agent_frequency",),
    "voice_sleeptime": ("max_message_buffer_length", "min_message_buffer_length"),
    "supervisor": (),
    "swarm": (),
}


def identity(
    row: Row, agent_ids: Iterable[str], block_ids: Iterable[str]
) -> identity_service_pb2.CreateIdentityRequest:
    """Returns an identity with the agents that serve it and the blocks about it."""
    name = as_text(row["name"])[:_LONGEST_IDENTITY]
    key = as_text(row["identifier_key"])[:_LONGEST_IDENTITY]
    kind = row["identity_type"]
    draft = identity_pb2.Identity(
        identifier_key=key or str(uuid_of(row["id"])),
        name=name or key or "identity",
        identity_type=kind if kind in ("org", "user", "other") else "other",
        properties_json=dump(_properties(row["properties"])),
        agent_ids=[public_id("agent", one) for one in agent_ids],
        block_ids=[public_id("block", one) for one in block_ids],
    )
    return identity_service_pb2.CreateIdentityRequest(identity_id=public_id("identity", row["id"]), identity=draft)


def _properties(given: object) -> list[Json]:
    entries = (as_object(entry) for entry in as_list(given))
    return [
        {"key": entry["key"], "value": entry.get("value"), "type": entry["type"]}
        for entry in entries
        if as_text(entry.get("key")) and entry.get("type") in _PROPERTIES
    ]


def group(
    row: Row, members: Sequence[str], blocks: Sequence[str], there: frozenset[str]
) -> group_service_pb2.CreateGroupRequest | Skip:
    """Returns a group. `members`, `blocks`: ids of its joins; `there`: the agents that are here."""
    kind, manager = as_text(row["manager_type"]) or "round_robin", as_text(row["manager_agent_id"])
    if kind not in _SETTINGS:
        return Skip(f"there is no group with a manager of type {kind!r} here")
    if manager and public_id("agent", manager) not in there:
        return Skip(f"its manager {manager} is not here")
    told = [one for one in as_list(row["agent_ids"]) if isinstance(one, str)] or members
    wanted = [public_id("agent", one) for one in dict.fromkeys(told)]
    draft = group_pb2.Group(
        description=as_text(row["description"]),
        agent_ids=[one for one in wanted if one in there],
        manager_type=kind,
        manager_agent_id=public_id("agent", manager) if manager else "",
        manager_settings_json=dump({name: row[name] for name in _SETTINGS[kind] if row[name] is not None}),
        shared_block_ids=[public_id("block", one) for one in dict.fromkeys(blocks)],
    )
    return group_service_pb2.CreateGroupRequest(group_id=public_id("group", row["id"]), group=draft)
