"""Models as OpenAI's API lists them."""

from gateway.openapi.schemas import FLAG, TEXT, WHOLE, array, choice, record

OPENAI_MODEL = record(
    "OpenAIModel",
    {"id": TEXT, "object": choice("model"), "created": WHOLE, "owned_by": TEXT},
)
OPENAI_MODELS = record(
    "OpenAIModels", {"object": choice("list"), "data": array(OPENAI_MODEL), "has_more": FLAG}, optional=("has_more",)
)
