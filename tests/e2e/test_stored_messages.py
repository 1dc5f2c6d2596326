"""Messages one by one, of all agents, with another text and from elsewhere; what a model would be sent; tags, jobs."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from letta_client import NotFoundError, UnprocessableEntityError

from tests.e2e.openapi_strict import Document
from tests.e2e.stack import Stack

NOBODY = str(uuid4())


class Asking:
    """Requests whose answers are what the OpenAPI document says."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=f"{url}/v1", timeout=30)
        self.document = Document(url)

    def __call__(self, method: str, path: str, status: int = 200, *, checked: bool = True, **options: Any) -> Any:
        response = self.http.request(method, path, **options)
        assert response.status_code == status, response.text
        if checked:
            self.document.check(response)
        return response.json() if response.content else None


@pytest.fixture(scope="module")
def ask(stack: Stack) -> Iterator[Asking]:
    """Raw requests to the stack."""
    made = Asking(stack.url)
    yield made
    made.http.close()


def said(page: Any) -> list[Any]:
    return [one.content for one in page if one.message_type == "user_message"]


def test_messages_of_all_agents_and_one_of_them(stack: Stack) -> None:
    client = stack.client()
    ada, bob = (client.agents.create(model="loci/demo", embedding="loci/hash") for _ in range(2))
    for number in range(3):
        client.agents.messages.create(ada.id, input=f"ada {number}")
        client.agents.messages.create(bob.id, input=f"bob {number}")
    spoken = [f"{name} {number}" for number in range(3) for name in ("ada", "bob")]
    assert said(client.messages.list(limit=24))[-6:] == spoken
    only = client.messages.list(limit=6, include_return_message_types=["user_message"])
    assert [one.content for one in only] == spoken
    after = client.messages.list(limit=2, after=only[1].id, include_return_message_types=["user_message"])
    assert [one.content for one in after] == spoken[-2:]
    rising = client.messages.list(order="asc", after=only[0].id, limit=20)
    assert said(rising) == spoken[1:]
    before = client.messages.list(before=only[3].id, limit=1, include_return_message_types=["user_message"])
    assert [one.content for one in before] == [spoken[2]]
    conversation = client.conversations.create(agent_id=ada.id)
    list(client.conversations.messages.create(conversation.id, input="apart"))
    assert said(client.messages.list(conversation_id=conversation.id)) == ["apart"]
    everything = client.agents.messages.list(ada.id, limit=100).items
    assert said(everything) == ["ada 0", "ada 1", "ada 2", "apart"]
    assert [one.message_type for one in everything].count("system_message") == 2
    default = client.agents.messages.list(ada.id, limit=100, conversation_id="default").items
    assert said(default) == ["ada 0", "ada 1", "ada 2"]
    for junk in (f"message-{NOBODY}", "junk"):
        assert said(client.conversations.messages.list(conversation.id, after=junk).items) == ["apart"]
        with pytest.raises(NotFoundError, match="No message found"):
            client.agents.messages.list(ada.id, after=junk)
    assert client.agents.messages.list(ada.id, limit=0).items == []
    [found] = client.messages.retrieve(only[-1].id)
    assert (found.id, found.content) == (only[-1].id, "bob 2")
    prompt = client.agents.retrieve(ada.id).message_ids[0]
    [shown] = client.messages.retrieve(prompt)
    assert (shown.id, shown.message_type) == (prompt, "system_message")
    with pytest.raises(NotFoundError):
        client.messages.retrieve(f"message-{NOBODY}")
    with pytest.raises(UnprocessableEntityError):
        client.messages.retrieve("bob")
    with pytest.raises(NotFoundError):
        client.messages.list(after=f"message-{NOBODY}")


