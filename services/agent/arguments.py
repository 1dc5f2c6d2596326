"""The arguments of a call before anything runs: as JSON, against the tool's schema, with a rule's values. Pure.

The sentences are those of the tool runner, which checks once more and more: here, on a shared event loop, only small
arguments are checked, and only by schemas whose check is quick (json_schema.py). Most are. What is no JSON Schema, or
one with references or patterns, means "not checked here".
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from services.agent.json_schema import Path, faults, is_checkable, listed

MOST_BYTES = 1024 * 1024
_MOST_CHECKED_CHARS = 64 * 1024
_MOST_PROBLEMS = 5
# What models trained on the reference add out of habit; the tool runner drops it.
_HABITS = frozenset({"request_heartbeat"})
# With one of these a schema itself decides about arguments that it does not name.
_SPEAKS_OF_OTHERS = frozenset({"additionalProperties", "anyOf", "oneOf"})


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with the arguments of a call: at most five sentences, each beginning with the place."""

    sentences: tuple[str, ...]

    def told(self, name: str) -> str:
        """The return of the call of tool `name`, for the model."""
        return "\n".join((f"Nothing was run: the arguments of {name} do not fit its schema.", *self.sentences))


def parse(arguments: str) -> dict[str, Any] | Problem:
    """The arguments as the model wrote them; "" counts as none."""
    if len(arguments) > MOST_BYTES:
        return Problem((f"the arguments have {len(arguments)} characters; at most {MOST_BYTES} are accepted",))
    try:
        value = json.loads(arguments or "{}", parse_constant=_refuse)
    except RecursionError:
        return Problem(("the arguments are too deeply nested",))
    except ValueError as error:
        return Problem((f"the arguments are not valid JSON: {str(error)[:200]}",))
    if not isinstance(value, dict):
        return Problem((f"the arguments must be a JSON object, not {_storable(arguments[:40])}",))
    return value


def prefill(arguments: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with those that a tool rule gives over the model's."""
    return {**arguments, **values}


def check(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Problem | None:
    """What is wrong with the arguments by the tool's `parameters`; None where nothing is, or nothing can be said."""
    return _problem(arguments, schema, schema)


def check_prefilled(values: Mapping[str, Any], schema: Mapping[str, Any]) -> Problem | None:
    """The same for the arguments that a tool rule gives: what is missing may yet come from the model."""
    return _problem(values, schema, {keyword: wanted for keyword, wanted in schema.items() if keyword != "required"})


def _problem(arguments: Mapping[str, Any], schema: Any, applied: Any) -> Problem | None:
    try:
        if not is_checkable(schema) or len(json.dumps(arguments, ensure_ascii=False)) > _MOST_CHECKED_CHARS:
            return None
        given = {name: value for name, value in arguments.items() if not _left_out(name, value, schema)}
        found = tuple(islice(_distinct(_sentences(given, applied)), _MOST_PROBLEMS))
    except RecursionError:
        return None
    return Problem(found) if found else None


def _sentences(given: dict[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown(given, schema)
    for path, text in faults(given, schema):
        yield f"{_place(path)}: {text}"


def _distinct(sentences: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for sentence in sentences:
        if sentence not in seen:
            seen.add(sentence)
            yield _storable(sentence)


def _place(path: Path) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or "arguments"


def _storable(text: str) -> str:
    """Without NUL and halves of surrogate pairs, which JSON can hold and Postgres cannot."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _left_out(name: str, value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether the runner takes it as not given: models write null for an argument that they leave out."""
    known = schema.get("properties", {})
    if name not in known:
        return name in _HABITS
    return value is None and name not in schema.get("required", ()) and not _admits_null(known[name])


def _admits_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return True
    if "type" in schema:
        return "null" in listed(schema["type"])
    if "enum" in schema:
        return None in schema["enum"]
    return "anyOf" not in schema or any(map(_admits_null, schema["anyOf"]))


def _unknown(given: Iterable[str], schema: Mapping[str, Any]) -> Iterator[str]:
    """Arguments that the function would refuse as unexpected."""
    if _SPEAKS_OF_OTHERS & schema.keys():
        return
    known = schema.get("properties", {})
    for name in given:
        if name not in known:
            yield f"{name}: is not an argument of this tool; it takes {', '.join(known) or 'none'}"
