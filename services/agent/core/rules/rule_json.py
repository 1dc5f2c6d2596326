"""Tool rules as the REST API and the database have them: the reference's JSON. Pure.

Every object has `type`, `tool_name` and `prompt_template`; the last is ignored, as in the reference, and always
null in what is given back. RequiresApproval has Loci's `timeout_seconds` and `on_timeout` where they are set.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, assert_never

from services.agent.core.rules.tool_rules import (
    Children,
    Conditional,
    ContinueLoop,
    ExitLoop,
    MaxCount,
    ParentLast,
    RequiredBeforeExit,
    RequiresApproval,
    RunFirst,
    ToolRule,
)

_SHOWN_CHARS = 60
_MOST_CALLS = 2**31 - 1
# A year: what comes of it has to be a time that a calendar knows.
_MOST_SECONDS = 31_536_000


def rules_from_json(items: Sequence[Any]) -> tuple[ToolRule, ...]:
    """Returns the rules; raises ValueError with a sentence that names the place and what is expected there."""
    return tuple(_read(_Fields(f"tool_rules[{index}]", item)) for index, item in enumerate(items))


def rules_to_json(rules: Iterable[ToolRule]) -> list[dict[str, Any]]:
    """Returns what `rules_from_json` reads, all fields of the type included."""
    return [_rule_to_json(rule) for rule in rules]


class _Fields:
    """The fields of one JSON object, each read as what it has to be."""

    def __init__(self, place: str, item: Any) -> None:
        if not isinstance(item, Mapping):
            raise _wrong(place, "an object", item)
        self._place = place
        self._item = item

    def value(self, name: str) -> Any:
        return self._item.get(name)

    def text(self, name: str) -> str:
        value = self._item.get(name)
        if not isinstance(value, str) or not value:
            raise self.wrong(name, "a text that is not empty")
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self._item.get(name) is None else self.text(name)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._item.get(name)
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            raise self.wrong(name, "a list of texts that are not empty")
        return tuple(value)

    def cases(self, name: str) -> dict[str, str]:
        value = self._item.get(name)
        if not isinstance(value, dict) or not all(isinstance(tool, str) and tool for tool in value.values()):
            raise self.wrong(name, "an object whose values are names of tools")
        return value

    def optional_object(self, name: str) -> dict[str, Any] | None:
        value = self._item.get(name)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(name, "an object or null")
        return value

    def flag(self, name: str) -> bool:
        value = self._item.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return bool(value)

    def count(self, name: str) -> int:
        value = self._item.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_CALLS:
            raise self.wrong(name, f"an integer from 1 to {_MOST_CALLS}")
        return value

    def optional_seconds(self, name: str) -> float | None:
        value = self._item.get(name)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= _MOST_SECONDS:
            raise self.wrong(name, f"a number of seconds above 0 and at most {_MOST_SECONDS}, or null")
        return float(value)

    def objects(self, name: str) -> list["_Fields"]:
        value = self._item.get(name)
        if value is not None and not isinstance(value, list):
            raise self.wrong(name, "a list of objects, or null")
        return [_Fields(f"{self._place}.{name}[{index}]", item) for index, item in enumerate(value or [])]

    def wrong(self, name: str, expected: str) -> ValueError:
        if name not in self._item:
            return ValueError(f"{self._place}.{name}: expected {expected}, but it is missing")
        return _wrong(f"{self._place}.{name}", expected, self._item[name])


def _children(fields: _Fields) -> Children:
    children = fields.texts("children")
    child_args = {}
    for node in fields.objects("child_arg_nodes"):
        if (name := node.text("name")) not in children:
            raise node.wrong("name", f"one of the children ({', '.join(children)})")
        if args := node.optional_object("args"):
            child_args[name] = args
    return Children(fields.text("tool_name"), children, child_args)


def _conditional(fields: _Fields) -> Conditional:
    return Conditional(
        fields.text("tool_name"),
        fields.cases("child_output_mapping"),
        fields.optional_text("default_child"),
        fields.flag("require_output_mapping"),
    )


def _requires_approval(fields: _Fields) -> RequiresApproval:
    name, seconds = fields.text("tool_name"), fields.optional_seconds("timeout_seconds")
    match fields.value("on_timeout"):
        case None | "deny":
            return RequiresApproval(name, seconds, "deny")
        case "approve":
            return RequiresApproval(name, seconds, "approve")
    raise fields.wrong("on_timeout", "approve or deny")


_READERS: dict[str, Callable[[_Fields], ToolRule]] = {
    "run_first": lambda fields: RunFirst(fields.text("tool_name"), fields.optional_object("args")),
    "constrain_child_tools": _children,
    "parent_last_tool": lambda fields: ParentLast(fields.text("tool_name"), fields.texts("children")),
    "conditional": _conditional,
    "max_count_per_step": lambda fields: MaxCount(fields.text("tool_name"), fields.count("max_count_limit")),
    "continue_loop": lambda fields: ContinueLoop(fields.text("tool_name")),
    "exit_loop": lambda fields: ExitLoop(fields.text("tool_name")),
    "required_before_exit": lambda fields: RequiredBeforeExit(fields.text("tool_name")),
    "requires_approval": _requires_approval,
}


def _read(fields: _Fields) -> ToolRule:
    reader = _READERS.get(fields.text("type"))
    if reader is None:
        raise fields.wrong("type", f"one of {', '.join(_READERS)}")
    return reader(fields)


def _rule_to_json(rule: ToolRule) -> dict[str, Any]:
    kind, fields = _kind_and_fields(rule)
    return {"type": kind, "tool_name": rule.tool_name, "prompt_template": None, **fields}


def _kind_and_fields(rule: ToolRule) -> tuple[str, dict[str, Any]]:
    match rule:
        case RunFirst(args=args):
            return "run_first", {"args": None if args is None else dict(args)}
        case Children(children=children, child_args=child_args):
            nodes = [{"name": name, "args": dict(args)} for name, args in child_args.items()]
            return "constrain_child_tools", {"children": list(children), "child_arg_nodes": nodes or None}
        case ParentLast(children=children):
            return "parent_last_tool", {"children": list(children)}
        case Conditional(child_output_mapping=mapping, default_child=default, require_output_mapping=strict):
            fields = {"default_child": default, "child_output_mapping": dict(mapping), "require_output_mapping": strict}
            return "conditional", fields
        case MaxCount(max_count=most):
            return "max_count_per_step", {"max_count_limit": most}
        case ContinueLoop():
            return "continue_loop", {}
        case ExitLoop():
            return "exit_loop", {}
        case RequiredBeforeExit():
            return "required_before_exit", {}
        case RequiresApproval(timeout_seconds=seconds, on_timeout=answer):
            timed = seconds is not None or answer != "deny"
            return "requires_approval", {"timeout_seconds": seconds, "on_timeout": answer} if timed else {}
    assert_never(rule)


def _wrong(place: str, expected: str, value: Any) -> ValueError:
    text = repr(value)
    cut = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
    return ValueError(f"{place}: expected {expected}, got {cut}")
