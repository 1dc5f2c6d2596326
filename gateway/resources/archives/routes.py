"""Archives, their passages, and the agents they are attached to."""

from typing import Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, array
from gateway.resources.agents.relations import Include, relations_of
from gateway.resources.agents.routes import attached_page, fetch
from gateway.resources.agents.schemas import AGENT
from gateway.resources.archives import requests as bodies
from gateway.resources.archives.responses import (
    EMBEDDING_SECONDS,
    archive_rest,
    passage_answer,
    passage_answers,
    refuse_other_embedding,
)
from gateway.resources.archives.schemas import ARCHIVE, PASSAGE
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import AgentFilter, AgentId, ArchiveId, Names, PassageId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import archive_service_pb2, passage_pb2, passage_service_pb2

router = APIRouter(tags=["archives"])


@router.post("/archives")
@returns(ARCHIVE)
async def create_archive(body: bodies.CreateArchive, loci: Loci) -> Response:
    """Creates an archive that is attached to nobody."""
    created = await loci.peers.call(loci.peers.archives.CreateArchive, bodies.archive_request(body))
    return await _answer(loci, created.archive)


@router.get("/archives")
@returns(array(ARCHIVE))
@paged(50)
async def list_archives(
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
    name: str | None = None,
    agent_id: AgentFilter = None,
) -> Response:
    """A page of archives, newest first."""
    request = archive_service_pb2.ListArchivesRequest(
        page=page,
        name=name,
        agent_id=agent_id,
    )
    response = await loci.peers.call(loci.peers.archives.ListArchives, request)
    models = await loci.catalogue.models()
    return json_response([archive_rest(one, models) for one in response.archives])


@router.get("/archives/{archive_id}")
@returns(ARCHIVE)
async def retrieve_archive(archive_id: ArchiveId, loci: Loci) -> Response:
    """One archive."""
    request = archive_service_pb2.GetArchiveRequest(archive_id=archive_id)
    return await _answer(loci, (await loci.peers.call(loci.peers.archives.GetArchive, request)).archive)


@router.patch("/archives/{archive_id}")
@returns(ARCHIVE)
async def update_archive(archive_id: ArchiveId, body: bodies.UpdateArchive, loci: Loci) -> Response:
    """Changes what the body names. The embedding model is changed by a route of its own."""
    if embedding := bodies.embedding_of(body):
        get = archive_service_pb2.GetArchiveRequest(archive_id=archive_id)
        archive = (await loci.peers.call(loci.peers.archives.GetArchive, get)).archive
        refuse_other_embedding(embedding, archive.embedding, f"/archives/{archive_id}")
    request = bodies.archive_change(archive_id, body)
    if request is None:
        return await retrieve_archive(archive_id, loci)
    return await _answer(loci, (await loci.peers.call(loci.peers.archives.UpdateArchive, request)).archive)


@router.delete("/archives/{archive_id}", status_code=204)
@returns(status=204)
async def delete_archive(archive_id: ArchiveId, loci: Loci) -> Response:
    """Deletes an archive with its passages, for every agent."""
    request = archive_service_pb2.DeleteArchiveRequest(archive_id=archive_id)
    await loci.peers.call(loci.peers.archives.DeleteArchive, request)
    return Response(status_code=204)


@router.get("/archives/{archive_id}/agents")
@returns(array(AGENT))
@paged(50)
async def list_agents(
    request: Request,
    archive_id: ArchiveId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    include: Include = None,
) -> Response:
    """The agents that the archive is attached to, in the order of attachment, the newest first."""
    attachments = archive_service_pb2.ListArchiveAgentsRequest(archive_id=archive_id)
    attached = await loci.peers.call(loci.peers.archives.ListArchiveAgents, attachments)
    return await attached_page(loci, attached.agent_ids, page, relations_of(request, include))


