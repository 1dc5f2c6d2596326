"""Agents, blocks, tools, passages, models and runs through the official SDK."""

from __future__ import annotations

from typing import Any

import httpx
import orjson

from gateway import API_VERSION, VERSION
from loci.agent.v1 import agent_pb2, agent_service_pb2
from loci.common.v1.page_pb2 import ORDER_ASCENDING, ORDER_DESCENDING
from loci.llm.v1 import model_service_pb2
from loci.memory.v1 import block_service_pb2, passage_pb2, passage_service_pb2
from loci.tool.v1 import tool_pb2, tool_service_pb2
from services.common.errors import NotFound
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.samples import AGENT_ID, BLOCK_ID, RUN_ID, TOOL_ID
from tests.integration.gateway.scripted import Backend, new_id


def _agent(_: Any) -> Any:
    return agent_service_pb2.CreateAgentResponse(agent=samples.agent())


def _block_answers(backend: Backend) -> None:
    backend.on("GetBlock", lambda _: block_service_pb2.GetBlockResponse(block=samples.block()))
    backend.on("CreateBlock", lambda _: block_service_pb2.CreateBlockResponse(block=samples.block()))
    backend.on("UpdateBlock", lambda _: block_service_pb2.UpdateBlockResponse(block=samples.block(value="Eve")))
    backend.on("DeleteBlock", lambda _: block_service_pb2.DeleteBlockResponse())
    backend.on("ListBlocks", lambda _: block_service_pb2.ListBlocksResponse(blocks=[samples.block()]))
    backend.on("AttachBlock", lambda _: block_service_pb2.AttachBlockResponse())
    backend.on("DetachBlock", lambda _: block_service_pb2.DetachBlockResponse())


async def test_health_through_the_sdk_and_every_form_of_the_path(edge: Edge) -> None:
    health = await edge.sdk.health()
    assert (health.status, health.version) == ("ok", API_VERSION)
    assert health.model_extra == {"loci_version": VERSION}
    for path in ("/v1/health", "/v1/health/", "/latest/health", "/latest/health/"):
        answer = await edge.http.get(path)
        assert (answer.status_code, answer.history) == (200, [])


async def test_creating_an_agent(edge: Edge, backend: Backend) -> None:
    backend.on("CreateAgent", _agent)
    state = await edge.sdk.agents.create(
        name="Ada's agent",
        model="loci/demo",
        embedding="loci/hash",
        memory_blocks=[{"label": "human", "value": "Ada"}],
        tools=["archival_memory_insert"],
        tags=["a"],
        metadata={"nested": {"deep": [1, None]}},
        include_base_tool_rules=False,
        initial_message_sequence=[],
        parallel_tool_calls=True,
        compaction_settings={"model": "letta/auto"},
        context_window_limit=16_000,
    )
    assert state.id == AGENT_ID
    assert state.llm_config.context_window == 32_000
    assert state.embedding_config is not None
    assert state.embedding_config.embedding_dim == 256
    assert state.memory.blocks[0].value == "Ada"
    assert state.max_files_open == 5
    [request] = backend.requests("CreateAgent")
    assert request.agent_id.startswith("agent-")
    assert request.blocks[0].id.startswith("block-")
    assert list(request.tool_names) == ["archival_memory_insert"]
    assert request.include_base_tools
    assert request.agent.metadata_json == '{"nested":{"deep":[1,null]}}'
    assert request.agent.model_settings_json == '{"parallel_tool_calls":true}'
    assert request.agent.context_window_limit == 16_000


async def test_the_agent_has_the_references_45_fields_and_one_of_ours(edge: Edge) -> None:
    state = (await edge.http.get(f"/v1/agents/{AGENT_ID}")).json()
    assert len(state) == 46
    assert state["recall_passages"] == 0
    assert (len(state["blocks"][0]), len(state["tools"][0]), len(state["embedding_config"])) == (19, 18, 10)


async def test_include_chooses_relations(edge: Edge) -> None:
    state = await edge.sdk.agents.retrieve(AGENT_ID, include=["agent.tags"])
    assert (state.blocks, state.tools, state.tags, state.memory.blocks) == ([], [], ["a"], [])
    params, sdk = {"include_relationships": "tools"}, {"x-stainless-package-version": "1.12.1"}
    older = (await edge.http.get(f"/v1/agents/{AGENT_ID}", params=params, headers=sdk)).json()
    assert (older["blocks"], len(older["tools"])) == ([], 1)
    # Who is no SDK is shown everything.
    plain = (await edge.http.get(f"/v1/agents/{AGENT_ID}", params=params)).json()
    assert (len(plain["blocks"]), len(plain["tools"]), plain["tags"]) == (1, 1, ["a"])


