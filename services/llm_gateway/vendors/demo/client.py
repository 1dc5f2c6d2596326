"""The provider `loci`: the demo model and the hash embeddings, as real providers look from outside."""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Sequence

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Completed,
    Delta,
    Embeddings,
    Event,
    FinishReason,
    Part,
    Text,
    ToolCall,
)
from services.llm_gateway.core.errors import LlmContextOverflow
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.token_estimates import estimate
from services.llm_gateway.core.trace import RequestPreview, Trace
from services.llm_gateway.vendors.demo.hashing import embed
from services.llm_gateway.vendors.demo.reply import next_parts, text_of

WINDOW = 131_072
MAX_OUTPUT = 8_192
# A stream that comes all at once would not look like one.
WORD_SECONDS = 0.004
_PIECES = re.compile(r"\S*\s*")


class DemoProvider:
    """See the package. Usage is the estimate of tokens.py, and says so."""

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.type, self.endpoint = config.name, config.type, config.base_url

    async def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        size = _size(request)
        self._check_window(size, model, request.handle)
        if request.preview:
            raise RequestPreview(_read(request, model))
        builder = ReplyBuilder()
        builder.response_id = f"demo-{hashlib.sha256(repr(request.messages).encode()).hexdigest()[:16]}"
        builder.model, builder.finish = model.name, FinishReason.STOP
        parts = next_parts(request)
        for index, part in enumerate(_cut(parts, request, builder)):
            for delta in _deltas(builder, index, part):
                if stream:
                    yield delta
                    await asyncio.sleep(WORD_SECONDS)
        trace = _trace(request, model, parts) if request.trace else None
        yield Completed(builder.generation(request, self.name, size, trace))

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """Returns None: it has no tokens of its own."""
        return None

    def _check_window(self, size: int, model: ChatModel, handle: str) -> None:
        window = model.context_window or WINDOW
        if estimate(size) > window:
            raise LlmContextOverflow(
                f"The request has about {estimate(size)} tokens; the context window of {handle} has {window}.",
                provider=self.name,
                handle=handle,
                status=400,
                limit=window,
                requested=estimate(size),
            )

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        # In a thread: a long text takes milliseconds, and other calls shall not wait for a batch of them.
        vectors = await asyncio.to_thread(lambda: [embed(text) for text in texts])
        return Embeddings(vectors, sum(estimate(len(text)) for text in texts))

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        return [ListedModel("demo", WINDOW, MAX_OUTPUT, "Demo (rules, no key needed)"), ListedModel("hash")]

    async def close(self) -> None:
        """See Provider.close."""


def _size(request: ChatRequest) -> int:
    """Returns the request's length in characters, about as a provider's wire would have it."""
    return sum(len(repr(message.parts)) for message in request.messages) + sum(
        len(tool.description) + len(tool.parameters_json) for tool in request.tools
    )


def _read(request: ChatRequest, model: ChatModel) -> bytes:
    """Returns the model's input, in the form that a real provider is sent."""
    messages = [{"role": message.role.name.lower(), "content": text_of(message)} for message in request.messages]
    return orjson.dumps({"model": model.name, "messages": messages, "tools": [tool.name for tool in request.tools]})


def _trace(request: ChatRequest, model: ChatModel, parts: Sequence[Part]) -> Trace:
    """Returns the model's input and output, in the form of a real provider's trace."""
    trace = Trace(_read(request, model))
    trace.response = orjson.dumps({"content": parts})
    return trace


def _cut(parts: Sequence[Part], request: ChatRequest, builder: ReplyBuilder) -> Sequence[Part]:
    """Returns the parts within max_output_tokens."""
    limit = request.max_output_tokens
    if limit is None or not isinstance(parts[0], Text) or estimate(len(parts[0].text)) <= limit:
        return parts
    builder.finish = FinishReason.LENGTH
    return [Text(parts[0].text[: limit * 4])]


def _deltas(builder: ReplyBuilder, index: int, part: Part) -> Sequence[Delta]:
    if isinstance(part, ToolCall):
        begun = builder.begin_call(index, part.id, part.name)
        return [begun, builder.add_arguments(index, part.arguments_json)]
    assert isinstance(part, Text)
    return [builder.add_text(index, piece) for piece in _PIECES.findall(part.text) if piece]
