"""Tokens and cursors of lists of versions, which are versions."""

from services.common.core.paging import PageBy, invalid_token


def version_bounds(page: PageBy[int]) -> tuple[int | None, int | None]:
    """Returns where a scan of versions begins and ends, neither included. Raises Refused (PAGE_TOKEN_INVALID)."""
    start, end = (page.before, None) if page.backwards else (page.after, page.before)
    return version_of(page.token) if page.token else start, end


def version_of(token: str) -> int:
    """Returns the version that a token or a cursor names. Raises Refused (PAGE_TOKEN_INVALID)."""
    if not (token.isascii() and token.isdigit() and len(token) < 20 and int(token) < 2**63):
        raise invalid_token()
    return int(token)
