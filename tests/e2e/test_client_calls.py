"""The calls of clients that cannot be installed here, or are too large for it: over plain HTTP, as they send them.

What each client is, and the release whose calls these are, stands in docs/clients.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall
from tests.polling import wait_until

MODEL = "openai/gpt-4o-mini"
BLOCKS = [{"label": "human", "value": "Ada"}, {"label": "persona", "value": "I am kind."}]


class Caller:
    """An HTTP client without any of the SDK's headers."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def __call__(self, method: str, path: str, status: int = 200, **options: Any) -> Any:
        """Returns the answer's JSON."""
        answer = self._http.request(method, path, **options)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def agent(self, **fields: Any) -> str:
        agent_id: str = self("POST", "/v1/agents/", json={"model": MODEL, "memory_blocks": BLOCKS, **fields})["id"]
        return agent_id

    def chunks(self, path: str, **body: Any) -> list[Any]:
        """Returns the chunks of a stream of OpenAI's."""
        answer = self._http.post(path, json={"stream": True, **body})
        assert answer.status_code == 200, answer.text
        lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
        assert lines.pop() == "[DONE]"
        return list(map(json.loads, lines))

    def said(self, agent_id: str) -> list[str]:
        """Returns the types of the agent's messages."""
        return [one["message_type"] for one in self("GET", f"/v1/agents/{agent_id}/messages")]


@pytest.fixture
def call(stack: Stack) -> Iterator[Caller]:
    with httpx.Client(base_url=stack.url, timeout=30, headers={"user-agent": "axios/1.7"}) as http:
        yield Caller(http)


def test_lettactl(call: Caller) -> None:
    """Applies a fleet, describes it, changes it, removes it."""
    block = call("POST", "/v1/blocks/", json={"label": "rules", "value": "Be short.", "limit": 5_000})
    folder = call("POST", "/v1/folders/", json={"name": "lettactl-docs", "embedding": "loci/hash"})
    archive = call("POST", "/v1/archives/", json={"name": "lettactl-notes", "embedding": "loci/hash"})
    tools = call("GET", "/v1/tools/", params={"name": "archival_memory_search"})
    agent_id = call.agent(name="lettactl-a", tags=["fleet"], include_base_tools=False)
    call("PATCH", f"/v1/agents/{agent_id}/core-memory/blocks/attach/{block['id']}")
    call("PATCH", f"/v1/agents/{agent_id}/tools/attach/{tools[0]['id']}")
    call("PATCH", f"/v1/agents/{agent_id}/folders/attach/{folder['id']}")
    call("PATCH", f"/v1/agents/{agent_id}/archives/attach/{archive['id']}")
    # What it includes comes beside everything else, also in lists.
    for include in ("agent.tools", "agent.blocks", "agent.tags"):
        for one in (
            call("GET", f"/v1/agents/{agent_id}", params={"include": include}),
            *call("GET", "/v1/agents/", params={"include": include, "name": "lettactl-a", "limit": 50}),
        ):
            assert {block["label"] for block in one["blocks"]} == {"human", "persona", "rules"}
            assert "archival_memory_search" in {tool["name"] for tool in one["tools"]}
            assert (one["tags"], [source["id"] for source in one["sources"]]) == (["fleet"], [folder["id"]])
    assert [one["id"] for one in call("GET", f"/v1/agents/{agent_id}/folders")] == [folder["id"]]
    assert [one["id"] for one in call("GET", "/v1/archives/", params={"agent_id": agent_id})] == [archive["id"]]
    changed = call("PATCH", f"/v1/agents/{agent_id}", json={"system": "You serve.", "tags": ["fleet", "two"]})
    assert (changed["system"], sorted(changed["tags"])) == ("You serve.", ["fleet", "two"])
    call("DELETE", f"/v1/agents/{agent_id}")
    call("GET", f"/v1/agents/{agent_id}", 404)


