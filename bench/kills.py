"""`make bench ARGS=kills`: how long what many agents do takes when a service is killed in its middle.

A round of three agents, a turn that waits for another agent, a turn of a companion: each is begun, one service gets
SIGKILL while a model thinks, and the seconds until it has ended stand beside those of one that nothing disturbs.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from bench.common import Report, loci_with_provider
from tests.e2e.stack import Stack

SERVICES = ("", "agent", "llm_gateway", "memory", "gateway")
# A model thinks so long, and the service is killed so long after the beginning, seconds.
THINKS, UNTIL = 2.0, 1.0
LONGEST = 120.0
ASK = "send_message_to_agent_and_wait_for_reply"
BLOCKS = [{"label": "human", "value": ""}]


class Client:
    """Requests that are tried again while a service is away."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Returns the JSON of an answer."""
        until = time.monotonic() + LONGEST
        while True:
            try:
                answer = httpx.request(method, f"{self._stack.url}{path}", json=body, timeout=30, follow_redirects=True)
                if answer.status_code < 500:
                    answer.raise_for_status()
                    return answer.json()
            except httpx.TransportError:
                pass
            assert time.monotonic() < until, path
            time.sleep(0.05)

    def agent(self, **settings: Any) -> Any:
        """A new agent."""
        return self.ask("POST", "/v1/agents/", {"model": "openai/gpt-4o-mini", "memory_blocks": BLOCKS, **settings})

    def begin(self, path: str, text: str) -> str:
        """Begins a turn in the background; its run."""
        body = {"input": text, "streaming": True, "background": True}
        with httpx.stream("POST", f"{self._stack.url}/v1/{path}/messages", json=body, timeout=30) as response:
            for line in response.iter_lines():
                if '"run_id":"' in line:
                    return line.partition('"run_id":"')[2].partition('"')[0]
        raise AssertionError("a stream names its run")

    def wait(self, run_id: str) -> None:
        """Waits for the end of a run, which is a good one."""
        while (run := self.ask("GET", f"/v1/runs/{run_id}"))["status"] in ("created", "running"):
            time.sleep(0.05)
        assert run["status"] == "completed", run


def begin_round(client: Client) -> str:
    """A round of three, each of which thinks."""
    members = [client.agent()["id"] for _ in range(3)]
    made = {"agent_ids": members, "description": "Three.", "manager_config": {"manager_type": "round_robin"}}
    return client.begin(f"groups/{client.ask('POST', '/v1/groups/', made)['id']}", "Think.")


def begin_call(client: Client) -> str:
    """A turn that waits for another agent, which thinks."""
    return client.begin(f"agents/{client.agent(tools=[ASK])['id']}", "Ask.")


def begin_tending(client: Client) -> str:
    """A turn of a companion, which thinks."""
    agent = client.agent(enable_sleeptime=True, embedding="loci/hash")
    config = {"manager_type": "sleeptime", "sleeptime_agent_frequency": 1}
    client.ask("PATCH", f"/v1/groups/{agent['managed_group']['id']}", {"manager_config": config})
    answer = client.ask("POST", f"/v1/agents/{agent['id']}/messages", {"input": "Hello."})
    return str(answer["usage"]["run_ids"][0])


BEGIN: dict[str, Callable[[Client], str]] = {
    "a round of three": begin_round,
    "a call that waits": begin_call,
    "a companion's turn": begin_tending,
}


def measure(stack: Stack, fake: str) -> None:
    """Kills each service in each."""
    client, report = Client(stack), Report()
    call = {"name": ASK, "arguments": {"message": "Think.", "other_agent_id": client.agent()["id"]}}
    thinks = {"text": "So be it.", "first_delay": THINKS}
    rules = [
        {"reply": thinks, "contains": "Think."},
        {"reply": thinks, "contains": "whose memory you tend"},
        {"reply": {"calls": [call]}, "contains": "Ask.", "step": 0},
    ]
    httpx.post(f"{fake}/_script", json={"default": {"text": "Well."}, "rules": rules}).raise_for_status()
    for name, begin in BEGIN.items():
        for service in SERVICES:
            run_id = begin(client)
            start = time.monotonic()
            if service:
                time.sleep(UNTIL)
                stack.kill(service)
            client.wait(run_id)
            title = f"{name}, {service} killed" if service else f"{name}, undisturbed"
            report.add(f"{title}, s", time.monotonic() - start)
            stack.wait_healthy()


def main(_arguments: Sequence[str]) -> None:
    """Prints a table while it measures."""
    with loci_with_provider() as (stack, port):
        measure(stack, f"http://127.0.0.1:{port}")