@router.patch("/agents/{agent_id}/archives/attach/{archive_id}")
@returns(NULL)
async def attach_archive(agent_id: AgentId, archive_id: ArchiveId, loci: Loci) -> Response:
    """Attaches an archive; new passages of an agent that had none go into it."""
    await fetch(loci, agent_id)
    request = archive_service_pb2.AttachArchiveRequest(agent_id=agent_id, archive_id=archive_id)
    await loci.peers.call(loci.peers.archives.AttachArchive, request)
    return json_response(None)


@router.patch("/agents/{agent_id}/archives/detach/{archive_id}")
@returns(NULL)
async def detach_archive(agent_id: AgentId, archive_id: ArchiveId, loci: Loci) -> Response:
    """Detaches an archive; its passages stay."""
    await fetch(loci, agent_id)
    request = archive_service_pb2.DetachArchiveRequest(agent_id=agent_id, archive_id=archive_id)
    await loci.peers.call(loci.peers.archives.DetachArchive, request)
    return json_response(None)


@router.post("/archives/{archive_id}/passages")
@returns(PASSAGE)
async def create_passage(archive_id: ArchiveId, body: bodies.CreatePassage, loci: Loci) -> Response:
    """Stores one passage."""
    [stored] = await _create(loci, archive_id, [body])
    return await passage_answer(loci, stored)


@router.post("/archives/{archive_id}/passages/batch")
@returns(array(PASSAGE))
async def create_passages(archive_id: ArchiveId, body: bodies.CreatePassages, loci: Loci) -> Response:
    """Stores all of the passages, or none. An empty list is answered with one."""
    if not body.passages:
        await loci.peers.call(
            loci.peers.archives.GetArchive, archive_service_pb2.GetArchiveRequest(archive_id=archive_id)
        )
        return json_response([])
    return await passage_answers(loci, await _create(loci, archive_id, body.passages))


@router.get("/archives/{archive_id}/passages")
@returns(array(PASSAGE))
@paged(100, "asc")
async def list_passages(
    archive_id: ArchiveId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    search: str | None = None,
    tags: Names = None,
    tag_match_mode: bodies.TagMode = "any",
) -> Response:
    """A page of an archive's passages, oldest first."""
    request = passage_service_pb2.ListPassagesRequest(
        archive_id=archive_id,
        page=page,
        search=search,
        tags=tags,
        match_all_tags=tag_match_mode == "all",
    )
    return await passage_answers(loci, (await loci.peers.call(loci.peers.passages.ListPassages, request)).passages)


@router.patch("/archives/{archive_id}/passages/{passage_id}")
@returns(PASSAGE)
async def update_passage(
    archive_id: ArchiveId, passage_id: PassageId, body: bodies.UpdatePassage, loci: Loci
) -> Response:
    """Changes what the body names; a new text is embedded anew."""
    request = bodies.passage_change(passage_id, body, archive_id=archive_id)
    changed = await loci.peers.call(loci.peers.passages.UpdatePassage, request, timeout=EMBEDDING_SECONDS)
    return await passage_answer(loci, changed.passage)


@router.delete("/archives/{archive_id}/passages/{passage_id}", status_code=204)
@returns(status=204)
async def delete_passage(archive_id: ArchiveId, passage_id: PassageId, loci: Loci) -> Response:
    """Deletes one passage."""
    request = passage_service_pb2.DeletePassageRequest(archive_id=archive_id, passage_id=passage_id)
    await loci.peers.call(loci.peers.passages.DeletePassage, request)
    return Response(status_code=204)


async def _create(loci: Services, archive_id: str, drafts: list[bodies.CreatePassage]) -> list[passage_pb2.Passage]:
    request = passage_service_pb2.CreatePassagesRequest(
        archive_id=archive_id, passages=[bodies.passage_draft(draft) for draft in drafts]
    )
    created = await loci.peers.call(loci.peers.passages.CreatePassages, request, timeout=EMBEDDING_SECONDS)
    return list(created.passages)


async def _answer(loci: Services, archive: passage_pb2.Archive) -> Response:
    return json_response(archive_rest(archive, await loci.catalogue.models()))
