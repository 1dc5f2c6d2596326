"""`loci chat`: talk to an agent in the terminal and watch it think, call tools and remember."""

from __future__ import annotations

import os
import sys

from cli.errors import CliError
from cli.server import base_url, password
from cli.streaming import (
    AssistantMessage,
    AttemptAbandoned,
    Call,
    Client,
    ErrorMessage,
    Event,
    NotFound,
    Ping,
    ReasoningMessage,
    StopReason,
    ToolCallMessage,
    ToolReturnMessage,
    UnknownEvent,
    UsageStatistics,
)
from cli.streaming.events import Json

DIM, PLAIN = "\033[2m", "\033[0m"
BLOCKS = [
    {"label": "human", "value": ""},
    {"label": "persona", "value": "I am a helpful assistant who remembers what I am told."},
]
LONGEST = 500  # characters of a tool's return that are shown


class Screen:
    """Turns a turn's events into text: deltas of one message run on, anything else begins a line."""

    def __init__(self, *, colour: bool) -> None:
        self._dim, self._plain = (DIM, PLAIN) if colour else ("", "")
        self._open = ""  # what the line being written belongs to

    def text(self, event: Event) -> str:
        """Returns the text to print for `event`; often none."""
        match event:
            case AssistantMessage(text=said):
                return self._run_on("assistant", said)
            case ReasoningMessage(text=thought):
                return self._run_on("reasoning", thought, dim=True)
            case ToolCallMessage(calls=calls):
                return "".join(map(self._call, calls))
            case ToolReturnMessage(text=returned, failed=failed):
                return self._line(f"  {'error:' if failed else '='} {_short(returned)}", dim=True)
            case AttemptAbandoned():
                return self._line("(the model broke off and begins again)", dim=True) if self._open else ""
            case ErrorMessage(message=message, detail=detail):
                return self._line(f"error: {message} {detail or ''}".rstrip())
            case StopReason(reason=reason) if reason != "end_turn":
                return self._line(f"(stopped: {reason})", dim=True)
            case StopReason() | Ping() | UsageStatistics() | UnknownEvent():
                return ""

    def end(self) -> str:
        """Close the turn's last line."""
        ending, self._open = ("\n" if self._open else ""), ""
        return ending

    def _call(self, call: Call) -> str:
        return self._run_on(f"call {call.id}", f"  {call.name} " * bool(call.name) + call.arguments, dim=True)

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
    with Client(base_url(url, os.environ), password(os.environ)) as client:
        partner = agent_for(client, agent)
        print(f"{partner['name']} ({partner['id']}), model {partner.get('model')}; /quit or Ctrl-D ends")
        while (line := _ask()) is not None:
            if line.strip():
                _turn(client, partner["id"], line)


def agent_for(client: Client, id_or_name: str | None) -> Json:
    """Returns the agent of that id or name, the newest one without a name; creates one where there is none."""
    try:
        agent = client.get_agent(id_or_name) if id_or_name else client.newest_agent()
    except NotFound:
        if id_or_name is None or id_or_name.startswith("agent-"):
            raise
        agent = None
    return agent or client.create_agent(name=id_or_name or "loci", memory_blocks=BLOCKS)


def _ask() -> str | None:
    try:
        line = input("> " if sys.stdin.isatty() else "")
    except EOFError:
        return None
    return None if line.strip() in {"/quit", "/exit"} else line


def _turn(client: Client, agent_id: str, text: str) -> None:
    screen = Screen(colour=sys.stdout.isatty())
    try:
        for event in client.stream(agent_id, text):
            print(screen.text(event), end="", flush=True)
        print(screen.end(), end="", flush=True)
    except CliError as error:  # the next message may well succeed
        print(f"{screen.end()}error: {error}", flush=True)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"
