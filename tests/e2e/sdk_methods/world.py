"""The world of the cases: a client that records its requests, and objects for the cases that need one."""

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any

import httpx
import pytest
from letta_client import APIStatusError, Letta

from tests.e2e.device import Device, connected
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule

MODEL = "loci/demo"
EMBEDDING = "loci/hash"
UNKNOWN = "00000000-0000-4000-8000-0000000000aa"
DOUBLE = '''
def double(number: int) -> int:
    """Double a number.

    Args:
        number (int): What to double.
    """
    return 2 * number
'''


def source(name: str) -> str:
    """A tool of this name that takes nothing and returns its name."""
    return f'def {name}() -> str:\n    """Say the name."""\n    return "{name}"\n'


class World:
    """One stack for all cases. What a case changes or deletes it makes for itself."""

    def __init__(self, stack: Stack, openai: OpenAIServer, mcp_url: str, key: str = "") -> None:
        """`key`: of a tenant; without one, the operator's."""
        self.url = stack.url
        self._key = key
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self.openai = openai
        self.mcp_url = mcp_url
        # (verb, path, status) of every request.
        self.requests: list[tuple[str, str, int]] = []
        self.answered: Callable[[httpx.Response], None] | None = None
        http = httpx.Client(event_hooks={"response": [self._note]}, headers=self._headers, timeout=30)
        # Any: its unions say less than its objects do.
        self.client: Any = Letta(base_url=stack.url, max_retries=0, http_client=http)
        # In each name: another world may be of the same stack.
        self.mark, self._number = secrets.token_hex(3), 0
        self._open = ExitStack()

    def close(self) -> None:
        """Closes the client, and the connections of devices."""
        self._open.close()
        self.client.close()

    def _note(self, response: httpx.Response) -> None:
        self.requests.append((response.request.method, response.request.url.path, response.status_code))
        if self.answered:
            self.answered(response)

    def name(self, stem: str) -> str:
        """A name that nothing else has."""
        self._number += 1
        return f"{stem}_{self.mark}_{self._number}"

    def new_agent(self, **options: Any) -> Any:
        """An agent of the case's own."""
        blocks = [{"label": "human", "value": ""}, {"label": "persona", "value": "I help."}]
        given: dict[str, Any] = {"model": MODEL, "embedding": EMBEDDING, "memory_blocks": blocks}
        return self.client.agents.create(**given | options)

    @contextmanager
    def silent_model(self) -> Iterator[str]:
        """The handle of a model that never says anything."""
        self.openai.rules(Rule(Reply(hang=True)))
        try:
            yield "openai/gpt-4o-mini"
        finally:
            self.openai.reset()

    @cached_property
    def agent(self) -> Any:
        """An agent that has said something, to be read only."""
        agent = self.new_agent(name="Reader", tags=["readers"])
        self.client.agents.messages.create(agent.id, input="My name is Ada.")
        return agent

    @cached_property
    def run(self) -> Any:
        """The first run of `agent`."""
        return next(iter(self.client.runs.list(agent_id=self.agent.id, order="asc")))

    @cached_property
    def step(self) -> Any:
        """A step of `run`."""
        return next(iter(self.client.runs.steps.list(self.run.id)))

    def new_conversation(self, **options: Any) -> Any:
        """A conversation of `agent`."""
        return self.client.conversations.create(agent_id=self.agent.id, **options)

    def new_block(self, **options: Any) -> Any:
        """A block of the case's own."""
        given: dict[str, Any] = {"label": self.name("label"), "value": "v"}
        return self.client.blocks.create(**given | options)

    def new_tool(self) -> Any:
        """A tool of the case's own."""
        return self.client.tools.create(source_code=source(self.name("tool")))

    @cached_property
    def double(self) -> Any:
        """The tool `double`."""
        return self.client.tools.upsert(source_code=DOUBLE)

    def new_archive(self) -> Any:
        """An archive of the case's own."""
        return self.client.archives.create(name=self.name("archive"), embedding=EMBEDDING)

    def new_folder(self) -> Any:
        """A folder of the case's own."""
        return self.client.folders.create(name=self.name("folder"), embedding=EMBEDDING)

    def new_file(self, folder_id: str) -> Any:
        """A file in a folder."""
        name = f"{self.name('file')}.txt"
        return self.client.folders.files.upload(folder_id, file=(name, b"One line.\n", "text/plain"))

    def new_server(self, name: str = "") -> Any:
        """A registration of the MCP server."""
        config = {"mcp_server_type": "streamable_http", "server_url": self.mcp_url}
        return self.client.mcp_servers.create(server_name=name or self.name("server"), config=config)

    def new_device(self) -> Device:
        """A device that is connected."""
        return self._open.enter_context(
            connected(self.url, self.name("device"), key=self._key, connectionName="Laptop")
        )

    def new_template(self) -> Any:
        """A template made of an agent."""
        return self.client.templates.create(type="agent", agent_id=self.agent.id, name=self.name("template"))

    def post(self, path: str, body: Any, verb: str = "POST") -> Any:
        """Posts to a route that the client does not call; returns the answer."""
        return self._answer(verb, path, json=body)

    def get(self, path: str) -> Any:
        """Gets what the client has no method for; returns the answer."""
        return self._answer("GET", path)

    def upload(self, path: str, text: str) -> Any:
        """Posts a file; returns the answer."""
        return self._answer("POST", path, files={"file": ("file.txt", text.encode(), "text/plain")})

    def _answer(self, verb: str, path: str, **options: Any) -> Any:
        answer = httpx.request(verb, f"{self.url}{path}", headers=self._headers, timeout=30, **options)
        assert answer.status_code < 300, answer.text
        return answer.json()


def refused(status: int, call: Callable[[], Any], says: str = "") -> APIStatusError:
    """Makes a call that must be refused with `status`, with `says` in the body."""
    with pytest.raises(APIStatusError) as raised:
        call()
    assert (raised.value.status_code, says) == (status, says if says in str(raised.value.body) else raised.value.body)
    return raised.value


def ids(objects: Iterable[Any]) -> list[str]:
    """Returns the ids of objects or of a page."""
    return [one.id for one in objects]


Case = Callable[[World], None]


class Cases:
    """A table: the name of a method -> what calls it."""

    def __init__(self) -> None:
        self.by_method: dict[str, Case] = {}

    def __call__(self, *names: str) -> Callable[[Case], Case]:
        """Puts a case into the table, under each method that it calls and checks."""

        def add(case: Case) -> Case:
            for name in names:
                assert name not in self.by_method, f"{name} has a case already"
                self.by_method[name] = case
            return case

        return add
