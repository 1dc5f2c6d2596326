"""Objects of JSON for functions that expect a model whose class is not in their source.

As in the reference, where `args_json_schema` says what the arguments are, they have attributes and `model_dump`, nested
ones too. They are dicts all the same, for tools that read them as such.
"""

import json
from collections.abc import Mapping
from typing import Any

# Of Pydantic 1.
_OLDER = {"dict": "model_dump", "json": "model_dump_json"}


class Model(dict[str, Any]):
    """An object of JSON. What its schema knows and was not given is its default, or None: as attribute alone."""

    _defaults: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        if name in self._defaults:
            return self._defaults[name]
        if name in _OLDER:
            return getattr(self, _OLDER[name])
        raise AttributeError(f"there is no {name!r}; there are: {', '.join(map(str, self))}")

    def __getattribute__(self, name: str) -> Any:
        # A field may be called as a method is: `items`, `values`, `copy`.
        if name in _METHODS and callable(own := dict.get(self, name)):
            return own
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def model_dump(self, *, exclude_none: bool = False, exclude_unset: bool = False, **_: Any) -> dict[str, Any]:
        """Returns plain data, with defaults; Pydantic's other options say nothing here."""
        whole = ({} if exclude_unset else dict(self._defaults)) | {name: self[name] for name in self}
        return {name: _plain(value) for name, value in whole.items() if not (exclude_none and value is None)}

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """Returns it as JSON."""
        return json.dumps(self.model_dump(**options), indent=indent, ensure_ascii=False)


_METHODS = frozenset(name for name in dir(Model) if not name.startswith("_"))
_EXTENSIBLE = (str, int, float, list, Model)


def as_object(value: Any, schema: Any = None) -> Any:
    """Returns the value with each object in it as a Model, by its schema where there is one."""
    if isinstance(value, list):
        return [as_object(each, _parts(schema, "items")) for each in value]
    if type(value) is not dict:
        return value
    known = _parts(schema, "properties")
    model = Model({name: as_object(each, known.get(name)) for name, each in value.items()})
    defaults = {name: _default(part) for name, part in known.items() if name not in value}
    object.__setattr__(model, "_defaults", defaults)
    for name in _METHODS & value.keys():
        model[name] = _field_and_method(model, name)
    return model


def _parts(schema: Any, name: str) -> dict[str, Any]:
    """Returns a member of the schema that is an object; of the kinds of a union together."""
    if not isinstance(schema, dict):
        return {}
    found: dict[str, Any] = {}
    for word in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(word) or ():
            found |= _parts(option, name)
    own = schema.get(name)
    return found | own if isinstance(own, dict) else found


def _default(schema: Any) -> Any:
    return as_object(schema.get("default"), schema) if isinstance(schema, dict) else None


def _field_and_method(model: Model, name: str) -> Any:
    """Returns the field, which may be called as the method of its name; what cannot be extended is itself."""
    value, method = model[name], object.__getattribute__(model, name)
    if type(value) not in _EXTENSIBLE:
        return value
    kind = type(type(value).__name__, (type(value),), {"__call__": lambda _, *args, **words: method(*args, **words)})
    both = kind(value)
    if isinstance(value, Model):
        object.__setattr__(both, "_defaults", value._defaults)
    return both


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return value.model_dump()
    return [_plain(each) for each in value] if isinstance(value, list) else value
