"""Git's smart HTTP protocol, version 0: what is offered, asked for and answered. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dulwich.errors import GitProtocolError
from dulwich.objects import Commit, Tree
from dulwich.protocol import PktLineParser, pkt_line

from gateway.git.history import BRANCH, History
from gateway.git.packs import write
from gateway.git.requests import RECEIVE, UPLOAD, BadRequest

NOBODY = b"0" * 40
_COMMON = "object-format=sha1 agent=loci"
_OFFERS = {
    UPLOAD: f"multi_ack_detailed ofs-delta no-progress shallow symref=HEAD:{BRANCH.decode()} {_COMMON}",
    RECEIVE: f"report-status ofs-delta {_COMMON}",
}
_DEEPEST = 1_000_000


def offer(service: str, head: bytes) -> bytes:
    """Returns the answer to `info/refs`."""
    refs = [(b"HEAD", head), (BRANCH, head)] if service == UPLOAD else [(BRANCH, head)]
    lines = [id + b" " + name for name, id in refs]
    lines[0] += b"\0" + _OFFERS[service].encode()
    stream = b"".join(pkt_line(line + b"\n") for line in lines)
    return pkt_line(f"# service={service}\n".encode()) + pkt_line(None) + stream + pkt_line(None)


@dataclass
class Fetch:
    """A client's request for commits, with those that it has."""

    wants: list[bytes] = field(default_factory=list)
    haves: list[bytes] = field(default_factory=list)
    # Commits whose parents it does not have.
    shallow: set[bytes] = field(default_factory=set)
    # How many commits of the branch it wants to have in all; 0: all.
    depth: int = 0
    done: bool = False
    # Whether haves are at their end for now.
    flushed: bool = False


def read_fetch(body: bytes) -> Fetch:
    """Raises BadRequest."""
    fetch, listed = Fetch(), False
    for line in _lines(body)[0]:
        if line is None:
            fetch.flushed, listed = listed, True
            continue
        word, _, rest = line.rstrip(b"\n").partition(b" ")
        match word:
            case b"want":
                fetch.wants.append(_id(rest[:40]))
            case b"have":
                fetch.haves.append(_id(rest))
            case b"shallow":
                fetch.shallow.add(_id(rest))
            case b"deepen" if rest.isdigit() and len(rest) < 12:
                # Clients say 2^31 - 1 for all there is.
                fetch.depth = int(rest) if int(rest) <= _DEEPEST else _DEEPEST
            case b"done":
                fetch.done = True
            case _:
                raise BadRequest(f"git-upload-pack does not know {line[:40]!r}")
    return fetch


def answer_fetch(history: History, fetch: Fetch) -> bytes:
    """Returns the answer to a fetch: what both have in common, and at its end a pack. Raises BadRequest."""
    if not fetch.wants:
        return b""
    places = {id: place for place, id in enumerate(history.commits)}
    if any(want not in places for want in fetch.wants):
        raise BadRequest("the history has changed meanwhile; fetch again")
    newest = max(places[want] for want in fetch.wants)
    cuts = {places[id] for id in fetch.shallow if id in places}
    oldest = max(0, newest + 1 - fetch.depth) if fetch.depth else min(cuts, default=0)
    answer = _cuts(history, fetch, oldest, places) if fetch.depth else b""
    common = [id for id in fetch.haves if id in places]
    answer += b"".join(pkt_line(b"ACK " + id + b" common\n") for id in common)
    if not fetch.done:
        # The history is one line: with any commit in common all is said.
        if common:
            answer += pkt_line(b"ACK " + common[-1] + b" ready\n")
        return answer + pkt_line(b"NAK\n") if fetch.flushed or common else answer
    answer += pkt_line(b"ACK " + common[-1] + b"\n" if common else b"NAK\n")
    client_has: set[int] = set()
    for id in common:
        # As far back as the client has it.
        client_has.update(range(max((cut for cut in cuts if cut <= places[id]), default=0), places[id] + 1))
    has = set(_objects(history, client_has))
    objects = _objects(history, (place for place in range(oldest, newest + 1) if place not in client_has))
    return answer + write(history.objects[id] for id in objects if id not in has)


def _cuts(history: History, fetch: Fetch, oldest: int, places: Mapping[bytes, int]) -> bytes:
    cut = history.commits[oldest]
    lines = [b"shallow " + cut] if oldest and cut not in fetch.shallow else []
    lines += [b"unshallow " + id for id in sorted(fetch.shallow) if places.get(id, 0) > oldest]
    return b"".join(map(pkt_line, lines)) + pkt_line(None)


def _objects(history: History, places: Iterable[int]) -> Iterator[bytes]:
    """Yields the commits at these places, and what is in them; each once."""
    seen: set[bytes] = set()
    for place in places:
        pending = [history.commits[place]]
        while pending:
            id = pending.pop()
            if id in seen:
                continue
            seen.add(id)
            yield id
            match history.objects[id]:
                case Commit() as commit:
                    pending.append(commit.tree)
                case Tree() as tree:
                    pending.extend(entry.sha for entry in tree.items() if entry.sha)


@dataclass(frozen=True, slots=True)
class Push:
    """A client's request to move a ref from one commit to another, by the objects in a pack."""

    ref: bytes
    old: bytes
    new: bytes
    pack: bytes


def read_push(body: bytes) -> list[Push]:
    """Returns a push for each ref. Raises BadRequest."""
    lines, pack = _lines(body, until_flush=True)
    pushes: list[Push] = []
    for line in lines:
        command, _, capabilities = (line or b"").partition(b"\0")
        parts = command.rstrip(b"\n").split(b" ", 2)
        if len(parts) != 3:
            raise BadRequest(f"git-receive-pack does not know {command[:40]!r}")
        if b"object-format=sha256" in capabilities:
            raise BadRequest("objects are named by SHA-1 here")
        pushes.append(Push(parts[2], _id(parts[0]), _id(parts[1]), pack))
    return pushes


def report(refusals: Sequence[tuple[bytes, str]]) -> bytes:
    """Returns the answer to a push: each ref with why it was refused, empty for those that were not."""
    lines = [b"unpack ok\n"]
    for ref, why in refusals:
        reason = " ".join(why.split())[:500].encode()
        lines.append(b"ng " + ref + b" " + reason + b"\n" if why else b"ok " + ref + b"\n")
    return b"".join(map(pkt_line, lines)) + pkt_line(None)


def _lines(body: bytes, *, until_flush: bool = False) -> tuple[list[bytes | None], bytes]:
    """Returns the lines of a body, None for a flush; and what follows the first flush where they end with it."""
    if until_flush:
        at = 0
        while (size := body[at : at + 4]) not in (b"0000", b""):
            at += max(4, _size(size))
        body, rest = body[:at], body[at + 4 :]
    lines: list[bytes | None] = []
    parser = PktLineParser(lines.append)
    try:
        parser.parse(body)
    except (AssertionError, GitProtocolError, ValueError):
        raise BadRequest("the request is not in git's lines") from None
    if parser.get_tail():
        raise BadRequest("the request ends in the middle of a line")
    return lines, rest if until_flush else b""


def _size(digits: bytes) -> int:
    try:
        return int(digits, 16)
    except ValueError:
        raise BadRequest("the request is not in git's lines") from None


def _id(text: bytes) -> bytes:
    if len(text) != 40 or text.strip(b"0123456789abcdef"):
        raise BadRequest(f"{text[:50]!r} is no id of an object")
    return text
