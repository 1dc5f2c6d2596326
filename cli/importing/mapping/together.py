"""What stands around agents: folders with files, identities, groups. No I/O."""

from collections.abc import Iterable, Sequence

from cli.importing.mapping import models
from cli.importing.values import Json, LeftOut, Row, as_list, as_object, dump, public, text_of, uuid_of
from loci.agent.v1 import group_pb2, group_service_pb2, identity_pb2, identity_service_pb2
from loci.memory.v1 import folder_pb2, folder_service_pb2

_LONGEST_FOLDER, _LONGEST_FILE = 255, 255
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


def folder(row: Row) -> folder_pb2.Folder:
    """A folder."""
    return folder_pb2.Folder(
        id=public("source", row["id"]),
        name=text_of(row["name"]).replace("/", "_")[:_LONGEST_FOLDER] or "folder",
        description=row["description"],
        instructions=row["instructions"],
        metadata_json=dump(as_object(row["metadata_"])),
        embedding=models.embedding_handle(row["embedding_config"]),
    )


def file(row: Row, text: str | None) -> folder_service_pb2.UploadHeader | LeftOut:
    """The header of a file's text, which the old server has taken out of it already."""
    if text is None or not text.strip():
        return LeftOut(f"its text is not there (it is {row['processing_status'] or 'unread'}); upload it again")
    name = text_of(row["file_name"]).rpartition("/")[2] or text_of(row["original_file_name"]).rpartition("/")[2]
    return folder_service_pb2.UploadHeader(
        file_id=public("file", row["id"]),
        folder_id=public("source", row["source_id"]),
        name=name[-_LONGEST_FILE:] or "file.txt",
        media_type=text_of(row["file_type"]),
        on_duplicate=folder_service_pb2.ON_DUPLICATE_SUFFIX,
        is_text=True,
    )


def identity(
    row: Row, agent_ids: Iterable[str], block_ids: Iterable[str]
) -> identity_service_pb2.CreateIdentityRequest:
    """An identity with the agents that serve it and the blocks about it."""
    name = text_of(row["name"])[:_LONGEST_IDENTITY]
    key = text_of(row["identifier_key"])[:_LONGEST_IDENTITY]
    kind = row["identity_type"]
    draft = identity_pb2.Identity(
        identifier_key=key or str(uuid_of(row["id"])),
        name=name or key or "identity",
        identity_type=kind if kind in ("org", "user", "other") else "other",
        properties_json=dump(_properties(row["properties"])),
        agent_ids=[public("agent", one) for one in agent_ids],
        block_ids=[public("block", one) for one in block_ids],
    )
    return identity_service_pb2.CreateIdentityRequest(identity_id=public("identity", row["id"]), identity=draft)


def _properties(given: object) -> list[Json]:
    entries = (as_object(entry) for entry in as_list(given))
    return [
        {"key": entry["key"], "value": entry.get("value"), "type": entry["type"]}
        for entry in entries
        if text_of(entry.get("key")) and entry.get("type") in _PROPERTIES
    ]


def group(
    row: Row, members: Sequence[str], blocks: Sequence[str], there: frozenset[str]
) -> group_service_pb2.CreateGroupRequest | LeftOut:
    """A group. `members`, `blocks`: ids of its joins; `there`: the agents that are here."""
    kind, manager = text_of(row["manager_type"]) or "round_robin", text_of(row["manager_agent_id"])
    if kind not in _SETTINGS:
        return LeftOut(f"there is no group with a manager of type {kind!r} here")
    if manager and public("agent", manager) not in there:
        return LeftOut(f"its manager {manager} is not here")
    told = [one for one in as_list(row["agent_ids"]) if isinstance(one, str)] or members
    wanted = [public("agent", one) for one in dict.fromkeys(told)]
    draft = group_pb2.Group(
        description=text_of(row["description"]),
        agent_ids=[one for one in wanted if one in there],
        manager_type=kind,
        manager_agent_id=public("agent", manager) if manager else "",
        manager_settings_json=dump({name: row[name] for name in _SETTINGS[kind] if row[name] is not None}),
        shared_block_ids=[public("block", one) for one in dict.fromkeys(blocks)],
    )
    return group_service_pb2.CreateGroupRequest(group_id=public("group", row["id"]), group=draft)
