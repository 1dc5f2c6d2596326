"""Identities, and groups of agents."""

from collections.abc import Sequence

from cli.importing.mapping import groups as mapping
from cli.importing.schema import GROUP_AGENTS, GROUP_BLOCKS, GROUPS, IDENTITIES, IDENTITY_AGENTS, IDENTITY_BLOCKS
from cli.importing.steps.common import Import
from cli.importing.values import Skip, as_text, public_id
from loci.agent.v1 import group_service_pb2, identity_service_pb2

_MOST_LINKS = 1_000


async def identities(job: Import) -> None:
    """Imports identities with their agents and blocks."""
    rpcs, report = job.loci.identities, job.report
    async for row in job.source.rows(IDENTITIES):
        old_id, name = row["id"], as_text(row["identifier_key"])
        query = identity_service_pb2.GetIdentityRequest(identity_id=public_id("identity", old_id))
        if await job.loci.exists(rpcs.GetIdentity, query):
            report.keep(IDENTITIES.name, old_id)
            continue
        agents = await job.links(IDENTITY_AGENTS, old_id)
        blocks = await job.links(IDENTITY_BLOCKS, old_id)
        request, changes = mapping.identity(row, agents[:_MOST_LINKS], blocks[:_MOST_LINKS])
        answer = await job.create(IDENTITIES.name, rpcs.CreateIdentity, request, id=old_id, name=name)
        if answer is None and not job.dry_run:
            continue
        if not job.dry_run:
            await _attach(job, request.identity_id, agents[_MOST_LINKS:])
        job.take_links(IDENTITY_AGENTS, old_id, agents)
        job.take_links(IDENTITY_BLOCKS, old_id, blocks[:_MOST_LINKS])
        for one in blocks[_MOST_LINKS:]:
            report.leave(IDENTITY_BLOCKS.name, f"{old_id}/{one}", f"an identity has {_MOST_LINKS} blocks at most")
        for change in changes:
            report.change(IDENTITIES.name, old_id, change, name)


async def _attach(job: Import, identity_id: str, agents: Sequence[str]) -> None:
    for one in agents:
        request = identity_service_pb2.AttachIdentityRequest(agent_id=public_id("agent", one), identity_id=identity_id)
        await job.loci.call(job.loci.identities.AttachIdentity, request)


async def groups(job: Import) -> None:
    """Imports groups with their members in order."""
    rpcs, source, report = job.loci.groups, job.source, job.report
    async for row in source.rows(GROUPS):
        old_id = row["id"]
        query = group_service_pb2.GetGroupRequest(group_id=public_id("group", old_id))
        if await job.loci.exists(rpcs.GetGroup, query):
            report.keep(GROUPS.name, old_id)
            continue
        members = await source.linked_ids(GROUP_AGENTS, old_id)
        blocks = await job.links(GROUP_BLOCKS, old_id)
        mapped = mapping.group(row, members, blocks, frozenset(job.agents))
        if isinstance(mapped, Skip):
            report.leave(GROUPS.name, old_id, mapped.reason)
            continue
        request, changes = mapped
        if await job.create(GROUPS.name, rpcs.CreateGroup, request, id=old_id) is None and not job.dry_run:
            continue
        job.take_links(GROUP_BLOCKS, old_id, blocks)
        job.take_links(GROUP_AGENTS, old_id, [one for one in members if public_id("agent", one) in job.agents])
        for change in changes:
            report.change(GROUPS.name, old_id, change)
