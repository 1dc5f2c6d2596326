"""Creating, changing and checking providers. The llm gateway, which knows the types, refuses what is wrong."""

from typing import Annotated

from pydantic import Field

from gateway.rest.request_model import RequestModel
from loci.llm.v1.provider_pb2 import Provider
from services.common.fields import When

Version = Annotated[int, Field(ge=1, le=2**63 - 1)]


class CheckProvider(RequestModel, of=Provider, when=When.CREATION, leave=("name",)):
    """Body of POST /providers/check."""


class CreateProvider(RequestModel, of=Provider, when=When.CREATION):
    """Body of POST /providers."""


class UpdateProvider(RequestModel, of=Provider, when=When.CHANGE):
    """Body of PATCH /providers/{id}: only what is sent changes. `version`: the one that is expected."""

    version: Version | None = None
