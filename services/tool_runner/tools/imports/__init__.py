"""Tools of other libraries, made ours from their own descriptions: none of those libraries is imported here. Pure."""

from services.common.core.refusals import Refused
from services.tool_runner.core.model import JsonObject
from services.tool_runner.tools.imports import composio, langchain
from services.tool_runner.tools.imports.definition import ImportedTool

_LIBRARIES = {"langchain": langchain.import_class, "composio": composio.import_action}


def import_tool(library: str, definition: JsonObject) -> ImportedTool:
    """Returns what `definition` comes to. Raises Refused (TOOL_SCHEMA_INVALID), naming the member."""
    make = _LIBRARIES.get(library)
    if make is None:
        raise Refused("TOOL_SCHEMA_INVALID", f"library is {library[:40]!r}; there are {', '.join(_LIBRARIES)}")
    return make(definition)
