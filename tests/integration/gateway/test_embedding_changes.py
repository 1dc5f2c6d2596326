"""Changes of embedding models over REST: what is asked of the memory service, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest
from letta_client import UnprocessableEntityError

from loci.memory.v1 import archive_service_pb2 as pb
from loci.memory.v1 import folder_pb2, folder_service_pb2, passage_pb2
from services.common import errors
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.scripted import Backend

ARCHIVE = "archive-00000000-0000-4000-8000-00000000000a"
FOLDER = "source-00000000-0000-4000-8000-00000000000d"


def change(archive_id: str) -> pb.EmbeddingChange:
    return pb.EmbeddingChange(
        archive_id=archive_id,
        to_embedding="openai/small",
        state=pb.EMBEDDING_CHANGE_STATE_RUNNING,
        embedded=3,
        total=9,
        created_at=samples.NOON,
        updated_at=samples.NOON,
    )


@pytest.mark.parametrize(("kind", "id_"), [("archives", ARCHIVE), ("folders", FOLDER)])
async def test_a_change_is_begun_seen_taken_back_and_finished(
    edge: Edge, backend: Backend, kind: str, id_: str
) -> None:
    backend.on("ChangeEmbedding", lambda asked: pb.ChangeEmbeddingResponse(change=change(asked.archive_id)))
    backend.on("GetEmbeddingChange", lambda asked: pb.GetEmbeddingChangeResponse(change=change(asked.archive_id)))
    backend.on("RollBackEmbeddingChange", _raise(errors.FailedPrecondition("x", reason="EMBEDDING_CHANGE_FINISHED")))
    backend.on("FinishEmbeddingChange", _raise(errors.Aborted("it runs", reason="EMBEDDING_CHANGE_RUNNING")))
    path = f"/v1/{kind}/{id_}/embedding-change"
    begun = await edge.http.post(path, json={"embedding": "openai/small"})
    assert (begun.status_code, begun.json()) == (
        202,
        {
            "archive_id": id_,
            "from_embedding": None,
            "to_embedding": "openai/small",
            "state": "running",
            "embedded": 3,
            "total": 9,
            "last_error": None,
            "created_at": begun.json()["created_at"],
            "updated_at": begun.json()["created_at"],
            "completed_at": None,
            "rolling_back": False,
        },
    )
    assert (await edge.http.get(path)).json() == begun.json()
    assert (await edge.http.post(path, json={"embedding": None})).status_code == 202
    assert [one.embedding for one in backend.requests("ChangeEmbedding")] == ["openai/small", ""]
    for wrong in ({}, {"embedding": "small"}):
        assert (await edge.http.post(path, json=wrong)).status_code == 422
    for verb in ("rollback", "finish"):
        refused = await edge.http.post(f"{path}/{verb}")
        assert (refused.status_code, refused.headers["x-should-retry"]) == (409, "false")


async def test_an_update_with_another_model_is_led_to_the_route(edge: Edge, backend: Backend) -> None:
    archive = passage_pb2.Archive(id=ARCHIVE, embedding="loci/hash", created_at=samples.NOON)
    folder = folder_pb2.Folder(id=FOLDER, embedding="loci/hash", created_at=samples.NOON)
    backend.on("GetArchive", lambda _: pb.GetArchiveResponse(archive=archive))
    backend.on("UpdateArchive", lambda _: pb.UpdateArchiveResponse(archive=archive))
    backend.on("GetFolder", lambda _: folder_service_pb2.GetFolderResponse(folder=folder))
    same: dict[str, Any] = {"embedding": "loci/hash", "name": "New"}
    assert (await edge.http.patch(f"/v1/archives/{ARCHIVE}", json=same)).status_code == 200
    config = (await edge.sdk.folders.retrieve(FOLDER)).embedding_config
    assert config is not None
    as_it_is: Any = config.model_dump()
    other: Any = {**as_it_is, "handle": "openai/small"}
    assert (await edge.sdk.folders.update(FOLDER, embedding_config=as_it_is)).id == FOLDER
    with pytest.raises(UnprocessableEntityError, match=rf"/v1/folders/{FOLDER}/embedding-change"):
        await edge.sdk.folders.update(FOLDER, embedding_config=other)
    for body in ({"embedding": "openai/small"}, {"embedding_config": {"handle": "openai/small"}}):
        refused = await edge.http.patch(f"/v1/archives/{ARCHIVE}", json={"name": "x", **body})
        assert (refused.status_code, f"POST /v1/archives/{ARCHIVE}/embedding-change" in refused.text) == (422, True)
    assert len(backend.requests("UpdateArchive")) == 1


def _raise(error: errors.LociError) -> Any:
    def answer(_: Any) -> Any:
        raise error

    return answer
