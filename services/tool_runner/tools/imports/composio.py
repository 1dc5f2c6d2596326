"""Composio actions: called over Composio's HTTP API with the tenant's key, which never enters the sandbox. Pure.

The definition is what `GET /api/v3/tools/{slug}` of Composio answers, or the part of it that is needed:

    {"slug": "GITHUB_CREATE_AN_ISSUE", "description": "...", "input_parameters": {JSON Schema of an object},
     "version": "20250909_00", "user_id": "default", "connected_account_id": "ca_..."}

`name` stands for `slug`, and `parameters` for `input_parameters`. Who acts may also be said by the variables
COMPOSIO_USER_ID and COMPOSIO_CONNECTED_ACCOUNT_ID. Source: Composio's API reference, v3.1.
"""

import re

from services.tool_runner.core.model import JsonObject, ToolType
from services.tool_runner.tools.imports.definition import (
    ImportedTool,
    describe,
    function_name,
    literal,
    member,
    parameters_of,
    refusal,
)

HOST = "backend.composio.dev"
KEY = "COMPOSIO_API_KEY"
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")
_FIXED = ("user_id", "connected_account_id", "version")

_SOURCE = """import json
import os
import urllib.error
import urllib.request

ADDRESS = "https://{host}/api/v3.1/tools/execute/{slug}"


def {name}(**arguments):
    body = json.loads({fixed})
    for member in ("user_id", "connected_account_id"):
        if value := os.environ.get("COMPOSIO_" + member.upper()):
            body[member] = value
    headers = {{"content-type": "application/json", "x-api-key": os.environ["{key}"]}}
    data = json.dumps({{**body, "arguments": arguments}}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(ADDRESS, data, headers)) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        said = error.read(2000).decode(errors="replace")
        raise RuntimeError("Composio answered %s: %s" % (error.code, said)) from None
    if not answer.get("successful", True):
        raise RuntimeError("Composio: %s" % (answer.get("error") or "the action failed"))
    return answer.get("data")
"""


def import_action(definition: JsonObject) -> ImportedTool:
    """Raises Refused (TOOL_SCHEMA_INVALID), naming the member."""
    which = "slug" if definition.get("slug") else "name"
    slug = member(definition, which, str, "")
    if not _SLUG.fullmatch(slug):
        raise refusal(which, 'must name an action, such as "GITHUB_CREATE_AN_ISSUE"')
    name = function_name(slug)
    fixed = {entry: value for entry in _FIXED if (value := member(definition, entry, str, ""))}
    return ImportedTool(
        tool_type=ToolType.EXTERNAL_COMPOSIO,
        name=name,
        description=describe(definition, f"The Composio action {slug}."),
        parameters=parameters_of(definition, "input_parameters", "parameters") or {"type": "object", "properties": {}},
        source_code=_SOURCE.format(
            host=HOST,
            slug=slug,
            name=name,
            key=KEY,
            fixed=literal({"user_id": "default", "version": "latest", **fixed}),
        ),
        network={"secrets": {KEY: {"hosts": [HOST]}}},
        tags=("composio",),
    )
