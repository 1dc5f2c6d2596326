"""`run_code`: a program of the model's, run in the sandbox; see `runner.py`."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="run_code",
    tool_type=ToolType.LETTA_BUILTIN,
    parallel=True,
    description="""\
Run a program in a sandbox and see what it printed and the value of its last expression.

There is no network, and nothing is left of it but the files it writes to its working directory, which are kept for
the user. Print what you want to see.

Examples:
    run_code(code="import statistics\\nstatistics.mean([2, 3, 10])", language="python")
    run_code(code="console.log([1, 2].map(x => x * 2))", language="js")""",
    properties={
        "code": {"type": "string", "maxLength": 200_000, "description": "The program."},
        "language": {
            "type": "string",
            "enum": ["python", "js", "ts", "r", "java"],
            "description": "What it is written in: python, js or ts; r and java are not installed here.",
        },
        "files": {
            "type": "array",
            "items": {"type": "string", "format": "file"},
            "description": "Ids of files (execfile-...) that the program finds below /inputs.",
        },
    },
    required=("code", "language"),
)
