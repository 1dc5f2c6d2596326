"""Bodies that are too long, too dense, or come too slowly: memory and time stay bounded."""

import gzip
import time
import zlib
from collections.abc import AsyncIterator
from itertools import repeat

import httpx2
import pytest

from services.llm_gateway.core import ndjson, sse
from services.llm_gateway.core.ndjson import NdjsonParser
from services.llm_gateway.core.reply_builder import MOST_CHARACTERS, ReplyBuilder, ReplyTokens
from services.llm_gateway.core.sse import SseParser
from services.llm_gateway.http.bodies import MOST_OF_ERROR, beginning_of, content_of
from services.llm_gateway.vendors.bedrock.framing import EventStreamParser

_MIB = 1024 * 1024


class _Body(httpx2.AsyncByteStream):
    """Counts what is taken of it."""

    def __init__(self, *chunks: bytes, times: int = 1) -> None:
        self._chunks, self._times = chunks, times
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self._times):
            for chunk in self._chunks:
                self.taken += len(chunk)
                yield chunk


def _response(body: _Body, encoding: str = "") -> httpx2.Response:
    return httpx2.Response(200, stream=body, headers={"content-encoding": encoding} if encoding else {})


async def test_a_long_body_is_left_where_it_is_too_long() -> None:
    body = _Body(b"x" * _MIB, times=1000)
    with pytest.raises(ValueError, match="longer than"):
        await content_of(_response(body), 3 * _MIB)
    assert body.taken <= 4 * _MIB


async def test_of_an_error_only_the_beginning_is_read() -> None:
    body = _Body(b"x" * 65_536, times=1000)
    assert await beginning_of(_response(body)) == b"x" * MOST_OF_ERROR
    assert body.taken <= MOST_OF_ERROR + 65_536


def _bare(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", _bare)]
)
async def test_what_is_packed_is_unpacked_however_it_is_cut(encoding: str, packed: object) -> None:
    text = bytes(range(256)) * 20_000
    data: bytes = packed(text)  # type: ignore[operator]
    cut = [data[start : start + 7] for start in range(0, len(data), 7)]
    assert await content_of(_response(_Body(*cut), encoding), 10 * _MIB) == text


async def test_a_bomb_bursts_at_the_limit() -> None:
    packed = zlib.compressobj(9, wbits=31)
    zeros = b"\0" * _MIB
    bomb = b"".join(packed.compress(zeros) for _ in repeat(None, 500)) + packed.flush()
    with pytest.raises(ValueError, match="longer than"):
        await content_of(_response(_Body(bomb), "gzip"), 2 * _MIB)


async def test_what_is_packed_is_read_to_its_end_but_not_for_ever() -> None:
    packed = gzip.compress(b"{}")
    body = _Body(packed, b"\0" * 100, b"")
    assert await content_of(_response(body, "gzip"), _MIB) == b"{}"
    assert body.taken == len(packed) + 100
    endless = _Body(packed, times=100_000)
    with pytest.raises(ValueError, match="follow its end"):
        await content_of(_response(endless, "gzip"), _MIB)
    assert endless.taken < 70_000


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", "x-unknown"])
async def test_what_was_not_asked_for_is_not_unpacked(encoding: str) -> None:
    with pytest.raises(ValueError, match="not asked for"):
        await content_of(_response(_Body(gzip.compress(gzip.compress(b"hello"))), encoding), _MIB)


async def test_what_is_not_packed_as_it_says() -> None:
    with pytest.raises(ValueError, match="not gzip"):
        await content_of(_response(_Body(b"{}"), "gzip"), _MIB)
    assert await beginning_of(_response(_Body(b"{}"), "gzip")) == b""


def _fed(parser: SseParser | NdjsonParser, chunk: bytes) -> int:
    """Returns how many events came of a thousand such chunks."""
    return sum(len(parser.feed(chunk)) for _ in range(1_000))


def test_a_line_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MOST_OF_EVENT", 100_000)
    monkeypatch.setattr(ndjson, "MOST_OF_LINE", 100_000)
    parser, lines = SseParser(), NdjsonParser()
    with pytest.raises(ValueError, match="longer than"):
        _fed(parser, b"data: " + b"x" * 1_000)
    with pytest.raises(ValueError, match="longer than"):
        _fed(lines, b"x" * 1_000)


def test_an_event_of_lines_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MOST_OF_EVENT", 100_000)
    parser = SseParser()
    with pytest.raises(ValueError, match="longer than"):
        _fed(parser, b"data: " + b"x" * 1_000 + b"\n")


def test_events_that_end_are_no_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MOST_OF_EVENT", 100_000)
    parser = SseParser()
    assert _fed(parser, b"data: " + b"x" * 1_000 + b"\n\n: ping\n\n") == 1_000


def test_a_long_event_in_small_pieces_costs_little() -> None:
    """A copy of all that waits for each piece would be 80 GB here."""
    piece, parser, frames = b"x" * 100, SseParser(), EventStreamParser()
    frames.feed((5_000_000).to_bytes(4, "big"))
    began = time.process_time()
    for _ in range(40_000):
        parser.feed(piece)
        frames.feed(piece)
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("length", [0, 3, 15, 2**31, 2**32 - 1])
def test_a_frame_of_an_impossible_length(length: int) -> None:
    with pytest.raises(ValueError, match="a frame of"):
        EventStreamParser().feed(length.to_bytes(4, "big"))


def test_a_reply_has_an_end() -> None:
    builder = ReplyBuilder()
    with pytest.raises(ValueError, match="a reply of more than"):
        [builder.add_text("text", "x" * (MOST_CHARACTERS // 50)) for _ in range(100)]
    many = ReplyBuilder()
    with pytest.raises(ValueError, match="a reply of more than"):
        [many.begin_call(number, "", "f") for number in range(MOST_CHARACTERS)]


def test_log_probabilities_of_a_long_reply_cost_little() -> None:
    tokens = ReplyTokens()
    piece = {"content": [{"token": "a", "logprob": -0.1}]}
    began = time.process_time()
    for _ in range(50_000):
        tokens.add_logprobs(piece)
    assert time.process_time() - began < 1.0
    assert piece == {"content": [{"token": "a", "logprob": -0.1}]}
