"""Archives and passages as REST, with what is known of their embedding models."""

from collections.abc import Iterable, Mapping, Sequence

from starlette.responses import Response

from gateway.resources.agents.responses import Models, embedding_config
from gateway.rest import convert
from gateway.rest.convert import Rest
from gateway.rest.responses import json_response
from gateway.rest.services import Services
from loci.memory.v1 import passage_pb2
from services.common.context import current
from services.common.ids import to_public

# A provider embeds the text meanwhile.
EMBEDDING_SECONDS = 120.0
# Of an answer by text alone: the embedding models that did not answer.
WITHOUT_VECTORS = "x-loci-without-vectors"


def archive_rest(archive: passage_pb2.Archive, models: Models) -> Rest:
    """One archive. The length of its vectors is its own where nobody knows the model any more."""
    config = embedding_config(archive.embedding, models)
    if config is not None and not config["embedding_dim"]:
        config["embedding_dim"] = archive.dimensions
    return convert.archive(archive, config, to_public("org", current().organization_id))


async def passage_rests(loci: Services, passages: Iterable[passage_pb2.Passage]) -> Sequence[Rest]:
    """The passages, in order."""
    models, stored = await loci.catalogue.models(), list(passages)
    organization_id = to_public("org", current().organization_id)
    configs = {handle: embedding_config(handle, models) for handle in {one.embedding for one in stored}}
    return [convert.passage(one, configs[one.embedding], organization_id) for one in stored]


async def passage_answer(loci: Services, passage: passage_pb2.Passage) -> Response:
    """One passage."""
    return json_response((await passage_rests(loci, [passage]))[0])


async def passage_answers(loci: Services, passages: Iterable[passage_pb2.Passage]) -> Response:
    """Passages in a list."""
    return json_response(await passage_rests(loci, passages))


def without_vectors(handles: Sequence[str]) -> Mapping[str, str]:
    """The header that says by which models was not searched; none where all answered."""
    return {WITHOUT_VECTORS: ", ".join(handles)} if handles else {}