def test_lettabot_gets_free_of_calls_that_nobody_answers(call: Caller, openai_fake: OpenAIServer) -> None:
    """A bot that was restarted in the middle of a turn denies what waits, or cancels it, and goes on."""
    bash = Reply(calls=(ToolCall("Bash", {"command": "ls"}),))
    openai_fake.reply(bash, Reply(text="Elsewhere."), Reply(text="As you wish."), bash, Reply(text="Here I am."))
    agent_id = call.agent(name="lettabot")
    tool = {"name": "Bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
    conversation = call("POST", "/v1/conversations/", params={"agent_id": agent_id}, json={})["id"]
    messages = f"/v1/conversations/{conversation}/messages"
    said = {"messages": [{"role": "user", "content": "List it"}], "streaming": False}
    waits = call("POST", messages, json={**said, "client_tools": [tool]})
    assert waits["stop_reason"]["stop_reason"] == "requires_approval"
    call("POST", messages, 409, json=said)
    # The rest of the agent is not held up.
    other = call("POST", "/v1/conversations/", params={"agent_id": agent_id}, json={})["id"]
    elsewhere = call("POST", f"/v1/conversations/{other}/messages", json=said)
    assert elsewhere["messages"][-1]["content"] == "Elsewhere."
    [request] = [one for one in waits["messages"] if one["message_type"] == "approval_request_message"]
    denial = {"tool_call_id": request["tool_calls"][0]["tool_call_id"], "approve": False, "reason": "Restarted"}
    approvals = [{"type": "approval", "approvals": [{"type": "approval", **denial}]}]
    freed = call("POST", messages, json={"messages": approvals, "streaming": False})
    assert freed["messages"][-1]["content"] == "As you wish."
    call("POST", messages, json={**said, "client_tools": [tool]})
    call("POST", f"/v1/conversations/{conversation}/cancel")
    assert call("POST", messages, json=said)["messages"][-1]["content"] == "Here I am."


@pytest.mark.parametrize("role", ["user", "system", "assistant"])
def test_the_node_of_n8n(call: Caller, openai_fake: OpenAIServer, role: str) -> None:
    """Sends a message in any of the roles that it offers, and edits a block by its label."""
    openai_fake.reply(Reply(text="Noted."))
    agent_id = call.agent(name=f"n8n {role}")
    answer = call(
        "POST", f"/v1/agents/{agent_id}/messages", json={"messages": [{"role": role, "content": "I am Ada."}]}
    )
    assert [one["content"] for one in answer["messages"]] == ["Noted."]
    stored = call("GET", f"/v1/agents/{agent_id}/messages")
    assert ("I am Ada.", f"{role}_message") in [(one["content"], one["message_type"]) for one in stored]
    path = f"/v1/agents/{agent_id}/core-memory/blocks/human"
    assert call("PATCH", path, json={"value": "Ada likes tea."})["value"] == "Ada likes tea."
    assert call("GET", path)["value"] == "Ada likes tea."


def test_open_webui(call: Caller, openai_fake: OpenAIServer) -> None:
    """Lists models, chats with the whole history each time, then asks for a title, tags and follow-ups."""
    agent_id = call.agent(name="webui")
    assert agent_id in [model["id"] for model in call("GET", "/openai/v1/models")["data"]]
    openai_fake.reply(Reply(text="Hello, Ada."), Reply(text="Sailing"), Reply(text="{}"), Reply(text="Yes, Ada."))
    history = [{"role": "user", "content": "I am Ada."}]
    chunks = call.chunks("/openai/v1/chat/completions", model=agent_id, messages=history)
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == "Hello, Ada."
    history += [{"role": "assistant", "content": "Hello, Ada."}]
    quoted = "<chat_history>\nUSER: I am Ada.\nASSISTANT: Hello, Ada.\n</chat_history>"
    for task, answer in (("Generate a concise, 3-5 word title", "Sailing"), ("Generate 1-3 broad tags", "{}")):
        prompt = {"role": "user", "content": f"### Task:\n{task} of it.\n### Chat History:\n{quoted}"}
        body = {"model": agent_id, "messages": [prompt], "stream": False, "max_completion_tokens": 1000}
        told = call("POST", "/openai/v1/chat/completions", json=body)
        assert told["choices"][0]["message"]["content"] == answer
    history += [{"role": "user", "content": "Do you know me?"}]
    call.chunks("/openai/v1/chat/completions", model=agent_id, messages=history)
    assert call.said(agent_id) == ["system_message", *["user_message", "assistant_message"] * 2]


def test_librechat(call: Caller, openai_fake: OpenAIServer) -> None:
    """Streams with its own fields in the body; its title is no memory, whichever of its prompts it is."""
    agent_id = call.agent(name="librechat")
    openai_fake.reply(Reply(text="Hello."), Reply(text="Greetings"))
    fields = {
        "user": "65f0",
        "temperature": 0.7,
        "top_p": 1,
        "presence_penalty": 0,
        "stream_options": {"include_usage": True},
    }
    said = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello?"}]
    *_, usage = call.chunks("/v1/chat/completions", model=agent_id, messages=said, **fields)
    assert usage["usage"]["total_tokens"] > 0
    prompt = (
        "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.\n\nUser: Hello?"
    )
    title = call(
        "POST", "/v1/chat/completions", json={"model": agent_id, "messages": [{"role": "user", "content": prompt}]}
    )
    assert title["choices"][0]["message"]["content"] == "Greetings"
    assert call.said(agent_id).count("assistant_message") == 1


def test_litellm(call: Caller, openai_fake: OpenAIServer) -> None:
    """Names the agent as a model of the provider `letta`, and hands on what it does not know."""
    agent_id = call.agent(name="litellm")
    openai_fake.reply(Reply(text="Hello. END of it"))
    body = {"model": f"letta/{agent_id}", "messages": [{"role": "user", "content": "Hi"}], "stop": ["END"], "top_k": 5}
    answer = call("POST", "/openai/v1/chat/completions", json=body)
    assert answer["choices"][0]["message"]["content"] == "Hello. "


def test_langchain_asks_for_a_form_by_a_call(call: Caller, openai_fake: OpenAIServer) -> None:
    """`with_structured_output(method="function_calling")`, twice: nobody returns the first call."""
    agent_id = call.agent(name="langchain")
    openai_fake.reply(*(Reply(calls=(ToolCall("Person", {"name": name}),)) for name in ("Ada", "Bo")))
    parameters = {"type": "object", "properties": {"name": {"type": "string"}}}
    for name in ("Ada", "Bo"):
        body = {
            "model": agent_id,
            "messages": [{"role": "user", "content": f"I am {name}."}],
            "tools": [{"type": "function", "function": {"name": "Person", "parameters": parameters, "strict": True}}],
            "tool_choice": {"type": "function", "function": {"name": "Person"}},
            "parallel_tool_calls": False,
        }
        [choice] = call("POST", "/openai/v1/chat/completions", json=body)["choices"]
        assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == {"name": name}


def test_an_approval_that_waits_is_nobody_elses_to_give_up(call: Caller, openai_fake: OpenAIServer) -> None:
    """A call of the agent's own tool waits for people, whatever an OpenAI client says meanwhile."""
    rule = {"type": "requires_approval", "tool_name": "conversation_search"}
    agent_id = call.agent(name="gated", tool_rules=[rule])
    openai_fake.reply(Reply(calls=(ToolCall("conversation_search", {"query": "Ada"}),)))
    body = {"model": agent_id, "messages": [{"role": "user", "content": "Search"}]}
    assert call("POST", "/v1/chat/completions", json=body)["choices"][0]["finish_reason"] == "tool_calls"
    refused = call("POST", "/v1/chat/completions", 409, json=body)
    assert refused["error"]["code"] == "approval_pending"


def test_ai_memory_sdk(call: Caller, openai_fake: OpenAIServer) -> None:
    """Keeps an agent per subject, found by its tag, and has it read messages in the background."""
    tags = {"tags": "subj:user_sarah", "match_all_tags": True}
    assert call("GET", "/v1/agents/", params=tags) == []
    fields = {"agent_type": "sleeptime_agent", "initial_message_sequence": []}
    body = {"name": "subconscious_agent_subject_user_sarah", "tags": ["subj:user_sarah", "ai-memory-sdk"], **fields}
    agent_id = call("POST", "/v1/agents/", json=body | {"model": MODEL})["id"]
    block = call("POST", "/v1/blocks/", json={"value": "Likes cats", "limit": 10_000, "label": "preferences"})
    call("PATCH", f"/v1/agents/{agent_id}/core-memory/blocks/attach/{block['id']}")
    call("POST", f"/v1/agents/{agent_id}/archival-memory", json={"text": "Initialized", "tags": ["ai-memory-sdk"]})
    assert [one["id"] for one in call("GET", "/v1/agents/", params=tags)] == [agent_id]
    openai_fake.reply(Reply(text="Noted."))
    said = {"messages": [{"role": "user", "content": "<messages>user: I love cats</messages>"}]}
    run = call("POST", f"/v1/agents/{agent_id}/messages/async", json=said)
    wait_until(lambda: call("GET", f"/v1/runs/{run['id']}")["status"] != "running")
    assert call("GET", f"/v1/agents/{agent_id}/core-memory/blocks")[0]["value"] == "Likes cats"
    found = call("GET", f"/v1/agents/{agent_id}/archival-memory/search", params={"query": "Initialized"})
    assert found["count"] == 1


def test_letta_evals_reads_every_message(call: Caller, openai_fake: OpenAIServer) -> None:
    """Pages forward through all that was said, in whatever conversation, until a page is empty."""
    agent_id = call.agent(name="evals")
    openai_fake.reply(Reply(text="one"), Reply(text="two"))
    said = {"messages": [{"role": "user", "content": "Hi"}], "streaming": False}
    conversation = call("POST", "/v1/conversations/", params={"agent_id": agent_id}, json={})["id"]
    call("POST", f"/v1/conversations/{conversation}/messages", json=said)
    call("POST", f"/v1/agents/{agent_id}/messages", json=said)
    seen: list[Any] = []
    page = None
    while page != []:
        after = {"after": seen[-1]["id"]} if seen else {}
        page = call("GET", f"/v1/agents/{agent_id}/messages", params={"limit": 2, "order": "asc", **after})
        seen += page
    assert [one["content"] for one in seen if one["message_type"] == "assistant_message"] == ["one", "two"]
    assert len({one["id"] for one in seen}) == len(seen)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/agents/", {"model": MODEL, "letta_only": {"a": [1]}, "memory": None}),
        ("POST", "/v1/blocks/", {"label": "x", "value": "y", "base_template_id": None, "future": True}),
        ("POST", "/v1/agents/{agent}/messages", {"input": "Hi", "unknown": [None], "metadata": {"a": {}}}),
        ("PATCH", "/v1/agents/{agent}", {"description": "d", "tools": [{"id": "tool-1"}], "vibe": "good"}),
        ("GET", "/v1/agents/?whatever=1&offset=0", None),
        ("GET", "/v1/agents/{agent}/messages?use_unicorns=true&msg_object=true", None),
        ("POST", "/v1/chat/completions", {"model": "{agent}", "messages": [{"role": "user", "content": "Hi"}], "x": 1}),
        ("POST", "/v1/responses", {"model": "{agent}", "input": "Hi", "prompt_cache_options": {}, "x": None}),
    ],
)
def test_fields_that_only_others_know_are_ignored(
    call: Caller, openai_fake: OpenAIServer, method: str, path: str, body: Any
) -> None:
    agent_id = call.agent()
    openai_fake.reply(Reply(text="Fine."))
    sent = json.loads(json.dumps(body).replace("{agent}", agent_id)) if body else None
    call(method, path.replace("{agent}", agent_id), json=sent)
