"""The providers under contract, a module for each family. A module lists its own in `WORLDS`."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from services.llm_gateway.core.chat import Part, Reasoning, Usage
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.ports import Provider
from services.llm_gateway.core.provider_config import ProviderConfig
from tests.fakes.server import FakeServer
from tests.unit.llm_gateway.builders import config, model


@dataclass(frozen=True)
class WorldSpec:
    """One provider under contract: its fake (None: it makes its replies itself), how it is made and what it carries.

    `carries` is among: images, result_images, reasoning, signatures, redacted, parallel, logprobs, token_ids, count,
    embeddings, json_schema, forced_call, response_id. What is missing there, the suite checks as refused or passed over
    instead. The fields below it are how this provider's wire says what every provider can say.
    """

    name: str
    make: Callable[[ProviderConfig], Provider]
    handle: str
    fake: Callable[[], FakeServer] | None = None
    carries: frozenset[str] = frozenset()
    # Beside the base URL of the fake.
    options: Mapping[str, object] = field(default_factory=dict)
    # Whose request fields are sent: openai, anthropic, or "" for a dialect with tests of its own.
    dialect: str = ""
    # The header by which the endpoint knows the caller.
    credential: tuple[str, str] = ("authorization", "Bearer sk-test")
    # What comes of the thoughts of Reply(reasoning="two and two", redacted="opaque").
    thoughts: tuple[Part, ...] = (Reasoning("two and two"),)
    # How streams are cut into events: sse, ndjson or websocket.
    framing: str = "sse"
    # Fields of every request, by which this world is called as it is meant to be.
    asks: Mapping[str, Any] = field(default_factory=dict)
    # How often a call that breaks off is made anew before the caller hears of it.
    tries: int = 1
    # Where chats go: the ends of the paths; () where they are all that is sent.
    chat_paths: tuple[str, ...] = ()
    # Whether a reply's id stands in its headers alone, which no trace keeps.
    id_in_headers: bool = False
    # Its word for a reply that was cut off at the limit.
    length: str = "length"
    # What comes of script.Usage(100, 7, cached=40, cache_write=10).
    usage: Usage = field(default_factory=lambda: Usage(100, 7, cached_input_tokens=40, reasoning_tokens=0))
    # The window and the input that its refusal of an overflow tells; None: it does not.
    overflow: tuple[int | None, int | None] = (128_000, 130_001)
    # An embedding model of the fake, and the length of its vectors.
    embedding: tuple[str, int] = ("text-embedding-3-small", 1536)
    # Where in a request's body the schema of the reply stands.
    schema_in: Callable[[Any], Any] = lambda sent: sent["response_format"]["json_schema"]["schema"]
    # What becomes of that schema on its way, where the wire takes less than all of JSON Schema.
    as_sent: Callable[[Any], Any] = lambda schema: schema
    # Of the model that is asked, beside its handle.
    window: int | None = None
    reasons: bool = False

    def config(self, base_url: str) -> ProviderConfig:
        """The configuration of the provider behind that base URL; a test of limits asks with its own."""
        return config(self.handle.partition("/")[0], base_url, stall_seconds=30.0, reply_seconds=30.0, **self.options)

    def model(self) -> ChatModel:
        """The model that is asked."""
        made = model(self.handle, window=self.window)
        return replace(made, capabilities=replace(made.capabilities, reasoning=True)) if self.reasons else made


def all_worlds() -> Mapping[str, WorldSpec]:
    """The specs of all modules here, by name."""
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    return {spec.name: spec for module in modules for spec in module.WORLDS}
