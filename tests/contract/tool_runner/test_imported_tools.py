"""The source that imports come to, run in a sandbox against stand-ins for the libraries."""

from __future__ import annotations

import json
from typing import Any

from services.tool_runner.core.job import ExitReason, Job, Result
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.tools.imports import import_tool

LANGCHAIN = """
import sys, types

class Document:
    def __init__(self, text): self.text = text
    def model_dump(self): return {"text": self.text}

class Wrapper:
    def __init__(self, top_k=1, key=""): self.top_k, self.key = top_k, key

class Lookup:
    def __init__(self, wrapper, lang="en"): self.wrapper, self.lang = wrapper, lang
    def invoke(self, given): return [given, self.lang, self.wrapper.top_k, self.wrapper.key, Document("found")]

class Slow:
    def invoke(self, given): raise NotImplementedError
    async def ainvoke(self, given): return (given,)

library = types.ModuleType("langchain_fake")
library.Wrapper, library.Lookup, library.Slow = Wrapper, Lookup, Slow
sys.modules["langchain_fake"] = library
"""

COMPOSIO = """
import io, json, urllib.error, urllib.request

class Answer(io.BytesIO):
    def __enter__(self): return self
    def __exit__(self, *of): return None

def urlopen(request):
    body = json.loads(request.data)
    if body["arguments"].get("title") == "bad":
        raise urllib.error.HTTPError(request.full_url, 422, "no", {}, io.BytesIO(b"title is bad"))
    if body["arguments"].get("title") == "fails":
        return Answer(b'{"successful": false, "error": "no such repository"}')
    seen = {"url": request.full_url, "headers": dict(request.header_items()), "body": body}
    return Answer(json.dumps({"successful": True, "data": seen}).encode())

urllib.request.urlopen = urlopen
"""


async def run(sandbox: Sandbox, stub: str, library: str, definition: dict[str, Any], **arguments: Any) -> Result:
    made = import_tool(library, definition)
    environment = {"KEY": "k-1", "COMPOSIO_API_KEY": "secret", "COMPOSIO_USER_ID": "anna"}
    job = Job(source=stub + made.source_code, function=made.name, arguments=arguments, environment=environment)
    return await sandbox.run(job)


async def test_a_langchain_tool_is_made_and_invoked(bubblewrap_sandbox: Sandbox) -> None:
    definition = {
        "module": "langchain_fake",
        "class": "Lookup",
        "arguments": {
            "lang": 'it\'s "fr"\n',
            "wrapper": {
                "module": "langchain_fake",
                "class": "Wrapper",
                "arguments": {"top_k": 3, "key": {"environment": "KEY"}},
            },
        },
        "args_schema": {"properties": {"query": {"type": "string"}}},
    }
    result = await run(bubblewrap_sandbox, LANGCHAIN, "langchain", definition, query="x")
    assert result.reason is ExitReason.OK, result
    expected = [{"query": "x"}, 'it\'s "fr"\n', 3, "k-1", {"text": "found"}]
    assert json.loads(result.result or "") == expected
    slow = {"module": "langchain_fake", "class": "Slow"}
    result = await run(bubblewrap_sandbox, LANGCHAIN, "langchain", slow, tool_input="later")
    assert json.loads(result.result or "") == ["later"]


async def test_a_composio_action_is_asked_for_over_http(bubblewrap_sandbox: Sandbox) -> None:
    definition = {"slug": "GITHUB_CREATE_AN_ISSUE", "connected_account_id": "ca_'1'"}
    result = await run(bubblewrap_sandbox, COMPOSIO, "composio", definition, title="It breaks")
    assert result.reason is ExitReason.OK, result
    seen = json.loads(result.result or "")
    assert seen["url"].endswith("/tools/execute/GITHUB_CREATE_AN_ISSUE")
    assert seen["headers"]["X-api-key"] == "secret"
    assert seen["body"] == {
        "user_id": "anna",
        "version": "latest",
        "connected_account_id": "ca_'1'",
        "arguments": {"title": "It breaks"},
    }
    for title, said in (("bad", "422: title is bad"), ("fails", "no such repository")):
        failed = await run(bubblewrap_sandbox, COMPOSIO, "composio", definition, title=title)
        assert failed.reason is ExitReason.RAISED
        assert failed.error is not None
        assert said in failed.error.message
