"""`fetch_webpage`: run here; see `web/fetch.py`."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="fetch_webpage",
    tool_type=ToolType.LETTA_BUILTIN,
    parallel=True,
    description="""\
Fetch a page of the web and read it: its main content as Markdown, without menus and advertisements.

Examples:
    fetch_webpage(url="https://example.com/article")""",
    properties={"url": {"type": "string", "maxLength": 2048, "description": "The page's address, with https://."}},
    required=("url",),
)
