"""A push as changes of blocks: what differs between the newest commit here and the one that was sent. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from dulwich.objects import Blob, Commit, ShaFile, Tree

from gateway.git import packs
from gateway.git.files import DEFAULT_LIMIT, BadFile, Memory, read
from gateway.git.history import BRANCH, FILE, FOLDER, History
from gateway.git.lines import NOBODY, Push
from gateway.git.paths import label_of

_DEEPEST = 60
_LONGEST_LABEL = 100
_MOST_FILES = 10_000


class PushRefused(Exception):
    """A push that is not taken, and of which nothing is; its text says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """Of the block with this label: new (`before` is None), changed, or gone (`after` is None)."""

    label: str
    before: Memory | None
    after: Memory | None


def changes(history: History, push: Push) -> list[Change]:
    """Returns the changes of a push, by label. Raises PushRefused, and packs.BadPack."""
    if push.ref != BRANCH:
        raise PushRefused(f"there is one branch, {BRANCH.decode().removeprefix('refs/heads/')}")
    if push.new == NOBODY:
        raise PushRefused("the branch cannot be deleted")
    if push.old != history.head:
        raise PushRefused("the memory has changed meanwhile; fetch first")
    sent = packs.read(push.pack, history.objects) if push.pack else {}
    objects = {**history.objects, **sent}
    _check_follows(history, objects, push.new)
    commit = objects[push.new]
    assert isinstance(commit, Commit)
    old, new = _files(history.objects, history.tree(history.head)), _files(objects, commit.tree)
    commands = [
        _change(path, old.get(path), new.get(path)) for path in sorted({*old, *new}) if old.get(path) != new.get(path)
    ]
    return [change for change in commands if change.after is None or change.before != _filled(change)]


def _check_follows(history: History, objects: Mapping[bytes, ShaFile], new: bytes) -> None:
    """Raises PushRefused where a commit does not come after the newest one."""
    seen, pending, follows = set[bytes](), [new], False
    while pending:
        id = pending.pop()
        if id == history.head:
            follows = True
        if id in seen or id in history.objects:
            continue
        seen.add(id)
        commit = objects.get(id)
        if not isinstance(commit, Commit):
            raise PushRefused("a commit is missing from what was sent")
        pending.extend(commit.parents)
    if not follows:
        raise PushRefused("it does not follow the newest commit (non-fast-forward); fetch first")


def _files(objects: Mapping[bytes, ShaFile], root: bytes) -> dict[str, bytes]:
    """Contents by path. Raises Refused."""
    files: dict[str, bytes] = {}
    pending = [("", root)]
    visited = 0
    while pending:
        prefix, id = pending.pop()
        tree = objects.get(id)
        if not isinstance(tree, Tree):
            raise PushRefused("a folder is missing from what was sent")
        if prefix.count("/") > _DEEPEST:
            raise PushRefused(f"folders are more than {_DEEPEST} deep")
        for entry in tree.items():
            visited += 1
            if visited > _MOST_FILES:
                raise PushRefused(f"there are more than {_MOST_FILES:,} files and folders")
            path = _path(prefix, entry.path or b"")
            if entry.mode == FOLDER:
                pending.append((f"{path}/", entry.sha or b""))
                continue
            if entry.mode != FILE:
                raise PushRefused(f"{path}: a plain file, please; no link, no module, and not executable")
            blob = objects.get(entry.sha or b"")
            if not isinstance(blob, Blob):
                raise PushRefused(f"{path}: its content is missing from what was sent")
            files[path] = blob.data
    return files


def _path(prefix: str, name: bytes) -> str:
    try:
        return prefix + name.decode()
    except UnicodeDecodeError:
        raise PushRefused(f"{prefix}: a file's name is not UTF-8") from None


def _change(path: str, old: bytes | None, new: bytes | None) -> Change:
    label = label_of(path)
    if label is None or len(label) > _LONGEST_LABEL:
        raise PushRefused(f"{path}: no block's file; they are system/<label>.md, with labels of 1 to 100 characters")
    try:
        before, after = None if old is None else read(old), None if new is None else read(new)
    except BadFile as error:
        raise PushRefused(f"{path}: {error}") from None
    if before and before.read_only and before != after:
        raise PushRefused(f"{path}: the block is read-only")
    if after and after.read_only and not (before and before.read_only):
        raise PushRefused(f"{path}: whether a block is read-only is for the API to say")
    limit = (after and after.limit) or (before and before.limit) or DEFAULT_LIMIT
    if after and len(after.value) > limit:
        raise PushRefused(f"{path}: its value is {len(after.value):,} characters long, its limit is {limit:,}")
    return Change(label, before, after)


def _filled(change: Change) -> Memory | None:
    """Returns the changed block: what a file does not say stays as it is."""
    before, after = change.before, change.after
    if before is None or after is None:
        return after
    return Memory(after.value, after.description or before.description, after.limit or before.limit, before.read_only)
