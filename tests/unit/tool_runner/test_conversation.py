"""The bytes of a worker: however they are cut, the same events; whatever they are, an event or BadWorker."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tool_runner.core.job import ExitReason, File, Job, Limits, Mode, Output
from services.tool_runner.sandboxes.protocol.answers import is_file_name
from services.tool_runner.sandboxes.protocol.connections import BadWorker
from services.tool_runner.sandboxes.protocol.conversation import Conversation
from services.tool_runner.sandboxes.protocol.events import (
    Answered,
    Closed,
    Event,
    Greeted,
    Opened,
    Received,
    Widened,
    Written,
)
from services.tool_runner.sandboxes.protocol.wire import CHUNK_BYTES, MOST_CONNECTIONS, WINDOW_BYTES, Frame, encode

HELLO = encode(Frame.HELLO, b"LOCI-WORKER 2 python")
LIMITS = Limits(capture=20, files=2, file_bytes=10, result=100)
OK = {"reason": "ok", "result": "1", "truncated": False, "files_dropped": 0, "edits": [["human", "new\x00"]]}


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def began(job: Job | None = None, *, network: bool = True) -> tuple[Conversation, bytes]:
    """A conversation with a job, and the nonce that its answer is to begin with."""
    talk = Conversation()
    assert list(talk.receive(HELLO)) == [Greeted()]
    job = job or Job("", "f", {}, limits=LIMITS)
    frames = list(talk.job(job, counted=True, network=network, authority=""))
    return talk, json.loads(frames[0][5:])["nonce"].encode()


def output(sequence: int, stream: int, data: bytes) -> bytes:
    return encode(Frame.OUTPUT, number(sequence), bytes((stream,)), data)


def answer(nonce: bytes, body: Any) -> bytes:
    return encode(Frame.ANSWER, nonce, json.dumps(body).encode())


def whole_call(nonce: bytes) -> bytes:
    return b"".join(
        [
            output(1, 1, "aé".encode()[:2]),
            output(2, 2, b"err\x00"),
            output(3, 1, "é".encode()[1:]),
            encode(Frame.OPEN, number(1)),
            encode(Frame.BYTES, number(1), b"GET /"),
            encode(Frame.WINDOW, number(1), number(9)),
            encode(Frame.BYTES, number(1)),
            encode(Frame.CLOSE, number(1)),
            output(4, 1, b"\xff"),
            encode(Frame.FILE, b"a/b.txt"),
            encode(Frame.DATA, b"xy"),
            encode(Frame.DATA, b"z"),
            encode(Frame.FILE, b"empty"),
            answer(nonce, OK),
        ]
    )


def heard(talk: Conversation, stream: bytes, size: int) -> list[Event]:
    return [event for at in range(0, len(stream), size) for event in talk.receive(stream[at : at + size])]


@given(st.integers(1, 400))
def test_bytes_mean_the_same_however_they_are_cut(size: int) -> None:
    talk, nonce = began()
    events = heard(talk, whole_call(nonce), size)
    *before, last = events
    assert before == [
        Output(1, "stdout", "a"),
        Output(2, "stderr", "err\ufffd"),
        Output(3, "stdout", "é"),
        Opened(1),
        Received(1, b"GET /"),
        Widened(1, 9),
        Received(1, b""),
        Closed(1),
        Output(4, "stdout", "\ufffd"),
    ]
    assert isinstance(last, Answered)
    result = last.result
    assert (result.reason, result.result, result.stdout, result.stderr) == (ExitReason.OK, "1", "aé\ufffd", "err\ufffd")
    assert result.files == (File("a/b.txt", b"xyz"), File("empty", b""))
    assert result.block_edits == (("human", "new\ufffd"),)


@given(st.binary(max_size=400))
def test_no_bytes_break_it(data: bytes) -> None:
    talk, _ = began()
    try:
        list(talk.receive(data))
        list(talk.receive(data[::-1]))
    except BadWorker:
        pass


@given(st.lists(st.tuples(st.sampled_from(list(Frame)), st.binary(max_size=60)), max_size=12))
def test_no_frames_break_it(frames: list[tuple[Frame, bytes]]) -> None:
    talk, _ = began()
    stream = b"".join(encode(kind, body) for kind, body in frames)
    try:
        events = list(talk.receive(stream))
    except BadWorker:
        return
    assert not any(isinstance(event, Answered) for event in events)


@given(
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(), st.lists, max_leaves=5)
)
def test_no_answer_breaks_it(part: Any) -> None:
    for name in OK:
        talk, nonce = began()
        try:
            (event,) = talk.receive(answer(nonce, OK | {name: part}))
        except BadWorker:
            continue
        assert isinstance(event, Answered)


@pytest.mark.parametrize(
    "frames",
    [
        [output(2, 1, b"x")],
        [output(1, 3, b"x")],
        [encode(Frame.OUTPUT, b"")],
        [output(1, 1, b"x" * 21)],
        [output(1, 1, b"x" * 15), output(2, 1, b"x" * 6)],
        [encode(Frame.HELLO, b"LOCI-WORKER 2 python")],
        [encode(Frame.GO)],
        [encode(Frame.INPUT, b"x")],
        [bytes((99,)) + number(0)],
        [bytes((Frame.OUTPUT,)) + b"\x7f\xff\xff\xff"],
        [bytes((Frame.ANSWER,)) + b"\x7f\xff\xff\xff"],
        [encode(Frame.DATA, b"x")],
        [encode(Frame.FILE, b"../x")],
        [encode(Frame.FILE, b"\xff")],
        [encode(Frame.FILE, b"a"), encode(Frame.FILE, b"a")],
        [encode(Frame.FILE, b"a"), encode(Frame.FILE, b"b"), encode(Frame.FILE, b"c")],
        [encode(Frame.FILE, b"a"), encode(Frame.DATA, bytes(11))],
        [encode(Frame.OPEN, number(2))],
        [encode(Frame.OPEN, number(1)), encode(Frame.OPEN, number(1))],
        [encode(Frame.OPEN, number(n + 1)) for n in range(MOST_CONNECTIONS + 1)],
        [encode(Frame.BYTES, number(1), b"x")],
        [encode(Frame.BYTES, b"x")],
        [encode(Frame.WINDOW, number(0), number(1))],
        [encode(Frame.OPEN, number(1)), encode(Frame.CLOSE, number(1)), encode(Frame.BYTES, number(1), b"x")],
        [encode(Frame.OPEN, number(1)), *[encode(Frame.BYTES, number(1), bytes(CHUNK_BYTES))] * 5],
        [answer(b"0" * 32, OK)],
        [encode(Frame.ANSWER, b"")],
    ],
)
def test_what_is_not_due_is_refused(frames: list[bytes]) -> None:
    talk, _ = began()
    with pytest.raises(BadWorker):
        list(talk.receive(b"".join(frames)))


@pytest.mark.parametrize(
    "body",
    [[], "x", {}, OK | {"reason": "fine"}, OK | {"reason": "raised"}, OK | {"edits": [["a"]]},
     OK | {"edits": {"a": 1}}, OK | {"files_dropped": "x"},
     {**OK, "reason": "raised", "error": {"type": "E", "message": 1, "traceback": ""}}],
)  # fmt: skip
def test_what_is_no_answer_is_refused(body: object) -> None:
    talk, nonce = began()
    with pytest.raises(BadWorker):
        list(talk.receive(answer(nonce, body)))


def test_a_result_that_is_no_json_is_the_tools_failure() -> None:
    for text in ("NaN", "{", "[" * 5000 + "]" * 5000):
        talk, nonce = began(Job("", "f", {}, limits=Limits()))
        (event,) = talk.receive(answer(nonce, OK | {"result": text}))
        assert isinstance(event, Answered)
        assert event.result.reason is ExitReason.BAD_RESULT


def test_it_answers_once_and_says_nothing_without_a_job() -> None:
    talk, nonce = began()
    list(talk.receive(answer(nonce, OK)))
    for again in (answer(nonce, OK), output(1, 1, b"x"), encode(Frame.OPEN, number(1))):
        with pytest.raises(BadWorker):
            list(talk.receive(again))
    for stranger in (b"Welcome to", encode(Frame.HELLO, b"LOCI-WORKER 1"), output(1, 1, b"")):
        with pytest.raises(BadWorker, match="another release"):
            list(Conversation().receive(stranger))


def test_there_are_no_connections_without_a_network() -> None:
    talk, _ = began(network=False)
    with pytest.raises(BadWorker):
        list(talk.receive(encode(Frame.OPEN, number(1))))


def test_a_connection_is_there_until_both_sides_closed_it() -> None:
    talk, _ = began()
    list(talk.receive(encode(Frame.OPEN, number(1))))
    talk.forget(1)
    assert list(talk.receive(encode(Frame.BYTES, number(1), b"late"))) == []
    assert list(talk.receive(encode(Frame.CLOSE, number(1)))) == []
    with pytest.raises(BadWorker):
        list(talk.receive(encode(Frame.CLOSE, number(1))))


def test_a_window_is_what_was_given_back() -> None:
    talk, _ = began()
    list(talk.receive(encode(Frame.OPEN, number(1))))
    full = encode(Frame.BYTES, number(1), bytes(CHUNK_BYTES)) * (WINDOW_BYTES // CHUNK_BYTES)
    assert len(list(talk.receive(full))) == 4
    talk.give_back(1, 5)
    assert list(talk.receive(encode(Frame.BYTES, number(1), b"12345"))) == [Received(1, b"12345")]
    with pytest.raises(BadWorker):
        list(talk.receive(encode(Frame.BYTES, number(1), b"6")))


def test_a_program_may_say_as_much_as_it_likes() -> None:
    talk, _ = began(Job("", "", {}, limits=LIMITS, mode=Mode.PROCESS, argv=("x",)))
    stream = output(1, 1, b"\xff" * 100) + output(2, 2, b"e" * 100) + encode(Frame.WINDOW, number(0), number(7))
    assert list(talk.receive(stream)) == [Written(b"\xff" * 100), Output(1, "stderr", "e" * 100), Widened(0, 7)]


def test_ids_and_sequences_go_on_in_the_next_call() -> None:
    talk, nonce = began()
    list(talk.receive(encode(Frame.OPEN, number(1)) + answer(nonce, OK)))
    frames = list(talk.job(Job("", "f", {}, limits=LIMITS), counted=True, network=True, authority=""))
    nonce = json.loads(frames[0][5:])["nonce"].encode()
    assert list(talk.receive(encode(Frame.OPEN, number(2)) + output(1, 1, b"x"))) == [
        Opened(2),
        Output(1, "stdout", "x"),
    ]
    assert len(list(talk.receive(answer(nonce, OK)))) == 1


def test_jobs_say_what_the_worker_needs() -> None:
    job = Job("s", "f", {"x": [1, None]}, {"A": "b"}, limits=Limits(seconds=3), inputs=(File("a", b"x" * 70_000),))
    talk = Conversation()
    frames = list(talk.job(job, counted=False, network=True, authority="PEM"))
    assert [Frame(frame[0]) for frame in frames] == [Frame.JOB, Frame.FILE, Frame.DATA, Frame.DATA, Frame.GO]
    fields = json.loads(frames[0][5:])
    assert (fields["mode"], fields["arguments"], fields["environment"]) == ("call", {"x": [1, None]}, {"A": "b"})
    assert (fields["limits"]["memory"], fields["limits"]["seconds"]) == (job.limits.memory, 3)
    assert (fields["network"], fields["authority"], fields["session"]) == (True, "PEM", False)


@pytest.mark.parametrize("name", ["a", "a/b.txt", "é x", ".hidden"])
def test_names_of_files(name: str) -> None:
    assert is_file_name(name)


@pytest.mark.parametrize(
    "name", ["", "/a", "a/", "a//b", "..", "a/../b", ".", "a\\b", "a\nb", "a\x00", "x" * 256, "\ud800"]
)
def test_names_that_are_none(name: str) -> None:
    assert not is_file_name(name)
