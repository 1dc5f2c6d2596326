"""The official terminal client against a whole Loci: turns, its own tools, approvals, resuming, other conversations."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, RequestView, ToolCall

FOLDER = Path(__file__).parent / "npm-letta-code"
PROGRAM = FOLDER / "node_modules" / "@letta-ai" / "letta-code" / "letta.js"
MODEL = "openai/gpt-4o-mini"
GREETING = "hello amaranth"
# What the client's shell is asked, and says only when it runs.
COMMAND, PRINTED = "echo marker-$((40+2))", "marker-42"

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed"),
    pytest.mark.skipif(not PROGRAM.is_file(), reason="needs: npm ci --prefix tests/e2e/npm-letta-code"),
]


class Terminal:
    """A home and a working folder of their own, in which the client is run."""

    def __init__(self, folder: Path, url: str) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LETTA_BASE_URL": url,
            "LETTA_CODE_TELEM": "0",
            "DISABLE_AUTOUPDATER": "1",
            "TERM": "dumb",
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One command, to its end."""
        return subprocess.run(
            ["node", str(PROGRAM), *arguments],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def ask(self, prompt: str, *arguments: str) -> dict[str, Any]:
        """Runs `letta -p`; returns its answer."""
        done = self.run("-p", prompt, "--output-format", "json", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        assert (answer["type"], answer["subtype"], answer["is_error"]) == ("result", "success", False)
        return answer

    @contextmanager
    def session(self, *arguments: str) -> Iterator[Session]:
        """A client that is talked to in JSON."""
        command = ["node", str(PROGRAM), "--input-format", "stream-json", "--output-format", "stream-json", *arguments]
        process = subprocess.Popen(
            command,
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with process:
            try:
                yield Session(process)
            finally:
                process.kill()


class Session:
    """Lines of JSON, both ways."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def say(self, line: dict[str, Any]) -> None:
        """Sends a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def until(self, kind: str) -> list[dict[str, Any]]:
        """The lines up to one of this type."""
        assert self._process.stdout is not None
        heard = []
        for text in self._process.stdout:
            heard.append(json.loads(text))
            if heard[-1]["type"] == kind:
                return heard
        raise AssertionError(f"it ended before {kind}: {heard}")


@pytest.fixture(scope="module")
def terminal(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """The client, which knows its agent from the first turn on."""
    return Terminal(tmp_path_factory.mktemp("letta"), stack.url)


@pytest.fixture(autouse=True)
def model(openai_fake: OpenAIServer) -> None:
    """Repeats the last thing it was told; asked to use a tool, it calls the client's shell."""

    def answer(seen: RequestView) -> Reply:
        if "use your shell" in last_line(seen.question) and seen.step == 0:
            [shell] = [tool for tool in seen.tools if tool in ("ShellCommand", "Bash", "exec_command")]
            named = "cmd" if shell == "exec_command" else "command"
            return Reply(text="I look.", calls=(ToolCall(shell, {named: COMMAND, "description": "looks"}),))
        return Reply(text=f"heard: {last_line(seen.last_text)}")

    openai_fake.answer(answer)


def last_line(text: str) -> str:
    """The prompt itself, below the client's reminders."""
    return text.strip().splitlines()[-1] if text.strip() else ""


@pytest.fixture(scope="module")
def first(terminal: Terminal, providers: Any) -> dict[str, Any]:
    """The answer to the first turn, which makes the agent."""
    providers.openai.answer(lambda seen: Reply(text=f"heard: {last_line(seen.last_text)}"))
    return terminal.ask(GREETING, "--new-agent", "--model", MODEL)


def test_a_plain_turn(first: dict[str, Any], stack: Stack) -> None:
    assert first["result"] == f"heard: {GREETING}"
    assert first["num_turns"] == 1
    assert first["usage"]["total_tokens"] > 0
    agent = stack.client().agents.retrieve(first["agent_id"], include=["agent.tags"])
    assert agent.model == MODEL
    assert "origin:letta-code" in agent.tags


def test_its_own_tool_runs_and_the_turn_goes_on(first: dict[str, Any], terminal: Terminal, stack: Stack) -> None:
    answer = terminal.ask("use your shell", "--new")
    assert (answer["result"], answer["num_turns"]) == (f"heard: {PRINTED}", 2)
    listed = stack.client().conversations.messages.list(answer["conversation_id"], order="asc", limit=50).items
    kinds = [message.message_type for message in listed if message.message_type != "system_message"]
    assert kinds == [
        *("user_message", "assistant_message", "approval_request_message", "approval_response_message"),
        *("tool_return_message", "assistant_message"),
    ]
    assert listed[-2].status == "success"


@pytest.mark.parametrize("allowed", [True, False])
def test_a_call_is_asked_for(first: dict[str, Any], terminal: Terminal, allowed: bool) -> None:
    with terminal.session("--permission-mode", "default", "--new") as session:
        session.say({"type": "user", "message": {"role": "user", "content": "use your shell"}})
        asked = session.until("control_request")[-1]
        assert asked["request"]["subtype"] == "can_use_tool"
        assert asked["request"]["input"]["command"] == COMMAND
        verdict = {"behavior": "allow"} if allowed else {"behavior": "deny", "message": "not today"}
        decided = {"subtype": "success", "request_id": asked["request_id"], "response": verdict}
        session.say({"type": "control_response", "response": decided})
        result = session.until("result")[-1]
    assert result["subtype"] == "success"
    assert (PRINTED if allowed else "not today") in result["result"]


def test_a_conversation_is_resumed_and_others_are_their_own(
    first: dict[str, Any], terminal: Terminal, openai_fake: OpenAIServer
) -> None:
    agent = first["agent_id"]
    again = terminal.ask("once more", "--conversation", first["conversation_id"])
    assert (again["agent_id"], again["conversation_id"]) == (agent, first["conversation_id"])
    assert GREETING in str(openai_fake.bodies()[-1]["messages"])
    other = terminal.ask("elsewhere", "--agent", agent, "--new")
    assert other["agent_id"] == agent
    assert other["conversation_id"] not in ("default", first["conversation_id"])
    assert GREETING not in str(openai_fake.bodies()[-1]["messages"])
    default = terminal.ask("at home", "--agent", agent, "--conversation", "default")
    assert default["conversation_id"] == "default"
    back = terminal.ask("and back", "--conversation", first["conversation_id"])
    assert back["result"] == "heard: and back"
    said = str(openai_fake.bodies()[-1]["messages"])
    assert "once more" in said
    assert "elsewhere" not in said
    assert "at home" not in said


@pytest.mark.parametrize("place", ["default", "new"])
def test_a_call_that_nobody_answered_is_settled_by_the_next_session(
    first: dict[str, Any], terminal: Terminal, place: str
) -> None:
    where = ["--conversation", "default"] if place == "default" else ["--new"]
    with terminal.session("--permission-mode", "default", "--agent", first["agent_id"], *where) as session:
        session.say({"type": "user", "message": {"role": "user", "content": "use your shell"}})
        lines = session.until("control_request")
    conversation = next(line["conversation_id"] for line in lines if line.get("subtype") == "init")
    # The client wants the agent named with `default` alone.
    whose = ["--agent", first["agent_id"]] if conversation == "default" else []
    answer = terminal.ask("and now?", *whose, "--conversation", conversation)
    assert answer["conversation_id"] == conversation
    assert answer["result"].startswith("heard: ")


def test_what_a_provider_refuses_is_shown(first: dict[str, Any], terminal: Terminal, openai_fake: OpenAIServer) -> None:
    openai_fake.answer(lambda seen: Reply(error="authentication", message="that key opens nothing"))
    done = terminal.run("-p", "hello", "--output-format", "json", "--conversation", first["conversation_id"])
    assert done.returncode == 1
    assert "that key opens nothing" in done.stdout + done.stderr


def test_memory_as_a_repository(stack: Stack, tmp_path: Path) -> None:
    """`--memfs`: the agent's memory is cloned, and what is pushed from there is its memory."""
    terminal = Terminal(tmp_path, stack.url)
    terminal.environment |= {"LETTA_MEMFS_LOCAL": "1", "LETTA_MEMFS_BASE_URL": stack.url}
    agent_id = terminal.ask(GREETING, "--new-agent", "--memfs", "--model", MODEL)["agent_id"]
    [head] = terminal.home.glob(f".letta/**/{agent_id}/**/.git/HEAD")
    folder = head.parents[1]
    note = folder / "system" / "human.md"
    note.write_text(note.read_text().rstrip() + "\nLikes tea.\n")
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    environment = os.environ | {"HOME": str(terminal.home)}
    for command in (("add", "-A"), (*author, "commit", "-m", "tea"), ("push",)):
        subprocess.run(["git", *command], cwd=folder, env=environment, check=True, capture_output=True, timeout=60)
    assert stack.client().agents.blocks.retrieve("human", agent_id=agent_id).value.endswith("Likes tea.")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("messages", "transcript", "--conversation", "CONVERSATION"), f"heard: {GREETING}"),
        # By the word that nobody else says: of all agents' messages the ten best are shown.
        (("messages", "search", "--query", GREETING.split()[-1], "--all-agents"), GREETING),
    ],
)
def test_its_other_commands(first: dict[str, Any], terminal: Terminal, arguments: tuple[str, ...], found: str) -> None:
    done = terminal.run(*(argument.replace("CONVERSATION", first["conversation_id"]) for argument in arguments))
    assert done.returncode == 0, done.stderr
    assert found in done.stdout