async def test_listing_agents_pages_by_cursor_and_leaves_relations_out_for_the_sdk(
    edge: Edge, backend: Backend
) -> None:
    ids = [new_id("agent") for _ in range(3)]

    def page(request: agent_service_pb2.ListAgentsRequest) -> agent_service_pb2.ListAgentsResponse:
        start = ids.index(request.page.after) + 1 if request.page.after else 0
        chosen = ids[start : start + request.page.page_size]
        return agent_service_pb2.ListAgentsResponse(agents=[samples.agent(id=key) for key in chosen])

    backend.on("ListAgents", page)
    assert [agent.id async for agent in edge.sdk.agents.list(limit=2, tags=["a", "b"], order="asc")] == ids
    first, *_ = backend.requests("ListAgents")
    assert (list(first.tags), first.page.order == ORDER_ASCENDING, first.page.page_size, first.omit_relations) == (
        ["a", "b"],
        True,
        2,
        True,
    )
    await edge.http.get("/v1/agents?limit=5000")
    last = backend.requests("ListAgents")[-1]
    assert (last.page.page_size, last.omit_relations, last.page.order == ORDER_ASCENDING) == (1_000, False, False)


async def test_updating_an_agent_masks_what_was_sent(edge: Edge, backend: Backend) -> None:
    backend.on("UpdateAgent", lambda _: agent_service_pb2.UpdateAgentResponse(agent=samples.agent()))
    await edge.sdk.agents.update(AGENT_ID, name="Eve", tags=[], hidden=False, description=None)
    [request] = backend.requests("UpdateAgent")
    assert sorted(request.update_mask.paths) == ["hidden", "name", "tags"]


async def test_rules_types_and_first_messages_of_an_agent(edge: Edge, backend: Backend) -> None:
    rules = '[{"type":"exit_loop","tool_name":"send_message","prompt_template":null}]'
    made = samples.agent(
        agent_type=agent_pb2.AGENT_TYPE_SLEEPTIME_AGENT,
        tool_rules_json=rules,
        compaction_settings_json='{"model":"letta/auto","mode":"all"}',
        message_buffer_autoclear=True,
        recall_passages=3,
    )
    backend.on("CreateAgent", lambda _: agent_service_pb2.CreateAgentResponse(agent=made))
    state = await edge.sdk.agents.create(
        agent_type="sleeptime_agent",
        tool_rules=[{"type": "exit_loop", "tool_name": "send_message"}],
        include_base_tool_rules=True,
        compaction_settings={"model": "letta/auto", "mode": "all"},
        message_buffer_autoclear=True,
        max_files_open=7,
        per_file_view_window_char_limit=99,
        response_format={"type": "json_object"},
        initial_message_sequence=[{"role": "assistant", "content": "Hi"}],
        extra_body={"recall_passages": 3},
    )
    [request] = backend.requests("CreateAgent")
    assert orjson.loads(request.agent.tool_rules_json) == [{"type": "exit_loop", "tool_name": "send_message"}]
    assert orjson.loads(request.agent.compaction_settings_json) == {"model": "letta/auto", "mode": "all"}
    assert request.agent.agent_type == agent_pb2.AGENT_TYPE_SLEEPTIME_AGENT
    assert (request.agent.max_files_open, request.agent.per_file_view_window_char_limit) == (7, 99)
    assert (request.agent.message_buffer_autoclear, request.agent.recall_passages) == (True, 3)
    assert request.agent.response_format_json == '{"type":"json_object"}'
    assert request.include_base_tool_rules
    assert [message.content[0].text for message in request.initial_messages] == ["Hi"]
    assert state.agent_type == "sleeptime_agent"
    assert state.tool_rules is not None
    assert [(rule.type, rule.tool_name) for rule in state.tool_rules] == [("exit_loop", "send_message")]
    assert state.compaction_settings is not None
    assert (state.compaction_settings.model, state.compaction_settings.mode) == ("letta/auto", "all")
    assert (state.message_buffer_autoclear, getattr(state, "recall_passages", None)) == (True, 3)


