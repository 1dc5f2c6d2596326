"""Bodies of answers, read as far as they may go. What is packed is unpacked here, because it may come to anything."""

import zlib

import httpx

ACCEPTED = "gzip"
_PLAIN = ("", "identity")
_PACKED = ("gzip", "x-gzip", "deflate")
# gzip or zlib, whichever it is.
_EITHER = zlib.MAX_WBITS | 32


class BodyTooLarge(Exception):
    """The body is not to be had; the text says why, and begins with a verb."""


async def read_bounded(response: httpx.Response, most: int) -> bytes:
    """Returns at most so many bytes, unpacked. Raises BodyTooLarge, httpx.HTTPError."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in (*_PLAIN, *_PACKED):
        raise BodyTooLarge(f"is packed as {encoding[:40]!r}, which was not asked for")
    unpacker = zlib.decompressobj(_EITHER) if encoding in _PACKED else None
    body = bytearray()
    async for chunk in response.aiter_raw():
        try:
            body += unpacker.decompress(chunk, most + 1 - len(body)) if unpacker else chunk
        except zlib.error:
            raise BodyTooLarge("is not packed as it says") from None
        if len(body) > most:
            raise BodyTooLarge(f"is larger than {most // 2**20} MiB")
    return bytes(body)
