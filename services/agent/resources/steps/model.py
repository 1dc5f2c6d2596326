"""Tags that people give to steps. Pure."""

from collections.abc import Sequence

from services.common.core.refusals import Refused

MOST_TAGS = 100
LONGEST_TAG = 200


def with_tags(tags: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Returns both together, each once, in the order they came. Raises Refused (FEEDBACK_INVALID)."""
    for tag in added:
        if not tag or len(tag) > LONGEST_TAG or "\0" in tag:
            raise Refused(
                "FEEDBACK_INVALID", f"a tag has 1 to {LONGEST_TAG} characters and no NUL, unlike {tag[:40]!r}"
            )
    together = tuple(dict.fromkeys((*tags, *added)))
    if len(together) > MOST_TAGS:
        raise Refused(
            "FEEDBACK_INVALID", f"a step has at most {MOST_TAGS} tags; with these it would have {len(together)}"
        )
    return together