async def test_approval_of_a_tool_is_switched(edge: Edge, backend: Backend) -> None:
    backend.on("SetToolApproval", lambda _: agent_service_pb2.SetToolApprovalResponse(agent=samples.agent()))
    await edge.sdk.agents.tools.update_approval("roll", agent_id=AGENT_ID, body_requires_approval=True)
    path = f"/v1/agents/{AGENT_ID}/tools/approval/roll"
    assert (await edge.http.patch(path, params={"requires_approval": False})).status_code == 200
    asked = [(one.agent_id, one.tool_name, one.requires_approval) for one in backend.requests("SetToolApproval")]
    assert asked == [(AGENT_ID, "roll", True), (AGENT_ID, "roll", False)]


async def test_resetting_messages(edge: Edge, backend: Backend) -> None:
    backend.on("ResetMessages", lambda _: agent_service_pb2.ResetMessagesResponse(agent=samples.agent()))
    state = await edge.sdk.agents.messages.reset(AGENT_ID, add_default_initial_messages=True)
    assert state is not None
    assert state.id == AGENT_ID
    assert (await edge.http.patch(f"/v1/agents/{AGENT_ID}/reset-messages")).status_code == 200


async def test_an_update_without_changes_asks_for_nothing(edge: Edge, backend: Backend) -> None:
    assert (await edge.sdk.agents.update(AGENT_ID)).id == AGENT_ID
    assert backend.requests("UpdateAgent") == []


async def test_a_deprecated_setting_joins_the_stored_ones(edge: Edge, backend: Backend) -> None:
    stored = samples.agent(model_settings_json='{"temperature":0.5}')
    backend.on("GetAgent", lambda _: agent_service_pb2.GetAgentResponse(agent=stored))
    backend.on("UpdateAgent", lambda _: agent_service_pb2.UpdateAgentResponse(agent=stored))
    await edge.sdk.agents.update(AGENT_ID, max_tokens=99)
    [request] = backend.requests("UpdateAgent")
    assert request.agent.model_settings_json == '{"temperature":0.5,"max_output_tokens":99}'


async def test_block_ids_of_an_update_replace_the_attached_ones(edge: Edge, backend: Backend) -> None:
    _block_answers(backend)
    other = new_id("block")
    await edge.sdk.agents.update(AGENT_ID, block_ids=[other])
    assert [(name, request.block_id) for name, request in backend.asked if "Block" in name] == [
        ("DetachBlock", BLOCK_ID),
        ("AttachBlock", other),
    ]


async def test_deleting_an_agent_says_so(edge: Edge, backend: Backend) -> None:
    backend.on("DeleteAgent", lambda _: agent_service_pb2.DeleteAgentResponse())
    answer = await edge.http.delete(f"/v1/agents/{AGENT_ID}")
    assert (answer.status_code, answer.json()) == (200, {"message": f"Agent id={AGENT_ID} successfully deleted"})


async def test_blocks_of_an_agent(edge: Edge, backend: Backend) -> None:
    _block_answers(backend)
    assert (await edge.sdk.agents.blocks.retrieve("human", agent_id=AGENT_ID)).value == "Ada"
    assert (await edge.sdk.agents.blocks.update("human", agent_id=AGENT_ID, value="Eve")).value == "Eve"
    assert [block.label for block in (await edge.sdk.agents.blocks.list(AGENT_ID, limit=10)).items] == ["human"]
    assert (await edge.sdk.agents.blocks.attach(BLOCK_ID, agent_id=AGENT_ID)).id == AGENT_ID
    assert (await edge.sdk.agents.blocks.detach(BLOCK_ID, agent_id=AGENT_ID)).id == AGENT_ID
    [update] = backend.requests("UpdateBlock")
    assert update.key.agent_label.label == "human"
    assert list(update.update_mask.paths) == ["value"]


async def test_blocks_on_their_own(edge: Edge, backend: Backend) -> None:
    _block_answers(backend)
    created = await edge.sdk.blocks.create(label="human", value="Ada", limit=500, metadata={"a": 1})
    assert created.id == BLOCK_ID
    [draft] = [request.block for request in backend.requests("CreateBlock")]
    assert (draft.limit, draft.metadata_json, draft.HasField("description")) == (500, '{"a":1}', False)
    assert (await edge.sdk.blocks.retrieve(BLOCK_ID)).label == "human"
    assert (await edge.sdk.blocks.update(BLOCK_ID, value="Eve")).value == "Eve"
    await edge.sdk.blocks.delete(BLOCK_ID)
    listed = await edge.sdk.blocks.list(label="human", templates_only=True)
    assert [block.id for block in listed.items] == [BLOCK_ID]
    assert backend.requests("ListBlocks")[0].is_template


