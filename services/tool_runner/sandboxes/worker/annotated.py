"""Arguments of JSON as what a function's annotations say they are: models, dataclasses, Enums, dates, sets.

What is annotated as str, int, list and the like goes as it came. Objects whose class cannot be found, and those without
an annotation where the client gave a schema, have attributes: see `objects.py`. A value that its own class refuses is
the tool's error.
"""

import collections.abc
import enum
from typing import Any

from .objects import as_object

_AS_IT_IS = frozenset({"str", "int", "float", "bool", "list", "dict", "None", "Any", "object"})
_UNSAID = object()
_SEQUENCES = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_SETS = {set: set, frozenset: frozenset, collections.abc.Set: set, collections.abc.MutableSet: set}
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
# By module and name: a tool that does not use them does not pay for them.
_FROM_TEXT = {
    ("datetime", "datetime"): "fromisoformat",
    ("datetime", "date"): "fromisoformat",
    ("datetime", "time"): "fromisoformat",
    ("uuid", "UUID"): "",
    ("decimal", "Decimal"): "",
    ("pathlib", "Path"): "",
}


def as_annotated(function: Any, arguments: dict[str, Any], schema: Any = None) -> dict[str, Any]:
    """Returns the arguments for this function. `schema`: what the client said they are, empty where it said nothing.

    Raises whatever a class of the tool's raises.
    """
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    try:
        annotations = function.__annotations__
    except (AttributeError, NameError):  # a callable of another kind; a name that is there for type checkers only
        annotations = {}
    names = getattr(function, "__globals__", {})
    known = schema.get("properties", {}) if schema else {}
    return {
        name: _argument(annotations.get(name), value, names, known.get(name) if schema else _UNSAID)
        for name, value in arguments.items()
    }


def _argument(annotation: Any, value: Any, names: dict[str, Any], schema: Any) -> Any:
    """Returns one argument. `schema`: _UNSAID where the client gave none."""
    if annotation is None:
        return value if schema is _UNSAID else as_object(value, schema)
    if value is None or _is_plain(annotation):
        return value
    if (resolved := _resolve(annotation, names)) is None:
        return as_object(value, schema)
    return _convert(resolved, value, names)


def _is_plain(annotation: Any) -> bool:
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return annotation is None or (name in _AS_IT_IS and not getattr(annotation, "__args__", None))


def _convert(annotation: Any, value: Any, names: dict[str, Any]) -> Any:
    annotation = _resolve(annotation, names)
    if value is None or (annotation is not None and _is_plain(annotation)):
        return value
    if annotation is None:
        return as_object(value)
    if inner := getattr(annotation, "__args__", ()):
        return _in_form(annotation, inner, value, names)
    return _build(annotation, value, names) if isinstance(annotation, type) else value


def _resolve(annotation: Any, names: dict[str, Any]) -> Any:
    """Returns what a name, a forward reference, a NewType or an alias stands for; None where that cannot be found."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", None)
    if text is not None:
        try:
            return _resolve(eval(text, names), names)  # text in text, where annotations are postponed
        except Exception:  # noqa: BLE001 - the annotation is the tool's own code; without it the value goes as it came
            return None
    for name in ("__supertype__", "__value__"):
        if hasattr(annotation, name):
            return _resolve(getattr(annotation, name), names)
    return annotation


def _in_form(annotation: Any, inner: tuple[Any, ...], value: Any, names: dict[str, Any]) -> Any:
    """Converts for `Form[inner]`."""
    if hasattr(annotation, "__metadata__"):  # Annotated
        return _convert(annotation.__origin__, value, names)
    form = getattr(annotation, "__origin__", None)
    if form in _MAPPINGS and isinstance(value, dict):
        return {key: _convert(inner[-1], each, names) for key, each in value.items()}
    if isinstance(value, list):
        if form in _SETS:
            return _SETS[form](_convert(inner[0], each, names) for each in value)
        if form is tuple:
            return _tuple(inner, value, names)
        if form in _SEQUENCES:
            return [_convert(inner[0], each, names) for each in value]
    if form is None or "Union" in str(form):
        return _one_of(inner, value, names)
    if "Literal" in str(form):
        return next((option for option in inner if isinstance(option, enum.Enum) and option.value == value), value)
    return value


def _tuple(inner: tuple[Any, ...], value: list[Any], names: dict[str, Any]) -> Any:
    if inner[-1] is ...:
        return tuple(_convert(inner[0], each, names) for each in value)
    if len(inner) != len(value):
        return tuple(value)
    return tuple(_convert(kind, each, names) for kind, each in zip(inner, value, strict=True))


def _one_of(kinds: tuple[Any, ...], value: Any, names: dict[str, Any]) -> Any:
    """Returns the value as the first kind of a union that takes it; where only one could, raises its error."""
    kinds = tuple(kind for kind in (_resolve(kind, names) for kind in kinds) if kind not in (None, type(None)))
    if type(value) in kinds:
        return value
    if len(kinds) == 1:
        return _convert(kinds[0], value, names)
    for kind in kinds:
        try:
            found = _convert(kind, value, names)
        except Exception:  # noqa: BLE001 - the next kind may take it
            continue
        if found is not value:
            return found
    return value


def _build(kind: type, value: Any, names: dict[str, Any]) -> Any:
    """Returns an object of a class."""
    if isinstance(value, dict):
        for name in ("model_validate", "parse_obj"):  # Pydantic 2, and 1
            if callable(make := getattr(kind, name, None)):
                return make(value)
        if hasattr(kind, "__dataclass_fields__"):
            fields = kind.__dataclass_fields__
            return kind(**{n: _convert(fields[n].type if n in fields else None, v, names) for n, v in value.items()})
        if hasattr(kind, "_fields"):  # a NamedTuple
            types = kind.__annotations__
            return kind(**{name: _convert(types.get(name), part, names) for name, part in value.items()})
        return value if issubclass(kind, dict) else as_object(value)
    if issubclass(kind, enum.Enum) and not isinstance(value, kind):
        return kind(value)
    make = _FROM_TEXT.get((kind.__module__.partition(".")[0], kind.__name__))
    if make is None or not isinstance(value, str | int | float):
        return value
    return (getattr(kind, make) if make else kind)(value if isinstance(value, str) else str(value))
