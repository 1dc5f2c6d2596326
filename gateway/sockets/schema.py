"""The JSON Schema of every frame of our WebSockets.

`python -m gateway.sockets.schema > docs/websocket.schema.json` writes it.
"""

import json
import sys

from gateway.sockets.frames import Frames


def schema() -> str:
    """Returns both directions, as `client` and `server`."""
    described = Frames.model_json_schema(mode="validation")
    described["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema())
