"""Errors as services raise and see them: one class per gRPC status, with `google.rpc.ErrorInfo` on the wire.

A handler raises a LociError; the server's interceptor sends it as status + ErrorInfo. A caller turns what it
caught into a LociError again with `from_rpc`. Reasons are listed in protos/loci/common/v1/error.proto.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

DOMAIN = "loci"
STATUS_METADATA_KEY = "grpc-status-details-bin"
# gRPC refuses metadata above 8 KiB by default, and the message travels in it twice.
_LONGEST_MESSAGE = 2_000


class LociError(Exception):
    """A failure that has a meaning for the caller. Raise a subclass.

    reason: UPPER_SNAKE, stable, what programs branch on; message: a sentence for people; metadata: short
    texts that go with the reason; details: further google.rpc messages (packed in Any once received).
    """

    code: ClassVar[grpc.StatusCode] = grpc.StatusCode.UNKNOWN
    # Characters of a metadata value that travel; what is longer is cut.
    longest_value: ClassVar[int] = 500

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        details: Iterable[Message] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.code.name
        self.metadata = dict(metadata or {})
        self.details = tuple(details)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reason}: {self.message})"


class InvalidArgument(LociError):
    """The request itself is wrong, whatever the state."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class NotFound(LociError):
    """There is no such thing for this tenant."""

    code = grpc.StatusCode.NOT_FOUND


class AlreadyExists(LociError):
    """The id or name is taken."""

    code = grpc.StatusCode.ALREADY_EXISTS


class FailedPrecondition(LociError):
    """Wrong in the present state; retrying does not help until that changes."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class Aborted(LociError):
    """Lost against a concurrent change; read again and retry."""

    code = grpc.StatusCode.ABORTED


class ResourceExhausted(LociError):
    """A limit is reached: rate, size, quota, or a full queue."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class PermissionDenied(LociError):
    """The caller is known and may not do this."""

    code = grpc.StatusCode.PERMISSION_DENIED


class Unauthenticated(LociError):
    """Nobody vouches for the caller."""

    code = grpc.StatusCode.UNAUTHENTICATED


class Unavailable(LociError):
    """The service, or what it needs, cannot be reached now."""

    code = grpc.StatusCode.UNAVAILABLE


class DeadlineExceeded(LociError):
    """The time ran out; whether the work was done is not known."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class Internal(LociError):
    """A bug on the other side."""

    code = grpc.StatusCode.INTERNAL


class Cancelled(LociError):
    """The call was cancelled, by its caller as a rule."""

    code = grpc.StatusCode.CANCELLED


class OutOfRange(LociError):
    """Past the end of what exists."""

    code = grpc.StatusCode.OUT_OF_RANGE


class Unimplemented(LociError):
    """The peer has no such method."""

    code = grpc.StatusCode.UNIMPLEMENTED


class DataLoss(LociError):
    """Data that was stored or sent is damaged."""

    code = grpc.StatusCode.DATA_LOSS


class Unknown(LociError):
    """The peer gave no usable status."""

    code = grpc.StatusCode.UNKNOWN


_CLASSES: dict[grpc.StatusCode, type[LociError]] = {
    cls.code: cls
    for cls in (
        InvalidArgument,
        NotFound,
        AlreadyExists,
        FailedPrecondition,
        Aborted,
        ResourceExhausted,
        PermissionDenied,
        Unauthenticated,
        Unavailable,
        DeadlineExceeded,
        Internal,
        Cancelled,
        OutOfRange,
        Unimplemented,
        DataLoss,
        Unknown,
    )
}
_BY_NUMBER: dict[int, type[LociError]] = {code.value[0]: cls for code, cls in _CLASSES.items()}


_LOST = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL})


def cursor_not_found(field: str, cursor: str) -> NotFound:
    """Returns the error for a cursor that names no object of the list. `field`: of PageRequest, `after` or `before`."""
    return NotFound(f"The cursor {cursor} was not found", reason="CURSOR_NOT_FOUND", metadata={"field": field})


def to_status(error: LociError) -> status_pb2.Status:
    """Returns the google.rpc.Status of an error: code, message, ErrorInfo first, then its own details.

    Long messages and metadata values are cut with a marker, because both travel in HTTP/2 headers.
    """
    info = error_details_pb2.ErrorInfo(
        reason=error.reason,
        domain=DOMAIN,
        metadata={key: _cut(value, error.longest_value) for key, value in error.metadata.items()},
    )
    status = status_pb2.Status(code=error.code.value[0], message=_cut(error.message, _LONGEST_MESSAGE))
    for message in (info, *error.details):
        if isinstance(message, AnyMessage):
            status.details.append(message)
        else:
            status.details.add().Pack(message)
    return status


def from_status(status: status_pb2.Status) -> LociError:
    """Returns the inverse of `to_status`; without an ErrorInfo the reason is the status's name."""
    reason, metadata, details = "", {}, []
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if not reason and detail.Unpack(info):
            reason, metadata = info.reason, dict(info.metadata)
        else:
            details.append(detail)
    cls = _BY_NUMBER.get(status.code, Unknown)
    return cls(status.message, reason=reason, metadata=metadata, details=details)


def from_rpc(error: grpc.RpcError) -> LociError:
    """Returns the LociError that a failed call stands for, from a Loci service or not.

    Loci's servers always send ErrorInfo. What comes without is gRPC's own word: UNAVAILABLE (no connection), and
    UNKNOWN or INTERNAL ("Stream removed", a reset) for a connection lost in the middle of a call. All three are
    Unavailable with the reason PEER_UNAVAILABLE.
    """
    if not isinstance(error, grpc.aio.AioRpcError):
        return Unknown(str(error) or type(error).__name__)
    status = _status_in(error.trailing_metadata())
    if status is not None:
        return from_status(status)
    sentence = error.details() or error.code().name
    if error.code() in _LOST:
        return Unavailable(sentence, reason="PEER_UNAVAILABLE")
    return _CLASSES.get(error.code(), Unknown)(sentence)


def _status_in(metadata: Iterable[tuple[str, Any]] | None) -> status_pb2.Status | None:
    for key, value in metadata or ():
        if key == STATUS_METADATA_KEY:
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:
                return None
    return None


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text) - longest} more characters)"
