"""The check of callback URLs."""

from services.common.core.addresses import AddressRefused
from services.common.errors import InvalidArgument
from services.common.lazy_imports import import_lazily


async def check_callback(url: str, *, allow_private: bool) -> None:
    """Judges a callback URL by its text, when a request gives it. Raises InvalidArgument (CALLBACK_URL_INVALID)."""
    safe_http = await import_lazily("services.common.safe_http")
    try:
        safe_http.check_url(url, allow_private=allow_private)
    except AddressRefused as refused:
        raise InvalidArgument(f"`callback_url`: {refused}", reason="CALLBACK_URL_INVALID") from None
