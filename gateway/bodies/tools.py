"""Creating and changing tools."""

from typing import Annotated

from google.protobuf.field_mask_pb2 import FieldMask
from pydantic import Field

from gateway.bodies.common import Body, Json, dump, given
from loci.tool.v1 import tool_service_pb2

_PLAIN = (
    "source_type",
    "source_code",
    "description",
    "tags",
    "return_char_limit",
    "default_requires_approval",
    "enable_parallel_execution",
    "project_id",
)
_JSON = ("json_schema", "args_json_schema", "pip_requirements", "npm_requirements")


class Requirement(Body):
    """A package that a tool needs."""

    name: str
    version: str | None = None


class ToolSettings(Body):
    """What creation and change have in common."""

    source_type: str | None = None
    description: str | None = None
    tags: list[str] | None = None
    json_schema: Json | None = None
    args_json_schema: Json | None = None
    return_char_limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    default_requires_approval: bool | None = None
    enable_parallel_execution: bool | None = None
    pip_requirements: list[Requirement] | None = None
    npm_requirements: list[Requirement] | None = None
    metadata: Json | None = Field(None, alias="metadata_")
    project_id: str | None = None


class CreateTool(ToolSettings):
    """Body of tools.create and tools.upsert. The tool's name is that of its function."""

    source_code: str


class UpdateTool(ToolSettings):
    """Body of tools.update: only what is sent changes."""

    source_code: str | None = None


def draft_of(body: ToolSettings) -> tool_service_pb2.ToolDraft:
    """The fields that were sent."""
    return tool_service_pb2.ToolDraft(**_fields(body))


def update_request(tool_id: str, body: UpdateTool) -> tool_service_pb2.UpdateToolRequest | None:
    """The request of UpdateTool; None when nothing changes."""
    paths = list(_fields(body))
    if not paths:
        return None
    mask = FieldMask(paths=paths)
    return tool_service_pb2.UpdateToolRequest(tool_id=tool_id, tool=draft_of(body), update_mask=mask)


def _fields(body: ToolSettings) -> Json:
    sent = given(body)
    fields: Json = {name: sent[name] for name in _PLAIN if name in sent}
    documents = body.model_dump(include=set(_JSON), exclude_none=True)
    fields |= {f"{name}_json": dump(documents[name]) for name in _JSON if name in documents}
    if "metadata" in sent:
        fields["metadata_json"] = dump(sent["metadata"])
    return fields
