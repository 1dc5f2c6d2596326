"""Tokens that requests to a server carry. Pure."""

from typing import Protocol


class Bearer(Protocol):
    """Where the tokens of OAuth come from."""

    async def token(self) -> str:
        """Returns a good one; "" where there is none. Raises McpProblem."""
        ...

    async def renewed(self, refused: str) -> str:
        """Another one than that which was refused; "" where there is none. Raises McpProblem."""
        ...


class NoBearer:
    """No OAuth."""

    async def token(self) -> str:
        """None."""
        return ""

    async def renewed(self, refused: str) -> str:
        """None."""
        return ""
