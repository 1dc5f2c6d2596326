"""The storage that vectors take."""

from typing import Annotated, Literal

from fastapi import APIRouter, Header
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import NUMBER
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.memory.v1 import passage_service_pb2

router = APIRouter(prefix="/embeddings", tags=["embeddings"])

_UNITS = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}


@router.get("/total_storage_size")
@returns(NUMBER)
async def total_storage_size(
    loci: Loci, storage_unit: Annotated[Literal["B", "KB", "MB", "GB", "TB"], Header()] = "GB"
) -> Response:
    """Returns the size of the tenant's vectors, in the unit that the header `storage-unit` names."""
    request = passage_service_pb2.GetVectorStorageRequest()
    stored = await loci.peers.call(loci.peers.passages.GetVectorStorage, request)
    return json_response(stored.bytes / _UNITS[storage_unit])
