"""The page at /: files of a build, and sentences where there is none."""

import gzip
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from gateway.server import ade


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the build will be."""
    return tmp_path / "dist"


@pytest.fixture
def client(folder: Path) -> TestClient:
    app = FastAPI()
    ade.add(app, folder)
    return TestClient(app, follow_redirects=False)


def build(folder: Path) -> None:
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<html>")
    (folder / "assets" / "a-1.js").write_text("plain")
    (folder / "assets" / "a-1.js.gz").write_bytes(gzip.compress(b"packed"))
    (folder / "assets" / "b-1.css").write_text("b {}")
    (folder / "secret.js").write_text("no")


def test_without_a_build_it_says_how_to_make_one(client: TestClient) -> None:
    answer = client.get("/")
    assert answer.status_code == 503
    assert "make ade" in answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["refresh"] == "5"


def test_what_the_build_says_is_passed_on(client: TestClient, folder: Path) -> None:
    (folder.parent / "build-state").write_text("It is being built.")
    assert client.get("/").text == "It is being built."


def test_a_build_is_served_as_soon_as_it_is_there(client: TestClient, folder: Path) -> None:
    assert client.get("/").status_code == 503
    build(folder)
    page = client.get("/")
    assert (page.status_code, page.text, page.headers["cache-control"]) == (200, "<html>", "no-cache")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]


def test_assets(client: TestClient, folder: Path) -> None:
    build(folder)
    packed = client.get("/assets/a-1.js", headers={"accept-encoding": "gzip"})
    assert packed.text == "packed"
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "accept-encoding"
    plain = client.get("/assets/a-1.js", headers={"accept-encoding": "identity"})
    assert plain.text == "plain"
    assert plain.headers["content-type"].startswith("text/javascript")
    assert "immutable" in plain.headers["cache-control"]
    assert client.get("/assets/b-1.css").text == "b {}"


@pytest.mark.parametrize("name", ["c.js", "a-1.js.gz", "..%2fsecret.js", "%2e%2e/secret.js", "%2e%2e", ".hidden.js"])
def test_nothing_else_is_served(client: TestClient, folder: Path, name: str) -> None:
    build(folder)
    (folder / "assets" / ".hidden.js").write_text("no")
    assert client.get(f"/assets/{name}").status_code == 404


def test_behind_a_prefix_relative_names_are_found(folder: Path) -> None:
    app = FastAPI()
    ade.add(app, folder, "/loci")
    build(folder)

    async def leave_it(scope: dict[str, object], receive: object, send: object) -> None:
        """The middleware's way: the prefix goes, but what was sent stays in raw_path."""
        if scope["type"] == "http":
            scope["path"] = "/"
        await app(scope, receive, send)  # type: ignore[arg-type]

    client = TestClient(leave_it, follow_redirects=False)  # type: ignore[arg-type]
    assert client.get("/loci").headers["location"] == "/loci/"
    assert client.get("/loci/").status_code == 200
