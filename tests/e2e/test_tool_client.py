"""Tools that call Loci with the injected client, through the proxy of their sandbox."""

import ast
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import letta_client
import pytest

from services.tool_runner.egress.certificates import Authority
from tests.e2e.conftest import PASSWORD
from tests.e2e.helpers import BLOCKS
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall

pytestmark = pytest.mark.sandbox

MODEL = "openai/gpt-4o-mini"
LOOK = '''
def look() -> dict:
    """See what Loci and the world say."""
    import json, os, urllib.error, urllib.request
    base, agent_id = os.environ["LETTA_BASE_URL"], os.environ["LETTA_AGENT_ID"]

    def ask(url: str, body: object = None) -> str:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request) as answer:
                return f"{answer.status} {answer.read().decode()}"
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.read().decode()}"

    return {
        "agent": ask(f"{base}/v1/agents/{agent_id}")[:3],
        "providers": ask(f"{base}/v1/providers"),
        "tools": ask(f"{base}/v1/tools", {"source_code": "def f(): pass"}),
        "itself": ask(f"{base}/v1/agents/{agent_id}/messages", {"input": "And?"}),
        "outside": ask("http://example.com/"),
        "key": os.environ["LETTA_API_KEY"],
    }
'''
REMEMBER = '''
def remember(fact: str) -> str:
    """Add to what is known of the human.

    Args:
        fact: what to add
    """
    import os
    agent_id = os.environ["LETTA_AGENT_ID"]
    before = client.agents.blocks.retrieve("human", agent_id=agent_id).value
    return client.agents.blocks.update("human", agent_id=agent_id, value=f"{before} {fact}").value
'''
FETCH = '''
def fetch(url: str) -> dict:
    """Fetch a page.

    Args:
        url: of it
    """
    import os, urllib.request
    request = urllib.request.Request(url, headers={"x-key": os.environ["KEY"]})
    with urllib.request.urlopen(request) as answer:
        return {"key": os.environ["KEY"], "plain": os.environ["PLAIN"], "answer": answer.read().decode()}
'''
DELEGATE = '''
def delegate(other: str) -> str:
    """Ask another agent.

    Args:
        other: its id
    """
    return client.agents.messages.create(other, input="What is the answer?").messages[-1].content
'''


class KeyServer(BaseHTTPRequestHandler):
    """Says which key it was shown, a letter at a time."""

    def do_GET(self) -> None:
        """Answers."""
        body = " ".join(self.headers["x-key"]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def https(context: ssl.SSLContext) -> Iterator[int]:
    """A KeyServer; its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), KeyServer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def returned(reply: Any) -> str:
    """Returns the tool's return."""
    found = next(one for one in reply.messages if one.message_type == "tool_return_message")
    if "which is not in this sandbox" in str(found.tool_return):
        pytest.skip("the sandbox that this machine has lacks letta-client; `make sandbox-image` makes one that has it")
    assert found.status == "success", found.tool_return
    return str(found.tool_return)


def test_a_tool_calls_loci_with_the_token_of_its_run(guarded_stack: Stack, openai_fake: OpenAIServer) -> None:
    client = guarded_stack.client(api_key=PASSWORD)
    with pytest.raises(letta_client.AuthenticationError):
        guarded_stack.client(api_key="loci-run").agents.list()
    tool = client.tools.upsert(source_code=LOOK)
    agent = client.agents.create(model=MODEL, memory_blocks=BLOCKS, tool_ids=[tool.id])
    openai_fake.reply(Reply(calls=(ToolCall("look", {}),)), Reply(text="Done."))
    told = ast.literal_eval(returned(client.agents.messages.create(agent.id, input="Look around.")))
    # Of the token the sandbox has nothing.
    assert (told["agent"], told["key"]) == ("200", "loci-run")
    assert told["providers"].startswith('403 {"detail":"a tool may not GET /v1/providers')
    assert told["tools"].startswith('403 {"detail":"a tool may not POST /v1/tools')
    assert told["itself"].startswith('409 {"detail":"this conversation is waiting for the very call')
    assert told["outside"].startswith("403 this tool may not reach example.com:80")


def test_the_client_that_a_tool_finds(guarded_stack: Stack, openai_fake: OpenAIServer) -> None:
    client = guarded_stack.client(api_key=PASSWORD)
    tool = client.tools.upsert(source_code=REMEMBER)
    agent = client.agents.create(model=MODEL, memory_blocks=BLOCKS, tool_ids=[tool.id])
    openai_fake.reply(Reply(calls=(ToolCall("remember", {"fact": "Likes the sea."}),)), Reply(text="Done."))
    returned(client.agents.messages.create(agent.id, input="I like the sea."))
    assert "Likes the sea." in client.agents.blocks.retrieve("human", agent_id=agent.id).value


def test_a_tool_asks_another_agent(guarded_stack: Stack, openai_fake: OpenAIServer) -> None:
    client = guarded_stack.client(api_key=PASSWORD)
    tool = client.tools.upsert(source_code=DELEGATE)
    other = client.agents.create(model=MODEL, memory_blocks=BLOCKS, include_base_tools=False)
    agent = client.agents.create(model=MODEL, memory_blocks=BLOCKS, tool_ids=[tool.id])
    openai_fake.reply(
        Reply(calls=(ToolCall("delegate", {"other": other.id}),)), Reply(text="42."), Reply(text="It is 42.")
    )
    reply = client.agents.messages.create(agent.id, input="Ask the other.")
    assert returned(reply) == "42."
    run = next(iter(client.runs.list(agent_id=other.id)))
    assert run.status == "completed"


def test_a_secret_that_never_enters_the_sandbox(
    open_stack: Stack, openai_fake: OpenAIServer, authority: Authority
) -> None:
    client = open_stack.client()
    with https(authority.context("localhost")) as port:
        network = {"secrets": {"KEY": {"hosts": [f"localhost:{port}"]}}}
        tool = client.tools.upsert(source_code=FETCH, extra_body={"network": network})
        secrets = {"KEY": "sk-secret-value", "PLAIN": "in-the-open"}
        agent = client.agents.create(model=MODEL, memory_blocks=BLOCKS, tool_ids=[tool.id], secrets=secrets)
        call = ToolCall("fetch", {"url": f"https://localhost:{port}/"})
        openai_fake.reply(Reply(calls=(call,)), Reply(text="Done."))
        told = ast.literal_eval(returned(client.agents.messages.create(agent.id, input="Fetch it.")))
    # The host was shown the value; the tool has a placeholder, and what it was given in the open.
    assert told["answer"].replace(" ", "") == "sk-secret-value"
    assert told["key"].startswith("loci-secret-")
