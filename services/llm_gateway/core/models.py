"""Models: what each can do, how large it is, what it costs, and how an endpoint lists it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto


class ValueSource(Enum):
    """The source of a figure."""

    ENDPOINT = auto()
    TABLE = auto()
    OVERRIDE = auto()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The abilities of a chat model. `temperature`: it accepts sampling parameters."""

    tools: bool = True
    parallel_tool_calls: bool = True
    streaming: bool = True
    vision: bool = False
    reasoning: bool = False
    structured_output: bool = False
    logprobs: bool = False
    temperature: bool = True


@dataclass(frozen=True, slots=True)
class Price:
    """Billionths of a US dollar for each token. None for cached input and cache writes: as other input."""

    input: int
    output: int
    cached_input: int | None = None
    cache_write: int | None = None
    source: ValueSource = ValueSource.TABLE


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A chat model that can be called. `context_window` None: nobody said (then it has no source either)."""

    provider_name: str
    provider_type: str
    name: str
    endpoint: str
    context_window: int | None
    context_window_source: ValueSource | None
    max_output_tokens: int | None
    capabilities: Capabilities
    display_name: str
    max_output_tokens_source: ValueSource | None = None
    # None: nobody said, so that tools and images are tried.
    capabilities_source: ValueSource | None = None
    price: Price | None = None
    # The vendor's name of the model where `name` is another's: a deployment's, an inference profile's.
    base_model: str = ""
    # Whether its provider is a tenant's own.
    is_tenants: bool = False

    @property
    def handle(self) -> str:
        """`provider/model`."""
        return f"{self.provider_name}/{self.name}"


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model that turns text into vectors of length `dimensions`, at most `batch_size` texts in a call.

    `dimensions` is 0 in the one call that measures it, where nobody says it.
    """

    provider_name: str
    provider_type: str
    name: str
    endpoint: str
    dimensions: int
    batch_size: int
    display_name: str
    dimensions_source: ValueSource | None = None
    price: Price | None = None
    is_tenants: bool = False

    @property
    def handle(self) -> str:
        """`provider/model`."""
        return f"{self.provider_name}/{self.name}"


class ModelKind(Enum):
    """The purpose of a listed model; UNKNOWN where the endpoint lists all kinds alike."""

    CHAT = auto()
    EMBEDDING = auto()
    OTHER = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as the provider's endpoint lists it; None where it does not say.

    `capabilities` are the fields of Capabilities that it says. `base_model` is the vendor's name of the model, by which
    the table knows it, where `name` is another's (a deployment's, an inference profile's). `price` only where the
    endpoint says it.
    """

    name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    display_name: str = ""
    kind: ModelKind = ModelKind.UNKNOWN
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    dimensions: int | None = None
    base_model: str = ""
    price: Price | None = None
