"""The arguments of a call before anything runs: as JSON, and with a rule's values. Pure.

Whoever runs the call checks them against the tool's schema. Only what a tool rule gives is checked here: when that does
not fit, it is the rule that is wrong, not the model, and the run ends.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.common.core.storable import storable

MOST_BYTES = 1024 * 1024
_MOST_PROBLEMS = 5
# Keywords that can make a check take as long as their author likes; a schema with one is left to who runs the tool.
_COSTLY = ('"pattern"', '"patternProperties"', '"$ref"', '"$dynamicRef"')
# Characters of schema and values, multiplied: so often one may be compared with the other.
_MOST_COMPARED = 4_000_000


@dataclass(frozen=True, slots=True)
class Problem:
    """The faults in the arguments of a call: at most five sentences, each beginning with the place."""

    sentences: tuple[str, ...]

    def message(self, name: str) -> str:
        """Returns the return of the call of tool `name`, for the model."""
        return "\n".join((f"Nothing was run: the arguments of {name} do not fit its schema.", *self.sentences))


def parse(arguments: str) -> dict[str, Any] | Problem:
    """Returns the arguments as the model wrote them; "" counts as none, a text that is an object's JSON as that."""
    if len(arguments) > MOST_BYTES:
        return Problem((f"the arguments have {len(arguments)} characters; at most {MOST_BYTES} are accepted",))
    try:
        value = json.loads(arguments or "{}", parse_constant=_refuse)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = json.loads(value, parse_constant=_refuse)
    except RecursionError:
        return Problem(("the arguments are too deeply nested",))
    except ValueError as error:
        return Problem((f"the arguments are not valid JSON: {str(error)[:200]}",))
    if not isinstance(value, dict):
        return Problem((f"the arguments must be a JSON object, not {storable(arguments[:40])}",))
    return value


def prefill(arguments: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments with those that a tool rule gives over the model's."""
    return {**arguments, **values}


def arguments_to_json(arguments: Mapping[str, Any]) -> str:
    """Returns the arguments as JSON: in their own characters, fewer tokens than escapes, where those can be stored."""
    text = json.dumps(arguments, ensure_ascii=False)
    return text if storable(text) == text else json.dumps(arguments)


def check_prefilled(values: Mapping[str, Any], schema: Mapping[str, Any]) -> Problem | None:
    """Returns what is wrong with values that a rule gives, by the tool's `parameters`.

    What is missing may yet come from the model. None where nothing is, and where nothing can be said: the schema is
    costly to check, or is none.
    """
    # 12 MB, and few agents have a rule that gives arguments.
    import jsonschema  # noqa: PLC0415

    applied = {keyword: wanted for keyword, wanted in schema.items() if keyword != "required"}
    known = schema.get("properties")
    if isinstance(known, Mapping):
        applied.setdefault("additionalProperties", False)
    try:
        text = json.dumps(schema)
        if any(keyword in text for keyword in _COSTLY) or len(text) * len(json.dumps(values)) > _MOST_COMPARED:
            return None
        jsonschema.Draft202012Validator.check_schema(applied)
        errors = list(jsonschema.Draft202012Validator(applied).iter_errors(dict(values)))
    # Anybody may have written the schema: what it does to the check says nothing of the values.
    except Exception:  # noqa: BLE001
        return None
    problems = tuple(f"{error.json_path}: {storable(error.message[:400])}" for error in errors[:_MOST_PROBLEMS])
    return Problem(problems) if problems else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
