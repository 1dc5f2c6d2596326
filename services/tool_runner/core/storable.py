"""Text that both Postgres and protobuf take: no NUL, no half of a surrogate pair. Pure."""

from typing import Any


def storable(value: Any) -> Any:
    """Returns JSON data with its texts, names included, made storable."""
    match value:
        case str():
            return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
        case dict():
            return {storable(name): storable(part) for name, part in value.items()}
        case list():
            return [storable(part) for part in value]
    return value
