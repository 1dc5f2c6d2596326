"""loci.memory.v1.BlockService."""

from typing import Any

from loci.memory.v1 import block_service_pb2 as block_pb
from loci.memory.v1 import block_service_pb2_grpc as block_grpc
from services.common.context import current
from services.common.core.storable import storable_name
from services.common.errors import InvalidArgument
from services.common.ids import to_public
from services.common.page_requests import allow, page_by, page_by_id
from services.memory import wire
from services.memory.blocks import convert
from services.memory.blocks.model import validate, version_of
from services.memory.blocks.service import BlockService
from services.memory.core.ports.blocks import BlockLists, BlockStore, IdentityStore

_BLOCKS_PER_PAGE = 50
_MOST_IDENTITIES = 1_000


class BlockServicer(block_grpc.BlockServiceServicer):
    """loci.memory.v1.BlockService."""

    def __init__(
        self,
        store: BlockStore,
        lists: BlockLists,
        service: BlockService,
        identities: IdentityStore,
    ) -> None:
        self._store = store
        self._lists = lists
        self._service = service
        self._identities = identities

    async def GetBlock(self, request: block_pb.GetBlockRequest, context: Any) -> block_pb.GetBlockResponse:
        block = await self._store.get(current().organization_id, convert.block_key(request.key))
        return block_pb.GetBlockResponse(block=convert.block_message(block))

    async def ListBlocks(self, request: block_pb.ListBlocksRequest, context: Any) -> block_pb.ListBlocksResponse:
        page = page_by_id(request.page, "block", _BLOCKS_PER_PAGE, ascending=True)
        result = await self._lists.blocks(current().organization_id, convert.block_list(request), page)
        return block_pb.ListBlocksResponse(
            blocks=[convert.block_message(block) for block in result.items], next_page_token=result.next_token
        )

    async def CountBlocks(self, request: block_pb.CountBlocksRequest, context: Any) -> block_pb.CountBlocksResponse:
        identity_ids = wire.identity_ids(request.identity_ids)
        count = await self._lists.count_blocks(current().organization_id, identity_ids)
        return block_pb.CountBlocksResponse(blocks=count)

    async def ListBlockTags(
        self, request: block_pb.ListBlockTagsRequest, context: Any
    ) -> block_pb.ListBlockTagsResponse:
        allow(request.page, "page_size", "after", "before", "order")
        page = page_by(request.page, storable_name, _BLOCKS_PER_PAGE, ascending=True)
        tags = await self._lists.block_tags(current().organization_id, page, storable_name(request.query_text))
        return block_pb.ListBlockTagsResponse(tags=tags)

    async def CreateBlock(self, request: block_pb.CreateBlockRequest, context: Any) -> block_pb.CreateBlockResponse:
        caller = current()
        draft = validate(convert.block_draft(request.block))
        block = await self._store.create(caller.organization_id, caller.user_id, draft)
        return block_pb.CreateBlockResponse(block=convert.block_message(block))

    async def UpdateBlock(self, request: block_pb.UpdateBlockRequest, context: Any) -> block_pb.UpdateBlockResponse:
        caller = current()
        block = await self._service.update(
            caller.organization_id,
            caller.user_id,
            convert.block_key(request.key),
            convert.block_changes(request.block, request.update_mask.paths),
            convert.expected_version(request),
        )
        return block_pb.UpdateBlockResponse(block=convert.block_message(block))

    async def DeleteBlock(self, request: block_pb.DeleteBlockRequest, context: Any) -> block_pb.DeleteBlockResponse:
        await self._store.delete(current().organization_id, wire.block_id(request.block_id))
        return block_pb.DeleteBlockResponse()

    async def AttachBlock(self, request: block_pb.AttachBlockRequest, context: Any) -> block_pb.AttachBlockResponse:
        agent_id, block_id = wire.agent_id(request.agent_id), wire.block_id(request.block_id)
        await self._store.attach(current().organization_id, agent_id, block_id)
        return block_pb.AttachBlockResponse()

    async def DetachBlock(self, request: block_pb.DetachBlockRequest, context: Any) -> block_pb.DetachBlockResponse:
        agent_id, block_id = wire.agent_id(request.agent_id), wire.block_id(request.block_id)
        await self._store.detach(current().organization_id, agent_id, block_id)
        return block_pb.DetachBlockResponse()

    async def ListBlockAgents(
        self, request: block_pb.ListBlockAgentsRequest, context: Any
    ) -> block_pb.ListBlockAgentsResponse:
        agents = await self._store.agents_of(current().organization_id, wire.block_id(request.block_id))
        return block_pb.ListBlockAgentsResponse(agent_ids=[f"agent-{agent_id}" for agent_id in agents])

    async def ListBlockVersions(
        self, request: block_pb.ListBlockVersionsRequest, context: Any
    ) -> block_pb.ListBlockVersionsResponse:
        page = page_by(request.page, version_of, _BLOCKS_PER_PAGE)
        result = await self._lists.versions(current().organization_id, wire.block_id(request.block_id), page)
        return block_pb.ListBlockVersionsResponse(
            versions=[convert.version_message(version) for version in result.items],
            next_page_token=result.next_token,
        )

    async def GetBlockVersion(
        self, request: block_pb.GetBlockVersionRequest, context: Any
    ) -> block_pb.GetBlockVersionResponse:
        version = await self._service.version(
            current().organization_id, convert.block_key(request.key), convert.version_key(request)
        )
        return block_pb.GetBlockVersionResponse(version=convert.version_message(version))

    async def DiffBlockVersions(
        self, request: block_pb.DiffBlockVersionsRequest, context: Any
    ) -> block_pb.DiffBlockVersionsResponse:
        difference = await self._service.diff(
            current().organization_id, convert.block_key(request.key), request.from_version, request.to_version
        )
        return block_pb.DiffBlockVersionsResponse(
            diff=difference.diff, added_lines=difference.added_lines, removed_lines=difference.removed_lines
        )

    async def RestoreBlock(self, request: block_pb.RestoreBlockRequest, context: Any) -> block_pb.RestoreBlockResponse:
        caller, key = current(), convert.block_key(request.key)
        which, expected = convert.version_key(request), convert.expected_version(request)
        block = await self._service.restore(caller.organization_id, caller.user_id, key, which, expected)
        return block_pb.RestoreBlockResponse(block=convert.block_message(block))

    async def UndoBlock(self, request: block_pb.UndoBlockRequest, context: Any) -> block_pb.UndoBlockResponse:
        caller, key = current(), convert.block_key(request.key)
        expected = convert.expected_version(request)
        block = await self._service.undo(caller.organization_id, caller.user_id, key, expected)
        return block_pb.UndoBlockResponse(block=convert.block_message(block))

    async def RedoBlock(self, request: block_pb.RedoBlockRequest, context: Any) -> block_pb.RedoBlockResponse:
        caller, key = current(), convert.block_key(request.key)
        expected = convert.expected_version(request)
        block = await self._service.redo(caller.organization_id, caller.user_id, key, expected)
        return block_pb.RedoBlockResponse(block=convert.block_message(block))

    async def AttachIdentity(
        self, request: block_pb.AttachIdentityRequest, context: Any
    ) -> block_pb.AttachIdentityResponse:
        block_id, identity_id = wire.block_id(request.block_id), wire.identity_id(request.identity_id)
        await self._identities.attach(current().organization_id, block_id, identity_id)
        return block_pb.AttachIdentityResponse()

    async def DetachIdentity(
        self, request: block_pb.DetachIdentityRequest, context: Any
    ) -> block_pb.DetachIdentityResponse:
        block_id, identity_id = wire.block_id(request.block_id), wire.identity_id(request.identity_id)
        await self._identities.detach(current().organization_id, block_id, identity_id)
        return block_pb.DetachIdentityResponse()

    async def SetIdentityBlocks(
        self, request: block_pb.SetIdentityBlocksRequest, context: Any
    ) -> block_pb.SetIdentityBlocksResponse:
        identity_id, block_ids = (
            wire.identity_id(request.identity_id),
            [wire.block_id(each) for each in request.block_ids],
        )
        await self._identities.set_blocks(current().organization_id, identity_id, block_ids)
        return block_pb.SetIdentityBlocksResponse()

    async def BatchGetIdentityBlocks(
        self, request: block_pb.BatchGetIdentityBlocksRequest, context: Any
    ) -> block_pb.BatchGetIdentityBlocksResponse:
        identity_ids = wire.identity_ids(request.identity_ids)
        if len(identity_ids) > _MOST_IDENTITIES:
            raise InvalidArgument(
                f"ask for at most {_MOST_IDENTITIES} identities, not {len(identity_ids)}", reason="PAGE_SIZE_INVALID"
            )
        blocks_of = await self._identities.blocks_of(current().organization_id, identity_ids)
        return block_pb.BatchGetIdentityBlocksResponse(
            identities=[
                block_pb.IdentityBlocks(
                    identity_id=to_public("identity", identity_id),
                    block_ids=[to_public("block", block_id) for block_id in block_ids],
                )
                for identity_id, block_ids in blocks_of.items()
            ]
        )

    async def PurgeIdentity(
        self, request: block_pb.PurgeIdentityRequest, context: Any
    ) -> block_pb.PurgeIdentityResponse:
        await self._identities.purge(current().organization_id, wire.identity_id(request.identity_id))
        return block_pb.PurgeIdentityResponse()
