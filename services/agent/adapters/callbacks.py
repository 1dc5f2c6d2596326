"""Callbacks. Their HTTP (8 MB with all that it brings) is imported with the first: most servers make none."""

from collections.abc import Mapping

from services.common.addresses import Refused
from services.common.errors import InvalidArgument
from services.common.late import imported


class HttpPoster:
    """`ports_runs.Poster`."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        posting = await imported("services.agent.adapters.posting")
        status: int = await posting.post(url, body, headers, allow_private=self._allow_private)
        return status


async def check_callback(url: str, *, allow_private: bool) -> None:
    """Judges a callback URL by its text, when a request gives it. Raises InvalidArgument (CALLBACK_URL_INVALID)."""
    outward = await imported("services.common.outward")
    try:
        outward.check_url(url, allow_private=allow_private)
    except Refused as refused:
        raise InvalidArgument(f"`callback_url`: {refused}", reason="CALLBACK_URL_INVALID") from None
