"""Handles of models, and what an agent sets on its model. No I/O."""

from cli.importing.values import Json, Row, as_object, as_text

# The old server's name for OpenAI behind another address.
_PROXY = "openai-proxy"
# What the old server called types of endpoints, where this is not the name of a provider.
_PROVIDERS = {"hugging_face": "hugging-face", "chatgpt_oauth": "openai"}
_WARMEST = 2.0


def chat_handle(config: object) -> str:
    """Returns `provider/model` of an llm_config; empty where it names no model."""
    given = as_object(config)
    return handle(as_text(given.get("handle"))) or _build_handle(
        given.get("provider_name") or given.get("model_endpoint_type"), given.get("model")
    )


def embedding_handle(config: object) -> str:
    """Returns `provider/model` of an embedding_config; empty where it names no model."""
    given = as_object(config)
    return handle(as_text(given.get("handle"))) or _build_handle(
        given.get("embedding_endpoint_type"), given.get("embedding_model")
    )


def handle(given: str) -> str:
    """Returns a handle by its name here; empty for text that is none."""
    provider, _, model = given.strip().partition("/")
    if not provider or not model or len(given.split()) != 1:
        return ""
    return f"{'openai' if provider == _PROXY else provider}/{model}"


def dimensions(config: object) -> int:
    """Returns the dimensions of an embedding_config; 0 where it has none."""
    size = as_object(config).get("embedding_dim")
    return size if type(size) is int and size > 0 else 0


def context_window(config: object) -> int | None:
    """Returns the tokens of an llm_config's context window."""
    size = as_object(config).get("context_window")
    return size if type(size) is int and 0 < size < 2**31 else None


def model_settings(config: object, response_format: object = None) -> Json:
    """Returns the model_settings of an llm_config, without those that it leaves to the model."""
    given: Row = as_object(config)
    settings: Json = {"provider_type": as_text(given.get("model_endpoint_type")) or None}
    temperature, tokens = given.get("temperature"), given.get("max_tokens")
    if isinstance(temperature, int | float) and not isinstance(temperature, bool) and 0 <= temperature <= _WARMEST:
        settings["temperature"] = temperature
    if type(tokens) is int and 0 < tokens < 2**31:
        settings["max_output_tokens"] = tokens
    for name in ("parallel_tool_calls", "strict"):
        if isinstance(given.get(name), bool):
            settings[name] = given[name]
    for name in ("effort", "verbosity"):
        settings[name] = as_text(given.get(name)) or None
    settings |= _thinking(given)
    settings["response_format"] = as_object(response_format) or as_object(given.get("response_format")) or None
    return {name: value for name, value in settings.items() if value is not None}


def _thinking(given: Row) -> Json:
    kind, budget = given.get("model_endpoint_type"), given.get("max_reasoning_tokens")
    effort = as_text(given.get("reasoning_effort"))
    if kind in ("anthropic", "bedrock") and given.get("enable_reasoner") and type(budget) is int and budget > 0:
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    return {"reasoning": {"reasoning_effort": effort}} if effort else {}


def _build_handle(provider: object, model: object) -> str:
    name = as_text(provider)
    return handle(f"{_PROVIDERS.get(name, name)}/{as_text(model)}")
