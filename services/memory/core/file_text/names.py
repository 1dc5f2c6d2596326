"""Names of files: the allowed ones, and a free one beside those in use."""

import re
import unicodedata
from collections.abc import Collection

from services.common.core.refusals import Refused

LONGEST_NAME = 255
# A name stands in prompts and in lists of one line each, and shall look like what it is: no marks of direction.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def normal_form(name: str) -> str:
    """Returns the name as stored: composed (NFC), as models and most clients write; macOS sends it decomposed."""
    return unicodedata.normalize("NFC", name)


def validate_file_name(name: str) -> str:
    """Returns the name without control characters; slashes stay, and mean nothing. Raises Refused (FILE_INVALID)."""
    own = normal_form(CONTROLS.sub("", name)).strip()
    if not own.strip("./\\ "):
        raise Refused("FILE_INVALID", f"{name[:LONGEST_NAME]!r} is no name of a file")
    if len(own) > LONGEST_NAME:
        raise Refused("FILE_INVALID", f"a file's name has at most {LONGEST_NAME} characters, this one {len(own)}")
    return own


def stem_and_suffix(name: str) -> tuple[str, str]:
    """Splits `report.pdf` into ("report", ".pdf"); names that begin with their only dot have no suffix."""
    stem, dot, extension = name.rpartition(".")
    return (stem, dot + extension) if stem.rpartition("/")[2] and "/" not in extension else (name, "")


def free_name(name: str, taken: Collection[str]) -> str:
    """Returns the name, or the first free one of `report_(1).pdf`, `report_(2).pdf` ..., cut to what is allowed."""
    if name not in taken:
        return name
    stem, suffix = stem_and_suffix(name)
    for number in range(1, len(taken) + 2):
        mark = f"_({number}){suffix}"
        candidate = stem[: LONGEST_NAME - len(mark)] + mark
        if candidate not in taken:
            return candidate
    raise AssertionError("one of n + 1 names is free where n are taken")
