"""Whom agents serve, and which of them work together; and what is left behind."""

from collections.abc import Sequence

from cli.importing.mapping import together as mapping
from cli.importing.schema import (
    AGENTS,
    BLOCKS,
    GROUP_AGENTS,
    GROUP_BLOCKS,
    GROUPS,
    IDENTITIES,
    IDENTITY_AGENTS,
    IDENTITY_BLOCKS,
    LEFT_BEHIND,
    MARKED,
    NAMES,
)
from cli.importing.steps.common import Import
from cli.importing.values import LeftOut, public, text_of
from loci.agent.v1 import group_service_pb2, identity_service_pb2

_MOST_LINKS = 1_000


async def identities(moving: Import) -> None:
    """With their agents and blocks."""
    rpcs, source = moving.loci.identities, moving.source
    async for row in source.rows(IDENTITIES):
        where = {"id": row["id"], "name": text_of(row["identifier_key"])}
        asked = identity_service_pb2.GetIdentityRequest(identity_id=public("identity", row["id"]))
        if await moving.loci.has(rpcs.GetIdentity, asked):
            moving.report.found("identities")
            continue
        agents = await moving.kept(AGENTS.name, await source.joined(IDENTITY_AGENTS, row["id"]))
        blocks = await moving.kept(BLOCKS.name, await source.joined(IDENTITY_BLOCKS, row["id"]))
        request = mapping.identity(row, agents[:_MOST_LINKS], blocks[:_MOST_LINKS])
        made = await moving.make("identities", rpcs.CreateIdentity, request, **where)
        if made is not None:
            await _attach(moving, request.identity_id, agents[_MOST_LINKS:])
        if len(blocks) > _MOST_LINKS:
            moving.report.changed("identities", f"only {_MOST_LINKS} of its {len(blocks)} blocks are taken", **where)


async def _attach(moving: Import, identity_id: str, agents: Sequence[str]) -> None:
    for one in agents:
        request = identity_service_pb2.AttachIdentityRequest(agent_id=public("agent", one), identity_id=identity_id)
        await moving.loci.ask(moving.loci.identities.AttachIdentity, request)


async def groups(moving: Import) -> None:
    """With their members in order."""
    rpcs, source = moving.loci.groups, moving.source
    async for row in source.rows(GROUPS):
        asked = group_service_pb2.GetGroupRequest(group_id=public("group", row["id"]))
        if await moving.loci.has(rpcs.GetGroup, asked):
            moving.report.found("groups")
            continue
        members = await source.joined(GROUP_AGENTS, row["id"])
        blocks = await moving.kept(BLOCKS.name, await source.joined(GROUP_BLOCKS, row["id"]))
        request = mapping.group(row, members, blocks, frozenset(moving.agents))
        if isinstance(request, LeftOut):
            moving.lose("groups", request.reason, id=row["id"])
        else:
            await moving.make("groups", rpcs.CreateGroup, request, id=row["id"])


async def left_behind(moving: Import) -> None:
    """What is history, and what was deleted."""
    for table, reason in LEFT_BEHIND.items():
        moving.report.left_out(table.replace("_", " "), reason, count=await moving.source.count(table))
    for table in MARKED:
        count = await moving.source.deleted(table)
        moving.report.left_out(NAMES[table], "it is marked as deleted", count=count)
