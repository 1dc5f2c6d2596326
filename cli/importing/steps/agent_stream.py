"""An agent as a stream of parts: its settings, its conversations, and what was said in them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import asyncpg

from cli.importing.mapping import agents as mapping
from cli.importing.mapping import messages
from cli.importing.mapping.messages import Absorbed, AgentInfo, Conversion, Position
from cli.importing.report import Report
from cli.importing.schema import (
    AGENT_TOOLS,
    AGENTS,
    CONVERSATION_BLOCKS,
    CONVERSATION_MESSAGES,
    CONVERSATIONS,
    MESSAGES,
    Join,
)
from cli.importing.steps.common import Import
from cli.importing.values import Row, Skip, as_list, as_text, public_id, uuid_of
from loci.agent.v1 import transfer_service_pb2 as pb
from services.common.errors import LociError

_FRAME_MESSAGES, _FRAME_BYTES = 500, 8 * 1024 * 1024
_LARGEST_MESSAGE = 16 * 1024 * 1024
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_PROMPT = (
    "it is the system prompt that the model was last given, shown under an id of this server until it compiles anew"
)
_COPY = "it is shared with another conversation; this one has a copy with an id of its own"


@dataclass
class Attempt:
    """An agent on its way. Its report counts if it arrives. prompts: ids of messages that are prompts here."""

    row: Row
    imported: pb.ImportedAgent
    report: Report = field(default_factory=Report)
    prompts: set[str] = field(default_factory=set)
    sent: int = 0
    failure: Exception | None = None


async def send(job: Import, attempt: Attempt) -> Attempt:
    """Sends an agent; returns the attempt that succeeded. Raises LociError, and the old database's errors."""
    if job.dry_run:
        async for _ in _parts(job, attempt):
            pass
        return attempt

    async def parts() -> AsyncIterator[pb.ImportAgentsRequest]:
        nonlocal attempt
        attempt = Attempt(attempt.row, attempt.imported)
        try:
            async for part in _parts(job, attempt):
                yield part
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            attempt.failure = error  # gRPC would only say that the call was cancelled
            raise

    try:
        await job.loci.send(job.loci.transfers.ImportAgents, parts)
    except (LociError, asyncio.CancelledError):
        if attempt.failure is not None:
            raise attempt.failure from None
        raise
    return attempt


async def unique_blocks(job: Import, join: Join, owner: str, report: Report) -> list[str]:
    """Returns the blocks of an agent or a conversation, which has each label once."""
    by_label: dict[str, str] = {}
    for block_id in await job.links(join, owner):
        first = by_label.setdefault(job.block_labels.get(block_id, block_id), block_id)
        if first != block_id:
            report.leave(join.name, f"{owner}/{block_id}", f"another block there has its label: {first}")
    return list(by_label.values())


async def _agent_info(job: Import, row: Row) -> AgentInfo:
    source = job.source
    returned, decided = messages.client_answers(await job.messages.approval_answers(row["id"]))
    names = (job.tool_names.get(one, "") for one in await source.linked_ids(AGENT_TOOLS, row["id"]))
    return AgentInfo(
        agent_type=as_text(row["agent_type"]),
        system=as_text(row["system"]),
        tools=frozenset(names),
        returned=returned,
        decided=decided,
        since=row["created_at"] or _LONG_AGO,
    )


async def _parts(job: Import, attempt: Attempt) -> AsyncIterator[pb.ImportAgentsRequest]:
    row, agent_info = attempt.row, await _agent_info(job, attempt.row)
    attempt.imported.prompt = await _default_prompt(job, attempt)
    yield pb.ImportAgentsRequest(agent=attempt.imported)
    conversations = [one async for one in job.source.rows(CONVERSATIONS, agent_id=row["id"])]
    for one in conversations:
        blocks = await unique_blocks(job, CONVERSATION_BLOCKS, one["id"], attempt.report)
        imported, changes = mapping.conversation(one, blocks)
        imported.prompt = _prompt(attempt, await job.messages.first_message(one["id"]))
        attempt.report.take(CONVERSATIONS.name, one["id"])
        for change in changes:
            attempt.report.change(CONVERSATIONS.name, one["id"], change)
        for block_id in blocks:
            attempt.report.take(CONVERSATION_BLOCKS.name, f"{one['id']}/{block_id}")
        yield pb.ImportAgentsRequest(conversation=imported)
    async for frame in _frames(attempt.imported.agent_id, _default(job, attempt, agent_info), attempt):
        yield frame
    for one in conversations:
        async for frame in _frames(public_id("conv", one["id"]), _conversation(job, one, agent_info), attempt):
            yield frame


