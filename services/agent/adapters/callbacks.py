"""Callbacks. Their HTTP (8 MB with all that it brings) is imported with the first: most servers make none."""

from collections.abc import Mapping

from services.common.lazy_imports import import_lazily


class HttpPoster:
    """`resources.callbacks.ports.Poster`."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        posting = await import_lazily("services.agent.adapters.posting")
        status: int = await posting.post(url, body, headers, allow_private=self._allow_private)
        return status
