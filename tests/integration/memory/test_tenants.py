"""What one tenant has does not exist for another, whatever it is asked with."""

from typing import Any
from uuid import uuid4

from loci.memory.v1 import archive_service_pb2 as archive_pb
from loci.memory.v1 import block_service_pb2 as block_pb
from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as passage_pb
from services.common.errors import NotFound
from tests.integration.memory.harness import EMBEDDING, Memory, fails

# Of ids in a request alone these say nothing.
_WITH_VALUES: dict[str, dict[str, Any]] = {
    "UpdateBlock": {"block": {"value": "mine"}, "update_mask": "value"},
    "UpdateArchive": {"archive": {"name": "mine"}, "update_mask": "name"},
    "UpdatePassage": {"passage": {"text": "mine"}, "update_mask": "text"},
    "CreatePassages": {"passages": [{"text": "mine"}]},
    "SearchPassages": {"query": "tea"},
    "RestoreBlock": {"version": 1},
    "GetBlockVersion": {"version": 1},
    "DiffBlockVersions": {"from_version": 1},
    "AttachIdentity": {"identity_id": f"identity-{uuid4()}"},
    "DetachIdentity": {"identity_id": f"identity-{uuid4()}"},
}
# What is attached to an agent that is not theirs is nothing; of these every answer is empty.
_EMPTY = {"ListBlockAgents"}
_SERVICES = {"blocks": block_pb, "passages": passage_pb, "archives": archive_pb}


def requests(ids: dict[str, str]) -> list[tuple[str, str, Any]]:
    """Every method that can be asked with an id of these, with its request: (stub, method, request)."""
    found = []
    for stub, module in _SERVICES.items():
        [service] = module.DESCRIPTOR.services_by_name.values()
        for method in service.methods:
            request = getattr(module, method.input_type.name)()
            names = [name for name in ids if name in request.DESCRIPTOR.fields_by_name and name != "agent_id"]
            for name in names:
                setattr(request, name, ids[name])
            if "key" in request.DESCRIPTOR.fields_by_name:
                request.key.block_id = ids["block_id"]
            elif not names:
                continue
            if method.name.startswith(("Attach", "Detach")) and "agent_id" in request.DESCRIPTOR.fields_by_name:
                request.agent_id = ids["agent_id"]
            fill(request, _WITH_VALUES.get(method.name, {}))
            found.append((stub, method.name, request))
    return found


def fill(message: Any, values: dict[str, Any]) -> None:
    """Sets fields; a mask is its path."""
    for name, value in values.items():
        match value:
            case dict():
                fill(getattr(message, name), value)
            case list():
                for item in value:
                    fill(getattr(message, name).add(), item)
            case _ if name == "update_mask":
                message.update_mask.paths.append(value)
            case _:
                setattr(message, name, value)


async def test_ids_of_another_tenant_name_nothing(memory: Memory) -> None:
    agent = await memory.agent_with(human="tea")
    block = (await memory.read(agent))["human"]
    [passage] = await memory.store(agent, "tea and coffee")
    change = archive_pb.ChangeEmbeddingRequest(archive_id=passage.archive_id, embedding=EMBEDDING)
    await memory.archives.ChangeEmbedding(change)
    ids = {"agent_id": agent, "block_id": block.id, "archive_id": passage.archive_id, "passage_id": passage.id}
    asked = requests(ids)
    assert len(asked) > 25
    with memory.of(uuid4()):
        for stub, method, request in asked:
            call = getattr(getattr(memory, stub), method)
            if method in _EMPTY:
                assert not (await call(request)).ListFields()
                continue
            with fails(NotFound):
                await call(request)
        assert not (await memory.passages.ListPassages(passage_pb.ListPassagesRequest())).passages
        assert not (await memory.passages.ListPassages(passage_pb.ListPassagesRequest(agent_id=agent))).passages
        for mode in passage_pb2.SearchMode.values()[1:]:
            everywhere = passage_pb.SearchPassagesRequest(query="tea", mode=mode)
            assert not (await memory.passages.SearchPassages(everywhere)).hits
            assert not await memory.search(agent, "tea", mode=mode)
    assert (await memory.read(agent))["human"] == block
    assert [hit.passage for hit in await memory.search(agent, "tea")] == [passage]
