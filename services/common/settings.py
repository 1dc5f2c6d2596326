"""Settings from the environment, and the frame in which a service's `__main__` runs.

Only `__main__.py` files read the environment, through `Env`. A setting that is missing or wrong ends the
process with one line that names the variable, says what is expected and gives an example.
"""

import asyncio
import gc
import os
import re
import resource
import stat
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar, overload

import uvloop

from services.common.process_cage import hide_process

T = TypeVar("T")

_OPEN_FILES = 65_536


class SettingsError(Exception):
    """A setting that is missing or wrong. Its text is one line for the operator and shows no secret."""


class _Required:
    """The default of a setting that has none."""


REQUIRED: Final = _Required()


class Env:
    """A mapping of environment variables, read with a type. Empty values count as unset.

    Every reader takes `default` (without one the variable is required), `expected` (what it is, in words) and
    `example`, which are used in the error alone, and raises SettingsError.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    @classmethod
    def of_process(cls) -> "Env":
        """Returns the environment of this process, as it is now."""
        return cls(dict(os.environ))

    @overload
    def text(self, name: str, *others: str, expected: str = ..., example: str = ...) -> str: ...
    @overload
    def text(self, name: str, *others: str, default: T, expected: str = ..., example: str = ...) -> str | T: ...
    def text(
        self,
        name: str,
        *others: str,
        default: object = REQUIRED,
        expected: str = "a text",
        example: str = "",
    ) -> object:
        """Returns the first that is set: `env.text("LOCI_MEMORY_DATABASE_URL", "LOCI_DATABASE_URL")`."""
        for candidate in (name, *others):
            if value := self._values.get(candidate, "").strip():
                return value
        if isinstance(default, _Required):
            raise SettingsError(_sentence(" or ".join((name, *others)), "is not set", expected, example))
        return default

    @overload
    def integer(self, name: str, *, least: int = ..., most: int | None = ..., example: str = ...) -> int: ...
    @overload
    def integer(
        self, name: str, *, default: T, least: int = ..., most: int | None = ..., example: str = ...
    ) -> int | T: ...
    def integer(
        self,
        name: str,
        *,
        default: object = REQUIRED,
        least: int = 0,
        most: int | None = None,
        example: str = "10",
    ) -> object:
        """Returns a whole number in [least, most]."""
        expected = f"a whole number of at least {least}" + ("" if most is None else f" and at most {most}")
        raw = self.text(name, default=default, expected=expected, example=example)
        if not isinstance(raw, str) or raw is default:
            return raw
        try:
            number = int(raw)
        except ValueError:
            raise SettingsError(_sentence(name, f"is {raw!r}", expected, example)) from None
        if number < least or (most is not None and number > most):
            raise SettingsError(_sentence(name, f"is {raw!r}", expected, example))
        return number

    @overload
    def seconds(self, name: str, *, example: str = ...) -> float: ...
    @overload
    def seconds(self, name: str, *, default: T, example: str = ...) -> float | T: ...
    def seconds(self, name: str, *, default: object = REQUIRED, example: str = "30") -> object:
        """Returns a span in seconds, fractions allowed, above zero."""
        expected = "a number of seconds above zero"
        raw = self.text(name, default=default, expected=expected, example=example)
        if not isinstance(raw, str) or raw is default:
            return raw
        try:
            span = float(raw)
        except ValueError:
            span = 0.0
        if not 0 < span < float("inf"):
            raise SettingsError(_sentence(name, f"is {raw!r}", expected, example))
        return span

    def fraction(self, name: str, *, default: float, example: str = "0.5") -> float:
        """Returns a number from 0 to 1."""
        raw = self.text(name, default=None)
        try:
            number = default if raw is None else float(raw)
        except ValueError:
            number = -1.0
        if not 0 <= number <= 1:
            raise SettingsError(_sentence(name, f"is {raw!r}", "a number from 0 to 1", example))
        return number

    def numbers(self, name: str, *, example: str = "some=1,other=0.5") -> dict[str, float]:
        """Returns numbers of at least zero by their names: `some=1,other=0.5`."""
        raw = self.text(name, default="")
        numbers = {}
        for part in filter(None, map(str.strip, raw.split(","))):
            key, _, value = (piece.strip() for piece in part.partition("="))
            try:
                numbers[key] = float(value)
            except ValueError:
                numbers[key] = -1.0
            if not key or not 0 <= numbers[key] < float("inf"):
                expected = "names with numbers of at least zero, separated by commas"
                raise SettingsError(_sentence(name, f"is {raw!r}", expected, example))
        return numbers

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Returns a truth value: 1, true, yes, on; or 0, false, no, off."""
        raw = self.text(name, default="")
        lowered = raw.lower()
        if not lowered:
            return default
        if lowered in {"1", "true", "yes", "on"}:
            return True
        if lowered in {"0", "false", "no", "off"}:
            return False
        raise SettingsError(_sentence(name, f"is {raw!r}", "true or false", "true"))

    @overload
    def choice(self, name: str, options: Sequence[str]) -> str: ...
    @overload
    def choice(self, name: str, options: Sequence[str], *, default: T) -> str | T: ...
    def choice(self, name: str, options: Sequence[str], *, default: object = REQUIRED) -> object:
        """Returns one of `options`, exactly as written."""
        expected = "one of " + ", ".join(options)
        raw = self.text(name, default=default, expected=expected, example=options[0])
        if raw is not default and raw not in options:
            raise SettingsError(_sentence(name, f"is {raw!r}", expected, options[0]))
        return raw

    @overload
    def path(self, name: str, *, example: str = ...) -> Path: ...
    @overload
    def path(self, name: str, *, default: T, example: str = ...) -> Path | T: ...
    def path(self, name: str, *, default: object = REQUIRED, example: str = "/var/lib/loci") -> object:
        """Returns a path with `~` expanded. Whether anything is there is the caller's question."""
        raw = self.text(name, default=default, expected="a path", example=example)
        return Path(raw).expanduser() if isinstance(raw, str) and raw is not default else raw

    @overload
    def content(self, name: str, *, secret: bool = ..., expected: str = ..., example: str = ...) -> str: ...
    @overload
    def content(
        self, name: str, *, default: T, secret: bool = ..., expected: str = ..., example: str = ...
    ) -> str | T: ...
    def content(
        self,
        name: str,
        *,
        default: object = REQUIRED,
        secret: bool = True,
        expected: str = "a value, or the path of a file that holds it",
        example: str = "/var/lib/loci/keys/key",
    ) -> object:
        """Returns the value itself, or the text of the file it names (`/...`, `~...` or `./...`).

        With `secret`, a file that its group or others can read is refused.
        """
        raw = self.text(name, default=default, expected=expected, example=example)
        if not isinstance(raw, str) or raw is default or not raw.startswith(("/", "~", "./")):
            return raw
        path = Path(raw).expanduser()
        if _BASE64_KEY.fullmatch(raw) and not path.exists():
            return raw
        try:
            mode = path.stat().st_mode
            text = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not text"
            raise SettingsError(
                _sentence(name, f"names {path}, which cannot be read ({why})", expected, example)
            ) from None
        if secret and stat.S_IMODE(mode) & 0o077:
            raise SettingsError(f"{name} names {path}, which others can read; run: chmod 600 {path}")
        return text


