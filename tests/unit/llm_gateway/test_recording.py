"""The contents of recordings, whole files, and the explanation of a missing request."""

from __future__ import annotations

import asyncio
import logging
import zlib
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.settings import Env, SettingsError
from services.llm_gateway.core.errors import LlmReplayMissing
from services.llm_gateway.providers.environment import read_providers
from services.llm_gateway.recordings.differences import nearest
from services.llm_gateway.recordings.recorder import RecordingTransport
from services.llm_gateway.recordings.recording import (
    LEFT,
    WHOLE,
    Exchange,
    RecordedReply,
    RecordedRequest,
    exchange_line,
    kept_headers,
    public_url,
    read,
    request_of,
)
from services.llm_gateway.recordings.replayer import ReplayingTransport
from services.llm_gateway.recordings.settings import Recordings
from tests.unit.llm_gateway.builders import config

TENANT = UUID(int=7)
KEY = "sk-abcdefghijkl"


def posted(body: Any, path: str = "/v1/chat") -> RecordedRequest:
    """A request with a JSON body."""
    return RecordedRequest("POST", path, body=orjson.dumps(body))


@given(
    chunks=st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=40))),
    body=st.one_of(st.binary(max_size=40), st.dictionaries(st.text(), st.integers(-9, 9)).map(orjson.dumps)),
    end=st.sampled_from((WHOLE, LEFT, "ReadTimeout")),
)
def test_a_line_loses_nothing(chunks: list[tuple[int, bytes]], body: bytes, end: str) -> None:
    answered = RecordedReply(200, (("content-type", "x"),), 3, chunks, end, "because")
    exchange = Exchange(RecordedRequest("POST", "/v1/ü", (("a", "b"),), body), answered, "2026-11-01T00:00:00+00:00")
    line = exchange_line(exchange, [])
    assert line.count(b"\n") == 1
    [again] = read([line]).exchanges
    assert again.answered == answered
    assert again.asked.key == exchange.asked.key


def test_what_is_equal_and_what_is_not() -> None:
    asked = posted({"model": "m", "messages": [1], "user": "agent-1", "prompt_cache_key": "k"})
    assert asked.key == posted({"messages": [1], "model": "m", "metadata": {"user_id": "u"}}).key
    assert asked.key != posted({"messages": [1.5], "model": "m"}).key
    assert asked.key != posted({"messages": [1], "model": "m"}, "/v1/other").key
    url = "https://u:p@api.example.org/v1/models?key=secret&pageToken=2&API-Key=x&X-Amz-Signature=y&alt=sse"
    listed = request_of("GET", url, b"")
    assert (listed.path, listed.query) == ("/v1/models", (("alt", "sse"), ("pageToken", "2")))
    assert public_url("https://user:secret@api.example.org:8443/v1?key=x") == "https://api.example.org:8443/v1"


