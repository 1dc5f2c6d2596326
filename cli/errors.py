"""The error that the `loci` command prints for its user."""

from __future__ import annotations


class CliError(Exception):
    """One clear line for the terminal; `code` is the exit status (2: a setting, 1: anything else)."""

    def __init__(self, message: str, *, code: int = 1) -> None:
        super().__init__(message)
        self.code = code