def test_another_text(stack: Stack, ask: Asking) -> None:
    client = stack.client()
    agent = client.agents.create(model="loci/demo", embedding="loci/hash")
    client.agents.messages.create(agent.id, input="I like zeppelins.")
    system, user, *_ = client.agents.retrieve(agent.id).message_ids
    path = f"/agents/{agent.id}/messages"
    changed = ask("PATCH", f"{path}/{user}", json={"message_type": "user_message", "content": "I like heliotropes."})
    assert (changed["id"], changed["content"]) == (user, "I like heliotropes.")
    assert ask("PATCH", f"{path}/{user}", json={"content": [{"type": "text", "text": "I like tea."}]})["content"]
    assert said(client.agents.messages.list(agent.id)) == ["I like tea."]
    sent = ask("POST", f"{path}/preview-raw-payload", json={"input": "What do I like?"})
    assert [one["content"] for one in sent["messages"] if one["role"] == "user"] == ["I like tea.", "What do I like?"]
    found = client.messages.search(query="tea", search_mode="fts", agent_id=agent.id)
    assert [one.message_id for one in found] == [user]
    assert client.messages.search(query="zeppelins", search_mode="fts", agent_id=agent.id) == []
    ask("PATCH", f"{path}/message-{NOBODY}", 404, json={"message_type": "user_message", "content": "x"})
    for body in (
        {},
        {"message_type": "user_message"},
        {"message_type": "tool_return_message", "content": "x"},
        {"message_type": "assistant_message", "content": "x"},
        {"message_type": "user_message", "content": ""},
        {"reasoning": "Hm."},
    ):
        ask("PATCH", f"{path}/{user}", 422, json=body)
    ask("PATCH", f"{path}/{system}", 422, json={"content": "Be kind."})
    assert said(client.agents.messages.list(agent.id)) == ["I like tea."]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"role": "assistant", "content": "Four."}, "Four."),
        ({"choices": [{"message": {"role": "assistant", "content": "Four, too."}}]}, "Four, too."),
        ({"content": [{"type": "text", "text": "Four "}, {"type": "text", "text": "again."}]}, "Four again."),
    ],
)
def test_an_exchange_from_elsewhere(stack: Stack, ask: Asking, answer: Any, text: str) -> None:
    client = stack.client()
    agent = client.agents.create(model="loci/demo")
    question = {"role": "user", "content": [{"type": "text", "text": "What is 2 + 2?"}]}
    body = {"provider": "anthropic", "request_messages": [{"role": "system", "content": "Be terse."}, question]}
    path = f"/agents/{agent.id}/messages/capture"
    stored = ask("POST", path, json=body | {"response_dict": answer}, checked=False)
    assert (stored["success"], stored["messages_created"]) == (True, 2)
    assert client.agents.retrieve(agent.id).message_ids[1:] == stored["message_ids"]
    listed = client.agents.messages.list(agent.id, order="asc", limit=10).items[1:]
    assert [one.content for one in listed] == ["What is 2 + 2?", text]
    ask("POST", path, 422, json={"request_messages": []}, checked=False)
    ask("POST", f"/agents/agent-{NOBODY}/messages/capture", 404, json=body, checked=False)


def test_what_a_model_would_be_sent(stack: Stack, ask: Asking) -> None:
    client = stack.client()
    block = {"label": "human", "value": "Ada"}
    agent = client.agents.create(model="loci/demo", embedding="loci/hash", memory_blocks=[block])
    client.agents.messages.create(agent.id, input="Hello.")
    conversation = client.conversations.create(agent_id=agent.id)
    before = len(client.messages.list(limit=1000))
    sent = ask("POST", f"/agents/{agent.id}/messages/preview-raw-payload", json={"input": "Who am I?"})
    assert sent["model"] == "demo"
    assert "Ada" in sent["messages"][0]["content"]
    path = f"/conversations/{conversation.id}/messages/preview-raw-payload"
    alone = ask("POST", path, json={"input": "Who am I?"})
    assert [one["role"] for one in alone["messages"]] == ["system", "user"]
    said_once = ask("POST", f"/agents/{agent.id}/generate", json={"prompt": "Say hello.", "system_prompt": "Be brief."})
    assert said_once["content"]
    assert (said_once["model"], said_once["usage"]["step_count"]) == ("demo", 0)
    view = ask("GET", f"/agents/{agent.id}/context")
    assert view["num_messages"] == len(client.agents.retrieve(agent.id).message_ids)
    assert "Ada" in view["core_memory"]
    sizes = sum(value for name, value in view.items() if name.startswith("num_tokens_"))
    assert view["context_window_size_current"] == sizes <= view["context_window_size_max"]
    assert [one["role"] for one in view["messages"]][:2] == ["user", "assistant"]
    assert ask("GET", f"/agents/{agent.id}/context", params={"conversation_id": conversation.id})["num_messages"] == 1
    assert len(client.messages.list(limit=1000)) == before
    assert ask("GET", f"/agents/{agent.id}/core-memory")["blocks"][0]["value"] == "Ada"
    assert "Ada" in ask("POST", f"/agents/{agent.id}/system-prompt/recompile", params={"dry_run": True})
    for path, body in (
        (f"/agents/{agent.id}/generate", {"prompt": ""}),
        (f"/agents/{agent.id}/messages/preview-raw-payload", {"messages": []}),
    ):
        ask("POST", path, 422, json=body)
    for method, path in (("GET", "context"), ("POST", "generate"), ("GET", "core-memory")):
        ask(method, f"/agents/agent-{NOBODY}/{path}", 404, json={"prompt": "x"} if method == "POST" else None)
    ask("POST", f"/agents/{agent.id}/generate", 404, json={"prompt": "x", "override_model": "nobody/at-all"})


def test_tags_and_counts(stack: Stack, ask: Asking) -> None:
    client, mark = stack.client(), f"t{uuid4().hex[:8]}"
    for name in "ca":
        client.agents.create(model="loci/demo", tags=[f"{mark}-{name}"])
    for name in "ab":
        client.blocks.create(label="human", value="", tags=[f"{mark}-{name}"])
    whole = [f"{mark}-{name}" for name in "abc"]
    assert client.tags.list(name=mark) == whole
    assert client.tags.list(query_text=mark.upper(), order="desc") == whole[::-1]
    assert client.tags.list(name=mark, limit=2) == whole[:2]
    assert client.tags.list(name=mark, limit=2, after=whole[0]) == whole[1:]
    assert client.tags.list(name=mark, limit=1, before=whole[2]) == whole[1:2]
    assert client.tags.list(name=mark, order="desc", after=whole[2], limit=1) == whole[1:2]
    ask("GET", "/tags/", 422, params={"name": "a", "query_text": "b"})
    everything = ask("GET", "/agents/count")
    assert everything == ask("GET", "/_internal_agents/count") >= 2
    assert ask("GET", "/agents/count", params={"tags": whole[:1]}) == 1
    assert ask("GET", "/agents/count", params={"tags": whole, "match_all_tags": True}) == 0


