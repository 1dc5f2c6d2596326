"""Pages of the open web as Markdown. Whoever names the address is a model: it is checked at each redirect."""

import asyncio
from dataclasses import dataclass

import httpx

from services.common.core.addresses import AddressRefused
from services.common.safe_http import check_url, safe_client
from services.tool_runner.web.bounded_body import ACCEPTED, BodyTooLarge, read_bounded
from services.tool_runner.web.errors import WebError
from services.tool_runner.web.extraction import extract

_SECONDS = 20.0
# Of a page with all its redirects: a host may give a byte now and then.
_WHOLE_SECONDS = 60.0
_MOST_BYTES = 8 * 1024 * 1024
_MOST_REDIRECTS = 5
_HEADERS = {
    "User-Agent": "Loci/1.0 (fetch_webpage)",
    "Accept": "text/html, text/*;q=0.9, application/json;q=0.8",
    "Accept-Encoding": ACCEPTED,
}
_PAGES = ("text/html", "application/xhtml+xml")
_TEXTS = ("text/", "application/json", "application/xml", "application/yaml", "application/x-yaml")


@dataclass(frozen=True, slots=True)
class Page:
    """`url` is where the redirects ended; `text` is Markdown, or the text as it was."""

    url: str
    title: str
    text: str


class Fetcher:
    """Fetches over HTTP. `allow_private`: LOCI_ALLOW_PRIVATE_URLS."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._http = safe_client(allow_private=allow_private, timeout=_SECONDS)

    async def fetch(self, url: str) -> Page:
        """Returns the page; raises WebError."""
        try:
            async with asyncio.timeout(_WHOLE_SECONDS):
                return await self._follow(url)
        except AddressRefused as refused:
            raise WebError(f"{url[:200]} was not fetched: {refused}") from refused
        except BodyTooLarge as unread:
            raise WebError(f"{url[:200]} {unread}") from None
        except TimeoutError:
            raise WebError(f"{url[:200]} did not come within {_WHOLE_SECONDS:g} s") from None
        except httpx.HTTPError as error:
            raise WebError(f"{url[:200]} could not be fetched: {str(error) or type(error).__name__}") from error

    async def close(self) -> None:
        """Closes connections."""
        await self._http.aclose()

    async def _follow(self, url: str) -> Page:
        for _ in range(_MOST_REDIRECTS + 1):
            checked = self._check_url(url)
            async with self._http.stream("GET", checked, headers=_HEADERS) as response:
                if response.next_request is None:
                    return await self._read(response)
                url = str(response.next_request.url)
        raise WebError(f"{url[:200]} redirects more than {_MOST_REDIRECTS} times")

    def _check_url(self, url: str) -> httpx.URL:
        """Returns the URL to ask: models write http:// for pages that have long been behind https://."""
        try:
            return check_url(url, allow_private=self._allow_private)
        except AddressRefused:
            scheme, separator, rest = url.partition("://")
            if scheme.lower() != "http":
                raise
            return check_url(f"https{separator}{rest}", allow_private=self._allow_private)

    async def _read(self, response: httpx.Response) -> Page:
        url = str(response.url)
        if response.status_code >= httpx.codes.BAD_REQUEST:
            raise WebError(f"{url[:200]} answered {response.status_code} {response.reason_phrase}".rstrip())
        kind = response.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
        if kind not in _PAGES and not kind.startswith(_TEXTS):
            raise WebError(f"{url[:200]} is {kind[:80]}, which is neither a page nor text")
        text = _decode(await read_bounded(response, _MOST_BYTES), response.charset_encoding)
        if kind not in _PAGES:
            return Page(url, "", text)
        title, markdown = await extract(text, url)
        return Page(url, title, markdown)


def _decode(body: bytes, encoding: str | None) -> str:
    """Returns the text as its header says, where Python knows that encoding."""
    try:
        return body.decode(encoding or "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")