async def _default_prompt(job: Import, attempt: Attempt) -> str:
    """Returns the prompt of the default conversation."""
    window = [one for one in as_list(attempt.row["message_ids"]) if isinstance(one, str)]
    rows = [one async for one in job.messages.window_messages(attempt.row["id"], window[:1])]
    return _prompt(attempt, rows[0] if rows else None)


def _prompt(attempt: Attempt, first: Row | None) -> str:
    text = "" if first is None else messages.prompt_text(first)
    if first is not None and text:
        attempt.prompts.add(first["id"])
    return text


async def _default(job: Import, attempt: Attempt, agent_info: AgentInfo) -> AsyncIterator[Conversion]:
    row = attempt.row
    window = [one for one in as_list(row["message_ids"]) if isinstance(one, str)]
    numbers = {message_id: number for number, message_id in enumerate(window)}
    async for message in job.messages.older_messages(row["id"], window):
        yield message, Position(False), messages.to_message(message, Position(False), agent_info)
    missing = set(window)
    async for message in job.messages.window_messages(row["id"], window):
        missing.discard(message["id"])
        copy_for = None if message["keeper"] is None else uuid_of(row["id"])
        position = Position(True, numbers[message["id"]], copy_for)
        yield message, position, messages.to_message(message, position, agent_info)
    if missing:
        change = f"messages of its window are not there: {', '.join(sorted(missing, key=numbers.__getitem__))}"
        attempt.report.change(AGENTS.name, row["id"], change, as_text(row["name"]))


async def _conversation(job: Import, row: Row, agent_info: AgentInfo) -> AsyncIterator[Conversion]:
    number = 0
    async for message in job.messages.conversation_messages(row["id"]):
        in_context = bool(message["in_context"])
        copy_for = None if message["keeper"] == row["id"] else uuid_of(row["id"])
        position = Position(in_context, number if in_context else -1, copy_for)
        number += in_context
        yield message, position, messages.to_message(message, position, agent_info)


async def _frames(
    conversation_id: str, conversions: AsyncIterator[Conversion], attempt: Attempt
) -> AsyncIterator[pb.ImportAgentsRequest]:
    """Yields messages in frames of a limited size; records every row."""
    batch: list[pb.StoredMessage] = []
    size = 0
    async for row, position, message in messages.merge_calls(conversions):
        if isinstance(message, Skip) and row["id"] in attempt.prompts:
            message = Absorbed(_PROMPT)
        weight = message.ByteSize() if isinstance(message, pb.StoredMessage) else 0
        if weight > _LARGEST_MESSAGE:
            message = Skip(f"it has {weight:,} bytes, and may have {_LARGEST_MESSAGE:,}")
        _record(attempt.report, (row, position, message))
        if not isinstance(message, pb.StoredMessage):
            continue
        if batch and (len(batch) == _FRAME_MESSAGES or size + weight > _FRAME_BYTES):
            yield _frame(conversation_id, batch)
            batch, size = [], 0
        batch.append(message)
        size += weight
        attempt.sent += 1
    if batch:
        yield _frame(conversation_id, batch)


def _record(report: Report, conversion: Conversion) -> None:
    """Records a message, and its place in a conversation where it has one."""
    row, position, message = conversion
    rows = [(MESSAGES.name, row["id"]), *([(CONVERSATION_MESSAGES.name, row["listing"])] if row.get("listing") else [])]
    for table, key in rows:
        match message:
            case Skip():
                if not report.is_here(table, key):
                    report.leave(table, key, message.reason)
            case Absorbed():
                report.change(table, key, message.reason)
            case _:
                report.take(table, key)
    if isinstance(message, Skip):
        return
    for change in messages.changes(row, message):
        report.change(MESSAGES.name, row["id"], change)
    if position.copy_for is not None and len(rows) > 1:
        report.change(*rows[1], _COPY)


def _frame(conversation_id: str, batch: Sequence[pb.StoredMessage]) -> pb.ImportAgentsRequest:
    return pb.ImportAgentsRequest(messages=pb.ImportedMessages(conversation_id=conversation_id, messages=batch))
