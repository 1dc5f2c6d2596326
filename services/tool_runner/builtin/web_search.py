"""`web_search`: run here, by whichever search engine there is a key for; see `web/search.py`."""

from services.tool_runner.builtin.tool import BuiltinTool, texts
from services.tool_runner.core.model import ToolType

_DATE = "ISO 8601, for example 2026-01-31."

TOOL = BuiltinTool(
    name="web_search",
    tool_type=ToolType.LETTA_BUILTIN,
    parallel=True,
    description="""\
Search the web. Answers JSON with the pages found: title, url, published_date, author, and what each is about.

Examples:
    web_search(query="latest release of PostgreSQL", num_results=5)
    web_search(query="tariff ruling", category="news", start_published_date="2026-01-01", include_text=true)""",
    properties={
        "query": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "What to look for."},
        "num_results": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "description": "How many pages at most; default 10.",
        },
        "category": {
            "type": "string",
            "enum": [
                "company",
                "research paper",
                "news",
                "pdf",
                "github",
                "tweet",
                "personal site",
                "linkedin profile",
                "financial report",
            ],
            "description": "Only pages of this kind, where the search engine knows it.",
        },
        "include_text": {
            "type": "boolean",
            "description": "Whether the content of the pages comes along, which is long; default false.",
        },
        "include_domains": texts("Only pages of these domains."),
        "exclude_domains": texts("No pages of these domains."),
        "start_published_date": {"type": "string", "description": f"Only pages published since then: {_DATE}"},
        "end_published_date": {"type": "string", "description": f"Only pages published until then: {_DATE}"},
        "user_location": {"type": "string", "description": "Two-letter code of the country to search from, as US."},
    },
    required=("query",),
)
