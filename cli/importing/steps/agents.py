"""Agents with all that was said, each in one transaction: an agent is here as a whole, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import asyncpg

from cli.importing.mapping import agents as mapping
from cli.importing.mapping import messages
from cli.importing.mapping.messages import Place, Read, Speaker
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
from cli.importing.steps.tools import known
from cli.importing.target import sentence
from cli.importing.values import LeftOut, Row, as_list, public, text_of, uuid_of
from loci.agent.v1 import transfer_service_pb2 as pb
from services.common.errors import LociError

_FRAME_MESSAGES, _FRAME_BYTES = 500, 8 * 1024 * 1024
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Tally:
    """What became of an agent's messages and conversations in one attempt to send them."""

    messages: int = 0
    conversations: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    failure: Exception | None = None


async def agents(moving: Import) -> None:
    """All of them, one after the other."""
    transfers, report = moving.loci.transfers, moving.report
    async for row in moving.source.rows(AGENTS):
        agent_id, where = public("agent", row["id"]), {"id": row["id"], "name": text_of(row["name"])}
        asked = pb.BatchFindAgentsRequest(agent_ids=[agent_id])
        if (await moving.loci.ask(transfers.BatchFindAgents, asked)).agent_ids:
            await _found(moving, row)
            continue
        secrets = await _secrets(moving, row)
        imported, changed = await _agent(moving, row, secrets)
        try:
            tally = await _send(moving, row, imported)
        except REFUSALS as error:
            if (await moving.loci.ask(transfers.BatchFindAgents, asked)).agent_ids:
                await _found(moving, row)  # it was stored, and the answer was lost
                continue
            moving.lose("agents", sentence(error), **where)
            await _lost(moving, row)
            continue
        moving.agents.add(agent_id)
        report.took("agents")
        report.took("secrets", len(secrets))
        report.took("conversations", tally.conversations)
        report.took("messages", tally.messages)
        for message_id, reason in tally.left_out:
            report.left_out("messages", reason, id=message_id)
        for what in (*changed, *tally.changed):
            report.changed("agents", what, **where)
        gone = await moving.source.listed_nowhere(row["id"])
        report.left_out("messages", "the conversation it was said in is not there", count=gone)
        moving.progress(f"agent {where['name']}: {tally.messages:,} messages")
    gone = await moving.source.orphans(MESSAGES, AGENTS, "agent_id")
    report.left_out("messages", "its agent is not there", count=gone)


async def _found(moving: Import, row: Row) -> None:
    """Taken before: it has gone its own way since."""
    moving.agents.add(public("agent", row["id"]))
    moving.report.found("agents")
    moving.report.found("conversations", await moving.source.count(CONVERSATIONS.name, agent_id=row["id"]))
    moving.report.found("messages", await moving.source.count(MESSAGES.name, agent_id=row["id"]))


async def _lost(moving: Import, row: Row) -> None:
    for table, entity in ((CONVERSATIONS, "conversations"), (MESSAGES, "messages")):
        count = await moving.source.count(table.name, agent_id=row["id"])
        moving.report.left_out(entity, "its agent is not taken", count=count)


async def _secrets(moving: Import, row: Row) -> dict[str, str]:
    found = {}
    async for variable in moving.source.rows(AGENT_VARIABLES, agent_id=row["id"]):
        name = text_of(variable["key"])
        value = moving.keyring.read(variable["value_enc"], variable["value"])
        if value.problem:
            reason = f"of an agent: {value.problem}"
            moving.report.left_out("secrets", reason, id=variable["id"], name=f"{row['name']}: {name}")
        # Its name is kept, so that the agent shows what it lacks.
        found[name] = value.value
    return found


async def _agent(moving: Import, row: Row, secrets: dict[str, str]) -> tuple[pb.ImportedAgent, list[str]]:
    source, old_id = moving.source, row["id"]
    tool_ids, lost = known(moving, await source.joined(AGENT_TOOLS, old_id))
    belongings = mapping.Belongings(
        block_ids=await moving.kept(BLOCKS.name, await source.joined(AGENT_BLOCKS, old_id)),
        tool_ids=tool_ids,
        archive_ids=await moving.kept(ARCHIVES.name, await source.joined(AGENT_ARCHIVES, old_id)),
        folder_ids=await moving.kept(FOLDERS.name, await source.joined(AGENT_FOLDERS, old_id)),
        tags=await source.joined(AGENT_TAGS, old_id),
        secrets=secrets,
    )
    imported, changed = mapping.agent(row, belongings)
    return imported, [*changed, *(f"it lost the tool {name}, which is not here" for name in lost)]


