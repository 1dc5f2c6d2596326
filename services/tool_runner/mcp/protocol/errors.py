"""The errors of an MCP server, as one exception. Pure."""

from enum import StrEnum


class Kind(StrEnum):
    """The kind of an error; each has a status of its own."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    OAUTH_REQUIRED = "oauth_required"  # it answered 401: nobody gave leave yet, or it ended
    FAILED = "failed"  # it answered with an error, or not in its protocol
    DISABLED = "disabled"  # programs are off here


class McpProblem(Exception):
    """A server that could not be used; the text is a sentence for people.

    arrived: whether a request may have arrived, so that it may have acted. fresh: whether a new session may help.
    challenge: with OAUTH_REQUIRED, what the server said in `WWW-Authenticate`.
    """

    def __init__(
        self, kind: Kind, message: str, *, arrived: bool = False, fresh: bool = False, challenge: str = ""
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.arrived = arrived
        self.fresh = fresh
        self.challenge = challenge


class ServerError(Exception):
    """The server answered a request with an error of the protocol."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