# One key of 32 bytes in 64 begins with "/" in base64.
_BASE64_KEY = re.compile(r"/[A-Za-z0-9+/]{42}=")


def _sentence(name: str, problem: str, expected: str, example: str) -> str:
    tail = f", for example {name.split(' or ')[0]}={example}" if example else ""
    return f"{name} {problem}; expected {expected}{tail}"


Main = Callable[[Env], Awaitable[None]]


def run_service(serve: Main, **commands: Main) -> None:
    """Runs `python -m services.<name> [command]` on uvloop: `run_service(serve, migrate=migrate)`.

    Exits with 2 and one line on stderr for a SettingsError or an unknown command.
    """
    name, *rest = sys.argv[1:] or [""]
    main = commands.get(name) if name else serve
    if main is None or rest:
        choices = "".join(f" [{command}]" for command in commands)
        _exit_with(f"usage: python -m services.<name>{choices}")
    else:
        _raise_open_files()
        _settle_memory()
        try:
            uvloop.run(_run_main(main))
        except SettingsError as error:
            _exit_with(str(error))
        except (KeyboardInterrupt, asyncio.CancelledError):
            sys.exit(130)


def _raise_open_files() -> None:
    """Allows as many open files as it may: 1,000 streams are 1,000 connections, and 1,024 a common default."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _OPEN_FILES if most == resource.RLIM_INFINITY else min(most, _OPEN_FILES)
    if least < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


def _settle_memory() -> None:
    """Takes what is imported out of the search for garbage: it stays to the end, and a first look through its hundreds
    of thousands of objects would fall into some early request, which it holds up by 50 to 100 ms."""
    gc.collect()
    gc.freeze()


async def _run_main(main: Main) -> None:
    hide_process()
    await main(Env.of_process())


def _exit_with(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
    sys.exit(2)
