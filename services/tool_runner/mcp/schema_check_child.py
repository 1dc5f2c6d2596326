"""The limited child that looks at the schemas of a server's tools, one after the other.

In: a line for each, JSON of [name, parameters]. Out: a line for each, JSON of what is wrong, "" where all is well.
Where this process dies, its parent knows by the lines which one it was.
"""

import json
import sys

from services.tool_runner.child_processes import source_parser_child
from services.tool_runner.core.schemas import validation
from services.tool_runner.core.schemas.errors import SchemaError


def main() -> None:
    """Reads, answers."""
    source_parser_child.limit()
    for line in sys.stdin.buffer:
        try:
            name, parameters = json.loads(line)
            validation.check_parameters(name, parameters)
            problem = ""
        except SchemaError as error:
            problem = error.message
        except (RecursionError, MemoryError):
            problem = "its inputSchema is too deeply nested to read"
        print(json.dumps(problem), flush=True)


if __name__ == "__main__":
    main()
