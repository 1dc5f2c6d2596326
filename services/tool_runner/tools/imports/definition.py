"""The outcome of an import, and the common parts of all libraries' definitions. Pure."""

import hashlib
import json
import keyword
import re
from dataclasses import dataclass
from typing import Any

from services.common.core.refusals import Refused
from services.tool_runner.core.model import JsonObject, ToolChanges, ToolType

_LONGEST_NAME, _LONGEST_DESCRIPTION = 48, 20_000
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CALLED = {"str": "text", "dict": "an object", "list": "a list"}
# What the made source itself uses.
_TAKEN = frozenset({"asyncio", "importlib", "json", "os", "urllib"})
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTool:
    """A tool in our terms. JSON as values; `packages` are {"name", "version"?}."""

    tool_type: ToolType
    name: str
    description: str
    parameters: JsonObject
    source_code: str
    packages: tuple[JsonObject, ...] = ()
    network: JsonObject | None = None
    tags: tuple[str, ...] = ()

    def draft(self, settings: ToolChanges) -> ToolChanges:
        """Returns what is stored, with the settings that the client gave besides; packages, hosts and tags add up."""
        schema = {"name": self.name, "description": self.description, "parameters": self.parameters}
        draft: ToolChanges = {**settings}
        draft["source_type"], draft["source_code"] = "python", self.source_code
        draft["json_schema"], draft["args_json_schema"] = json.dumps(schema, ensure_ascii=False), None
        draft["tags"] = tuple(dict.fromkeys((*settings.get("tags", ()), *self.tags)))
        packages = [*self.packages, *json.loads(settings.get("pip_requirements") or "[]")]
        draft["pip_requirements"] = json.dumps(packages) if packages else ""
        network = _together(self.network or {}, json.loads(settings.get("network") or "{}"))
        draft["network"] = json.dumps(network) if network else ""
        return draft


def _together(ours: JsonObject, theirs: JsonObject) -> JsonObject:
    allow = [*ours.get("allow", []), *(host for host in theirs.get("allow", []) if host not in ours.get("allow", []))]
    secrets = {**ours.get("secrets", {}), **theirs.get("secrets", {})}
    return {**({"allow": allow} if allow else {}), **({"secrets": secrets} if secrets else {})}


def member(definition: JsonObject, name: str, kind: type, default: Any) -> Any:
    """Returns a member of a definition, `default` where it is missing or null. Raises Refused."""
    value = definition.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or isinstance(value, bool):
        raise refusal(name, f"must be {_CALLED[kind.__name__]}")
    return value


def describe(definition: JsonObject, fallback: str) -> str:
    """Returns its description, as the model reads it. Raises Refused."""
    text: str = member(definition, "description", str, "").strip() or fallback
    return text[:_LONGEST_DESCRIPTION]


def parameters_of(definition: JsonObject, *names: str) -> JsonObject | None:
    """Returns the first of the members `names` that is there: a JSON Schema of an object. Raises Refused."""
    for name in names:
        schema: JsonObject | None = member(definition, name, dict, None)
        if schema is not None:
            if schema.get("type", "object") != "object":
                raise refusal(name, "must be a JSON Schema of type object")
            return {"properties": {}, **schema, "type": "object"}
    return None


def function_name(text: str) -> str:
    """Returns a name that a function can have, at most 48 characters: a longer one is cut and gets a hash."""
    name = _NOT_IN_NAMES.sub("_", _BETWEEN_WORDS.sub("_", text)).strip("_").lower() or "tool"
    if name[0].isdigit() or keyword.iskeyword(name) or name in _TAKEN:
        name = f"tool_{name}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 9]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def literal(value: Any) -> str:
    """Returns JSON data as Python source that gives its text: no part of it can end the literal."""
    return repr(json.dumps(value, ensure_ascii=True))


def refusal(name: str, problem: str) -> Refused:
    """Returns the refusal of a member of a definition."""
    return Refused("TOOL_SCHEMA_INVALID", f"definition.{name} {problem}")
