"""`loci chat`: talk to an agent in the terminal and watch it think, call tools and remember."""

from __future__ import annotations

import os
import sys
from typing import Any

from cli.client import Client, Event
from cli.errors import CliError

DEFAULT_URL = "http://localhost:8283"
DIM, PLAIN = "\033[2m", "\033[0m"
LONGEST = 500  # characters of a tool's return that are shown


class Screen:
    """Turns a turn's events into text: deltas of one message run on, anything else begins a line."""

    def __init__(self, *, colour: bool) -> None:
        self._dim, self._plain = (DIM, PLAIN) if colour else ("", "")
        self._open = ""  # what the line being written belongs to

    def text(self, event: Event) -> str:
        """What to print for `event`; often nothing."""
        match event.get("message_type"):
            case "assistant_message":
                return self._run_on("assistant", _flat(event.get("content")))
            case "reasoning_message":
                return self._run_on("reasoning", str(event.get("reasoning") or ""), dim=True)
            case "tool_call_message" | "approval_request_message":
                return "".join(self._call(call) for call in _calls(event))
            case "tool_return_message":
                status, value = event.get("status"), _flat(event.get("tool_return"))
                return self._line(f"  {'=' if status == 'success' else 'error:'} {_short(value)}", dim=True)
            case "error_message":
                return self._line(f"error: {event.get('message')} {event.get('detail') or ''}".rstrip())
            case "stop_reason" if event.get("stop_reason") != "end_turn":
                return self._line(f"(stopped: {event.get('stop_reason')})", dim=True)
            case _:
                return ""

    def end(self) -> str:
        """Close the turn's last line."""
        ending, self._open = ("\n" if self._open else ""), ""
        return ending

    def _call(self, call: Event) -> str:
        name, arguments = call.get("name") or "", call.get("arguments") or ""
        return self._run_on(f"call {call.get('tool_call_id')}", f"  {name} " * bool(name) + arguments, dim=True)

    def _run_on(self, key: str, text: str, *, dim: bool = False) -> str:
        if not text:
            return ""
        before = self.end() if self._open != key else ""
        self._open = key
        return before + (f"{self._dim}{text}{self._plain}" if dim else text)

    def _line(self, text: str, *, dim: bool = False) -> str:
        return self._run_on("line", text, dim=dim) + self.end()


def chat(agent: str | None, url: str | None) -> None:
    """Read lines until the end of input or `/quit`. Raises CliError when the server cannot be reached."""
    base = url or os.environ.get("LOCI_BASE_URL") or DEFAULT_URL
    password = os.environ.get("LETTA_SERVER_PASSWORD") or os.environ.get("LETTA_API_KEY") or ""
    with Client(base, password) as client:
        found = client.agent(agent)
        print(f"{found['name']} ({found['id']}), model {found.get('model')}; /quit or Ctrl-D ends")
        while (line := _ask()) is not None:
            if line.strip():
                _turn(client, found["id"], line)


def _ask() -> str | None:
    try:
        line = input("> " if sys.stdin.isatty() else "")
    except EOFError:
        return None
    return None if line.strip() in {"/quit", "/exit"} else line


def _turn(client: Client, agent_id: str, text: str) -> None:
    screen = Screen(colour=sys.stdout.isatty())
    try:
        for event in client.send(agent_id, text):
            print(screen.text(event), end="", flush=True)
        print(screen.end(), end="", flush=True)
    except CliError as error:  # the next message may well succeed
        print(f"{screen.end()}error: {error}", flush=True)


def _calls(event: Event) -> list[Event]:
    calls: Any = event.get("tool_calls") or event.get("tool_call") or []
    return calls if isinstance(calls, list) else [calls]


def _flat(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"
