"""An agent's blocks as the history of a repository, and pushed changes as edits of them: the calls behind both."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from google.protobuf.field_mask_pb2 import FieldMask

from gateway.git.files import Memory
from gateway.git.history import History, Timeline, Version, build
from gateway.git.pushing import Change, PushRefused
from gateway.rest.services import Services
from loci.agent.v1 import agent_pb2
from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as wire
from services.common.errors import LociError
from services.common.fields import enum_names
from services.common.ids import to_public, uuid7

# Versions of each block that are told one by one: from as many on, up to half as many again.
_MOST_VERSIONS = 200
_FEWEST_VERSIONS = 10
# Of all blocks together, and their bytes.
_VERSIONS_IN_ALL = 4_000
_BYTES_IN_ALL = 64 * 1024 * 1024
# Of one page, below what a call may carry.
_PAGE_BYTES = 8 * 1024 * 1024
_AT_ONCE = 8
_OPERATIONS = enum_names(block_pb2.BlockOperation.DESCRIPTOR)


@dataclass(frozen=True)
class Repository:
    """The memory of an agent at a moment, as a repository."""

    agent_id: str
    # By label.
    blocks: dict[str, block_pb2.Block]
    history: History


async def load(loci: Services, agent: agent_pb2.Agent) -> Repository:
    """Reads the blocks of an agent with their versions."""
    blocks = await _blocks(loci, agent.id)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def told(block: block_pb2.Block) -> Timeline:
        async with gate:
            return Timeline(block.id, await _versions(loci, block, len(blocks)))

    timelines = await asyncio.gather(*map(told, blocks))
    history = await asyncio.to_thread(build, agent.id, agent.created_at.ToMicroseconds(), timelines)
    return Repository(agent.id, {block.label: block for block in blocks}, history)


async def apply(loci: Services, repository: Repository, changes: Sequence[Change]) -> None:
    """Makes the changes. Raises PushRefused when one of them is not taken: what was done before it is taken back."""
    blocks, undo = loci.peers.blocks, list[Callable[[], Awaitable[object]]]()
    attachments: list[tuple[str, str]] = []

    try:
        for change in changes:
            if change.before is None and change.after is not None:
                created = await loci.peers.call(blocks.CreateBlock, _creation(change.label, change.after))
                gone = wire.DeleteBlockRequest(block_id=created.block.id)
                undo.append(partial(loci.peers.call, blocks.DeleteBlock, gone))
                attachments.append((change.label, created.block.id))
        for change in changes:
            if change.before is not None and change.after is not None:
                old = repository.blocks[change.label]
                edit = _edit(old, old.version, change.after)
                stored = (await loci.peers.call(blocks.UpdateBlock, edit)).block
                was = Memory(old.value, old.description, old.limit)
                reverse = _edit(stored, stored.version, was, described=old.HasField("description"))
                undo.append(partial(loci.peers.call, blocks.UpdateBlock, reverse))
        for _, block_id in attachments:
            attach = wire.AttachBlockRequest(agent_id=repository.agent_id, block_id=block_id)
            await loci.peers.call(blocks.AttachBlock, attach)
        for change in changes:
            if change.after is None:
                block_id = repository.blocks[change.label].id
                detach = wire.DetachBlockRequest(agent_id=repository.agent_id, block_id=block_id)
                await loci.peers.call(blocks.DetachBlock, detach)
                again = wire.AttachBlockRequest(agent_id=repository.agent_id, block_id=block_id)
                undo.append(partial(loci.peers.call, blocks.AttachBlock, again))
    except LociError as error:
        left = await _taken_back(undo)
        raise PushRefused(f"{error.message}{left}; fetch first") from error


async def _taken_back(undo: Sequence[Callable[[], Awaitable[object]]]) -> str:
    """Takes back what was done, the last first; what is to be said of it."""
    left = 0
    for step in reversed(undo):
        try:
            await step()
        except LociError:
            # Somebody changed it again: theirs stays.
            left += 1
    return f" ({left} of the other changes stayed)" if left else ""


def _creation(label: str, memory: Memory) -> wire.CreateBlockRequest:
    draft = block_pb2.Block(id=to_public("block", uuid7()), label=label, value=memory.value)
    if memory.description is not None:
        draft.description = memory.description
    if memory.limit is not None:
        draft.limit = memory.limit
    return wire.CreateBlockRequest(block=draft)


def _edit(block: block_pb2.Block, version: int, memory: Memory, *, described: bool = True) -> wire.UpdateBlockRequest:
    """`described`: else the description is taken away."""
    draft, paths = block_pb2.Block(value=memory.value), ["value"]
    if memory.limit is not None and memory.limit != block.limit:
        draft.limit = memory.limit
        paths.append("limit")
    if memory.description is not None and memory.description != block.description:
        draft.description = memory.description
    if draft.HasField("description") or not described:
        paths.append("description")
    key = wire.BlockKey(block_id=block.id)
    return wire.UpdateBlockRequest(key=key, block=draft, update_mask=FieldMask(paths=paths), expected_version=version)


async def _blocks(loci: Services, agent_id: str) -> list[block_pb2.Block]:
    blocks: list[block_pb2.Block] = []
    page = PageRequest(page_size=100)
    while True:
        request = wire.ListBlocksRequest(agent_id=agent_id, page=page, show_hidden=True)
        response = await loci.peers.call(loci.peers.blocks.ListBlocks, request)
        blocks.extend(response.blocks)
        if not (token := response.next_page_token):
            return blocks
        page.page_token = token


async def _versions(loci: Services, block: block_pb2.Block, count: int) -> Sequence[Version]:
    """Returns the newest versions of one of `count` blocks, up to the one that was read."""
    most = max(_FEWEST_VERSIONS, min(_MOST_VERSIONS, _VERSIONS_IN_ALL // count))
    # In steps, so that what was told once is seldom told anew.
    step = most // 2
    first = max(1, (block.version - most) // step * step)
    size = max(1, min(200, _PAGE_BYTES // (4 * len(block.value) + 1_000)))
    versions, left = deque[tuple[Version, int]](), _BYTES_IN_ALL // count
    page = PageRequest(page_size=size, after=str(first - 1), order=ORDER_ASCENDING)
    while True:
        request = wire.ListBlockVersionsRequest(block_id=block.id, page=page)
        response = await loci.peers.call(loci.peers.blocks.ListBlockVersions, request)
        for version in response.versions:
            if version.version > block.version:
                break
            versions.append((_version(version, block), version.ByteSize()))
            left -= version.ByteSize()
            while left < 0 and len(versions) > 1:
                left += versions.popleft()[1]
        page.page_token = response.next_page_token
        if not page.page_token or response.versions[-1].version >= block.version:
            return [version for version, _ in versions]


def _version(version: block_pb2.BlockVersion, block: block_pb2.Block) -> Version:
    described = version.description if version.HasField("description") else None
    trailers = (("Agent", version.agent_id), ("Run", version.run_id), ("Step", version.step_id))
    return Version(
        number=version.version,
        time=version.created_at.ToMicroseconds(),
        label=version.label,
        # Whether it is read-only has no history: what it is now it is in all versions.
        memory=Memory(version.value, described, version.limit, block.read_only or None),
        author=version.agent_id or version.actor_id,
        operation=_OPERATIONS[version.operation] or "change",
        notes=tuple(f"{name}: {value}" for name, value in trailers if value),
    )
