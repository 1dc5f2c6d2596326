"""Providers of a tenant's own, by REST and the official client: from the key to a turn, and to the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import letta_client
import pytest

from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule

KEY = "sk-second-vendor"


@pytest.fixture
def second() -> Iterator[OpenAIServer]:
    """Another endpoint that speaks OpenAI's dialect."""
    with OpenAIServer().in_thread() as server:
        yield server


@pytest.fixture
def http(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{stack.url}/v1", timeout=30) as client:
        yield client


def authorizations(server: OpenAIServer) -> set[str]:
    return {request.headers["authorization"] for request in server.requests}


def test_a_provider_from_its_key_to_a_turn_and_to_its_end(
    stack: Stack, http: httpx.Client, openai_fake: OpenAIServer, second: OpenAIServer
) -> None:
    client: Any = stack.client()
    created = http.post(
        "/providers/",
        json={"name": "mine", "provider_type": "openai", "api_key": KEY, "base_url": second.base_url},
    )
    assert created.status_code == 200, created.text
    provider = created.json()
    assert KEY not in created.text
    assert (provider["provider_category"], provider["api_key"], provider["sync_error"]) == ("byok", None, None)
    # Its models, through the official client.
    models = {model.handle: model for model in client.models.list(provider_category=["byok"])}
    assert models["mine/gpt-4o-mini"].provider_name == "mine"
    assert all(handle.startswith("mine/") for handle in models)
    handles = {model.handle for model in client.models.list()}
    assert {"mine/gpt-4o-mini", "openai/gpt-4o-mini", "loci/demo"} <= handles
    assert not any(handle.startswith("openai-proxy/") for handle in handles)
    assert "mine/text-embedding-3-small" in {model.handle for model in client.models.embeddings.list()}
    # A turn.
    second.reply(Reply(text="Hello from the second vendor."))
    agent = client.agents.create(
        model="mine/gpt-4o-mini", embedding="mine/text-embedding-3-small", include_base_tools=False
    )
    assert agent.llm_config.provider_category == "byok"
    reply = client.agents.messages.create(agent.id, input="Hello")
    assert reply.messages[-1].content == "Hello from the second vendor."
    assert authorizations(second) == {f"Bearer {KEY}"}
    # Another key.
    provider_url = f"/providers/{provider['id']}"
    assert http.patch(provider_url, json={"base_url": "http://127.0.0.1:9"}).status_code == 422
    changed = http.patch(provider_url, json={"api_key": "sk-third", "version": provider["version"]})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    second.reset()
    second.reply(Reply(text="Still there."))
    reply = client.agents.messages.create(agent.id, input="Hello again")
    assert reply.messages[-1].content == "Still there."
    assert authorizations(second) == {"Bearer sk-third"}
    # Its end: a clear error, and the same agent goes on with another model.
    assert http.delete(provider_url).status_code == 200
    assert http.get(provider_url).status_code == 404
    with pytest.raises(letta_client.APIStatusError) as caught:
        client.agents.messages.create(agent.id, input="Anybody?")
    assert "There is no model 'mine/gpt-4o-mini'" in str(caught.value.body)
    assert not any(handle.startswith("mine/") for handle in (model.handle for model in client.models.list()))
    openai_fake.reply(Reply(text="Here."))
    client.agents.update(agent.id, model="openai-proxy/gpt-4o-mini")
    assert client.agents.messages.create(agent.id, input="Anybody?").messages[-1].content == "Here."
    client.agents.delete(agent.id)


def test_what_is_wrong_says_what_to_do(stack: Stack, http: httpx.Client, second: OpenAIServer) -> None:
    good = {"name": "good", "provider_type": "openai", "api_key": KEY, "base_url": second.base_url}
    for change, advice in (
        ({"name": "a b"}, "letters, digits, dots"),
        ({"provider_type": "letta"}, "hosted service"),
        ({"provider_type": "chatgpt_oauth"}, "use openai with an API key"),
        ({"base_url": "localhost"}, "no http or https address"),
        ({"options": {"models": {"a": {"window": 1}}}}, "is none of context_window"),
        ({"api_key": 7}, "string"),
    ):
        answer = http.post("/providers", json=good | change)
        assert answer.status_code == 422, answer.text
        assert advice in answer.json()["detail"]
        assert KEY not in answer.text
    [base] = http.get("/providers", params={"name": "openai"}).json()
    assert (base["provider_category"], base["has_key"], base["created_at"]) == ("base", True, None)
    taken = http.post("/providers", json=good | {"name": "openai"})
    assert taken.status_code == 409
    read_only = http.patch(f"/providers/{base['id']}", json={"api_key": "x"})
    assert (read_only.status_code, "environment" in read_only.json()["detail"]) == (400, True)
    assert http.post(f"/providers/{base['id']}/check").status_code == 200
    assert http.post("/providers/check", json=good).json()["model_count"] > 0
    second.rules(Rule(Reply(error="authentication"), route="models"))
    wrong = http.post("/providers/check", json=good)
    assert wrong.status_code == 401
    assert wrong.json()["error"]["type"] == "llm_authentication"
    log = (stack.home / "logs" / "llm_gateway.log").read_text()
    assert KEY not in log


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"])
def test_no_provider_is_at_a_port_of_loci(stack: Stack, http: httpx.Client, host: str) -> None:
    for port in (stack.port, stack.grpc_port):
        provider = {"provider_type": "openai", "api_key": KEY, "base_url": f"http://{host}:{port}/v1"}
        answer = http.post("/providers/check", json=provider)
        assert (answer.status_code, "is a part of Loci" in answer.text) == (502, True), answer.text
