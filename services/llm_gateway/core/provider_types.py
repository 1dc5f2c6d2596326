"""The table of provider types: where each is, how it is configured, which module speaks its dialect. Pure.

A vendor that speaks OpenAI's or Anthropic's dialect is one row here (and, where it has habits of its own, one in
`vendors/openai/profiles.py`). A row is not enough where requests or replies differ: that is a folder
`vendors/<name>/{client,translate}.py` and a row that names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class BaseUrl(Enum):
    """The form in which a base URL is kept, from one given with or without /v1 and trailing slash."""

    # With the version; only a bare host gets it, because servers also mount their API below other paths.
    VERSIONED = auto()
    # Without: the provider's module puts paths of its own behind it.
    BARE = auto()
    # Its path says which of the vendor's APIs is meant; the provider's module takes it apart.
    AS_GIVEN = auto()


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a type: `setting` is the environment variable ("" for none). `kind`: text, integer, flag or object;
    a text may be restricted to `choices`. A `secret` one is the operator's alone, since options are shown.
    """

    name: str
    kind: str = "text"
    setting: str = ""
    choices: tuple[str, ...] = ()
    secret: bool = False


@dataclass(frozen=True, slots=True)
class ProviderType:
    """One row. `module` is imported when a provider of this type is first used: vendors' SDKs are heavy.

    Settings are names of environment variables, the first that is set counts. The operator's provider of the type is
    there when one of `present_by` is set. `extra` is the extra that installs its SDK.
    """

    name: str
    module: str
    constructor: str
    base_url: str = ""
    form: BaseUrl = BaseUrl.VERSIONED
    key_settings: tuple[str, ...] = ()
    url_settings: tuple[str, ...] = ()
    access_key_settings: tuple[str, ...] = ()
    region_settings: tuple[str, ...] = ()
    api_version_settings: tuple[str, ...] = ()
    needs_key: bool = True
    # The key is a JSON document, and its setting the path of a file with it.
    key_is_file: bool = False
    options: tuple[Option, ...] = ()
    extra: str = ""
    is_present_by: tuple[str, ...] = ()
    # It uses the server's own files: tenants cannot make one.
    operators_alone: bool = False

    @property
    def present_by(self) -> tuple[str, ...]:
        """Returns the settings by which the operator's provider of the type is there."""
        return self.is_present_by or (*self.key_settings, *self.url_settings)

    @property
    def secret_settings(self) -> tuple[str, ...]:
        """Returns the settings that hold a secret, or the path of one."""
        options = (option.setting for option in self.options if option.secret)
        return (*self.key_settings, *self.access_key_settings, *options)

    @property
    def settings(self) -> tuple[str, ...]:
        """Returns all settings of the type."""
        options = (option.setting for option in self.options if option.setting and not option.secret)
        return (
            *self.secret_settings,
            *self.url_settings,
            *self.region_settings,
            *self.api_version_settings,
            *options,
        )


# What every type takes: calls at once, what is known of its models (overrides.py says the fields), and how thoughts in
# the text of replies are read (vendors/shared/text_thoughts.py).
COMMON_OPTIONS = (
    Option("max_concurrency", "integer"),
    Option("models", "object"),
    Option("text_thoughts", choices=("auto", "open", "off")),
)
_VENDORS = "services.llm_gateway.vendors"
_WEBSOCKET = Option("websocket", "flag", "OPENAI_WEBSOCKET")
_RESPONSES = Option("responses", "flag", "OPENAI_RESPONSES")


def _compatible(name: str, base_url: str, prefix: str = "", **fields: object) -> ProviderType:
    """Returns the row of a vendor that speaks Chat Completions."""
    prefix = prefix or name.upper().replace("-", "_")
    return ProviderType(
        name,
        f"{_VENDORS}.openai.client",
        "OpenAIProvider",
        base_url,
        key_settings=(f"{prefix}_API_KEY",),
        url_settings=(f"{prefix}_BASE_URL",),
        **fields,  # type: ignore[arg-type]
    )