def test_jobs(stack: Stack, ask: Asking) -> None:
    client = stack.client()
    agent = client.agents.create(model="loci/demo")
    run = client.agents.messages.create_async(agent.id, input="Hello.")
    job_id = run.id.replace("run-", "job-")
    job = ask("GET", f"/jobs/{job_id}")
    assert (job["id"], job["job_type"], job["agent_id"], job["background"]) == (job_id, "run", agent.id, True)
    list(client.runs.messages.stream(run.id))
    assert ask("GET", f"/jobs/{job_id}")["status"] == "completed"
    second = client.agents.messages.create_async(agent.id, input="Hello again.")
    list(client.runs.messages.stream(second.id))
    newest = [one["id"] for one in ask("GET", "/jobs/", params={"order": "desc", "limit": 2})]
    assert newest == [second.id.replace("run-", "job-"), job_id]
    assert [one["id"] for one in ask("GET", "/jobs/", params={"after": newest[0], "limit": 1})] == [job_id]
    assert [one["id"] for one in ask("GET", "/jobs/", params={"ascending": True, "after": job_id})] == newest[:1]
    assert job_id not in {one["id"] for one in ask("GET", "/jobs/active")}
    ask("PATCH", f"/jobs/{job_id}/cancel", 409)
    assert ask("DELETE", f"/jobs/{job_id}")["id"] == job_id
    ask("GET", f"/jobs/{job_id}", 404)
    ask("GET", "/jobs/", 422, params={"after": run.id})
    folder = client.folders.create(name=f"f{uuid4().hex[:8]}", embedding="loci/hash")
    file = client.folders.files.upload(folder.id, file=("a.txt", b"Some text."))
    [of_file] = ask("GET", "/jobs/", params={"source_id": folder.id})
    assert (of_file["job_type"], of_file["metadata"]["file_id"]) == ("job", file.id)
    assert ask("GET", f"/jobs/{of_file['id']}")["metadata"]["source_id"] == folder.id
    ask("DELETE", f"/jobs/{of_file['id']}", 400)
    ask("GET", "/jobs/active", params={"source_id": folder.id})


def test_what_is_left(stack: Stack, ask: Asking) -> None:
    client = stack.client()
    agent = client.agents.create(model="loci/demo", embedding="loci/hash")
    client.agents.messages.create(agent.id, input="Hello.")
    client.agents.passages.create(agent.id, text="A passage with a vector.")
    assert ask("GET", "/ready/")["status"] == "ok"
    assert ask("GET", "/embeddings/total_storage_size", headers={"storage-unit": "B"}) > 0
    assert ask("GET", "/embeddings/total_storage_size") < 1
    step = client.steps.list(agent_id=agent.id, limit=1).items[0]
    assert ask("PATCH", f"/steps/{step.id}/transaction/tx-7")["tid"] == "tx-7"
    assert client.steps.retrieve(step.id).tid == "tx-7"
    ask("PATCH", f"/steps/{step.id}/transaction/{'t' * 201}", 422)
    ask("PATCH", f"/steps/step-{NOBODY}/transaction/tx-7", 404)
    made = ask("POST", "/_internal_blocks/", json={"label": "human", "value": "Ada"})
    assert made["id"] in {one["id"] for one in ask("GET", "/_internal_blocks/", params={"order": "desc"})}
    assert ask("GET", f"/_internal_blocks/{made['id']}/agents") == []
    ask("DELETE", f"/_internal_blocks/{made['id']}")
    client.agents.blocks.attach(client.blocks.create(label="notes", value="a").id, agent_id=agent.id)
    assert ask("PATCH", f"/_internal_agents/{agent.id}/core-memory/blocks/notes", json={"value": "b"})["value"] == "b"
    assert ask("GET", "/_internal_runs/", params={"agent_id": agent.id})
    assert ask("POST", "/_internal_search/cache-warm", json={"collection": "messages"})["warmed"] is True
    for method, path in (
        ("POST", "/messages/batches"),
        ("GET", "/messages/batches"),
        ("GET", f"/messages/batches/batch-{NOBODY}"),
        ("GET", f"/messages/batches/batch-{NOBODY}/messages"),
        ("PATCH", f"/messages/batches/batch-{NOBODY}/cancel"),
        ("POST", f"/voice-beta/{agent.id}/chat/completions"),
    ):
        assert "yet" in ask(method, path, 501)["detail"]
    # Everything is there under the other name, too.
    assert httpx.get(f"{stack.url}/latest/agents/count", timeout=30).json() == ask("GET", "/agents/count")
