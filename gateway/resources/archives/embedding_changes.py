"""Changes of the embedding model of an archive or a folder; Loci's own."""

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.resources.agents.requests import Handle
from gateway.resources.archives.responses import change_rest
from gateway.resources.archives.schemas import EMBEDDING_CHANGE
from gateway.rest.body import Body
from gateway.rest.params import ArchiveId, FolderId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.memory.v1 import archive_service_pb2

router = APIRouter()

# The new model is asked for a vector, the archive whether it lacks one.
_SECONDS = 30.0
_ARCHIVE = "/archives/{archive_id}/embedding-change"
_FOLDER = "/folders/{folder_id}/embedding-change"


class ChangeEmbedding(Body):
    """`embedding`: the handle of the model to change to; null for no vectors any more."""

    embedding: Handle | None


@router.post(_ARCHIVE, tags=["archives"])
@returns(EMBEDDING_CHANGE, status=202)
async def change_archive(archive_id: ArchiveId, body: ChangeEmbedding, loci: Loci) -> Response:
    """Begins to make vectors of another model, in the background; searches switch to them when all are there."""
    return await _change(loci, archive_id, body)


@router.post(_FOLDER, tags=["folders"])
@returns(EMBEDDING_CHANGE, status=202)
async def change_folder(folder_id: FolderId, body: ChangeEmbedding, loci: Loci) -> Response:
    """Begins to make vectors of another model, in the background; searches switch to them when all are there."""
    return await _change(loci, folder_id, body)


@router.get(_ARCHIVE, tags=["archives"])
@returns(EMBEDDING_CHANGE)
async def archive_change(archive_id: ArchiveId, loci: Loci) -> Response:
    """How far the newest change is."""
    return await _progress(loci, archive_id)


@router.get(_FOLDER, tags=["folders"])
@returns(EMBEDDING_CHANGE)
async def folder_change(folder_id: FolderId, loci: Loci) -> Response:
    """How far the newest change is."""
    return await _progress(loci, folder_id)


@router.post(f"{_ARCHIVE}/rollback", tags=["archives"])
@returns(EMBEDDING_CHANGE)
async def roll_archive_back(archive_id: ArchiveId, loci: Loci) -> Response:
    """Gives the change up, or goes back to the model before."""
    return await _roll_back(loci, archive_id)


@router.post(f"{_FOLDER}/rollback", tags=["folders"])
@returns(EMBEDDING_CHANGE)
async def roll_folder_back(folder_id: FolderId, loci: Loci) -> Response:
    """Gives the change up, or goes back to the model before."""
    return await _roll_back(loci, folder_id)


@router.post(f"{_ARCHIVE}/finish", tags=["archives"])
@returns(EMBEDDING_CHANGE)
async def finish_archive(archive_id: ArchiveId, loci: Loci) -> Response:
    """Erases the vectors of the model that is not used any more."""
    return await _finish(loci, archive_id)


@router.post(f"{_FOLDER}/finish", tags=["folders"])
@returns(EMBEDDING_CHANGE)
async def finish_folder(folder_id: FolderId, loci: Loci) -> Response:
    """Erases the vectors of the model that is not used any more."""
    return await _finish(loci, folder_id)


async def _change(loci: Services, archive_id: str, body: ChangeEmbedding) -> Response:
    request = archive_service_pb2.ChangeEmbeddingRequest(archive_id=archive_id, embedding=body.embedding or "")
    answer = await loci.peers.call(loci.peers.archives.ChangeEmbedding, request, timeout=_SECONDS)
    return json_response(change_rest(answer.change), status=202)


async def _progress(loci: Services, archive_id: str) -> Response:
    request = archive_service_pb2.GetEmbeddingChangeRequest(archive_id=archive_id)
    answer = await loci.peers.call(loci.peers.archives.GetEmbeddingChange, request)
    return json_response(change_rest(answer.change))


async def _roll_back(loci: Services, archive_id: str) -> Response:
    request = archive_service_pb2.RollBackEmbeddingChangeRequest(archive_id=archive_id)
    answer = await loci.peers.call(loci.peers.archives.RollBackEmbeddingChange, request, timeout=_SECONDS)
    return json_response(change_rest(answer.change))


async def _finish(loci: Services, archive_id: str) -> Response:
    request = archive_service_pb2.FinishEmbeddingChangeRequest(archive_id=archive_id)
    answer = await loci.peers.call(loci.peers.archives.FinishEmbeddingChange, request)
    return json_response(change_rest(answer.change))
