"""Where a block stands in the repository: `system/<label>.md`, with the slashes of its label as folders. Pure."""

import re
from urllib.parse import unquote

_ROOT, _SUFFIX = "system/", ".md"
# What some system cannot have in a file's name, or reads as something else.
_UNSAFE = frozenset('%\\:*?"<>|~')
# A part of a label that is empty.
_NOTHING = "%"
_EDGES = re.compile(r"^\.|[. ]$")


def path_of(label: str) -> str:
    """Returns the path of a block's file. Different labels have different ones, and no file is another's folder."""
    *folders, name = label.split("/")
    return _ROOT + "".join(f"{_folder(part)}/" for part in folders) + _part(name) + _SUFFIX


def label_of(path: str) -> str | None:
    """Returns the label of the block whose file this is; None: no block's."""
    if not path.startswith(_ROOT) or not path.endswith(_SUFFIX):
        return None
    parts = path.removeprefix(_ROOT).removesuffix(_SUFFIX).split("/")
    try:
        label = "/".join("" if part == _NOTHING else unquote(part, errors="strict") for part in parts)
    except UnicodeDecodeError:
        return None
    return label if "\0" not in label and path_of(label) == path else None


def _folder(part: str) -> str:
    part = _part(part)
    return f"{part.removesuffix(_SUFFIX)}%2E{_SUFFIX[1:]}" if part.endswith(_SUFFIX) else part


def _part(text: str) -> str:
    if not text:
        return _NOTHING
    encoded = "".join(_quoted(sign) if sign in _UNSAFE or not sign.isprintable() else sign for sign in text)
    return _EDGES.sub(lambda match: _quoted(match[0]), encoded)


def _quoted(sign: str) -> str:
    return "".join(f"%{byte:02X}" for byte in sign.encode())
