"""The modules that a Python source imports and that Python itself does not have. Pure.

By its lines, not by its syntax: whoever asks only warns.
"""

import re
import sys

_IMPORT = re.compile(r"^\s*import\s+(?P<names>[\w., \t]+)", re.MULTILINE)
_FROM = re.compile(r"^\s*from\s+(?P<name>\w+)[\w.]*\s+import\b", re.MULTILINE)
_PYDANTIC = re.compile(r"\(\s*BaseModel\b")
_MOST = 50


def foreign_modules(source: str) -> tuple[str, ...]:
    """Returns their top names, sorted; Pydantic's where a class is of its BaseModel."""
    names = {match["name"] for match in _FROM.finditer(source)}
    for match in _IMPORT.finditer(source):
        parts = (part.split() for part in match["names"].split(","))
        names |= {words[0].partition(".")[0] for words in parts if words}
    if _PYDANTIC.search(source):
        names.add("pydantic")
    return tuple(sorted(name for name in names - sys.stdlib_module_names if name.isidentifier()))[:_MOST]
