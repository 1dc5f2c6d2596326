"""What the last words of an installer come to: what is missing, and which setting gives it. Pure."""

import re

_WORDS, _LINES = 2_000, 15
# The first that fits is told; `{0}` is what the pattern found.
_CAUSES = (
    (
        r"Requires-Python ([^\s;]+)|requires a different Python: ([^\n]+)",
        "it wants another Python ({0}) than the sandbox has: name another version of it, or an image with that Python",
    ),
    (
        r"Failed to establish a new connection|Connection refused|ECONNREFUSED|EAI_AGAIN|ENOTFOUND|ProxyError",
        "the package index does not answer: LOCI_PIP_INDEX_URL and LOCI_NPM_REGISTRY name others",
    ),
    (
        r"No matching distribution found for (\S+)",
        "the index has no wheel of {0} for this Python: there is no such version, or it needs a compiler. Name another "
        "version, or set LOCI_PIP_FROM_SOURCE=true where the sandbox has a compiler",
    ),
    (r"\b(?:E404|ETARGET)\b", "the registry has no such package, or not in that version"),
    (r"No space left on device|\bENOSPC\b", "the packages are larger than LOCI_LAYER_MIB lets them be"),
)


def failure_text(errors: str) -> str:
    """Returns the cause, where it is known, and the installer's last words; "" for none."""
    lines = [line for line in errors.splitlines() if line.strip()]
    words = "\n".join(lines[-_LINES:])[-_WORDS:]
    for pattern, advice in _CAUSES:
        if found := re.search(pattern, errors):
            return f"{advice.format(next(filter(None, found.groups()), '')[:100])}; its words: {words}"
    return words
