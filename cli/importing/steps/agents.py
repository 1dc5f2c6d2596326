"""Agents with all that was said, each in one transaction: an agent is here as a whole, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import asyncpg

from cli.importing.mapping import agents as mapping
from cli.importing.mapping import messages
from cli.importing.mapping.messages import AgentInfo, Conversion, Position
from cli.importing.schema import (
    AGENT_ARCHIVES,
    AGENT_BLOCKS,
    AGENT_FOLDERS,
    AGENT_TAGS,
    AGENT_TOOLS,
    AGENT_VARIABLES,
    AGENTS,
    ARCHIVES,
    BLOCKS,
    CONVERSATION_BLOCKS,
    CONVERSATIONS,
    FOLDERS,
    MESSAGES,
)
from cli.importing.steps.common import REFUSALS, Import
from cli.importing.steps.tools import map_tool_ids
from cli.importing.target import describe
from cli.importing.values import Row, Skip, as_list, as_text, public_id, uuid_of
from loci.agent.v1 import transfer_service_pb2 as pb
from services.common.errors import LociError

_FRAME_MESSAGES, _FRAME_BYTES = 500, 8 * 1024 * 1024
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Tally:
    """The result of one attempt to send an agent's messages and conversations."""

    messages: int = 0
    conversations: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    failure: Exception | None = None


async def agents(job: Import) -> None:
    """Imports all agents, one after the other."""
    transfers, report = job.loci.transfers, job.report
    async for row in job.source.rows(AGENTS):
        agent_id, where = public_id("agent", row["id"]), {"id": row["id"], "name": as_text(row["name"])}
        asked = pb.BatchFindAgentsRequest(agent_ids=[agent_id])
        if (await job.loci.call(transfers.BatchFindAgents, asked)).agent_ids:
            await _count_present(job, row)
            continue
        secrets = await _secrets(job, row)
        imported, changed = await _agent(job, row, secrets)
        try:
            tally = await _send(job, row, imported)
        except REFUSALS as error:
            if (await job.loci.call(transfers.BatchFindAgents, asked)).agent_ids:
                await _count_present(job, row)  # it was stored, and the answer was lost
                continue
            job.skip("agents", describe(error), **where)
            await _count_skipped(job, row)
            continue
        job.agents.add(agent_id)
        report.count_taken("agents")
        report.count_taken("secrets", len(secrets))
        report.count_taken("conversations", tally.conversations)
        report.count_taken("messages", tally.messages)
        for message_id, reason in tally.left_out:
            report.skip("messages", reason, id=message_id)
        for what in (*changed, *tally.changed):
            report.note_change("agents", what, **where)
        gone = await job.source.count_unlisted_messages(row["id"])
        report.skip("messages", "the conversation it was said in is not there", count=gone)
        job.progress(f"agent {where['name']}: {tally.messages:,} messages")
    gone = await job.source.count_orphans(MESSAGES, AGENTS, "agent_id")
    report.skip("messages", "its agent is not there", count=gone)


async def _count_present(job: Import, row: Row) -> None:
    """Counts an agent that was imported before, and may have changed since."""
    job.agents.add(public_id("agent", row["id"]))
    job.report.count_present("agents")
    job.report.count_present("conversations", await job.source.count(CONVERSATIONS.name, agent_id=row["id"]))
    job.report.count_present("messages", await job.source.count(MESSAGES.name, agent_id=row["id"]))


async def _count_skipped(job: Import, row: Row) -> None:
    for table, entity in ((CONVERSATIONS, "conversations"), (MESSAGES, "messages")):
        count = await job.source.count(table.name, agent_id=row["id"])
        job.report.skip(entity, "its agent is not taken", count=count)


async def _secrets(job: Import, row: Row) -> dict[str, str]:
    found = {}
    async for variable in job.source.rows(AGENT_VARIABLES, agent_id=row["id"]):
        name = as_text(variable["key"])
        value = job.keyring.read(variable["value_enc"], variable["value"])
        if value.problem:
            reason = f"of an agent: {value.problem}"
            job.report.skip("secrets", reason, id=variable["id"], name=f"{row['name']}: {name}")
        # Its name is kept, so that the agent shows what it lacks.
        found[name] = value.value
    return found


async def _agent(job: Import, row: Row, secrets: dict[str, str]) -> tuple[pb.ImportedAgent, list[str]]:
    source, old_id = job.source, row["id"]
    tool_ids, lost = map_tool_ids(job, await source.linked_ids(AGENT_TOOLS, old_id))
    attachments = mapping.Attachments(
        block_ids=await job.imported_ids(BLOCKS.name, await source.linked_ids(AGENT_BLOCKS, old_id)),
        tool_ids=tool_ids,
        archive_ids=await job.imported_ids(ARCHIVES.name, await source.linked_ids(AGENT_ARCHIVES, old_id)),
        folder_ids=await job.imported_ids(FOLDERS.name, await source.linked_ids(AGENT_FOLDERS, old_id)),
        tags=await source.linked_ids(AGENT_TAGS, old_id),
        secrets=secrets,
    )
    imported, changed = mapping.agent(row, attachments)
    return imported, [*changed, *(f"it lost the tool {name}, which is not here" for name in lost)]


