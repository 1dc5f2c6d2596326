"""Events of a worker, as the runner hears them. Pure."""

from dataclasses import dataclass

from services.tool_runner.core.job import Output, Result


@dataclass(frozen=True, slots=True)
class Greeted:
    """It is ready for a job."""


@dataclass(frozen=True, slots=True)
class Written:
    """A program wrote this to its stdout."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Opened:
    """The tool connected to the proxy; ids rise."""

    connection: int


@dataclass(frozen=True, slots=True)
class Received:
    """From a connection; b"": its end in this direction."""

    connection: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Widened:
    """So many more bytes may be sent; connection 0 is a program's stdin."""

    connection: int
    size: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection is gone."""

    connection: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The call ended; every connection with it."""

    result: Result


Event = Greeted | Output | Written | Opened | Received | Widened | Closed | Answered
