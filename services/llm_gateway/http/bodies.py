"""Bodies of responses, read with bounds: the server may be hostile, or broken.

Bodies are held in memory at most to these lengths, counted after decompression, which is done in steps so that no small
body becomes a huge one at once.
"""

import zlib
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing

import httpx2

_MIB = 1024 * 1024
# Of a whole reply; the longest are those with many vectors.
MOST_OF_REPLY = 64 * _MIB
# Of all events of one reply, many of which may be pings.
MOST_OF_STREAM = 256 * _MIB
# Of a list of models. Such lists are shorter than this by far.
MOST_OF_LIST = 8 * _MIB
MOST_LISTED = 20_000
# Of an error, of which a sentence is quoted.
MOST_OF_ERROR = 256 * 1024

_STEP = _MIB
# What may follow the end of what is packed, in bytes.
_MOST_AFTER = 64 * 1024
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


async def content_of(response: httpx2.Response, most: int) -> bytes:
    """Returns the whole body. Raises ValueError for one that is longer than `most` bytes, or encoded as nobody asked
    for.
    """
    pieces, size = [], 0
    async for chunk in chunks_of(response):
        size += len(chunk)
        if size > most:
            raise ValueError(f"it is longer than {most:,} bytes")
        pieces.append(chunk)
    return b"".join(pieces)


async def beginning_of(response: httpx2.Response) -> bytes:
    """Returns the body of an error, of a longer one its beginning. Bytes that cannot be decoded are left out."""
    pieces, size = [], 0
    try:
        async with aclosing(_all(chunks_of(response))) as chunks:
            async for chunk in chunks:
                pieces.append(chunk)
                size += len(chunk)
                if size >= MOST_OF_ERROR:
                    break
    except ValueError:
        pass
    return b"".join(pieces)[:MOST_OF_ERROR]


def chunks_of(response: httpx2.Response) -> AsyncIterable[bytes]:
    """Returns the body as it comes. The response's own iterators cost more than all else that is done with a chunk.
    Raises ValueError where its encoding is wrong.
    """
    if not isinstance(response.stream, httpx2.AsyncByteStream):
        return response.aiter_bytes()
    encoding = response.headers.get("content-encoding", "").strip().lower()
    return response.stream if encoding in ("", "identity") else _decode(response.stream, encoding)


async def _all(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    async for chunk in chunks:
        yield chunk


async def _decode(chunks: AsyncIterable[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    if encoding not in _WINDOWS:
        raise ValueError(f"it is encoded as {encoding[:40]!r}, which was not asked for")
    decoder, is_first, after = zlib.decompressobj(_WINDOWS[encoding]), True, 0
    try:
        async for chunk in chunks:
            if not chunk:
                continue
            if decoder.eof:
                # Only a body that was read to its end leaves a connection that is used again.
                after += len(chunk)
                if after > _MOST_AFTER:
                    raise ValueError(f"{after:,} bytes follow its end")
                continue
            if is_first and encoding == "deflate" and not _has_zlib_header(chunk):
                decoder = zlib.decompressobj(-zlib.MAX_WBITS)
            is_first = False
            while chunk and not decoder.eof:
                if piece := decoder.decompress(chunk, _STEP):
                    yield piece
                chunk = decoder.unconsumed_tail
        if rest := decoder.flush(_STEP):
            yield rest
    except zlib.error as error:
        raise ValueError(f"it is not {encoding} as it says ({error})") from error


def _has_zlib_header(chunk: bytes) -> bool:
    """Some servers send deflated data bare (RFC 9110, section 8.4.1.2)."""
    return chunk[0] & 0x0F == zlib.DEFLATED and (len(chunk) < 2 or int.from_bytes(chunk[:2], "big") % 31 == 0)