async def _agent_info(job: Import, row: Row) -> AgentInfo:
    source = job.source
    returned, decided = messages.client_answers(await source.approval_answers(row["id"]))
    names = (job.tool_names.get(one, "") for one in await source.linked_ids(AGENT_TOOLS, row["id"]))
    return AgentInfo(
        agent_type=as_text(row["agent_type"]),
        system=as_text(row["system"]),
        tools=frozenset(names),
        returned=returned,
        decided=decided,
        since=row["created_at"] or _LONG_AGO,
    )


async def _send(job: Import, row: Row, imported: pb.ImportedAgent) -> Tally:
    """Sends an agent. Raises LociError, and the old database's errors."""
    agent_info, tally = await _agent_info(job, row), Tally()
    if job.dry_run:
        async for part in _parts(job, row, imported, agent_info, tally):
            tally.messages += len(part.messages.messages)
        return tally

    async def parts() -> AsyncIterator[pb.ImportAgentsRequest]:
        nonlocal tally
        tally = Tally()  # of this attempt
        try:
            async for part in _parts(job, row, imported, agent_info, tally):
                yield part
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            tally.failure = error  # gRPC would only say that the call was cancelled
            raise

    try:
        answer = await job.loci.send(job.loci.transfers.ImportAgents, parts)
    except (LociError, asyncio.CancelledError):
        if tally.failure is not None:
            raise tally.failure from None
        raise
    tally.messages = answer.messages
    return tally


async def _parts(
    job: Import, row: Row, imported: pb.ImportedAgent, agent_info: AgentInfo, tally: Tally
) -> AsyncIterator[pb.ImportAgentsRequest]:
    yield pb.ImportAgentsRequest(agent=imported)
    conversations = [one async for one in job.source.rows(CONVERSATIONS, agent_id=row["id"])]
    for one in conversations:
        blocks = await job.imported_ids(BLOCKS.name, await job.source.linked_ids(CONVERSATION_BLOCKS, one["id"]))
        tally.conversations += 1
        yield pb.ImportAgentsRequest(conversation=mapping.conversation(one, blocks))
    async for frame in _frames(imported.agent_id, _default(job, row, agent_info, tally), tally):
        yield frame
    for one in conversations:
        conversions = _conversation(job, one, agent_info, tally)
        async for frame in _frames(public_id("conv", one["id"]), conversions, tally):
            yield frame


async def _default(job: Import, row: Row, agent_info: AgentInfo, tally: Tally) -> AsyncIterator[Conversion]:
    window = [one for one in as_list(row["message_ids"]) if isinstance(one, str)]
    numbers = {message_id: number for number, message_id in enumerate(window)}
    async for message in job.source.older_messages(row["id"], window):
        if not messages.is_system_prompt(message, Position(False), agent_info):
            yield message, Position(False), messages.to_message(message, Position(False), agent_info)
    shown = 0
    async for message in job.source.window_messages(row["id"], window):
        shown += 1
        copied = None if message["keeper"] is None else uuid_of(row["id"])
        position = Position(True, numbers[message["id"]], copied)
        if not messages.is_system_prompt(message, position, agent_info):
            yield message, position, messages.to_message(message, position, agent_info)
    if shown < len(numbers):
        tally.changed.append(f"{len(numbers) - shown} of the messages in its window are not there")


async def _conversation(job: Import, row: Row, agent_info: AgentInfo, tally: Tally) -> AsyncIterator[Conversion]:
    number = 0
    async for message in job.source.conversation_messages(row["id"]):
        shown = bool(message["in_context"])
        copied = None if message["keeper"] == row["id"] else uuid_of(row["id"])
        position = Position(shown, number if shown else -1, copied)
        number += shown
        if not messages.is_system_prompt(message, position, agent_info):
            yield message, position, messages.to_message(message, position, agent_info)
    if gone := await job.source.count_missing_messages(row["id"]):
        tally.changed.append(f"{gone} of the messages that {row['id']} lists are not there")


async def _frames(
    conversation_id: str, conversions: AsyncIterator[Conversion], tally: Tally
) -> AsyncIterator[pb.ImportAgentsRequest]:
    """Yields messages in frames of a limited size; records those that are skipped."""
    held: list[pb.StoredMessage] = []
    size = 0
    async for row, _, message in messages.merge_calls(conversions):
        if isinstance(message, Skip):
            tally.left_out.append((row["id"], message.reason))
            continue
        weight = message.ByteSize()
        if held and (len(held) == _FRAME_MESSAGES or size + weight > _FRAME_BYTES):
            yield _frame(conversation_id, held)
            held, size = [], 0
        held.append(message)
        size += weight
    if held:
        yield _frame(conversation_id, held)


def _frame(conversation_id: str, held: Sequence[pb.StoredMessage]) -> pb.ImportAgentsRequest:
    return pb.ImportAgentsRequest(messages=pb.ImportedMessages(conversation_id=conversation_id, messages=held))
