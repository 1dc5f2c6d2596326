"""Files that clients upload: the multipart body is read as it comes and streamed on, so that no file is held here."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from gateway.errors.invalid import InvalidRequest
from gateway.peers import Peers
from gateway.rest.client_streams import call_with_stream
from loci.memory.v1 import folder_service_pb2
from services.common.errors import Cancelled

# Of one message; the service takes up to 1 MiB.
_PIECE_BYTES = 512 * 1024
_FIELD = b"file"
# A large file over a slow line.
_SECONDS = 3600.0


@dataclass(frozen=True)
class FilePart:
    """The part of a body that is the file. `pieces` can be read once; `rest` reads what follows, and drops it."""

    name: str
    media_type: str
    pieces: AsyncIterator[bytes]
    stream: AsyncIterator[bytes]

    async def rest(self) -> None:
        """So that a client who is still sending gets to read the answer."""
        async for _ in self.stream:
            pass


async def file_part(request: Request) -> FilePart:
    """Returns the part named `file` of a multipart body, once its header is there. Raises InvalidRequest."""
    reader, stream = _Reader(_boundary(request)), _body(request)
    async for chunk in stream:
        reader.feed(chunk)
        if reader.is_in_file:
            return FilePart(reader.name, reader.media_type, _pieces(reader, stream), stream)
    raise InvalidRequest("`file`: the body has no such part, or it has no file name", "body", "file")


async def store(
    peers: Peers, header: folder_service_pb2.UploadHeader, pieces: AsyncIterator[bytes]
) -> folder_service_pb2.UploadFileResponse:
    """Streams a file to the memory service. Raises LociError."""
    call = peers.folders.UploadFile(timeout=_SECONDS, wait_for_ready=True)
    parts = (folder_service_pb2.UploadFileRequest(data=piece) async for piece in pieces)
    first = [folder_service_pb2.UploadFileRequest(header=header)]
    response: folder_service_pb2.UploadFileResponse = await call_with_stream(call, first, parts)
    return response


def _boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise InvalidRequest("`file`: send it as multipart/form-data, in a part of this name", "body", "file")
    return boundary


async def _body(request: Request) -> AsyncIterator[bytes]:
    """Raises Cancelled when the client leaves."""
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect:
        raise Cancelled("the client left in the middle of an upload") from None


async def _pieces(reader: "_Reader", stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    while not reader.is_at_end:
        if len(reader.data) >= _PIECE_BYTES:
            yield reader.take()
        chunk = await anext(stream, None)
        if chunk is None:
            raise InvalidRequest("`file`: the body ends in the middle of it", "body", "file")
        reader.feed(chunk)
    while reader.data:
        yield reader.take()


class _Reader:
    """Finds the first part named `file` that has a file name, and holds what has come of it."""

    def __init__(self, boundary: bytes) -> None:
        self.name = ""
        self.media_type = ""
        self.is_in_file = False
        self.is_at_end = False
        self.data = bytearray()
        self._header, self._value = b"", b""
        self._headers: dict[bytes, bytes] = {}
        names = ("part_begin", "part_data", "part_end", "header_field", "header_value", "header_end")
        callbacks = {f"on_{name}": getattr(self, f"_{name}") for name in (*names, "headers_finished")}
        try:
            self._parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type] # a dict with its keys
        except FormParserError as error:
            raise InvalidRequest(f"the body cannot be read: {error}", "header", "content-type") from None

    def feed(self, chunk: bytes) -> None:
        """Raises InvalidRequest for what is no multipart body."""
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise InvalidRequest(f"the body is not multipart/form-data: {error}", "body") from None

    def take(self) -> bytes:
        """Returns the next bytes of the file."""
        piece = bytes(self.data[:_PIECE_BYTES])
        del self.data[:_PIECE_BYTES]
        return piece

    def _part_begin(self) -> None:
        self._headers = {}

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header, self._value = b"", b""

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if self.name or options.get(b"name") != _FIELD or not options.get(b"filename"):
            return
        # Some clients send the whole path.
        self.name = _text(options[b"filename"]).replace("\\", "/").rpartition("/")[2]
        self.media_type = _text(self._headers.get(b"content-type", b""))
        self.is_in_file = True

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self.is_in_file and not self.is_at_end:
            self.data += data[start:end]

    def _part_end(self) -> None:
        self.is_at_end = self.is_at_end or self.is_in_file


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
