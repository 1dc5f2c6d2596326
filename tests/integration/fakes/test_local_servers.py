"""The fakes of local servers, driven by OpenAI's SDK where they speak its dialect, and by plain HTTP where not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import orjson
import pytest

from tests.fakes.lmstudio_server import LmStudioServer
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.script import Reply, ToolCall
from tests.fakes.server import FakeServer
from tests.fakes.sglang_server import SglangServer
from tests.fakes.vllm_server import VllmServer

HELLO = [{"role": "user", "content": "hello"}]


@asynccontextmanager
async def plain(fake: FakeServer) -> AsyncIterator[httpx.AsyncClient]:
    async with fake.running(), httpx.AsyncClient(base_url=fake.base_url) as client:
        yield client


@pytest.mark.parametrize(
    ("fake", "name"),
    [(LmStudioServer(), "qwen2-vl-7b-instruct"), (VllmServer(), "Qwen/Qwen3-8B"), (SglangServer(), "qwen/qwen3-8b")],
    ids=["lmstudio", "vllm", "sglang"],
)
async def test_chats_by_openais_sdk(fake: Any, name: str) -> None:
    async with fake.running(), openai.AsyncOpenAI(api_key="k", base_url=f"{fake.base_url}/v1") as client:
        assert name in [model.id async for model in client.models.list()]
        reply = await client.chat.completions.create(model=name, messages=[{"role": "user", "content": "hello"}])
        assert reply.choices[0].message.content == "Hello from the fake model."


async def test_completions_by_openais_sdk() -> None:
    fake = VllmServer()
    async with fake.running(), openai.AsyncOpenAI(api_key="k", base_url=f"{fake.base_url}/v1") as client:
        fake.reply(*[Reply(text="one two", calls=[ToolCall("f", {"a": 1})])] * 2)
        whole = await client.completions.create(model="Qwen/Qwen3-8B", prompt="p", logprobs=1)
        assert whole.choices[0].text == 'one two<tool_call>\n{"name": "f", "arguments": {"a":1}}\n</tool_call>'
        assert whole.choices[0].logprobs is not None
        assert (whole.choices[0].logprobs.token_logprobs or [])[:2] == [-0.25, -0.5]
        stream = await client.completions.create(
            model="Qwen/Qwen3-8B", prompt="p", stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == whole.choices[0].text
        assert chunks[-1].usage == whole.usage
        with pytest.raises(openai.NotFoundError):
            await client.completions.create(model="absent", prompt="p")


async def test_ollama_streams_lines_and_ends_with_the_counts() -> None:
    fake = OllamaServer()
    async with plain(fake) as client:
        fake.reply(Reply(text="one two", reasoning="hm", calls=[ToolCall("dice", {"n": 6})]))
        reply = await client.post("/api/chat", json={"model": "qwen3-vl:8b", "messages": HELLO})
        assert reply.headers["content-type"] == "application/x-ndjson"
        lines = [orjson.loads(line) for line in reply.content.splitlines()]
        assert [line["done"] for line in lines] == [False] * 4 + [True]
        assert lines[0]["message"] == {"role": "assistant", "content": "", "thinking": "hm"}
        call = {"id": "call_fake0", "function": {"index": 0, "name": "dice", "arguments": {"n": 6}}}
        assert lines[3]["message"]["tool_calls"] == [call]
        assert lines[4].keys() >= {"done_reason", "prompt_eval_count", "eval_count", "total_duration"}


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        ({"model": "absent"}, 404, "model 'absent' not found"),
        ({"model": "tinydolphin:1.1b", "tools": [{"function": {"name": "f"}}]}, 400, "does not support tools"),
        ({"model": "tinydolphin:1.1b", "think": True}, 400, "does not support thinking"),
        ({"model": "nomic-embed-text:latest"}, 400, "does not support chat"),
        ({"options": {"num_ctx": "8192"}}, 400, "must be of type integer"),
        ({"options": {"stop": "END"}}, 400, "must be of type array"),
        ({"keep_alive": "10"}, 400, "missing unit"),
        ({"format": "xml"}, 400, "invalid format"),
        ({"messages": [{"role": "user", "content": ["parts"]}]}, 400, "cannot unmarshal"),
        ({"messages": [{"role": "user", "content": "", "images": ["https://host/a.png"]}]}, 400, "illegal base64"),
        (
            {"messages": [{"role": "assistant", "content": "", "tool_calls": [{"function": {"arguments": "{}"}}]}]},
            400,
            "cannot unmarshal string",
        ),
        ({"options": {"num_ctx": 2}, "truncate": False}, 400, "exceeds the context length"),
    ],
)
async def test_what_ollama_refuses(change: dict[str, Any], status: int, text: str) -> None:
    async with plain(OllamaServer()) as client:
        reply = await client.post("/api/chat", json={"model": "qwen3-vl:8b", "messages": HELLO, **change})
        assert reply.status_code == status
        assert text in reply.json()["error"]
        # What does not fit is cut where nothing else is asked.
        cut = {"model": "qwen3-vl:8b", "messages": HELLO, "options": {"num_ctx": 2}, "stream": False}
        assert (await client.post("/api/chat", json=cut)).status_code == 200


async def test_old_ollama_shows_no_capabilities_and_takes_the_older_field() -> None:
    async with plain(OllamaServer(old=True)) as client:
        assert (await client.post("/api/show", json={"model": "llava:7b"})).status_code == 404
        assert "capabilities" not in (await client.post("/api/show", json={"name": "llava:7b"})).json()


async def test_lm_studio_answers_what_it_does_not_know_with_200() -> None:
    async with plain(LmStudioServer(api=0)) as client:
        assert "Unexpected endpoint" in (await client.get("/api/v1/models")).json()["error"]
        kinds = [item["type"] for item in (await client.get("/api/v0/models")).json()["data"]]
        assert kinds == ["vlm", "llm", "embeddings"]


@pytest.mark.parametrize("incremental", [False, True])
async def test_sglang_repeats_unless_it_is_told_not_to(incremental: bool) -> None:
    fake = SglangServer(incremental=incremental)
    async with plain(fake) as client:
        fake.reply(Reply(text="one two"))
        body = {"text": "p", "stream": True, "return_logprob": True, "return_text_in_logprobs": True}
        lines = (await client.post("/generate", json=body)).text.split("\n\n")
        events = [orjson.loads(line.removeprefix("data: ")) for line in lines if line and "[DONE]" not in line]
        assert [event["text"] for event in events] == (
            ["one ", "two", ""] if incremental else ["one ", "one two", "one two"]
        )
        assert [event["meta_info"]["completion_tokens"] for event in events] == [1, 2, 2]
        assert events[0]["meta_info"]["output_token_logprobs"] == [[-0.25, 1000, "one "]]
        assert events[-1]["meta_info"]["finish_reason"]["type"] == "stop"
        wrong = await client.post("/generate", json={"text": "p", "sampling_params": {"max_tokens": 5}})
        assert (wrong.status_code, "max_tokens" in wrong.json()["error"]["message"]) == (400, True)
