"""Bodies that work, for the routes that people begin with."""

from collections.abc import Mapping
from typing import Any

_HELLO = {"messages": [{"role": "user", "content": "My name is Ada and I like Haskell."}]}
_TOOL = '''def double(number: int) -> int:
    """Double a number.

    Args:
        number (int): What to double.
    """
    return 2 * number
'''

EXAMPLES: Mapping[str, Any] = {
    "POST /v1/agents": {
        "model": "loci/demo",
        "embedding": "loci/hash",
        "memory_blocks": [{"label": "human", "value": ""}, {"label": "persona", "value": "I am a helpful agent."}],
    },
    "PATCH /v1/agents/{agent_id}": {"name": "Ada's agent", "tags": ["friends"]},
    "POST /v1/agents/{agent_id}/messages": _HELLO,
    "POST /v1/agents/{agent_id}/messages/async": _HELLO,
    "POST /v1/agents/{agent_id}/messages/stream": _HELLO | {"stream_tokens": True},
    "POST /v1/conversations/{conversation_id}/messages": _HELLO | {"streaming": True, "background": True},
    "POST /v1/conversations": {"summary": "About Haskell"},
    "POST /v1/blocks": {"label": "project", "value": "A compiler in Haskell.", "limit": 5000},
    "POST /v1/archives": {"name": "papers", "embedding": "loci/hash"},
    "POST /v1/archives/{archive_id}/passages": {"text": "Ada's first compiler was GHC 4.08.", "tags": ["haskell"]},
    "POST /v1/agents/{agent_id}/archival-memory": {"text": "Ada's first compiler was GHC 4.08."},
    "POST /v1/passages/search": {"query": "first compiler", "limit": 5},
    "POST /v1/messages/search": {"query": "Haskell", "search_mode": "hybrid"},
    "POST /v1/folders": {"name": "letters", "embedding": "loci/hash"},
    "POST /v1/tools": {"source_code": _TOOL},
    "PUT /v1/tools": {"source_code": _TOOL},
    "POST /v1/mcp-servers": {
        "server_name": "calculator",
        "config": {"mcp_server_type": "streamable_http", "server_url": "https://mcp.example.com/mcp"},
    },
    "POST /v1/providers": {"name": "mine", "provider_type": "openai", "api_key": "sk-..."},
    "POST /v1/chat/completions": {
        "model": "agent-123e4567-e89b-42d3-8456-426614174000",
        "messages": [{"role": "user", "content": "Hello."}],
    },
}
