"""Origins of signatures and encrypted thoughts, so that no other vendor is shown them. Pure.

A value that a vendor demands back unchanged means nothing to another, and most refuse a request that holds it. So it
carries the name of its dialect: "google:<theirs>". One without a name is Anthropic's: the first that were stored had
none.
"""

ANTHROPIC = "anthropic"
AZURE = "azure"
# Models there that are not Anthropic's; those are, wherever they run.
BEDROCK = "bedrock"
MINIMAX = "minimax"
OPENAI = "openai"
_KNOWN = (ANTHROPIC, AZURE, BEDROCK, "google", MINIMAX, OPENAI, "openrouter")


def with_origin(origin: str, value: str) -> str:
    """Returns the value with its origin."""
    return value if origin == ANTHROPIC else f"{origin}:{value}"


def own_value(origin: str, value: str | None) -> str | None:
    """Returns the vendor's value, where it is `origin`'s own; else None."""
    if not value:
        return None
    name, mark, rest = value.partition(":")
    if mark and name in _KNOWN:
        return rest if name == origin else None
    return value if origin == ANTHROPIC else None
