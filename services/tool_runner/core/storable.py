"""Text that both Postgres and protobuf take: no NUL, no half of a surrogate pair. Pure."""

from typing import Any

from services.common.core.json_text import well_formed


def storable(value: Any) -> Any:
    """Returns JSON data with its texts, names included, made storable."""
    match value:
        case str():
            return well_formed(value.replace("\x00", "\ufffd"))
        case dict():
            return {storable(name): storable(part) for name, part in value.items()}
        case list():
            return [storable(part) for part in value]
    return value
