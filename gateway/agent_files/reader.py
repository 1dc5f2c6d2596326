"""An agent file from its bytes, whatever its form. Pure.

Three forms occur and are told apart by looking: a JSON text that holds the JSON, the current form (`agents`), and the
legacy one (`core_memory`).
"""

from typing import Any

from pydantic import ValidationError

from gateway.agent_files.checks import check, invalid_file
from gateway.agent_files.legacy import is_legacy, to_current
from gateway.agent_files.schema import AgentFile
from gateway.rest import json_body as body

# As the reference says it.
_CORRUPTED = "Corrupted agent file format."
# A message has about five.
_MOST_CONTAINERS = 500_000
# A text in a text in a text: more is no accident.
_MOST_WRAPPINGS = 5


def read(data: bytes) -> AgentFile:
    """Returns the file, checked. Raises InvalidArgument (AGENT_FILE_INVALID)."""
    return of_document(_unwrapped(data))


def of_document(document: Any) -> AgentFile:
    """Returns the same of a file that is JSON already."""
    if not isinstance(document, dict):
        raise invalid_file(_CORRUPTED)
    if is_legacy(document):
        document = to_current(document)
    if "agents" not in document:
        raise invalid_file(f"{_CORRUPTED} It has neither `agents` nor, as older files, `core_memory`.")
    try:
        file = AgentFile.model_validate(document)
    except ValidationError as error:
        raise invalid_file(_told(error)) from None
    check(file)
    return file


def _unwrapped(data: bytes) -> Any:
    if encoding := _other_encoding(data):
        raise invalid_file(f"{_CORRUPTED} It is {encoding}, and JSON is UTF-8: save it as UTF-8.")
    value: Any = data.removeprefix(b"\xef\xbb\xbf")
    for _ in range(_MOST_WRAPPINGS):
        try:
            value = body.parse(value.encode() if isinstance(value, str) else value, _MOST_CONTAINERS)
        except body.InvalidJson as error:
            raise invalid_file(f"{_CORRUPTED} It is refused: {error.msg}.") from None
        except ValueError:
            raise invalid_file(_CORRUPTED) from None
        if not isinstance(value, str):
            return value
    raise invalid_file(_CORRUPTED)


def _other_encoding(data: bytes) -> str:
    """Returns what a file is encoded in that is not UTF-8; "" for UTF-8. Every JSON text begins with an ASCII
    character."""
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")) or data[:3] == b"\0\0\0":
        return "UTF-32"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:2]:
        return "UTF-16"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"in another encoding (byte {error.start:,} is no UTF-8)"
    return ""


def _told(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{_CORRUPTED} {where[:200]}: {first['msg']}"
