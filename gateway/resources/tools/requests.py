"""Creating, changing, importing and searching tools."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_serializer

from gateway.rest.body import Body, Json, dump
from gateway.rest.request_model import RequestModel
from loci.tool.v1 import sandbox_config_service_pb2, tool_pb2, tool_service_pb2
from services.common.fields import When

_MODES = {
    "vector": tool_service_pb2.SEARCH_MODE_VECTOR,
    "fts": tool_service_pb2.SEARCH_MODE_TEXT,
    "hybrid": tool_service_pb2.SEARCH_MODE_HYBRID,
}
MODE_NAMES = {number: name for name, number in _MODES.items()}


class Requirement(Body):
    """A package that a tool needs."""

    name: str
    version: str | None = None

    @model_serializer
    def _without_null(self) -> dict[str, str]:
        return {"name": self.name} | ({} if self.version is None else {"version": self.version})


class ToolSettings(RequestModel, of=tool_pb2.Tool, when=When.CHANGE, leave=("source_code",)):
    """The fields that creation and change share. `network`, `idempotent` and `environment` are Loci's own."""

    pip_requirements: list[Requirement] | None = None
    npm_requirements: list[Requirement] | None = None
    network: Json | None = Field(None, description="The hosts that its calls may reach, and secrets for them.")
    idempotent: bool | None = Field(None, description="A call whose outcome is unknown may be run again.")
    environment: dict[str, str] | None = Field(None, description="All environment variables of its calls; sealed.")


class CreateTool(ToolSettings):
    """Body of tools.create and tools.upsert. The tool's name is that of its function."""

    source_code: str


class UpdateTool(ToolSettings):
    """Body of tools.update: only what is sent changes."""

    source_code: str | None = None


class SearchTools(Body):
    """Body of tools.search."""

    query: Annotated[str, Field(max_length=10_000)] | None = None
    search_mode: Literal["vector", "fts", "hybrid"] = "hybrid"
    tags: list[str] | None = None
    tool_types: list[str] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 50


class GenerateSchema(Body):
    """Body of generate-schema."""

    code: str
    source_type: str | None = "python"
    args_json_schema: Json | None = None


class ImportTool(ToolSettings):
    """A tool of another library, by its own description; see docs/tools.md."""

    library: Literal["langchain", "composio"]
    definition: Json


class WriteTool(Body):
    """Body of generate-tool."""

    tool_name: Annotated[str, Field(min_length=1, max_length=48)]
    prompt: Annotated[str, Field(min_length=1, max_length=20_000)]
    handle: str | None = Field(None, description="The model that writes; by default LOCI_DEFAULT_MODEL.")
    starter_code: Annotated[str, Field(max_length=256 * 1024)] | None = None
    validation_errors: list[str] | None = None


def update_request(tool_id: str, body: UpdateTool) -> tool_service_pb2.UpdateToolRequest | None:
    """Returns the request of UpdateTool; None when nothing changes."""
    mask = body.mask()
    if not mask.paths:
        return None
    return tool_service_pb2.UpdateToolRequest(tool_id=tool_id, tool=body.message(), update_mask=mask)


def import_request(body: ImportTool) -> tool_service_pb2.ImportToolRequest:
    """Returns the request of ImportTool."""
    return tool_service_pb2.ImportToolRequest(
        library=body.library, definition_json=dump(body.definition), tool=body.message()
    )


def schema_request(body: GenerateSchema) -> tool_service_pb2.GenerateToolSchemaRequest:
    """Returns the request of GenerateToolSchema."""
    return tool_service_pb2.GenerateToolSchemaRequest(
        source_code=body.code,
        source_type=body.source_type or "",
        args_json_schema_json="" if body.args_json_schema is None else dump(body.args_json_schema),
    )


def search_request(body: SearchTools, tool_types: list[int]) -> tool_service_pb2.SearchToolsRequest:
    """Returns the request of SearchTools."""
    return tool_service_pb2.SearchToolsRequest(
        query=body.query or "",
        mode=_MODES[body.search_mode],
        tags=body.tags,
        tool_types=tool_types,  # type: ignore[arg-type]
        limit=body.limit,
    )


def environment_request(tool_id: str, variables: Mapping[str, str]) -> sandbox_config_service_pb2.SetEnvironmentRequest:
    """Returns the request of SetEnvironment."""
    drafts = [sandbox_config_service_pb2.Variable(key=key, value=value) for key, value in variables.items()]
    owner = sandbox_config_service_pb2.Owner(tool_id=tool_id)
    return sandbox_config_service_pb2.SetEnvironmentRequest(owner=owner, variables=drafts)
