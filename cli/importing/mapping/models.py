"""Handles of models, and what an agent sets on its model. No I/O."""

from cli.importing.values import Json, Row, as_object, as_text

# The old server's name for OpenAI behind another address.
_PROXY = "openai-proxy"
# What the old server called types of endpoints, where this is not the name of a provider.
_PROVIDERS = {"hugging_face": "hugging-face", "chatgpt_oauth": "openai"}
_WARMEST = 2.0


def chat_handle(config: object) -> str:
    """Returns `provider/model` of an llm_config; empty where it names no model."""
    named = as_object(config)
    return handle(as_text(named.get("handle"))) or _build_handle(
        named.get("provider_name") or named.get("model_endpoint_type"), named.get("model")
    )


def embedding_handle(config: object) -> str:
    """Returns `provider/model` of an embedding_config; empty where it names no model."""
    named = as_object(config)
    return handle(as_text(named.get("handle"))) or _build_handle(
        named.get("embedding_endpoint_type"), named.get("embedding_model")
    )


def handle(name: str) -> str:
    """Returns a handle by its name here; empty for text that is none."""
    provider, _, model = name.strip().partition("/")
    if not provider or not model or len(name.split()) != 1:
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
    chosen: Row = as_object(config)
    settings: Json = {"provider_type": as_text(chosen.get("model_endpoint_type")) or None}
    temperature, tokens = chosen.get("temperature"), chosen.get("max_tokens")
    if isinstance(temperature, int | float) and not isinstance(temperature, bool) and 0 <= temperature <= _WARMEST:
        settings["temperature"] = temperature
    if type(tokens) is int and 0 < tokens < 2**31:
        settings["max_output_tokens"] = tokens
    for name in ("parallel_tool_calls", "strict"):
        if isinstance(chosen.get(name), bool):
            settings[name] = chosen[name]
    for name in ("effort", "verbosity"):
        settings[name] = as_text(chosen.get(name)) or None
    settings |= _thinking(chosen)
    settings["response_format"] = as_object(response_format) or as_object(chosen.get("response_format")) or None
    return {name: value for name, value in settings.items() if value is not None}


def _thinking(chosen: Row) -> Json:
    kind, budget = chosen.get("model_endpoint_type"), chosen.get("max_reasoning_tokens")
    effort = as_text(chosen.get("reasoning_effort"))
    if kind in ("anthropic", "bedrock") and chosen.get("enable_reasoner") and type(budget) is int and budget > 0:
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    return {"reasoning": {"reasoning_effort": effort}} if effort else {}


def _build_handle(provider: object, model: object) -> str:
    name = as_text(provider)
    return handle(f"{_PROVIDERS.get(name, name)}/{as_text(model)}")
