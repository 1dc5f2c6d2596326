"""The document and the pages that show it: Swagger UI at /docs, ReDoc at /redoc, their scripts from here."""

import importlib
from pathlib import Path

import fastapi_offline
from fastapi import FastAPI
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from gateway.rest.responses import json_response

DOCUMENT = "/openapi.json"
ASSETS = "/docs/assets"
_FILES = Path(fastapi_offline.__file__).parent / "static"


def add(app: FastAPI, base: str = "") -> None:
    """Mounts them. `base`: the path under which browsers see them."""
    if base:
        app.servers = [{"url": base}]
    app.openapi = lambda: _document(app)  # type: ignore[method-assign] # FastAPI's own way to have another

    async def document(_: Request) -> Response:
        return json_response(app.openapi())

    async def swagger(_: Request) -> Response:
        return get_swagger_ui_html(
            openapi_url=base + DOCUMENT,
            title=app.title,
            swagger_js_url=f"{base}{ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{base}{ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{base}{ASSETS}/favicon.png",
        )

    async def redoc(_: Request) -> Response:
        return get_redoc_html(
            openapi_url=base + DOCUMENT,
            title=app.title,
            redoc_js_url=f"{base}{ASSETS}/redoc.standalone.js",
            redoc_favicon_url=f"{base}{ASSETS}/favicon.png",
            with_google_fonts=False,
        )

    app.router.routes += [
        Route(DOCUMENT, document, include_in_schema=False),
        Route("/docs", swagger, include_in_schema=False),
        Route("/redoc", redoc, include_in_schema=False),
        Mount(ASSETS, StaticFiles(directory=_FILES)),
    ]


def _document(app: FastAPI) -> dict[str, object]:
    if app.openapi_schema is None:
        # Hundreds of schemas, which a gateway that nobody asks for them need not hold.
        app.openapi_schema = importlib.import_module("gateway.openapi.document").document(app)
    return app.openapi_schema
