"""Models as OpenAI's API lists them, and embeddings."""

from gateway.openapi.schemas import FLAG, NUMBER, TEXT, WHOLE, array, choice, record, some

OPENAI_MODEL = record(
    "OpenAIModel",
    {"id": TEXT, "object": choice("model"), "created": WHOLE, "owned_by": TEXT},
)
OPENAI_MODELS = record(
    "OpenAIModels", {"object": choice("list"), "data": array(OPENAI_MODEL), "has_more": FLAG}, optional=("has_more",)
)
_EMBEDDING = record(
    "OpenAIEmbedding", {"object": choice("embedding"), "index": WHOLE, "embedding": some(array(NUMBER), TEXT)}
)
OPENAI_EMBEDDINGS = record(
    "OpenAIEmbeddings",
    {
        "object": choice("list"),
        "data": array(_EMBEDDING),
        "model": TEXT,
        "usage": record("OpenAIEmbeddingUsage", {"prompt_tokens": WHOLE, "total_tokens": WHOLE}),
    },
)
