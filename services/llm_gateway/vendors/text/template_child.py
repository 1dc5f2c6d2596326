"""The limited child in which templates are rendered: it holds nothing, may use little, and a crash ends it alone.

A template is a program, and a tenant may have written it: Jinja's sandbox keeps it from Python's insides, this process
keeps it from taking the gateway's time and memory. It first says READY; then, on stdin and stdout, a line of JSON for
each prompt: {"template", "context"} in, {"prompt"} or {"error"}, a sentence, out. It goes by itself when nobody asks
for a while.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from services.common.process_limits import limit_process

MEMORY_BYTES = 512 * 1024 * 1024
LONGEST_PROMPT = 16 * 1024 * 1024
READY = b"ready\n"
_IDLE_SECONDS = 60
_WIDEST_INDENT = 32
# What a template that is wrong runs into; anything else ends this process, which says as much.
_FAULTS = (jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def _limit() -> None:
    os.nice(5)
    limit_process(memory_bytes=MEMORY_BYTES, open_files=32)


@lru_cache(maxsize=8)
def _compile(source: str) -> jinja2.Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = datetime.now().astimezone().strftime
    return environment.from_string(source)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: Sequence[str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As models' templates expect it: not escaped for HTML. Other options of `json.dumps` would be code to call."""
    if not isinstance(indent, int | None) or (indent or 0) > _WIDEST_INDENT:
        raise TypeError(f"indent is a number up to {_WIDEST_INDENT}")
    between = None
    if separators is not None:
        item, key = separators
        if not (isinstance(item, str) and isinstance(key, str)):
            raise TypeError("separators are two texts")
        between = (item, key)
    return json.dumps(
        value, ensure_ascii=bool(ensure_ascii), indent=indent, separators=between, sort_keys=bool(sort_keys)
    )


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def render(template: str, context: Mapping[str, Any]) -> dict[str, str]:
    """The answer to one request."""
    try:
        pieces, size = [], 0
        for piece in _compile(template).generate(**context):
            size += len(piece)
            if size > LONGEST_PROMPT:
                return {"error": f"the prompt has more than {LONGEST_PROMPT:,} characters"}
            pieces.append(piece)
    except (MemoryError, RecursionError):
        return {"error": "it needs too much memory"}
    except _FAULTS as error:
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    return {"prompt": "".join(pieces)}


def main() -> None:
    """Say that it is ready, then read and answer until stdin ends."""
    _limit()
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    while True:
        signal.alarm(_IDLE_SECONDS)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        signal.alarm(0)
        request = json.loads(line)
        sys.stdout.write(f"{json.dumps(render(request['template'], request['context']))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
