"""Compatible vendors behind their fakes: what the suite for all does not ask."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from services.llm_gateway.core.chat import Reasoning, ToolCall, ToolMode
from services.llm_gateway.core.errors import LlmBadRequest, LlmServerError, LlmStreamIncomplete
from services.llm_gateway.core.models import EmbeddingModel, ModelKind
from services.llm_gateway.models.embeddings import embed_batch
from services.llm_gateway.vendors.ollama.client import OllamaProvider
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from tests.contract.llm_gateway.conftest import WORLDS, World
from tests.fakes import script
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.openai_vendors import FLAVOURS
from tests.fakes.script import Reply
from tests.unit.llm_gateway.builders import assistant, config, results, tool, user

DICE = tool("roll_dice", num_sides="integer")


@pytest.fixture(params=sorted(FLAVOURS))
async def compatible(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Each vendor of the table of fakes."""
    spec = WORLDS[request.param]
    assert spec.fake is not None
    async with spec.fake().running() as fake:
        provider = OpenAIProvider(config(request.param, fake.base_url, is_vendor=True))
        yield World(provider, spec.model(), fake, spec)
        await provider.close()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_with_a_call_of_a_model_that_thinks(compatible: World, stream: bool) -> None:
    calling = [script.ToolCall("roll_dice", {"num_sides": 6}), script.ToolCall("roll_dice", {"num_sides": 8})]
    compatible.script(Reply(reasoning="two dice", calls=calling), Reply(text="11"))
    asked = compatible.ask("roll", tools=[DICE], tool_choice=ToolMode.REQUIRED, parallel_tool_calls=False)
    *_, first = await compatible.events(asked, stream=stream)
    reply = first.generation.message  # type: ignore[union-attr]
    called = [part for part in reply.parts if isinstance(part, ToolCall)]
    assert len(called) == 2
    assert [part.text for part in reply.parts if isinstance(part, Reasoning)] == ["two dice"]
    # The fake refuses a history without what its vendor demands.
    history = (user("roll"), reply, results(*((call.id, "4") for call in called)), assistant("8"), user("again"))
    assert (await compatible.whole(compatible.ask(*history, tools=[DICE]))).message.parts


async def test_a_history_of_another_vendors_model_is_taken(compatible: World) -> None:
    thoughts = Reasoning("Let me see.", "a-signature-of-claude")
    history = (
        user("roll"),
        assistant(thoughts, "On it.", ToolCall("toolu_01ABCdefGHIjklMNOpqrSTUv", "roll_dice", '{"num_sides":6}')),
        results(("toolu_01ABCdefGHIjklMNOpqrSTUv", "4")),
        user("and?"),
    )
    compatible.script(Reply(text="4"))
    await compatible.whole(compatible.ask(*history, tools=[replace(DICE, strict=True)]))
    assert "Let me see" not in orjson.dumps(compatible.sent.body).decode()


async def test_models_that_are_not_for_chat_are_told_apart(compatible: World) -> None:
    kinds = {listed.name: listed.kind for listed in await compatible.provider.list_models(5.0)}
    assert set(kinds) == {item["id"] for item in FLAVOURS[compatible.spec.name].models}
    assert kinds[compatible.model.name] in (ModelKind.CHAT, ModelKind.UNKNOWN)
    for name, kind in kinds.items():
        if any(word in name for word in ("whisper", "image", "ocr", "painter", "flux", "gone")):
            assert kind is ModelKind.OTHER, name
    for name in FLAVOURS[compatible.spec.name].embeddings:
        assert kinds[name] is ModelKind.EMBEDDING, name


@pytest.mark.parametrize(
    "body",
    [
        {
            "id": "r",
            "model": "m",
            "choices": [{"message": {"content": "half"}, "finish_reason": "insufficient_system_resource"}],
        },
        {"id": "r", "model": "m", "choices": [{"message": {"content": "half"}, "finish_reason": "error"}]},
    ],
)
async def test_a_reply_that_the_vendor_broke_off(compatible: World, body: dict[str, Any]) -> None:
    compatible.script(Reply(raw_body=orjson.dumps(body).decode(), content_type="application/json"))
    with pytest.raises(LlmStreamIncomplete) as caught:
        await compatible.whole(compatible.ask("hello"))
    assert caught.value.retryable


async def test_an_error_inside_a_choice(compatible: World) -> None:
    inside = {"code": 502, "message": "lost a host"}
    body = {"choices": [{"error": inside, "finish_reason": "error"}]}
    compatible.script(Reply(raw_body=orjson.dumps(body).decode(), content_type="application/json"))
    with pytest.raises(LlmServerError, match="lost a host"):
        await compatible.whole(compatible.ask("hello"))


async def test_vectors_of_another_length_are_refused_with_both() -> None:
    async with OllamaServer().running() as fake:
        provider = OllamaProvider(config("ollama", fake.base_url))
        embedder = EmbeddingModel("ollama", "ollama", "nomic-embed-text:latest", "", 1_024, 500, "e")
        with pytest.raises(LlmBadRequest, match=r"vectors of 768 numbers where ollama/nomic-embed-text.* 1024"):
            await embed_batch(provider, embedder, ["a"])
        assert len((await embed_batch(provider, replace(embedder, dimensions=0), ["a"])).vectors[0]) == 768
        await provider.close()


async def test_more_texts_than_the_vendor_takes_go_in_several_calls() -> None:
    spec = WORLDS["mistral"]
    assert spec.fake is not None
    async with spec.fake().running() as fake:
        provider = OpenAIProvider(config("mistral", fake.base_url))
        embedder = EmbeddingModel("mistral", "mistral", "mistral-embed", "", 1_024, 500, "e")
        many = await provider.embed(embedder, [f"text {number}" for number in range(130)])
        single = await provider.embed(embedder, ["text 129"])
        assert len(many.vectors) == 130
        assert list(many.vectors[129]) == list(single.vectors[0])
        assert [len(body["input"]) for body in fake.bodies("embeddings")] == [128, 2, 1]
        assert many.prompt_tokens > 130
        await provider.close()
