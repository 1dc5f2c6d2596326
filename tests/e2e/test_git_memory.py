"""An agent's memory as a git repository, with the real program git: clone, fetch, push, and who is kept out."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.common.ids import to_public, uuid7
from tests.e2e.conftest import PASSWORD
from tests.e2e.stack import Stack
from tests.e2e.test_access import Tenant

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no program git here")

FLUSH = b"0000"


class Git:
    """A folder that git works in, without this machine's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "ada@example.com" for who in ("AUTHOR", "COMMITTER")},
        }
        return subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def __call__(self, *arguments: str) -> str:
        done = self.attempt(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, path: str, content: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def push(self, message: str) -> subprocess.CompletedProcess[str]:
        """Commits all there is, and pushes it."""
        self("add", "--all")
        self("commit", "-m", message)
        return self.attempt("push", "origin", "HEAD:main")


def address(stack: Stack, agent_id: str, user: str = "") -> str:
    return f"{stack.url.replace('://', f'://{user}@' if user else '://')}/v1/git/{agent_id}/state.git"


def cloned(tmp_path: Path, url: str, name: str = "memory", *options: str) -> Git:
    Git(tmp_path)("clone", *options, url, name)
    return Git(tmp_path / name)


def make(client: Any, *blocks: dict[str, Any]) -> Any:
    return client.agents.create(model="loci/demo", memory_blocks=list(blocks))


def values(client: Any, agent: Any) -> dict[str, str]:
    return {block.label: block.value for block in client.agents.blocks.list(agent.id)}


def test_clone_fetch_and_push(stack: Stack, tmp_path: Path) -> None:
    client = stack.client()
    agent = make(
        client,
        {"label": "human", "value": "Nothing is known yet.", "description": "about the user"},
        {"label": "notes/today", "value": "", "limit": 500},
    )
    git = cloned(tmp_path, address(stack, agent.id))
    human = git.folder / "system/human.md"
    assert human.read_text() == "---\ndescription: about the user\n---\nNothing is known yet.\n"
    assert (git.folder / "system/notes/today.md").read_text() == "---\nlimit: 500\n---\n"
    git("fsck", "--strict")

    # What the agent's tool and the API write comes with a fetch, commit by commit; and is the same wherever it is made.
    client.agents.messages.create(agent.id, input="My name is Ada.")
    [notes] = [block.id for block in agent.memory.blocks if block.label == "notes/today"]
    client.blocks.update(notes, value="- tea\n- cake")
    git("pull", "--ff-only")
    assert "Ada" in human.read_text()
    assert (git.folder / "system/notes/today.md").read_text() == "---\nlimit: 500\n---\n- tea\n- cake\n"
    log = git("log", "--format=%an|%s|%b").splitlines()
    assert log[0].endswith(f"|set notes/today|Block: {notes}")
    assert any(line.startswith(f"{agent.id}|") for line in log)
    assert any(line.startswith("Run: run-") for line in log)
    assert cloned(tmp_path, address(stack, agent.id), "again")("rev-parse", "HEAD") == git("rev-parse", "HEAD")
    shallow = cloned(tmp_path, address(stack, agent.id), "shallow", "--depth", "1")
    assert shallow("rev-list", "--count", "HEAD").strip() == "1"

    # A push: one block changed, one new, one gone.
    git.write("system/human.md", "---\ndescription: about Ada\n---\nShe likes tea.\n")
    git.write("system/project/plan.md", "---\ndescription: what to do\n---\nFirst this.\nThen that.\n")
    (git.folder / "system/notes/today.md").unlink()
    done = git.push("tidy up")
    assert done.returncode == 0, done.stderr
    assert values(client, agent) == {"human": "She likes tea.", "project/plan": "First this.\nThen that."}
    block = client.agents.blocks.retrieve("human", agent_id=agent.id)
    assert block.description == "about Ada"
    [newest, before, *_] = httpx.get(f"{stack.url}/v1/blocks/{block.id}/versions", timeout=30).json()
    assert (newest["operation"], newest["value"], newest["version"]) == ("set", "She likes tea.", before["version"] + 1)
    git("fetch")
    assert git("diff", "HEAD", "origin/main") == ""
    git("reset", "--hard", "origin/main")

    # Shallow and old clones catch up.
    for other in (shallow, Git(tmp_path / "again")):
        other("fetch")
        assert other("rev-parse", "origin/main") == git("rev-parse", "HEAD")
    shallow("fetch", "--unshallow")
    shallow("fsck", "--strict")

    # After a push a rebase goes on from what became of it.
    git.write("system/human.md", "---\ndescription: about Ada\n---\nShe likes coffee.\n")
    assert git.push("coffee").returncode == 0
    git("pull", "--rebase", "origin", "main")
    git.write("system/human.md", "---\ndescription: about Ada\n---\nShe likes both.\n")
    assert git.push("both").returncode == 0
    assert values(client, agent)["human"] == "She likes both."

    # Nothing is taken of a push that does not follow what is there.
    client.agents.blocks.update("human", agent_id=agent.id, value="Somebody was faster.")
    git("fetch")
    git.write("system/human.md", "late\n")
    refused = git.push("late")
    assert refused.returncode != 0
    assert "rejected" in refused.stderr
    assert git.attempt("push", "--force", "origin", "HEAD:main").returncode != 0
    assert values(client, agent)["human"] == "Somebody was faster."
    client.agents.delete(agent.id)


def test_a_push_is_taken_back_where_the_memory_service_refuses_a_part(stack: Stack, tmp_path: Path) -> None:
    client = stack.client()
    agent = make(
        client,
        {"label": "a", "value": "one", "description": "first"},
        {"label": "b", "value": "two"},
        {"label": "c", "value": "3"},
    )
    git = cloned(tmp_path, address(stack, agent.id))
    before = values(client, agent)
    git.write("system/a.md", "---\ndescription: changed\nlimit: 50\n---\nchanged\n")
    git.write("system/b.md", "---\nlimit: 20000000\n---\ntwo\n")
    git.write("system/unwanted.md", "new\n")
    (git.folder / "system/c.md").unlink()
    refused = git.push("too much")
    assert refused.returncode != 0
    assert "a block's limit is 1 to 10000000" in refused.stderr
    assert values(client, agent) == before
    assert list(client.blocks.list(label="unwanted")) == []
    block = client.agents.blocks.retrieve("a", agent_id=agent.id)
    assert (block.description, block.limit) == ("first", 100_000)
    versions = httpx.get(f"{stack.url}/v1/blocks/{block.id}/versions", timeout=30).json()
    assert [version["value"] for version in versions] == ["one", "changed", "one"]

    # What is large comes in pieces, after git has asked whether it may.
    git("fetch")
    git("reset", "--hard", "origin/main")
    large = os.urandom(1_500_000).hex()
    git.write("system/large.md", f"---\nlimit: 4000000\n---\n{large}\n")
    done = git.push("large")
    assert done.returncode == 0, done.stderr
    assert values(client, agent)["large"] == large
    assert (cloned(tmp_path, address(stack, agent.id), "again").folder / "system/large.md").stat().st_size > len(large)
    client.agents.delete(agent.id)


def test_what_is_refused(stack: Stack, tmp_path: Path) -> None:
    client = stack.client()
    agent = make(
        client,
        {"label": "human", "value": "x", "limit": 20},
        {"label": "rules", "value": "Be kind.", "read_only": True},
        {"label": "../.git/a~1", "value": "a strange name"},
    )
    git = cloned(tmp_path, address(stack, agent.id))
    assert (git.folder / "system/%2E%2E/%2Egit/a%7E1.md").read_text() == "---\n---\na strange name\n"
    before = values(client, agent)

    def refused(message: str) -> None:
        # With something right in the same push: none of it is taken.
        git.write("system/new.md", "New.\n")
        done = git.push("wrong")
        assert done.returncode != 0
        assert message in done.stderr, done.stderr
        git("reset", "--hard", "origin/main")
        assert values(client, agent) == before

    git.write("system/rules.md", "---\nread_only: true\n---\nBe rude.\n")
    refused("system/rules.md: the block is read-only")
    (git.folder / "system/rules.md").unlink()
    refused("system/rules.md: the block is read-only")
    git.write("system/human.md", "much longer than twenty characters\n")
    refused("its limit is 20")
    (git.folder / "system/link.md").symlink_to("human.md")
    refused("a plain file, please")
    git.write("system/run.md", "x\n")
    (git.folder / "system/run.md").chmod(0o755)
    refused("not executable")
    git.write("elsewhere.md", "x\n")
    refused("no block's file")
    git.write("system/.hidden.md", "x\n")
    refused("no block's file")
    git.write("system/human.md", "a\0b")
    refused("NUL")
    (git.folder / "system/human.md").write_bytes(b"\xff\xfe")
    refused("not UTF-8")
    git.write("system/human.md", "---\nowner: me\n---\nx\n")
    refused("front matter")
    other = git.attempt("push", "origin", "HEAD:other")
    assert "there is one branch" in other.stderr
    client.agents.delete(agent.id)


def test_bad_requests(stack: Stack) -> None:
    client = stack.client()
    agent = make(client, {"label": "human", "value": "x"})
    base = f"{stack.url}/v1/git/{agent.id}/state.git"
    shown = httpx.get(f"{base}/info/refs?service=git-receive-pack", timeout=30)
    assert shown.headers["content-type"] == "application/x-git-receive-pack-advertisement"
    head = shown.content[shown.content.index(b"0000") + 8 :][:40]

    def line(text: bytes) -> bytes:
        return f"{len(text) + 4:04x}".encode() + text

    def post(service: str, body: bytes, **headers: str) -> int:
        return httpx.post(f"{base}/{service}", content=body, headers=headers, timeout=30).status_code

    command = line(head + b" " + b"1" * 40 + b" refs/heads/main\0report-status") + FLUSH
    for pack in (b"PACK", b"PACK\0\0\0\2\xff\xff\xff\xff" + bytes(20), os.urandom(1000)):
        assert post("git-receive-pack", command + pack) == 422
    for body in (b"zzzz", b"0009x", line(b"want x\n"), line(b"want " + b"1" * 40) + FLUSH, line(b"shrug")):
        assert post("git-upload-pack", body) == 422
        assert post("git-upload-pack", gzip.compress(body), **{"content-encoding": "gzip"}) == 422
    assert post("git-upload-pack", b"no gzip", **{"content-encoding": "gzip"}) == 422
    assert post("git-upload-pack", b"x", **{"content-encoding": "br"}) == 422
    assert post("git-upload-pack", gzip.compress(bytes(2**25)), **{"content-encoding": "gzip"}) == 422
    whole = line(b"want " + head + b"\n") + FLUSH + line(b"done\n")
    assert post("git-upload-pack", gzip.compress(whole), **{"content-encoding": "gzip"}) == 200
    assert post("git-receive-pack", FLUSH) == 200
    for path, status in {
        "info/refs": 422,
        "info/refs?service=git-upload-archive": 422,
        "HEAD": 404,
        "git-upload-pack": 404,
    }.items():
        assert httpx.get(f"{base}/{path}", timeout=30).status_code == status
    nobody = to_public("agent", uuid7())
    for agent_id, status in {nobody: 404, "agent-x": 422, "x": 422}.items():
        refs = f"{stack.url}/v1/git/{agent_id}/state.git/info/refs?service=git-upload-pack"
        assert httpx.get(refs, timeout=30).status_code == status
    client.agents.delete(agent.id)


def test_who_gets_in(guarded_stack: Stack, tmp_path: Path) -> None:
    mine, theirs = Tenant(guarded_stack, "Acme"), Tenant(guarded_stack, "Bolt")
    agent = make(mine.sdk, {"label": "human", "value": "x"})
    git = cloned(tmp_path, address(guarded_stack, agent.id, f"letta:{mine.key}"))
    git.write("system/human.md", "y\n")
    assert git.push("by an admin").returncode == 0
    assert values(mine.sdk, agent) == {"human": "y"}
    reader = mine.http.post("/v1/api-keys/", json={"name": "r", "role": "read-only"}).json()["key"]
    reading = cloned(tmp_path, address(guarded_stack, agent.id, f"letta:{reader}"), "reading")
    reading.write("system/human.md", "z\n")
    assert "403" in reading.push("by a reader").stderr
    assert values(mine.sdk, agent) == {"human": "y"}

    def tried(user: str) -> str:
        return Git(tmp_path).attempt("ls-remote", address(guarded_stack, agent.id, user)).stderr

    assert "not found" in tried(f"letta:{theirs.key}")
    assert "not found" in tried(f"letta:{PASSWORD}")  # the operator's tenant is another, too
    assert "Authentication failed" in tried("letta:wrong")
    refs = f"{address(guarded_stack, agent.id)}/info/refs?service=git-upload-pack"
    unknown = httpx.get(refs, timeout=30)
    assert (unknown.status_code, unknown.headers["www-authenticate"]) == (401, 'Basic realm="Loci"')
    # A password in this form opens nothing else.
    assert httpx.get(f"{guarded_stack.url}/v1/agents/", auth=("letta", mine.key), timeout=30).status_code == 401
    for tenant in (mine, theirs):
        tenant.http.close()
