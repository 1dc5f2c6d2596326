"""`run_code_with_tools`: a program that may call the agent's other tools; see `runner.py`."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="run_code_with_tools",
    tool_type=ToolType.LETTA_BUILTIN,
    description="""\
Run a Python program in a sandbox that can call your other tools as functions, by their names and with keyword
arguments; each gives what the tool returned. Tools that need approval cannot be called this way.

Use it where several calls depend on one another, or where their returns are to be counted, sorted or filtered. Print
what you want to see; the value of the last expression is shown, too.

Examples:
    run_code_with_tools(code="[roll_dice(num_sides=sides) for sides in (4, 6, 8)]")""",
    properties={"code": {"type": "string", "maxLength": 200_000, "description": "The Python program."}},
    required=("code",),
)
