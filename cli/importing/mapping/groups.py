"""Identities and groups. No I/O."""

from collections.abc import Iterable, Sequence

from cli.importing.values import Json, Row, Skip, as_count, as_list, as_object, as_text, dump, public_id, uuid_of
from loci.agent.v1 import group_pb2, group_service_pb2, identity_pb2, identity_service_pb2

_LONGEST_IDENTITY = 256
_IDENTITIES = ("org", "user", "other")
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
) -> tuple[identity_service_pb2.CreateIdentityRequest, list[str]]:
    """Returns an identity with the agents that serve it and the blocks about it, and the changes it had to take."""
    name, key, kind = as_text(row["name"]), as_text(row["identifier_key"]), row["identity_type"]
    changes, properties = list[str](), _properties(row["properties"])
    if kind not in _IDENTITIES:
        changes.append(f"there are no identities of type {kind!r} here; it is of type 'other'")
    if len(properties) < len(as_list(row["properties"])):
        changes.append("properties without a key, or of a type that is not known here, are left out")
    if not key or max(len(name), len(key)) > _LONGEST_IDENTITY:
        changes.append(f"its key and its name have 1 to {_LONGEST_IDENTITY} characters now")
    draft = identity_pb2.Identity(
        identifier_key=key[:_LONGEST_IDENTITY] or str(uuid_of(row["id"])),
        name=(name or key)[:_LONGEST_IDENTITY] or "identity",
        identity_type=kind if kind in _IDENTITIES else "other",
        properties_json=dump(properties),
        agent_ids=[public_id("agent", one) for one in agent_ids],
        block_ids=[public_id("block", one) for one in block_ids],
        project_id=row["project_id"],
    )
    request = identity_service_pb2.CreateIdentityRequest(identity_id=public_id("identity", row["id"]), identity=draft)
    return request, changes


def _properties(entries: object) -> list[Json]:
    return [
        {"key": entry["key"], "value": entry.get("value"), "type": entry["type"]}
        for entry in map(as_object, as_list(entries))
        if as_text(entry.get("key")) and entry.get("type") in _PROPERTIES
    ]


def group(
    row: Row, members: Sequence[str], blocks: Sequence[str], present: frozenset[str]
) -> tuple[group_service_pb2.CreateGroupRequest, list[str]] | Skip:
    """Returns a group, and the changes it had to take. `members`, `blocks`: ids of its joins; `present`: the agents
    that are here."""
    kind, manager = as_text(row["manager_type"]) or "round_robin", as_text(row["manager_agent_id"])
    if kind not in _SETTINGS:
        return Skip(f"there is no group with a manager of type {kind!r} here")
    if manager and public_id("agent", manager) not in present:
        return Skip(f"its manager {manager} is not here")
    order = [one for one in as_list(row["agent_ids"]) if isinstance(one, str)] or members
    agent_ids = [public_id("agent", one) for one in dict.fromkeys(order)]
    draft = group_pb2.Group(
        description=as_text(row["description"]),
        agent_ids=[one for one in agent_ids if one in present],
        manager_type=kind,
        manager_agent_id=public_id("agent", manager) if manager else "",
        manager_settings_json=dump({name: row[name] for name in _SETTINGS[kind] if row[name] is not None}),
        shared_block_ids=[public_id("block", one) for one in dict.fromkeys(blocks)],
        hidden=bool(row["hidden"]),
        project_id=row["project_id"],
        template_id=as_text(row["template_id"]),
        base_template_id=as_text(row["base_template_id"]),
        deployment_id=as_text(row["deployment_id"]),
    )
    changes = [f"its member {one} is not here" for one in agent_ids if one not in present]
    if as_count(row["turns_counter"]) > 0:
        changes.append("its count of turns begins anew")
    return group_service_pb2.CreateGroupRequest(group_id=public_id("group", row["id"]), group=draft), changes
