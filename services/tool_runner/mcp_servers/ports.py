"""The database and the sandboxes as MCP servers need them."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from services.tool_runner.core.model import Tool
from services.tool_runner.core.ports import Process
from services.tool_runner.mcp_servers.model import Server, Status, Stdio


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOutcome:
    """The outcome of listing a server's tools. The store sets `synced_at` where `status` is CONNECTED."""

    status: Status
    problem: str = ""
    tool_problems: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """An authorisation under way. `attempt` and `tokens` are JSON text, opened; `outcome` as stored."""

    organization_id: UUID
    user_id: UUID
    server_id: UUID | None
    attempt: str
    outcome: "AuthorizationOutcome"
    problem: str
    tokens: str
    expires_at: datetime


AuthorizationOutcome = int
# Of an authorisation; stored.
WAITING, GIVEN, REFUSED, TAKEN = 0, 1, 2, 3


class McpStore(Protocol):
    """The servers of all tenants. Secrets are sealed and opened in it."""

    async def insert(self, organization_id: UUID, user_id: UUID, server: Server, most: int) -> Server:
        """Adds it; one that has the id is returned as it is. Raises AlreadyExists, Refused beyond `most`."""
        ...

    async def find(self, organization_id: UUID, server_id: UUID) -> Server | None:
        """Returns a server by id."""
        ...

    async def find_by_name(self, organization_id: UUID, name: str) -> Server | None:
        """Returns a server by name."""
        ...

    async def all(self, organization_id: UUID) -> list[Server]:
        """Returns all servers, oldest first."""
        ...

    async def of_tools(self, organization_id: UUID, tool_ids: Sequence[UUID]) -> list[Server]:
        """Returns the servers that have one of these tools, by name."""
        ...

    async def update(
        self, organization_id: UUID, user_id: UUID, server: Server, *, forget_oauth: bool
    ) -> Server | None:
        """Replaces all but the tools of version `server.version`; None where that is gone. Raises AlreadyExists."""
        ...

    async def note(self, organization_id: UUID, server_id: UUID, outcome: SyncOutcome) -> None:
        """Stores the outcome of listing its tools; its version stays."""
        ...

    async def note_contact(self, organization_id: UUID, server_id: UUID, status: Status, problem: str) -> None:
        """Stores what a call showed of it; its version, and when its tools were listed, stay."""
        ...

    async def delete(self, organization_id: UUID, server_id: UUID) -> bool:
        """Deletes it with its tools; returns whether there was one."""
        ...

    async def tools(self, organization_id: UUID, server_id: UUID) -> list[Tool]:
        """Returns its tools in the catalogue, by name."""
        ...

    async def names_in_use(self, organization_id: UUID, names: Collection[str], server_id: UUID) -> set[str]:
        """Returns those that other tools than this server's have."""
        ...

    async def drop_tools(self, organization_id: UUID, server_id: UUID, ids: Sequence[UUID]) -> None:
        """Removes tools of it."""
        ...


class TokenStore(Protocol):
    """OAuth at rest."""

    async def read(self, organization_id: UUID, server_id: UUID) -> str:
        """Returns the OAuth state as JSON text; "" for nothing."""
        ...

    async def write(self, organization_id: UUID, server_id: UUID, oauth: str) -> None:
        """Replaces it, and ends the lease."""
        ...

    async def lease(self, organization_id: UUID, server_id: UUID, seconds: float) -> bool:
        """Returns whether the caller, and nobody else for so long, may renew it."""
        ...

    async def release(self, organization_id: UUID, server_id: UUID) -> None:
        """Ends the lease, everything else as it is."""
        ...

    async def begin(
        self, state: str, organization_id: UUID, user_id: UUID, server_id: UUID | None, attempt: str, seconds: float
    ) -> None:
        """Remembers an attempt by its state, for so long."""
        ...

    async def waiting(self, state: str) -> Authorization | None:
        """Returns the attempt, if it is not over."""
        ...

    async def take(self, state: str) -> Authorization | None:
        """Returns the attempt, for the one who finishes it; None for everybody else, and once it is over."""
        ...

    async def end(self, state: str, outcome: AuthorizationOutcome, *, problem: str = "", tokens: str = "") -> None:
        """Stores the outcome."""
        ...

    async def forget(self, state: str) -> None:
        """Removes it, and those long over."""
        ...


class Programs(Protocol):
    """Starts servers that are programs, in sandboxes."""

    async def ready(
        self, organization_id: UUID, program: Stdio, server_id: UUID | None
    ) -> AbstractAsyncContextManager[Process]:
        """Returns a block in which it runs, with its packages installed. Raises McpProblem.

        `server_id`: whose folder it has; None, for a server that is not stored: one that goes with it.
        """
        ...

    async def forget(self, organization_id: UUID, server_id: UUID | None) -> None:
        """Removes what a server that is gone had kept; None: all servers of a tenant that is."""
        ...
