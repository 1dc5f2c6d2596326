"""Single model calls."""

from typing import Annotated

from pydantic import AfterValidator, Field

from gateway.rest.body import Body, Json, dump
from loci.agent.v1 import model_call_service_pb2


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("prompt cannot be blank")
    return value


class GenerateText(Body):
    """Body of POST .../generate. `response_schema`: JSON Schema that the answer has to fit."""

    prompt: Annotated[str, Field(min_length=1), AfterValidator(_not_blank)]
    system_prompt: str | None = None
    override_model: str | None = None
    response_schema: Json | None = None

    def request(self, agent_id: str) -> model_call_service_pb2.GenerateTextRequest:
        """Returns the call."""
        return model_call_service_pb2.GenerateTextRequest(
            agent_id=agent_id,
            prompt=self.prompt,
            system_prompt=self.system_prompt or "",
            override_model=self.override_model or None,
            response_schema_json="" if self.response_schema is None else dump(self.response_schema),
        )
