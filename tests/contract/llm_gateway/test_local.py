"""Servers on one's own machines, case by case: what their users met with elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import orjson
import pytest

from services.llm_gateway.core import errors
from services.llm_gateway.core.chat import Completed, Generation, Image, Reasoning, Text, ToolCall
from services.llm_gateway.core.models import EmbeddingModel, ListedModel, ModelKind
from services.llm_gateway.core.overrides import Override
from services.llm_gateway.core.ports import Provider
from services.llm_gateway.core.provider_types import base_url
from services.llm_gateway.models.service import Catalogue
from services.llm_gateway.vendors.lmstudio.client import LmStudioProvider
from services.llm_gateway.vendors.ollama.client import OllamaProvider
from services.llm_gateway.vendors.sglang.client import SglangProvider
from services.llm_gateway.vendors.vllm.client import VllmProvider
from tests.contract.llm_gateway.conftest import World
from tests.fakes import script
from tests.fakes.lmstudio_server import LmStudioServer
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.script import Reply
from tests.fakes.server import FakeServer
from tests.fakes.sglang_server import SglangServer
from tests.fakes.vllm_server import VllmServer
from tests.unit.llm_gateway.builders import config, model, request, tool, user
from tests.unit.llm_gateway.test_catalogue import catalogue

ORG = UUID(int=1)
MAKERS: dict[str, tuple[Any, Any, str]] = {
    "ollama": (OllamaProvider, OllamaServer, "ollama/qwen3-vl:8b"),
    "lmstudio_openai": (LmStudioProvider, LmStudioServer, "lmstudio_openai/qwen2-vl-7b-instruct"),
    "vllm": (VllmProvider, VllmServer, "vllm/Qwen/Qwen3-8B"),
    "sglang": (SglangProvider, SglangServer, "sglang/qwen/qwen3-8b"),
}


@asynccontextmanager
async def made(type_: str, fake: FakeServer | None = None, path: str = "", **fields: Any) -> AsyncIterator[Any]:
    """(provider, fake) of that type; `path` is behind the host in the base URL as somebody wrote it."""
    maker, server, _ = MAKERS[type_]
    async with (fake or server()).running() as running:
        host = running.base_url.removesuffix("/v1")
        provider = maker(config(type_, base_url(type_, f"{host}{path}"), **fields))
        try:
            yield provider, running
        finally:
            await provider.close()


async def reply_of(
    provider: Provider, handle: str, *, stream: bool = False, window: int = 4_096, **options: Any
) -> Generation:
    asked = request(*options.pop("messages", [user("hello")]), handle=handle, **options)
    *_, completed = [event async for event in provider.generate(asked, model(handle, window=window), stream=stream)]
    assert isinstance(completed, Completed)
    return completed.generation


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
@pytest.mark.parametrize("type_", MAKERS)
async def test_base_urls_with_and_without_v1_and_slash(type_: str, path: str) -> None:
    async with made(type_, path=path) as (provider, fake):
        handle = MAKERS[type_][2]
        assert handle.partition("/")[2] in {listed.name for listed in await provider.list_models(5.0)}
        assert list((await reply_of(provider, handle)).message.parts) == [Text("Hello from the fake model.")]
        assert fake.requests[-1].path == ("/api/chat" if type_ == "ollama" else "/v1/chat/completions")


@pytest.mark.parametrize("path", ["/v1", "/v1/"])
async def test_sglangs_own_route_and_vllms_count_are_beside_v1(path: str) -> None:
    async with made("sglang", path=path, options={"chat_template": "chatml"}) as (provider, fake):
        assert list((await reply_of(provider, MAKERS["sglang"][2], token_ids=True)).token_ids)
        assert fake.requests[-1].path == "/generate"
    async with made("vllm", path=path) as (provider, fake):
        asked = request(user("hello"), handle=MAKERS["vllm"][2], tools=[tool("dice")])
        assert (await provider.count_tokens(asked, model(MAKERS["vllm"][2]))) > 10
        assert (fake.requests[-1].path, fake.requests[-1].body.keys()) == ("/tokenize", {"model", "messages", "tools"})


async def test_ollama_lists_kinds_windows_and_what_models_can_and_asks_once_for_each() -> None:
    async with made("ollama") as (provider, fake):
        listed = {one.name: one for one in await provider.list_models(5.0)}
        assert listed["llama3.2:latest"].context_window == 8_192
        assert listed["qwen3-vl:8b"].capabilities["reasoning"] is True
        embedder = listed["nomic-embed-text:latest"]
        assert (embedder.kind, embedder.dimensions) == (ModelKind.EMBEDDING, 768)
        shown = len(fake.bodies("/api/show"))
        await provider.list_models(5.0)
        assert len(fake.bodies("/api/show")) == shown == len(fake.models)


async def test_ollama_without_capabilities_says_what_it_knows_and_no_more() -> None:
    async with made("ollama", OllamaServer(old=True)) as (provider, _):
        listed = {one.name: one for one in await provider.list_models(5.0)}
        assert dict(listed["llama3.2:latest"].capabilities) == {"tools": True}
        assert dict(listed["tinydolphin:1.1b"].capabilities) == {"tools": False}
        assert dict(listed["llava:7b"].capabilities) == {"tools": False, "vision": True}
        assert dict(listed["qwen3-vl:8b"].capabilities) == {"tools": True, "vision": True}
        assert listed["nomic-embed-text:latest"].kind is ModelKind.EMBEDDING
        assert listed["llama3.2:latest"].context_window == 8_192


async def test_ollama_a_model_that_was_not_pulled() -> None:
    for old in (False, True):
        async with made("ollama", OllamaServer(old=old)) as (provider, _):
            with pytest.raises(errors.ModelNotFound, match=r"Get it with: ollama pull mistral:7b"):
                await reply_of(provider, "ollama/mistral:7b")
    # Another server, or another route: nothing to pull.
    async with made("ollama", VllmServer()) as (provider, _):
        with pytest.raises(errors.ModelNotFound) as caught:
            await reply_of(provider, "ollama/mistral:7b")
        assert "ollama pull" not in caught.value.message


async def test_ollama_is_loaded_with_the_window_that_is_counted_with_and_cuts_nothing() -> None:
    handle = "ollama/llama3.2:latest"
    async with made("ollama", options={"keep_alive": "-1"}) as (provider, fake):
        await reply_of(provider, handle, window=16_384)
        assert fake.requests[-1].body["options"] == {"num_ctx": 16_384}
        assert fake.requests[-1].body["keep_alive"] == -1
        with pytest.raises(errors.LlmContextOverflow) as caught:
            await reply_of(provider, handle, window=100, messages=[user("x" * 1_000)])
        assert caught.value.metadata["limit"] == "100"
        name = "nomic-embed-text:latest"
        embedder = EmbeddingModel("ollama", "ollama", name, "", 768, 10, name)
        with pytest.raises(errors.LlmContextOverflow):
            await provider.embed(embedder, ["x" * 10_000])


async def test_ollama_refuses_tools_images_and_a_wrong_key_with_advice() -> None:
    async with made("ollama", OllamaServer(key="sk-right")) as (provider, _):
        with pytest.raises(errors.LlmAuthentication, match="OLLAMA_API_KEY"):
            await provider.list_models(5.0)
    async with made("ollama", OllamaServer(key="sk-test")) as (provider, _):
        with pytest.raises(errors.LlmToolsUnsupported, match="does not support tools"):
            await reply_of(provider, "ollama/tinydolphin:1.1b", tools=[tool("dice")])
        picture = Image("iVBORw==", media_type="image/png")
        with pytest.raises(errors.LlmImagesUnsupported):
            await reply_of(provider, "ollama/tinydolphin:1.1b", messages=[user("look", picture)])


async def test_ollama_without_memory_for_the_window_says_how_to_lower_it() -> None:
    async with made("ollama") as (provider, fake):
        fake.reply(
            Reply(error="server", message="model requires more system memory (9.1 GiB) than is available (4 GiB)")
        )
        with pytest.raises(errors.LlmServerError, match="LOCI_MODEL_WINDOWS") as caught:
            await reply_of(provider, "ollama/llama3.2:latest")
        assert not caught.value.retryable


async def test_a_key_that_is_not_set_is_not_sent() -> None:
    for type_, key in (("ollama", "none"), ("ollama", "sk-mine")):
        async with made(type_, api_key=key) as (provider, fake):
            await reply_of(provider, MAKERS[type_][2])
            sent = fake.requests[-1].headers.get("authorization")
            assert sent == (None if key == "none" else "Bearer sk-mine")


@pytest.mark.parametrize(("api", "last"), [(1, "/api/v1/models"), (0, "/api/v0/models"), (None, "/v1/models")])
async def test_lm_studios_lists_by_version(api: int | None, last: str) -> None:
    async with made("lmstudio_openai", LmStudioServer(api=api), path="/v1") as (provider, fake):
        listed = {one.name: one for one in await provider.list_models(5.0)}
        assert fake.requests[-1].path == last
        window = listed["meta-llama-3.1-8b-instruct"].context_window
        assert window == (None if api is None else 8_192)
        assert listed["text-embedding-nomic-embed-text-v1.5"].kind is ModelKind.EMBEDDING


@pytest.mark.parametrize("stream", [False, True])
async def test_lm_studios_silence_about_a_prompt_that_does_not_fit(stream: bool) -> None:
    handle = MAKERS["lmstudio_openai"][2]
    async with made("lmstudio_openai") as (provider, fake):
        fake.reply(Reply(text="", usage=script.Usage(36_000, 0)), Reply(text="", usage=script.Usage(30, 0)))
        with pytest.raises(errors.LlmContextOverflow) as caught:
            await reply_of(provider, handle, window=32_768, stream=stream)
        assert (caught.value.metadata["limit"], caught.value.metadata["requested"]) == ("32768", "36000")
        assert list((await reply_of(provider, handle, window=32_768, stream=stream)).message.parts) == []


async def test_vllm_without_max_model_len_tells_how_to_set_the_window() -> None:
    async with made("vllm", VllmServer(window=None)) as (provider, _):
        with pytest.raises(errors.ModelWindowUnknown, match="LOCI_MODEL_WINDOWS"):
            await offered(provider).chat_model(ORG, "vllm/Qwen/Qwen3-8B")
        overridden = offered(provider, **{"Qwen/Qwen3-8B": Override(context_window=32_768)})
        assert (await overridden.chat_model(ORG, "vllm/Qwen/Qwen3-8B")).context_window == 32_768
    async with made("vllm") as (provider, _):
        for name in ("Qwen/Qwen3-8B", "my-adapter"):
            assert (await offered(provider).chat_model(ORG, f"vllm/{name}")).context_window == 40_960


def offered(provider: Any, **overrides: Any) -> Catalogue:
    # The first connection of a process takes long.
    return catalogue(provider, is_vendor=False, name="vllm", seconds=5.0, **overrides)


@pytest.mark.parametrize("stream", [False, True])
async def test_vllm_with_a_prompt_formatter(stream: bool) -> None:
    handle = MAKERS["vllm"][2]
    template = "{% for m in messages %}<s{{ m.role[0] }}>{{ m.content }}{% endfor %}<sa>"
    async with made("vllm", options={"prompt_formatter": template}) as (provider, fake):
        fake.reply(Reply(text="So:", reasoning="hm", calls=[script.ToolCall("dice", {"n": 6})]))
        reply = await reply_of(provider, handle, tools=[tool("dice", n="integer")], token_ids=True, stream=stream)
        sent = fake.requests[-1]
        assert (sent.path, sent.body["max_tokens"], sent.body["add_special_tokens"]) == ("/v1/completions", None, True)
        assert sent.body["prompt"].startswith("<ss>These are the tools")
        assert sent.body["prompt"].endswith("<su>hello<sa>")
        thought, said, call = reply.message.parts
        assert (thought, said) == (Reasoning("hm"), Text("So:"))
        assert isinstance(call, ToolCall)
        assert (call.name, call.arguments_json) == ("dice", '{"n":6}')
        rows = orjson.loads(reply.token_logprobs_json)
        assert [row[1] for row in rows] == list(reply.token_ids) == [1000 + number for number in range(len(rows))]
        assert "".join(row[2] for row in rows).startswith("<think>\nhm\n</think>")


@pytest.mark.parametrize("stream", [False, True])
async def test_vllm_with_a_prompt_formatter_is_made_to_call(stream: bool) -> None:
    handle = MAKERS["vllm"][2]
    async with made("vllm", options={"prompt_formatter": "llama3"}) as (provider, fake):
        fake.reply(Reply(calls=[script.ToolCall("dice", {"n": 6})]))
        tools = [tool("dice", n="integer"), tool("coin")]
        reply = await reply_of(provider, handle, tools=tools, tool_choice="dice", stream=stream)
        assert fake.requests[-1].body["prompt"].endswith('<tool_call>\n{"name": "dice", "arguments": ')
        assert fake.requests[-1].body["prompt"].startswith("<|begin_of_text|><|start_header_id|>")
        assert fake.requests[-1].body["add_special_tokens"] is False
        [call] = reply.message.parts
        assert isinstance(call, ToolCall)
        assert (call.name, call.arguments_json) == ("dice", '{"n":6}')


async def test_a_prompt_formatter_takes_no_images_and_a_tenant_names_no_file() -> None:
    handle = MAKERS["vllm"][2]
    async with made("vllm", options={"prompt_formatter": "chatml"}) as (provider, _):
        with pytest.raises(errors.LlmImagesUnsupported):
            await reply_of(provider, handle, messages=[user(Image("iVBORw==", media_type="image/png"))])
    async with made("vllm", organization_id=ORG, options={"prompt_formatter": __file__}) as (provider, _):
        with pytest.raises(errors.ProviderInvalid, match="prompt_formatter"):
            await reply_of(provider, handle)


@pytest.mark.parametrize("stream", [False, True])
async def test_sglangs_token_ids_and_probabilities(stream: bool) -> None:
    handle = MAKERS["sglang"][2]
    for incremental in (False, True):
        server = SglangServer(info={"chat_template": "chatml"}, incremental=incremental)
        async with made("sglang", server) as (provider, fake):
            fake.reply(Reply(text="one two three"))
            reply = await reply_of(provider, handle, token_ids=True, logprobs=True, top_logprobs=2, stream=stream)
            assert fake.requests[-1].path == "/generate"
            assert list(reply.token_ids) == [1000, 1001, 1002]
            rows = [[-0.25, 1000, "one "], [-0.5, 1001, "two "], [-0.75, 1002, "three"]]
            assert orjson.loads(reply.token_logprobs_json) == rows
            content = orjson.loads(reply.logprobs_json)["content"]
            assert [one["logprob"] for one in content[0]["top_logprobs"]] == [-0.25, -9.5]
            # Log probabilities alone are the other dialect's.
            await reply_of(provider, handle, logprobs=True, stream=stream)
            assert fake.requests[-1].path == "/v1/chat/completions"


@pytest.mark.parametrize("info", [None, {}, {"chat_template": "/models/template.jinja"}])
async def test_sglang_without_a_template_tells_how_to_set_it(info: Any) -> None:
    async with made("sglang", SglangServer(info=info)) as (provider, _):
        with pytest.raises(errors.LlmBadRequest, match="Set SGLANG_CHAT_TEMPLATE to one of chatml"):
            await reply_of(provider, MAKERS["sglang"][2], token_ids=True)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("where", ["server", "option", "settings"])
async def test_sglangs_parsers_of_calls_and_thoughts(where: str, stream: bool) -> None:
    parsers = {"tool_call_parser": "qwen25", "reasoning_parser": "qwen3"}
    server = SglangServer(info=parsers if where == "server" else None, old=True)
    options = {"chat_template": "chatml", **(parsers if where == "option" else {})}
    async with made("sglang", server, options=options) as (provider, fake):
        fake.reply(Reply(text="So:", reasoning="hm", calls=[script.ToolCall("dice", {"n": 6})]))
        settings = parsers if where == "settings" else {}
        tools = [tool("dice", n="integer")]
        handle = MAKERS["sglang"][2]
        reply = await reply_of(provider, handle, token_ids=True, tools=tools, settings=settings, stream=stream)
        paths = [one.path for one in fake.requests if one.method == "POST"]
        assert paths == ["/generate", "/separate_reasoning", "/parse_function_call"]
        thought, said, call = reply.message.parts
        assert (thought, said) == (Reasoning("hm"), Text("So:"))
        assert isinstance(call, ToolCall)
        assert (call.name, call.arguments_json) == ("dice", '{"n":6}')


async def test_sglang_a_request_that_was_given_up() -> None:
    async with made("sglang", options={"chat_template": "chatml"}) as (provider, fake):
        reason = {"type": "abort", "message": "The request queue is full.", "status_code": 503}
        raw = orjson.dumps({"text": "", "output_ids": [], "meta_info": {"id": "r", "finish_reason": reason}}).decode()
        fake.reply(Reply(raw_body=raw, content_type="application/json"))
        with pytest.raises(errors.LlmServerError, match="The request queue is full"):
            await reply_of(provider, MAKERS["sglang"][2], token_ids=True)


@pytest.mark.parametrize("old", [False, True])
async def test_sglang_tells_what_its_model_takes(old: bool) -> None:
    async with made("sglang", SglangServer(old=old)) as (provider, _):
        [listed] = await provider.list_models(5.0)
        assert listed == ListedModel("qwen/qwen3-8b", 40_960, kind=ModelKind.CHAT, capabilities={"vision": False})


@pytest.mark.parametrize("world", ["ollama", "lmstudio", "vllm", "sglang"], indirect=True)
async def test_images_by_value_are_sent(world: World) -> None:
    world.script(Reply(text="A cat."))
    picture = Image("iVBORw==", media_type="image/png")
    await world.whole(world.ask(user("look", picture)))
    assert "iVBORw==" in orjson.dumps(world.sent.body["messages"]).decode()
