"""Agents with all that was said, each in one transaction: an agent is here as a whole, or not at all."""

from cli.importing.mapping import agents as mapping
from cli.importing.report import Report
from cli.importing.schema import (
    AGENT_ARCHIVES,
    AGENT_BLOCKS,
    AGENT_FOLDERS,
    AGENT_TAGS,
    AGENT_TOOLS,
    AGENT_VARIABLES,
    AGENTS,
)
from cli.importing.steps.agent_stream import Attempt, send, unique_blocks
from cli.importing.steps.common import REFUSALS, Import
from cli.importing.steps.tools import map_tool_ids
from cli.importing.target import describe
from cli.importing.values import Row, as_text, public_id
from loci.agent.v1 import transfer_service_pb2 as pb
from services.common.errors import InvalidArgument

_AGENT_INVALID = "AGENT_INVALID"


async def agents(job: Import) -> None:
    """Imports all agents, one after the other."""
    async for row in job.source.rows(AGENTS):
        old_id, name, agent_id = row["id"], as_text(row["name"]), public_id("agent", row["id"])
        if await _is_here(job, agent_id):
            job.agents.add(agent_id)
            job.report.keep(AGENTS.name, old_id)
            continue
        settings = Report()
        imported = await _agent(job, row, settings)
        try:
            attempt = await _send_lighter(job, Attempt(row, imported), settings)
        except REFUSALS as error:
            if await _is_here(job, agent_id):  # it was stored, and the answer was lost
                job.agents.add(agent_id)
                job.report.keep(AGENTS.name, old_id)
            else:
                job.report.leave(AGENTS.name, old_id, describe(error), name)
            continue
        job.agents.add(agent_id)
        job.report.add(settings)
        job.report.add(attempt.report)
        job.progress(f"agent {name}: {attempt.sent:,} messages")


async def _send_lighter(job: Import, attempt: Attempt, settings: Report) -> Attempt:
    """Sends an agent; where a setting of it is refused, without that. Raises LociError."""
    while True:
        try:
            return await send(job, attempt)
        except InvalidArgument as error:
            name = mapping.drop_refused(attempt.imported.agent, error.message)
            if error.reason != _AGENT_INVALID or not name:
                raise
            change = f"it comes without {name}: {error.message}"
            settings.change(AGENTS.name, attempt.row["id"], change, as_text(attempt.row["name"]))


async def _is_here(job: Import, agent_id: str) -> bool:
    query = pb.BatchFindAgentsRequest(agent_ids=[agent_id])
    return bool((await job.loci.call(job.loci.transfers.BatchFindAgents, query)).agent_ids)


async def _agent(job: Import, row: Row, report: Report) -> pb.ImportedAgent:
    """Returns an agent with what is attached to it, which it records."""
    source, old_id, name = job.source, row["id"], as_text(row["name"])
    linked_tools = await source.linked_ids(AGENT_TOOLS, old_id)
    tool_ids, lost = map_tool_ids(job, linked_tools)
    its = mapping.Attachments(
        block_ids=await unique_blocks(job, AGENT_BLOCKS, old_id, report),
        tool_ids=tool_ids,
        archive_ids=await job.links(AGENT_ARCHIVES, old_id),
        folder_ids=await job.links(AGENT_FOLDERS, old_id),
        tags=await source.linked_ids(AGENT_TAGS, old_id),
        secrets=await _secrets(job, row, report),
    )
    imported, changes = mapping.agent(row, its)
    report.take(AGENTS.name, old_id)
    for change in (*changes, *(f"it lost the tool {one}, which is not here" for one in lost)):
        report.change(AGENTS.name, old_id, change, name)
    taken_tools = [one for one in linked_tools if one in job.tools]
    for join, others in (
        (AGENT_BLOCKS, its.block_ids),
        (AGENT_TOOLS, taken_tools),
        (AGENT_ARCHIVES, its.archive_ids),
        (AGENT_FOLDERS, its.folder_ids),
        (AGENT_TAGS, its.tags),
    ):
        for other in others:
            report.take(join.name, f"{old_id}/{other}")
    return imported


async def _secrets(job: Import, row: Row, report: Report) -> dict[str, str]:
    secrets = {}
    async for variable in job.source.rows(AGENT_VARIABLES, agent_id=row["id"]):
        key, value = as_text(variable["key"]), job.keyring.read(variable["value_enc"], variable["value"])
        if not mapping.is_variable(key):
            reason = "its name has other characters than letters, digits and '_', or more than 200"
            report.leave(AGENT_VARIABLES.name, variable["id"], reason, f"{row['name']}: {key}")
            continue
        report.take(AGENT_VARIABLES.name, variable["id"])
        if value.problem:
            # Its name is kept, so that the agent shows what it lacks.
            change = f"its name comes with an empty value: {value.problem}"
            report.change(AGENT_VARIABLES.name, variable["id"], change, f"{row['name']}: {key}")
        secrets[key] = value.value
    return secrets