def test_headers_of_replies() -> None:
    given_headers = ["Content-Type", "Set-Cookie", "x-request-id", "retry-after", "openai-organization", "Date"]
    assert [name for name, _ in kept_headers((name, "v") for name in given_headers)] == [
        "content-type",
        "x-request-id",
        "retry-after",
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_a_key_that_is_quoted_is_cut_out_even_where_it_is_torn_or_compressed(packed: bool) -> None:
    data = orjson.dumps({"error": f"No key {KEY}!"})
    if packed:
        packer = zlib.compressobj(wbits=31)
        data = packer.compress(data) + packer.flush()
    headers = (("content-type", "application/json"), *((("content-encoding", "gzip"),) if packed else ()))
    chunks = [(1, data[:18]), (2, data[18:])]
    exchange = Exchange(posted({"question": f"is {KEY} mine?"}), RecordedReply(401, headers, 1, chunks))
    line = exchange_line(exchange, ["none", KEY])
    assert KEY.encode() not in line
    [again] = read([line]).exchanges
    assert again.answered.headers == (("content-type", "application/json"),)
    assert orjson.loads(again.answered.chunks[0][1]) == {"error": "No key [removed]!"}
    whole = exchange_line(exchange, ["none", ""])
    assert read([whole]).exchanges[0].answered.chunks == chunks


@pytest.mark.parametrize(
    ("recorded", "asked", "told"),
    [
        ([], posted({}), "nothing was recorded"),
        (
            [RecordedRequest("GET", "/v1/models")],
            posted({}),
            "nothing was recorded for POST /v1/chat, only for GET /v1/models",
        ),
        (
            [posted({"a": 1, "m": [{"c": "x" * 90 + "yes"}]}), posted({"a": 2, "m": []})],
            posted({"a": 1, "m": [{"c": "x" * 90 + "no"}]}),
            f"at m[0].c: '...{'x' * 20}yes' there, '...{'x' * 20}no' now",
        ),
        ([posted({"a": 1})], posted({"b": 1}), "at a: 1 there, nothing now, and 1 more differences"),
        ([posted({"m": [1, 2]})], posted({"m": [1]}), "at m: 2 items there, 1 items now"),
        ([posted({"t": True})], posted({"t": 1}), "at t: true there, 1 now"),
    ],
)
def test_how_a_request_differs(recorded: list[RecordedRequest], asked: RecordedRequest, told: str) -> None:
    assert told in nearest(asked, recorded)


def only_file(folder: Path) -> Path:
    [file] = folder.iterdir()
    return file


async def answer(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": "text/plain"}, content=b"yes")


async def sent(client: httpx2.AsyncClient, path: str, **options: Any) -> bytes:
    return (await client.post(f"http://127.0.0.1:9{path}", **options)).content


def recording(folder: Path, most_bytes: int = 1 << 20, **fields: Any) -> httpx2.AsyncClient:
    """A client that records what a handler answers."""
    made = config("openai", "http://127.0.0.1:9/v1", record_to=str(folder), **{"api_key": KEY, **fields})
    inner = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return httpx2.AsyncClient(transport=RecordingTransport(inner, made, most_bytes=most_bytes))


def replaying(folder: Path, **fields: Any) -> httpx2.AsyncClient:
    made = config("openai", "http://127.0.0.1:9/v1", replay_from=str(folder), **fields)
    return httpx2.AsyncClient(transport=ReplayingTransport(made))


async def test_a_torn_line_is_passed_over_and_nothing_is_glued_to_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with recording(tmp_path) as client:
        await sent(client, "/v1/a", json={"n": 1})
    file = only_file(tmp_path)
    assert file.name == "openai.jsonl"
    file.write_bytes(file.read_bytes() + b'{"request": {"meth')
    async with recording(tmp_path) as client:
        await sent(client, "/v1/a", json={"n": 2})
    async with replaying(tmp_path) as client:
        assert [await sent(client, "/v1/a", json={"n": n}) for n in (1, 2)] == [b"yes", b"yes"]
        with pytest.raises(LlmReplayMissing, match="at n: "):
            await sent(client, "/v1/a", json={"n": 3})
    assert "1 lines that were torn" in caplog.text


async def test_a_full_recording_ends_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with recording(tmp_path, most_bytes=1500) as client:
        for number in range(9):
            assert await sent(client, "/v1/a", json={"n": number}) == b"yes"
    file = only_file(tmp_path)
    lines = read(file.read_bytes().splitlines())
    assert file.stat().st_size <= 1500
    assert 1 < len(lines.exchanges) < 9
    assert caplog.text.count("is full") == 1


async def test_calls_go_on_where_nothing_can_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "taken").write_text("a file")
    async with recording(tmp_path / "taken") as client:
        assert await sent(client, "/v1/a", json={}) == b"yes"
    assert "could not be recorded" in caplog.text


async def test_what_fetches_credentials_is_not_recorded(tmp_path: Path) -> None:
    async with recording(tmp_path) as client:
        await sent(client, "/token", data={"assertion": "signed"})
        await sent(client, "/v1/a", json={}, headers={"authorization": "Bearer y0ung-token"})
    file = only_file(tmp_path)
    assert [exchange.asked.path for exchange in read(file.read_bytes().splitlines()).exchanges] == ["/v1/a"]
    assert b"y0ung-token" not in file.read_bytes()


async def test_in_order_and_what_differs_is_logged_without_what_it_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with recording(tmp_path) as client:
        for text in ("one", "two"):
            await sent(client, "/v1/a", json={"model": "m", "text": text})
    caplog.set_level(logging.WARNING)
    async with replaying(tmp_path, replay_in_order=True) as client:
        assert await sent(client, "/v1/a", json={"model": "m", "text": "private"}) == b"yes"
        assert await sent(client, "/v1/a", json={"model": "m", "text": "two"}) == b"yes"
        with pytest.raises(LlmReplayMissing):
            await sent(client, "/v1/a", json={"model": "m", "text": "three"})
        with pytest.raises(LlmReplayMissing):
            await sent(client, "/v1/a", json={"model": "another", "text": "private"})
    assert "differs at: text" in caplog.text
    assert "private" not in caplog.text


async def test_errors_of_http_come_again(tmp_path: Path) -> None:
    async def broken(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectTimeout("nobody answers", request=request)

    made = config("openai", "http://127.0.0.1:9/v1", record_to=str(tmp_path))
    inner = httpx2.AsyncClient(transport=httpx2.MockTransport(broken))
    async with httpx2.AsyncClient(transport=RecordingTransport(inner, made)) as client:
        with pytest.raises(httpx2.ConnectTimeout):
            await sent(client, "/v1/a", json={})
    async with replaying(tmp_path) as client:
        with pytest.raises(httpx2.ConnectTimeout, match="nobody answers"):
            await sent(client, "/v1/a", json={})


async def test_a_tenants_recording_also_answers_for_the_operators_namesake(tmp_path: Path) -> None:
    async with recording(tmp_path, organization_id=TENANT) as client:
        await sent(client, "/v1/a", json={})
    assert only_file(tmp_path).name == f"openai@{TENANT}.jsonl"
    async with replaying(tmp_path, organization_id=TENANT) as own, replaying(tmp_path) as namesake:
        found = await asyncio.gather(sent(own, "/v1/a", json={}), sent(namesake, "/v1/a", json={}))
    assert list(found) == [b"yes"] * 2
    async with replaying(tmp_path, organization_id=UUID(int=8)) as stranger:
        with pytest.raises(LlmReplayMissing):
            await sent(stranger, "/v1/a", json={})


async def test_recorded_providers_are_there_without_a_key(tmp_path: Path) -> None:
    options: dict[str, Any] = {"websocket": True, "session_token": "hidden-from-all"}
    async with recording(tmp_path, is_vendor=True, options=options) as client:
        await sent(client, "/v1/a", json={})
    environment = {"LOCI_LLM_REPLAY": str(tmp_path), "OPENAI_BASE_URL": "http://elsewhere", "DEEPSEEK_API_KEY": "k"}
    configs = {one.name: one for one in read_providers(Env(environment))}
    assert configs.keys() == {"loci", "openai", "deepseek"}
    openai = configs["openai"]
    assert (openai.base_url, openai.is_vendor, openai.api_key) == ("http://127.0.0.1:9/v1", True, "replayed")
    assert openai.options == {"websocket": True}
    applied = Recordings.read(Env(environment)).apply(openai)
    assert (applied.replay_from, applied.replay_in_order) == (str(tmp_path), False)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"LOCI_LLM_RECORD": "/a", "LOCI_LLM_REPLAY": "/b"}, "both set"),
        ({"LOCI_LLM_REPLAY": "/no/such/folder"}, "LOCI_LLM_REPLAY is '/no/such/folder'"),
        ({"LOCI_LLM_REPLAY_MATCH": "roughly"}, "LOCI_LLM_REPLAY_MATCH"),
    ],
)
def test_settings_that_make_no_sense(environment: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        Recordings.read(Env(environment))
