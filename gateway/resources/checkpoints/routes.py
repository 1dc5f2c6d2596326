"""Time travel: routes of Loci's own, which the reference lacks.

A checkpoint is a place in a conversation where what was said is whole: after the input of a run (`message-...`), after
a step whose tools have returned (`step-...`), after a run (`run-...`). Nothing is erased by going back to one: the
checkpoints that were left are still good, to go back to or to fork from.
"""

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.agents.responses import agent_state
from gateway.resources.agents.schemas import FORK
from gateway.resources.checkpoints import requests as bodies
from gateway.resources.checkpoints.schemas import CHECKPOINT, REWIND
from gateway.resources.conversations.responses import ConversationKey
from gateway.rest.convert import Rest, to_rest
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import AgentFilter, AgentId, CheckpointRef, ConversationRef
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.agent.v1 import checkpoint_service_pb2 as wire
from loci.common.v1.page_pb2 import PageRequest
from services.common.ids import to_public, uuid7

router = APIRouter(tags=["checkpoints"])


@router.get("/conversations/{conversation_id}/checkpoints")
@returns(array(CHECKPOINT))
@paged(50, names="after limit", cursor=CheckpointRef)
async def list_conversation_checkpoints(
    conversation_id: ConversationRef,
    loci: Loci,
    agent_id: AgentFilter = None,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """Returns a page of the conversation's checkpoints, newest first, each with the blocks' versions after it."""
    return await _listed(loci, await loci.conversations.place(conversation_id, agent_id), page)


@router.get("/agents/{agent_id}/checkpoints")
@returns(array(CHECKPOINT))
@paged(50, names="after limit", cursor=CheckpointRef)
async def list_agent_checkpoints(agent_id: AgentId, loci: Loci, page: PageRequest = FIRST_PAGE) -> Response:
    """Does the same for the agent's default conversation."""
    return await _listed(loci, ConversationKey(agent_id), page)


@router.post("/conversations/{conversation_id}/rewind")
@returns(REWIND)
async def rewind_conversation(conversation_id: ConversationRef, body: bodies.Rewind, loci: Loci) -> Response:
    """Makes the conversation end at a checkpoint, and sets its blocks back to what they were then.

    Its own copies of blocks are set back or, where it has none, the agent's blocks, for all who see them; the answer
    says of each block what was done (`restored`, `left`, `missing`) and who sees it (`conversation`, `agent`,
    `agents`). A request that is being processed is not interrupted (409); calls that wait for approval are dropped.
    What came after the checkpoint is kept: rewinding to the answer's `left_checkpoint_id` brings it back.
    """
    return await _rewind(loci, await loci.conversations.place(conversation_id, body.agent_id), body)


@router.post("/agents/{agent_id}/rewind")
@returns(REWIND)
async def rewind_agent(agent_id: AgentId, body: bodies.Rewind, loci: Loci) -> Response:
    """Does the same for the agent's default conversation."""
    return await _rewind(loci, ConversationKey(agent_id), body)


@router.get("/conversations/{conversation_id}/rewinds")
@returns(array(REWIND))
@paged(50, names="limit")
async def list_conversation_rewinds(
    conversation_id: ConversationRef, loci: Loci, agent_id: AgentFilter = None, page: PageRequest = FIRST_PAGE
) -> Response:
    """Returns the newest rewinds: who, when, from where, to where, and what became of the blocks."""
    return await _rewinds(loci, await loci.conversations.place(conversation_id, agent_id), page)


@router.get("/agents/{agent_id}/rewinds")
@returns(array(REWIND))
@paged(50, names="limit")
async def list_agent_rewinds(agent_id: AgentId, loci: Loci, page: PageRequest = FIRST_PAGE) -> Response:
    """Does the same for the agent's default conversation."""
    return await _rewinds(loci, ConversationKey(agent_id), page)


@router.post("/agents/{agent_id}/fork")
@returns(FORK)
async def fork_agent(agent_id: AgentId, body: bodies.ForkAgent, loci: Loci) -> Response:
    """Creates an agent from a checkpoint of this one's default conversation, with this one's present settings.

    Messages, archives and tools are shared by reference, blocks are copied as they were; the answer says which. From
    there on each goes its own way, and neither needs the other to be there.
    """
    return await _fork_at(loci, ConversationKey(agent_id), body)


@router.post("/conversations/{conversation_id}/fork-agent")
@returns(FORK)
async def fork_agent_of_conversation(
    conversation_id: ConversationRef, body: bodies.ForkAgent, loci: Loci, agent_id: AgentFilter = None
) -> Response:
    """Does the same from a checkpoint of any conversation, which becomes the new agent's default one."""
    return await _fork_at(loci, await loci.conversations.place(conversation_id, agent_id), body)


async def _listed(loci: Services, place: ConversationKey, page: PageRequest) -> Response:
    request = wire.ListCheckpointsRequest(page=page, conversation_id=place.conversation_id, agent_id=place.agent_id)
    response = await loci.peers.call(loci.peers.checkpoints.ListCheckpoints, request)
    return json_response([to_rest(checkpoint) for checkpoint in response.checkpoints])


async def _rewind(loci: Services, place: ConversationKey, body: bodies.Rewind) -> Response:
    request = wire.RewindConversationRequest(
        conversation_id=place.conversation_id,
        agent_id=place.agent_id,
        checkpoint_id=body.checkpoint_id,
        keep_blocks=not body.restore_blocks,
        rewind_id=to_public("rewind", uuid7()),
    )
    created = await loci.peers.call(loci.peers.checkpoints.RewindConversation, request)
    return json_response(to_rest(created.rewind))


async def _rewinds(loci: Services, place: ConversationKey, page: PageRequest) -> Response:
    request = wire.ListRewindsRequest(page=page, conversation_id=place.conversation_id, agent_id=place.agent_id)
    response = await loci.peers.call(loci.peers.checkpoints.ListRewinds, request)
    return json_response([to_rest(rewind) for rewind in response.rewinds])


async def _fork_at(loci: Services, place: ConversationKey, body: bodies.ForkAgent) -> Response:
    request = wire.ForkAgentRequest(
        new_agent_id=to_public("agent", uuid7()),
        conversation_id=place.conversation_id,
        agent_id=place.agent_id,
        checkpoint_id=body.checkpoint_id,
        name=body.name or "",
    )
    forked = await loci.peers.call(loci.peers.checkpoints.ForkAgent, request)
    return json_response(_fork(forked, agent_state(forked.agent, await loci.catalogue.models())))


def _fork(forked: wire.ForkAgentResponse, agent: Rest) -> Rest:
    """Returns the new agent, and apart from it what was copied and what is shared."""
    rest = to_rest(forked, leave=frozenset({"agent"}))
    shared = {name.removeprefix("shared_"): value for name, value in rest.items() if name.startswith("shared_")}
    return {"agent": agent, "copied": {"block_ids": rest["copied_block_ids"]}, "shared": shared}
