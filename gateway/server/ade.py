"""The page at /: the Agent Development Environment, static files that `make ade` builds of ade/.

What is built anew replaces the folder as a whole, so nothing of it is kept here. Where there is no build, / says so.
"""

from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# A name holds the hash of what is in the file.
_FOR_GOOD = {"cache-control": "public, max-age=31536000, immutable"}
_ASK_AGAIN = {"cache-control": "no-cache"}
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_NOT_BUILT = """Loci runs, and this page is not built. Try: make ade
The API is at {base}/v1/, its documents are at {base}/docs.
"""
# Beside the built folder: what a build that goes on, or failed, has to say.
_STATE = "build-state"


def add(app: FastAPI, folder: Path, base: str = "") -> None:
    """Serves the page of `folder`. `base`: the path under which browsers see it."""
    page = Page(folder, base)
    app.router.routes += [
        Route("/", page.index, include_in_schema=False),
        Route("/assets/{name}", page.asset, include_in_schema=False),
    ]


class Page:
    """The files of a build."""

    def __init__(self, folder: Path, base: str) -> None:
        self._folder = folder
        self._base = base

    async def index(self, request: Request) -> Response:
        """Returns the page, or a sentence that says why there is none."""
        # Names in it are relative.
        if self._base and request.scope.get("raw_path") == self._base.encode():
            return RedirectResponse(f"{self._base}/", 308)
        file = self._folder / "index.html"
        if not file.is_file():
            return PlainTextResponse(self._excuse(), 503, HEADERS | {"cache-control": "no-store", "refresh": "5"})
        return FileResponse(file, headers=HEADERS | _ASK_AGAIN, media_type="text/html")

    async def asset(self, request: Request) -> Response:
        """Returns a file of the build. Raises HTTPException (404)."""
        name = request.path_params["name"]
        file = self._folder / "assets" / name
        media_type = _TYPES.get(file.suffix)
        # The router takes one segment; neither ".." nor what npm or an editor left there is an asset.
        if media_type is None or name.startswith(".") or not file.is_file():
            raise HTTPException(404)
        headers = HEADERS | _FOR_GOOD | {"vary": "accept-encoding"}
        packed = file.with_name(f"{name}.gz")
        if "gzip" in request.headers.get("accept-encoding", "") and packed.is_file():
            return FileResponse(packed, headers=headers | {"content-encoding": "gzip"}, media_type=media_type)
        return FileResponse(file, headers=headers, media_type=media_type)

    def _excuse(self) -> str:
        state = self._folder.with_name(_STATE)
        said = state.read_text(errors="replace") if state.is_file() else ""
        return said or _NOT_BUILT.format(base=self._base)