async def _speaker(moving: Import, row: Row) -> Speaker:
    source = moving.source
    returned, decided = messages.answered(await source.answers(row["id"]))
    names = (moving.tool_names.get(one, "") for one in await source.joined(AGENT_TOOLS, row["id"]))
    return Speaker(
        agent_type=text_of(row["agent_type"]),
        system=text_of(row["system"]),
        tools=frozenset(names),
        returned=returned,
        decided=decided,
        since=row["created_at"] or _LONG_AGO,
    )


async def _send(moving: Import, row: Row, imported: pb.ImportedAgent) -> Tally:
    """Raises LociError, and what reading the old database raises."""
    speaker, tally = await _speaker(moving, row), Tally()
    if moving.dry_run:
        async for part in _parts(moving, row, imported, speaker, tally):
            tally.messages += len(part.messages.messages)
        return tally

    async def parts() -> AsyncIterator[pb.ImportAgentsRequest]:
        nonlocal tally
        tally = Tally()  # of this attempt
        try:
            async for part in _parts(moving, row, imported, speaker, tally):
                yield part
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            tally.failure = error  # gRPC would only say that the call was cancelled
            raise

    try:
        answer = await moving.loci.send(moving.loci.transfers.ImportAgents, parts)
    except (LociError, asyncio.CancelledError):
        if tally.failure is not None:
            raise tally.failure from None
        raise
    tally.messages = answer.messages
    return tally


async def _parts(
    moving: Import, row: Row, imported: pb.ImportedAgent, speaker: Speaker, tally: Tally
) -> AsyncIterator[pb.ImportAgentsRequest]:
    yield pb.ImportAgentsRequest(agent=imported)
    conversations = [one async for one in moving.source.rows(CONVERSATIONS, agent_id=row["id"])]
    for one in conversations:
        blocks = await moving.kept(BLOCKS.name, await moving.source.joined(CONVERSATION_BLOCKS, one["id"]))
        tally.conversations += 1
        yield pb.ImportAgentsRequest(conversation=mapping.conversation(one, blocks))
    async for frame in _frames(imported.agent_id, _default(moving, row, speaker, tally), tally):
        yield frame
    for one in conversations:
        read = _conversation(moving, one, speaker, tally)
        async for frame in _frames(public("conv", one["id"]), read, tally):
            yield frame


async def _default(moving: Import, row: Row, speaker: Speaker, tally: Tally) -> AsyncIterator[Read]:
    window = [one for one in as_list(row["message_ids"]) if isinstance(one, str)]
    numbers = {message_id: number for number, message_id in enumerate(window)}
    async for message in moving.source.older(row["id"], window):
        if not messages.is_compiled(message, Place(False), speaker):
            yield message, Place(False), messages.stored(message, Place(False), speaker)
    shown = 0
    async for message in moving.source.window(row["id"], window):
        shown += 1
        copied = None if message["keeper"] is None else uuid_of(row["id"])
        place = Place(True, numbers[message["id"]], copied)
        if not messages.is_compiled(message, place, speaker):
            yield message, place, messages.stored(message, place, speaker)
    if shown < len(numbers):
        tally.changed.append(f"{len(numbers) - shown} of the messages in its window are not there")


async def _conversation(moving: Import, row: Row, speaker: Speaker, tally: Tally) -> AsyncIterator[Read]:
    number = 0
    async for message in moving.source.said_in(row["id"]):
        shown = bool(message["in_context"])
        copied = None if message["keeper"] == row["id"] else uuid_of(row["id"])
        place = Place(shown, number if shown else -1, copied)
        number += shown
        if not messages.is_compiled(message, place, speaker):
            yield message, place, messages.stored(message, place, speaker)
    if gone := await moving.source.listed_and_gone(row["id"]):
        tally.changed.append(f"{gone} of the messages that {row['id']} lists are not there")


async def _frames(
    conversation_id: str, read: AsyncIterator[Read], tally: Tally
) -> AsyncIterator[pb.ImportAgentsRequest]:
    """Messages as far as a frame goes; those that are not taken are told."""
    held: list[pb.StoredMessage] = []
    size = 0
    async for row, _, message in messages.joined(read):
        if isinstance(message, LeftOut):
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