_ROWS = (
    ProviderType("loci", f"{_VENDORS}.demo.client", "DemoProvider", form=BaseUrl.BARE, needs_key=False),
    ProviderType(
        "local",
        f"{_VENDORS}.local.client",
        "OnnxProvider",
        form=BaseUrl.AS_GIVEN,
        needs_key=False,
        options=(
            # Folders, or names on a hub: owner/name, owner/name@revision.
            Option("embedding", setting="LOCI_LOCAL_EMBEDDING"),
            Option("reranker", setting="LOCI_LOCAL_RERANKER"),
            Option("threads", "integer", "LOCI_LOCAL_THREADS"),
            Option("memory_mib", "integer", "LOCI_LOCAL_MEMORY_MIB"),
        ),
        extra="local",
        is_present_by=("LOCI_LOCAL_EMBEDDING", "LOCI_LOCAL_RERANKER"),
        operators_alone=True,
    ),
    _compatible("openai", "https://api.openai.com/v1", options=(_WEBSOCKET, _RESPONSES)),
    ProviderType(
        "anthropic",
        f"{_VENDORS}.anthropic.client",
        "AnthropicProvider",
        "https://api.anthropic.com",
        BaseUrl.BARE,
        key_settings=("ANTHROPIC_API_KEY",),
        url_settings=("ANTHROPIC_BASE_URL",),
    ),
    ProviderType(
        "azure",
        f"{_VENDORS}.azure.client",
        "AzureProvider",
        key_settings=("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        url_settings=("AZURE_BASE_URL", "AZURE_OPENAI_ENDPOINT"),
        form=BaseUrl.AS_GIVEN,
        api_version_settings=("AZURE_API_VERSION", "OPENAI_API_VERSION"),
        options=(_WEBSOCKET, _RESPONSES),
        is_present_by=("AZURE_BASE_URL", "AZURE_OPENAI_ENDPOINT"),
    ),
    ProviderType(
        "bedrock",
        f"{_VENDORS}.bedrock.client",
        "BedrockProvider",
        form=BaseUrl.BARE,
        key_settings=("AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY"),
        access_key_settings=("AWS_ACCESS_KEY_ID",),
        url_settings=("BEDROCK_BASE_URL",),
        region_settings=("BEDROCK_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"),
        options=(
            Option("session_token", setting="AWS_SESSION_TOKEN", secret=True),
            Option("control_url", setting="BEDROCK_CONTROL_URL"),
        ),
        extra="bedrock",
        is_present_by=("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "BEDROCK_BASE_URL"),
    ),
    ProviderType(
        "google_ai",
        f"{_VENDORS}.google.client",
        "GoogleProvider",
        "https://generativelanguage.googleapis.com",
        BaseUrl.BARE,
        key_settings=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        url_settings=("GEMINI_BASE_URL",),
    ),
    ProviderType(
        "google_vertex",
        f"{_VENDORS}.vertex.client",
        "VertexProvider",
        form=BaseUrl.BARE,
        key_settings=("GOOGLE_APPLICATION_CREDENTIALS",),
        url_settings=("GOOGLE_VERTEX_BASE_URL",),
        region_settings=("GOOGLE_CLOUD_LOCATION",),
        options=(Option("project", setting="GOOGLE_CLOUD_PROJECT"),),
        # On Google's own machines there is no key: their metadata service vouches.
        needs_key=False,
        key_is_file=True,
        extra="google",
        is_present_by=("GOOGLE_CLOUD_PROJECT",),
    ),
    ProviderType(
        "ollama",
        f"{_VENDORS}.ollama.client",
        "OllamaProvider",
        "http://localhost:11434",
        BaseUrl.BARE,
        key_settings=("OLLAMA_API_KEY",),
        url_settings=("OLLAMA_BASE_URL",),
        needs_key=False,
        # How long models stay loaded, as Ollama's own setting of that name: "10m", -1 for ever.
        options=(Option("keep_alive", setting="OLLAMA_KEEP_ALIVE"),),
    ),
    ProviderType(
        "sglang",
        f"{_VENDORS}.sglang.client",
        "SglangProvider",
        "http://localhost:30000",
        BaseUrl.BARE,
        key_settings=("SGLANG_API_KEY",),
        url_settings=("SGLANG_API_BASE", "SGLANG_BASE_URL"),
        needs_key=False,
        options=(
            Option("chat_template", setting="SGLANG_CHAT_TEMPLATE"),
            Option("tool_call_parser", setting="SGLANG_TOOL_CALL_PARSER"),
            Option("reasoning_parser", setting="SGLANG_REASONING_PARSER"),
            # Everything by /generate, not only what asks for token ids.
            Option("native", "flag", "SGLANG_NATIVE"),
        ),
        is_present_by=("SGLANG_API_BASE", "SGLANG_BASE_URL"),
    ),
    ProviderType(
        "vllm",
        f"{_VENDORS}.vllm.client",
        "VllmProvider",
        "http://localhost:8000",
        BaseUrl.BARE,
        key_settings=("VLLM_API_KEY",),
        url_settings=("VLLM_API_BASE", "VLLM_BASE_URL"),
        needs_key=False,
        options=(Option("prompt_formatter", setting="VLLM_PROMPT_FORMATTER"),),
        is_present_by=("VLLM_API_BASE", "VLLM_BASE_URL"),
    ),
    ProviderType(
        "lmstudio_openai",
        f"{_VENDORS}.lmstudio.client",
        "LmStudioProvider",
        "http://localhost:1234",
        BaseUrl.BARE,
        key_settings=("LMSTUDIO_API_KEY",),
        url_settings=("LMSTUDIO_BASE_URL",),
        needs_key=False,
        is_present_by=("LMSTUDIO_BASE_URL",),
    ),
    ProviderType(
        "minimax",
        f"{_VENDORS}.anthropic.client",
        "AnthropicProvider",
        "https://api.minimax.io/anthropic",
        BaseUrl.BARE,
        key_settings=("MINIMAX_API_KEY",),
        url_settings=("MINIMAX_BASE_URL",),
    ),
    _compatible("baseten", "https://inference.baseten.co/v1"),
    _compatible(
        "cerebras",
        "https://api.cerebras.ai/v1",
        options=(Option("tier", setting="CEREBRAS_TIER", choices=("free", "paid")),),
    ),
    _compatible("deepseek", "https://api.deepseek.com/v1"),
    _compatible("fireworks", "https://api.fireworks.ai/inference/v1"),
    _compatible("groq", "https://api.groq.com/openai/v1"),
    _compatible("hugging-face", "https://router.huggingface.co/v1"),
    _compatible("mistral", "https://api.mistral.ai/v1"),
    _compatible("moonshot", "https://api.moonshot.ai/v1"),
    _compatible("moonshot_coding", "https://api.kimi.com/coding/v1"),
    _compatible("openrouter", "https://openrouter.ai/api/v1"),
    _compatible("together", "https://api.together.xyz/v1"),
    _compatible("xai", "https://api.x.ai/v1"),
    _compatible("zai", "https://api.z.ai/api/paas/v4"),
    _compatible("zai_coding", "https://api.z.ai/api/coding/paas/v4"),
)
TYPES: Mapping[str, ProviderType] = {row.name: row for row in _ROWS}


def base_url(provider_type: str, url: str) -> str:
    """Returns the base URL in the form its type wants, from one given with or without /v1 and trailing slash."""
    row = TYPES[provider_type]
    url = (url or row.base_url).rstrip("/")
    if row.form is BaseUrl.BARE:
        return url.removesuffix("/v1").rstrip("/")
    if row.form is BaseUrl.AS_GIVEN:
        return url
    return url if not url or "/" in url.partition("://")[2] else f"{url}/v1"
