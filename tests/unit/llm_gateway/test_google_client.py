"""Google AI and Vertex over HTTP: what only they do."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest

from services.llm_gateway.core import errors
from services.llm_gateway.core.chat import Completed, Generation, Text, ToolCall, Usage
from services.llm_gateway.core.models import EmbeddingModel, ModelKind
from services.llm_gateway.core.tables import google
from services.llm_gateway.vendors.google.client import GoogleProvider
from services.llm_gateway.vendors.vertex.client import VertexProvider, host_of
from services.llm_gateway.vendors.vertex.credentials import Token, Tokens
from tests.fakes import script
from tests.fakes.google_server import GoogleServer, VertexServer
from tests.fakes.google_tokens import PROJECT
from tests.fakes.google_wire import encoded
from tests.fakes.script import Reply
from tests.fakes.server import JSON_HEADERS, HttpReply
from tests.unit.llm_gateway.builders import assistant, config, model, request, results, tool, user

HANDLE = "google_ai/gemini-3-flash-preview"
VERTEX = "google_vertex/gemini-2.5-flash"


@pytest.fixture
async def fake() -> AsyncIterator[GoogleServer]:
    async with GoogleServer().running() as server:
        yield server


@pytest.fixture
async def provider(fake: GoogleServer) -> AsyncIterator[GoogleProvider]:
    made = GoogleProvider(config("google_ai", fake.base_url, stall_seconds=30.0, reply_seconds=30.0))
    yield made
    await made.close()


@pytest.fixture
async def cloud() -> AsyncIterator[VertexServer]:
    async with VertexServer().running() as server:
        yield server


def vertex(cloud: VertexServer, **options: Any) -> VertexProvider:
    """A provider with the account that the fake knows."""
    options = {"api_key": cloud.tokens.account(), "region": "europe-west1", **options}
    return VertexProvider(config("google_vertex", cloud.base_url, stall_seconds=30.0, reply_seconds=30.0, **options))


async def ask(provider: GoogleProvider, handle: str = HANDLE, *, stream: bool = False, **options: Any) -> Generation:
    messages = options.pop("messages", (user("hello"),))
    asked = request(*messages, handle=handle, **options)
    *_, completed = [event async for event in provider.generate(asked, model(handle), stream=stream)]
    assert isinstance(completed, Completed)
    return completed.generation


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_longer_than_one_request(fake: GoogleServer, provider: GoogleProvider, stream: bool) -> None:
    used = script.Usage(10, 3)
    fake.reply(Reply(text="one ", finish="CONTINUATION", usage=used), Reply(text="two", usage=used))
    reply = await ask(provider, stream=stream)
    assert list(reply.message.parts) == [Text("one two")]
    assert reply.usage == Usage(20, 6)
    first, second = fake.bodies()
    assert second == {**first, "continuationToken": encoded("token-1")}


@pytest.mark.parametrize("stream", [False, True])
async def test_thoughts_and_signatures_go_back_where_they_were(
    fake: GoogleServer, provider: GoogleProvider, stream: bool
) -> None:
    calls = [script.ToolCall("roll", {"n": 6}), script.ToolCall("roll", {"n": 8})]
    fake.reply(Reply(text="Rolling.", reasoning="a die", calls=calls), Reply(text="Done."))
    first = await ask(provider, stream=stream, tools=[tool("roll", n="integer")])
    ids = [part.id for part in first.message.parts if isinstance(part, ToolCall)]
    history = (user("hello"), first.message, results(*[(id, "4") for id in ids]))
    await ask(provider, messages=history, tools=[tool("roll", n="integer")])
    parts = fake.requests[-1].body["contents"][1]["parts"]
    assert [set(part) for part in parts] == [
        {"text", "thought"},
        {"text"},
        {"functionCall", "thoughtSignature"},
        {"functionCall"},
    ]
    assert parts[2]["thoughtSignature"] == encoded("sig-of-the-fake")


async def test_the_wrong_key_is_told_though_it_is_a_bad_request(fake: GoogleServer, provider: GoogleProvider) -> None:
    fake.reply(Reply(error="authentication"))
    with pytest.raises(errors.LlmAuthentication, match="GOOGLE_AI_API_KEY") as caught:
        await ask(provider)
    assert caught.value.metadata["status"] == "400"


async def test_no_key_at_all(fake: GoogleServer) -> None:
    provider = GoogleProvider(config("google_ai", fake.base_url, api_key=""))
    with pytest.raises(errors.LlmAuthentication, match="unregistered callers"):
        await ask(provider)
    await provider.close()


async def test_the_header_goes_before_the_details_of_an_error(fake: GoogleServer, provider: GoogleProvider) -> None:
    fake.reply(
        Reply(error="rate_limit", retry_after=7), Reply(error="rate_limit", retry_after=7, headers={"retry-after": "2"})
    )
    waits = []
    for _ in range(2):
        with pytest.raises(errors.LlmRateLimit) as caught:
            await ask(provider)
        waits.append(caught.value.retry_after)
    assert waits == [7, 2]


async def test_the_list_is_read_to_its_end(fake: GoogleServer, provider: GoogleProvider) -> None:
    fake.chat_models = (*(f"gemini-4-n{number}" for number in range(1_003)), "gemini-3-pro-image")
    listed = {one.name: one for one in await provider.list_models(5.0)}
    assert len(listed) == 1_006
    first = listed["gemini-4-n0"]
    assert (first.kind, first.context_window, first.max_output_tokens) == (ModelKind.CHAT, 1_048_576, 65_536)
    assert first.capabilities == {"reasoning": True}
    assert first.display_name == "Gemini 4 N0"
    assert listed["gemini-3-pro-image"].kind is ModelKind.OTHER
    assert listed["gemini-embedding-001"].kind is ModelKind.EMBEDDING


async def test_vectors_of_a_wanted_length(fake: GoogleServer, provider: GoogleProvider) -> None:
    embedder = EmbeddingModel("google_ai", "google_ai", "gemini-embedding-2", "", 768, 100, "")
    embeddings = await provider.embed(embedder, ["a", "b"])
    assert [len(vector) for vector in embeddings.vectors] == [768, 768]
    fake.rules(script.Rule(Reply(raw_body='{"embeddings": [{}]}', content_type="application/json"), route="embeddings"))
    with pytest.raises(errors.LlmEmptyResponse, match="0 vectors for 2 texts"):
        await provider.embed(embedder, ["a", "b"])


async def test_another_version_of_the_api_and_an_address_with_one(fake: GoogleServer) -> None:
    provider = GoogleProvider(config("google_ai", f"{fake.base_url}/v1beta", api_version="v1"))
    await ask(provider)
    assert fake.requests[-1].path == "/v1/models/gemini-3-flash-preview:generateContent"
    await provider.close()


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("global", "https://aiplatform.googleapis.com"),
        ("eu", "https://aiplatform.eu.rep.googleapis.com"),
        ("europe-west1", "https://europe-west1-aiplatform.googleapis.com"),
    ],
)
def test_where_a_location_is_served(location: str, host: str) -> None:
    assert host_of(location) == host
    assert VertexProvider(config("google_vertex", region=location)).endpoint == host


def test_a_location_is_no_address() -> None:
    with pytest.raises(errors.ProviderInvalid, match="is not a location"):
        VertexProvider(config("google_vertex", region="evil.example/#"))


async def test_the_project_is_the_options_or_the_accounts(cloud: VertexServer) -> None:
    for options, project in (({}, PROJECT), ({"project": "mine"}, "mine")):
        provider = vertex(cloud, options=options)
        await ask(provider, VERTEX)
        path = cloud.requests[-1].path
        assert path.startswith(f"/v1beta1/projects/{project}/locations/europe-west1/publishers/google/models/")
        await provider.close()
    provider = vertex(cloud, api_key=cloud.tokens.account(project_id=None))
    with pytest.raises(errors.ProviderInvalid, match="GOOGLE_CLOUD_PROJECT"):
        await ask(provider, VERTEX)
    await provider.close()


async def test_one_token_serves_all_calls(cloud: VertexServer) -> None:
    provider = vertex(cloud)
    await asyncio.gather(*(ask(provider, VERTEX) for _ in range(5)))
    assert cloud.tokens.given == ["ya29.fake-1"]
    await provider.close()


async def test_a_token_is_renewed_before_it_expires_and_nobody_waits() -> None:
    given: list[str] = []
    go_on = asyncio.Event()

    async def fetch() -> Token:
        given.append(f"t{len(given)}")
        if len(given) > 1:
            await go_on.wait()
        return Token(given[-1], 299.0 if len(given) == 1 else 3_600.0)

    tokens = Tokens(fetch)
    assert await tokens.get() == "t0"
    # It still serves while the next is on its way.
    assert [await tokens.get() for _ in range(3)] == ["t0"] * 3
    await asyncio.sleep(0)
    assert given == ["t0", "t1"]
    go_on.set()
    async with asyncio.timeout(20):
        while await tokens.get() != "t1":
            await asyncio.sleep(0)
    assert given == ["t0", "t1"]
    await tokens.close()


async def test_a_token_that_cannot_be_had_is_asked_for_again(cloud: VertexServer) -> None:
    provider = vertex(cloud)
    cloud.tokens.failure = HttpReply(503, JSON_HEADERS, b"{}")
    with pytest.raises(errors.LlmServerError, match="gets no token"):
        await ask(provider, VERTEX)
    cloud.tokens.failure = None
    assert (await ask(provider, VERTEX)).message.parts
    await provider.close()


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"client_email": "someone@else"}, "the token is refused: Invalid JWT"),
        ({"private_key": "no key"}, "the service account's private key cannot be read"),
        ({"type": "external_account"}, "that JSON is not a service account's key"),
        ({"token_uri": ""}, "that JSON is not a service account's key"),
    ],
)
async def test_accounts_that_are_refused(cloud: VertexServer, changes: dict[str, Any], what: str) -> None:
    provider = vertex(cloud, api_key=cloud.tokens.account(**changes))
    with pytest.raises(errors.LlmAuthentication, match=what) as caught:
        await ask(provider, VERTEX)
    assert "PRIVATE KEY" not in caught.value.message
    await provider.close()


async def test_a_token_endpoint_that_is_not_there(cloud: VertexServer) -> None:
    provider = vertex(cloud, api_key=cloud.tokens.account(token_uri="http://127.0.0.1:9/token"))
    with pytest.raises(errors.LlmConnection, match="cannot be reached"):
        await ask(provider, VERTEX)
    await provider.close()


async def test_a_tenant_reaches_no_private_token_endpoint_and_has_no_credentials_but_its_own(
    cloud: VertexServer,
) -> None:
    tenant = uuid4()
    provider = vertex(cloud, allow_private=False, organization_id=tenant)
    with pytest.raises(errors.LlmConnection, match="cannot be reached"):
        await ask(provider, VERTEX)
    assert cloud.tokens.requests == []
    await provider.close()
    for key in ("none", "", "/etc/passwd"):
        provider = vertex(cloud, api_key=key, organization_id=tenant, options={"project": PROJECT})
        with pytest.raises(errors.LlmAuthentication, match="needs the JSON of a service account's key"):
            await ask(provider, VERTEX)
        await provider.close()


async def test_the_operators_key_is_a_file(cloud: VertexServer, tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    path.write_text(cloud.tokens.account())
    provider = vertex(cloud, api_key=str(path))
    assert (await ask(provider, VERTEX)).message.parts
    await provider.close()
    for text, what in (("[]", "is not a JSON object"), (None, "cannot be read")):
        path.unlink() if text is None else path.write_text(text)
        provider = vertex(cloud, api_key=str(path), options={"project": PROJECT})
        with pytest.raises(errors.LlmAuthentication, match=what):
            await ask(provider, VERTEX)
        await provider.close()


async def test_credentials_that_the_machine_is_given(
    cloud: VertexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "default.json"
    path.write_text(cloud.tokens.account())
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    provider = vertex(cloud, api_key="none")
    assert (await ask(provider, VERTEX)).message.parts
    await provider.close()
    path.write_text("{}")
    provider = vertex(cloud, api_key="none", options={"project": PROJECT})
    with pytest.raises(errors.LlmAuthentication, match="no application default credentials"):
        await ask(provider, VERTEX)
    await provider.close()


async def test_what_vertex_publishes_and_the_table_where_it_does_not_say(cloud: VertexServer) -> None:
    provider = vertex(cloud)
    kinds = {one.name: one.kind for one in await provider.list_models(5.0)}
    assert kinds["gemini-4-argon"] is ModelKind.CHAT
    assert kinds["text-embedding-005"] is ModelKind.EMBEDDING
    assert kinds["imagen-4.0-generate-001"] is ModelKind.OTHER
    cloud.lists = False
    listed = {one.name for one in await provider.list_models(5.0)}
    assert listed == google.MODELS.keys() | google.EMBEDDINGS.keys() | google.VERTEX_EMBEDDINGS.keys()
    await provider.close()


async def test_vertex_embeds_by_two_routes(cloud: VertexServer) -> None:
    provider = vertex(cloud)
    for name, dimensions, route in (
        ("gemini-embedding-2", 256, "batchEmbedContents"),
        ("text-embedding-005", 768, "predict"),
    ):
        embedder = EmbeddingModel("google_vertex", "google_vertex", name, "", dimensions, 100, "")
        embeddings = await provider.embed(embedder, ["a", "b", "a"])
        assert [len(vector) for vector in embeddings.vectors] == [dimensions] * 3
        assert embeddings.vectors[0] == embeddings.vectors[2] != embeddings.vectors[1]
        assert embeddings.prompt_tokens == 9
        assert cloud.requests[-1].path.endswith(f"/{name}:{route}")
    await provider.close()


async def test_names_of_models_that_are_paths(cloud: VertexServer) -> None:
    provider = vertex(cloud)
    made = replace(model(VERTEX), name="endpoints/123", base_model="gemini-2.5-flash")
    asked = request(user("x"), assistant("y"), user("z"), handle=VERTEX)
    with pytest.raises(errors.ModelNotFound):
        _ = [event async for event in provider.generate(asked, made, stream=False)]
    path = f"/v1beta1/projects/{PROJECT}/locations/europe-west1/endpoints/123:generateContent"
    assert cloud.requests[-1].path == path
    await provider.close()


async def test_whoever_replays_needs_no_credentials(cloud: VertexServer, tmp_path: Path) -> None:
    provider = vertex(cloud, options={"project": PROJECT}, record_to=str(tmp_path))
    first = await ask(provider, VERTEX)
    await provider.close()
    (recorded,) = [path.read_bytes() for path in tmp_path.glob("*")]  # noqa: ASYNC240
    assert b"ya29" not in recorded
    assert b"assertion" not in recorded
    replaying = vertex(cloud, api_key="none", options={"project": PROJECT}, replay_from=str(tmp_path))
    assert await ask(replaying, VERTEX) == first
    assert len(cloud.requests) == 1
    await replaying.close()


def test_no_secret_is_shown() -> None:
    made = config("google_vertex", api_key=orjson.dumps({"private_key": "SECRET"}).decode())
    assert "SECRET" not in repr(made)
