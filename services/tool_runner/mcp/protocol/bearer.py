"""Tokens that requests to a server carry. Pure."""

from typing import Protocol


class Bearer(Protocol):
    """A source of OAuth tokens."""

    async def token(self) -> str:
        """Returns a good one; "" where there is none. Raises McpProblem."""
        ...

    async def renew_after(self, refused: str) -> str:
        """Returns another token than the refused one; "" where there is none. Raises McpProblem."""
        ...


class NoBearer:
    """No OAuth."""

    async def token(self) -> str:
        """Returns ""."""
        return ""

    async def renew_after(self, refused: str) -> str:
        """Returns ""."""
        return ""
