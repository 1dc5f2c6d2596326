"""Commits out of the versions of blocks: the same ids wherever they are made. Pure.

The first commit holds what is too old to be told one by one, and nothing where all is told. Then every version of a
block is a commit, unless its files stay the same; they follow each other by their times.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree

from gateway.git.files import Memory, write
from gateway.git.paths import path_of

BRANCH = b"refs/heads/main"
FILE, FOLDER = 0o100644, 0o040000
_COMMITTER = b"Loci <loci@localhost>"


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a block."""

    number: int
    # Microseconds since the epoch: a commit tells seconds, but versions of the same second have an order, too.
    time: int
    label: str
    memory: Memory
    # Prefixed `agent-` or `user-`.
    author: str
    # What was done, and what else the commit says, line by line.
    operation: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """The versions of a block that are told, the oldest first; at least one."""

    block_id: str
    versions: Sequence[Version]


@dataclass
class History:
    """A branch in one line."""

    objects: dict[bytes, ShaFile] = field(default_factory=dict)
    # The oldest first.
    commits: list[bytes] = field(default_factory=list)

    @property
    def head(self) -> bytes:
        """The newest commit."""
        return self.commits[-1]

    def tree(self, commit: bytes) -> bytes:
        """Returns the id of a commit's tree."""
        objects = self.objects[commit]
        assert isinstance(objects, Commit)
        tree: bytes = objects.tree
        return tree

    def keep(self, object_: ShaFile) -> ObjectID:
        """Adds an object, and says its id."""
        self.objects[object_.id] = object_
        return object_.id


def build(agent_id: str, created_at: int, timelines: Sequence[Timeline]) -> History:
    """Returns the history of an agent's blocks. created_at: of the agent, in microseconds since the epoch."""
    history, files, now = History(), dict[str, tuple[str, ObjectID]](), created_at
    timelines = sorted(timelines, key=lambda timeline: timeline.block_id)
    for timeline in timelines:
        first = timeline.versions[0]
        if first.number > 1:
            files[timeline.block_id] = _file(history, first)
            now = max(now, first.time)
    tree = _tree(history, files.values())
    _commit(history, tree, now, agent_id, f"Memory of {agent_id}\n")
    for block_id, version in _in_order(timelines):
        files[block_id] = _file(history, version)
        before, tree = tree, _tree(history, files.values())
        now = max(now, version.time)
        if tree != before:
            title = f"{version.operation} {version.label}".replace("\n", " ")
            lines = (title, "", f"Block: {block_id}", f"Version: {version.number}", *version.notes)
            _commit(history, tree, now, version.author, "\n".join(lines) + "\n")
    return history


def _in_order(timelines: Iterable[Timeline]) -> list[tuple[str, Version]]:
    versions: list[tuple[int, str, int, Version]] = []
    for timeline in timelines:
        time = 0
        for version in timeline.versions:
            # Clocks may step back; versions do not.
            time = max(time, version.time)
            if version is not timeline.versions[0] or version.number == 1:
                versions.append((time, timeline.block_id, version.number, version))
    return [(block_id, version) for _, block_id, _, version in sorted(versions, key=lambda one: one[:3])]


def _file(history: History, version: Version) -> tuple[str, ObjectID]:
    return path_of(version.label), history.keep(Blob.from_string(write(version.memory)))


def _commit(history: History, tree: ObjectID, time: int, author: str, message: str) -> None:
    commit = Commit()
    commit.tree = tree
    commit.parents = [ObjectID(id) for id in history.commits[-1:]]
    commit.author = f"{author} <{author}@localhost>".encode()
    commit.committer = _COMMITTER
    commit.author_time = commit.commit_time = time // 1_000_000
    commit.author_timezone = commit.commit_timezone = 0
    commit.encoding = None
    commit.message = message.encode()
    history.commits.append(history.keep(commit))


def _tree(history: History, files: Iterable[tuple[str, ObjectID]]) -> ObjectID:
    """Returns the tree of these files. Of two with the same path, which two blocks may have had while one was
    elsewhere, the last counts.
    """
    folders: dict[str, dict[str, tuple[int, ObjectID]]] = {"": {}}
    for path, blob in files:
        folder, _, name = path.rpartition("/")
        while folder not in folders:
            folders[folder] = {}
            folder = folder.rpartition("/")[0]
        folders[path.rpartition("/")[0]][name] = FILE, blob
    # Deepest first: a folder stands in the one above by its id.
    for folder in sorted(folders, key=lambda one: one.count("/") + bool(one), reverse=True):
        tree = Tree()
        for name, (mode, id) in folders[folder].items():
            tree.add(name.encode(), mode, id)
        tree_id = history.keep(tree)
        if folder:
            above, _, name = folder.rpartition("/")
            folders[above][name] = FOLDER, tree_id
    return tree_id
