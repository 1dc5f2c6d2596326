"""Running tools outside of a turn."""

from typing import Annotated

from pydantic import Field

from gateway.resources.tools.requests import Requirement
from gateway.rest.body import Body, Json, dump
from loci.tool.v1 import execution_service_pb2, tool_pb2

_JSON = ("json_schema", "args_json_schema", "pip_requirements", "npm_requirements", "network")


class RunAgentTool(Body):
    """Body of agents.tools.run."""

    args: Json = Field(default_factory=dict)


class RunSource(Body):
    """Source that is run once. `network`, `file_ids` and `timeout_seconds` are Loci's own."""

    source_code: str
    args: Json = Field(default_factory=dict)
    env_vars: dict[str, str] | None = None
    name: str | None = Field(None, description="The function to call; by default the last one.")
    source_type: str | None = None
    args_json_schema: Json | None = None
    json_schema: Json | None = None
    pip_requirements: list[Requirement] | None = None
    npm_requirements: list[Requirement] | None = None
    network: Json | None = None
    file_ids: list[str] | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] | None = None

    def request(self, call_key: str) -> execution_service_pb2.RunSourceRequest:
        """Returns the request under this key."""
        request = execution_service_pb2.RunSourceRequest(
            call_key=call_key,
            tool=self._draft(),
            function_name=self.name or "",
            arguments_json=dump(self.args),
            environment=self.env_vars or {},
            file_ids=self.file_ids or (),
        )
        if self.timeout_seconds is not None:
            request.timeout.FromNanoseconds(round(self.timeout_seconds * 1e9))
        return request

    def _draft(self) -> tool_pb2.Tool:
        draft = tool_pb2.Tool(source_code=self.source_code, source_type=self.source_type or "")
        for name, document in self.model_dump(include=set(_JSON), exclude_none=True).items():
            setattr(draft, f"{name}_json", dump(document))
        return draft