async def test_agents_of_a_block_without_those_that_are_gone(edge: Edge, backend: Backend) -> None:
    _block_answers(backend)
    ids = [new_id("agent") for _ in range(3)]

    def get(request: agent_service_pb2.GetAgentRequest) -> agent_service_pb2.GetAgentResponse:
        if request.agent_id == ids[1]:
            raise NotFound("gone", reason="AGENT_NOT_FOUND")
        return agent_service_pb2.GetAgentResponse(agent=samples.agent(id=request.agent_id))

    backend.on("GetAgent", get)
    backend.on("ListBlockAgents", lambda _: block_service_pb2.ListBlockAgentsResponse(agent_ids=ids))
    found = await edge.sdk.blocks.agents.list(BLOCK_ID, order="asc")
    assert [agent.id for agent in found.items] == [ids[0], ids[2]]


async def test_tools_of_an_agent_come_newest_first_by_ten(edge: Edge, backend: Backend) -> None:
    agent = samples.agent(tools=[samples.tool(number) for number in range(12)])
    backend.on("GetAgent", lambda _: agent_service_pb2.GetAgentResponse(agent=agent))
    first = await edge.sdk.agents.tools.list(AGENT_ID)
    assert [tool.name for tool in first.items] == [f"tool_{number}" for number in range(11, 1, -1)]
    second = await first.get_next_page()
    assert [tool.name for tool in second.items] == ["tool_1", "tool_0"]


async def test_attaching_and_detaching_a_tool(edge: Edge, backend: Backend) -> None:
    backend.on("AttachTool", lambda _: agent_service_pb2.AttachToolResponse(agent=samples.agent()))
    backend.on("DetachTool", lambda _: agent_service_pb2.DetachToolResponse(agent=samples.agent(tools=[])))
    assert await edge.sdk.agents.tools.attach(TOOL_ID, agent_id=AGENT_ID) is None
    assert await edge.sdk.agents.tools.detach(TOOL_ID, agent_id=AGENT_ID) is None
    for rpc in ("AttachTool", "DetachTool"):
        assert [(one.agent_id, one.tool_id) for one in backend.requests(rpc)] == [(AGENT_ID, TOOL_ID)]


async def test_tools(edge: Edge, backend: Backend) -> None:
    backend.on("CreateTool", lambda _: tool_service_pb2.CreateToolResponse(tool=samples.tool()))
    backend.on("UpsertTool", lambda _: tool_service_pb2.UpsertToolResponse(tool=samples.tool()))
    backend.on("UpdateTool", lambda _: tool_service_pb2.UpdateToolResponse(tool=samples.tool()))
    backend.on("GetTool", lambda _: tool_service_pb2.GetToolResponse(tool=samples.tool(metadata_json='{"k":1}')))
    backend.on("DeleteTool", lambda _: tool_service_pb2.DeleteToolResponse())
    backend.on("ListTools", lambda _: tool_service_pb2.ListToolsResponse(tools=[samples.tool()]))
    source = "def roll_dice(num_sides: int = 6): ..."
    await edge.sdk.tools.create(source_code=source, args_json_schema={"type": "object"})
    upserted = await edge.sdk.tools.upsert(source_code=source, pip_requirements=[{"name": "numpy"}])
    assert upserted.json_schema == {"name": "f", "parameters": {"type": "object"}}
    await edge.sdk.tools.update(TOOL_ID, metadata={"k": 1}, return_char_limit=7)
    metadata = (await edge.sdk.tools.retrieve(TOOL_ID)).metadata
    assert metadata is not None
    assert (metadata["k"], len(str(metadata["tool_hash"]))) == (1, 64)
    await edge.sdk.tools.delete(TOOL_ID)
    await edge.sdk.tools.list(tool_types=["custom,letta_core"], names=["f"], return_only_letta_tools=True)
    assert backend.requests("UpsertTool")[0].tool.pip_requirements_json == '[{"name":"numpy"}]'
    assert sorted(backend.requests("UpdateTool")[0].update_mask.paths) == ["metadata_json", "return_char_limit"]
    [asked] = backend.requests("ListTools")
    assert list(asked.tool_types) == [tool_pb2.TOOL_TYPE_LETTA_CORE]
    assert list(asked.names) == ["f"]


