"""The providers under contract, a module for each family. A module lists its own in `WORLDS`."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from services.llm_gateway.provider import ChatModel, Provider
from services.llm_gateway.providers.config import ProviderConfig
from tests.fakes.server import FakeServer
from tests.unit.llm_gateway.builders import config, model


@dataclass(frozen=True)
class WorldSpec:
    """One provider under contract: its fake (None: it makes its replies itself), how it is made and what it carries.

    `carries` is among: images, result_images, reasoning, signatures, redacted, parallel, logprobs, count, embeddings,
    json_schema, forced_call. What is missing there, the suite checks as refused or passed over instead.
    """

    name: str
    make: Callable[[ProviderConfig], Provider]
    handle: str
    fake: Callable[[], FakeServer] | None = None
    carries: frozenset[str] = frozenset()
    # Beside the base URL of the fake.
    options: Mapping[str, object] = field(default_factory=dict)

    def config(self, base_url: str) -> ProviderConfig:
        """The configuration of the provider behind that base URL."""
        return config(self.handle.partition("/")[0], base_url, stall_seconds=0.5, reply_seconds=0.5, **self.options)

    def model(self) -> ChatModel:
        """The model that is asked."""
        return model(self.handle)


def all_worlds() -> Mapping[str, WorldSpec]:
    """The specs of all modules here, by name."""
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    return {spec.name: spec for module in modules for spec in module.WORLDS}
