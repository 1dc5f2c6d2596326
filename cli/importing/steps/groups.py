"""Identities, and groups of agents."""

from collections.abc import Sequence

from cli.importing.mapping import groups as mapping
from cli.importing.schema import (
    AGENTS,
    BLOCKS,
    GROUP_AGENTS,
    GROUP_BLOCKS,
    GROUPS,
    IDENTITIES,
    IDENTITY_AGENTS,
    IDENTITY_BLOCKS,
)
from cli.importing.steps.common import Import
from cli.importing.values import Skip, as_text, public_id
from loci.agent.v1 import group_service_pb2, identity_service_pb2

_MOST_LINKS = 1_000


async def identities(job: Import) -> None:
    """Imports identities with their agents and blocks."""
    rpcs, source = job.loci.identities, job.source
    async for row in source.rows(IDENTITIES):
        where = {"id": row["id"], "name": as_text(row["identifier_key"])}
        asked = identity_service_pb2.GetIdentityRequest(identity_id=public_id("identity", row["id"]))
        if await job.loci.exists(rpcs.GetIdentity, asked):
            job.report.count_present("identities")
            continue
        agents = await job.imported_ids(AGENTS.name, await source.linked_ids(IDENTITY_AGENTS, row["id"]))
        blocks = await job.imported_ids(BLOCKS.name, await source.linked_ids(IDENTITY_BLOCKS, row["id"]))
        request = mapping.identity(row, agents[:_MOST_LINKS], blocks[:_MOST_LINKS])
        made = await job.create("identities", rpcs.CreateIdentity, request, **where)
        if made is not None:
            await _attach(job, request.identity_id, agents[_MOST_LINKS:])
        if len(blocks) > _MOST_LINKS:
            job.report.note_change("identities", f"only {_MOST_LINKS} of its {len(blocks)} blocks are taken", **where)


async def _attach(job: Import, identity_id: str, agents: Sequence[str]) -> None:
    for one in agents:
        request = identity_service_pb2.AttachIdentityRequest(agent_id=public_id("agent", one), identity_id=identity_id)
        await job.loci.call(job.loci.identities.AttachIdentity, request)


async def groups(job: Import) -> None:
    """Imports groups with their members in order."""
    rpcs, source = job.loci.groups, job.source
    async for row in source.rows(GROUPS):
        asked = group_service_pb2.GetGroupRequest(group_id=public_id("group", row["id"]))
        if await job.loci.exists(rpcs.GetGroup, asked):
            job.report.count_present("groups")
            continue
        members = await source.linked_ids(GROUP_AGENTS, row["id"])
        blocks = await job.imported_ids(BLOCKS.name, await source.linked_ids(GROUP_BLOCKS, row["id"]))
        request = mapping.group(row, members, blocks, frozenset(job.agents))
        if isinstance(request, Skip):
            job.skip("groups", request.reason, id=row["id"])
        else:
            await job.create("groups", rpcs.CreateGroup, request, id=row["id"])