async def test_archival_memory(edge: Edge, backend: Backend) -> None:
    passage = passage_pb2.Passage(
        id="passage-1",
        archive_id="archive-1",
        text="Haskell",
        tags=["x"],
        created_at=samples.NOON,
        embedding="loci/hash",
    )
    backend.on("CreatePassages", lambda _: passage_service_pb2.CreatePassagesResponse(passages=[passage]))
    backend.on("ListPassages", lambda _: passage_service_pb2.ListPassagesResponse(passages=[passage]))
    hit = passage_pb2.PassageHit(passage=passage, score=1.0)
    backend.on("SearchPassages", lambda _: passage_service_pb2.SearchPassagesResponse(hits=[hit]))
    backend.on("DeletePassage", lambda _: passage_service_pb2.DeletePassageResponse())
    passages = edge.sdk.agents.passages
    [created] = await passages.create(AGENT_ID, text="Haskell", tags=["x"], created_at="2025-12-01T12:00:00+01:00")
    assert created.embedding_config is not None
    assert created.embedding_config.embedding_dim == 256
    assert [one.text for one in await passages.list(AGENT_ID, ascending=False, search="Ha")] == ["Haskell"]
    found = await passages.search(AGENT_ID, query="language", tags=["x"], tag_match_mode="all", top_k=3)
    assert found.count == 1
    assert found.results[0].timestamp == "2025-12-01T13:00:00+01:00"  # in Berlin, the agent's zone
    gone: Any = await passages.delete("passage-" + RUN_ID[4:], agent_id=AGENT_ID)
    assert gone == {"message": f"Memory id=passage-{RUN_ID[4:]} successfully deleted"}
    [asked] = backend.requests("CreatePassages")
    assert (asked.embedding, asked.passages[0].created_at.seconds) == ("loci/hash", samples.NOON.seconds - 3600)
    assert backend.requests("SearchPassages")[0].match_all_tags
    assert backend.requests("ListPassages")[0].page.order == ORDER_DESCENDING


async def test_models(edge: Edge, backend: Backend) -> None:
    [model] = await edge.sdk.models.list()
    assert (model.handle, model.max_context_window, model.provider_name) == ("loci/demo", 32_000, "loci")
    [embedding] = await edge.sdk.models.embeddings.list()
    assert (embedding.handle, embedding.embedding_dim) == ("loci/hash", 256)
    assert getattr(embedding, "search", None) == "indexed"
    longer = samples.embedding_model()
    longer.dimensions = 4_001
    backend.on("ListEmbeddingModels", lambda _: model_service_pb2.ListEmbeddingModelsResponse(models=[longer]))
    [embedding] = await edge.sdk.models.embeddings.list()
    assert getattr(embedding, "search", None) == "exact"
    assert await edge.sdk.models.list(provider_type="openai") == []


async def test_documentation_of_the_api(edge: Edge) -> None:
    document: Any = (await edge.http.get("/openapi.json")).json()
    assert "/v1/agents/{agent_id}/messages" in document["paths"]
    assert not any(path.startswith("/latest") or path.endswith("/") for path in document["paths"])
    assert (await edge.http.get("/docs")).status_code == 200


async def test_a_base_path_behind_a_proxy(start_gateway: StartGateway, backend: Backend) -> None:
    edge = await start_gateway(public_url="https://example.com/my/loci", allowed_hosts=("example.com",))
    for prefix in ("", "/my/loci"):  # a proxy takes the path away, or leaves it
        assert (await edge.http.get(f"{prefix}/v1/agents/{AGENT_ID}")).status_code == 200
        for page in ("/docs", "/redoc"):
            text = (await edge.http.get(f"{prefix}{page}")).text
            assert "/my/loci/openapi.json" in text
            assert '"/docs/assets' not in text
        assert (await edge.http.get(f"{prefix}/docs/assets/swagger-ui.css")).status_code == 200
        document = (await edge.http.get(f"{prefix}/openapi.json")).json()
        assert document["servers"] == [{"url": "/my/loci"}]


async def test_the_gateway_answers_while_the_model_gateway_is_away(edge: Edge, backend: Backend) -> None:
    await backend.stop("llm_gateway")
    answer: httpx.Response = await edge.http.get(f"/v1/agents/{AGENT_ID}")
    assert answer.status_code == 200
    assert answer.json()["llm_config"]["handle"] == "loci/demo"
