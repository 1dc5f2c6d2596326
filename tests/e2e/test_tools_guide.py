"""docs/tools.md as somebody follows it: every block of Python in it runs, and shows what the text says."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from tests.e2e.guides import follow
from tests.e2e.stack import Stack, running

# What each block prints; the first only makes a client.
OUTPUTS = [
    r"^$",
    r"order_pizza \['small', 'large'\]\n\{'size': 'large', 'toppings': 1, 'note': None\}",
    r"True\ngreet_city",
    r"6\.50 EUR",
    r"\{'city': 'Oslo', 'key': '\*+', 'degrees': 3\}",
    r"1\.2 million",
    r"2\nFiles made: numbered\.txt [^\n]*\nnumbered\.txt 1: one\n2: two",
    r"Ada, Grace",
    r"True",
    r"order_pizza 1 \d+\nTrue",
    r"wikipedia external_langchain .*langchain-community.*1\.4\.0.*\n2 pages on Haskell",
    r"github_create_an_issue external_composio .*backend\.composio\.dev",
]
LETTA = "letta-client httpx httpcore h11 anyio idna certifi sniffio distro pydantic pydantic-core typing-extensions"

# Enough of the libraries that the guide names, here and in the sandbox.
HUMANIZE = "def intword(number):\n    return f'{number / 1e6:.1f} million'\n"
UTILITIES = """
try:
    from pydantic import BaseModel
except ImportError:
    class BaseModel:
        def __init__(self, **given):
            self.__dict__.update(given)


class WikipediaAPIWrapper(BaseModel):
    top_k_results: int = 3
"""
TOOLS = """
from langchain_community.utilities import BaseModel, WikipediaAPIWrapper


class WikipediaQueryRun(BaseModel):
    api_wrapper: WikipediaAPIWrapper
    name: str = "wikipedia"
    description: str = "Look something up."
    args_schema: dict = {"properties": {"query": {"type": "string"}}, "required": ["query"]}

    def invoke(self, given):
        return f"{self.api_wrapper.top_k_results} pages on {given['query']}"
"""
LANGCHAIN = {
    "langchain_community/__init__.py": "",
    "langchain_community/utilities.py": UTILITIES,
    "langchain_community/tools.py": TOOLS,
}


class Weather(BaseHTTPRequestHandler):
    """A weather service that answers with the query and its key."""

    def do_GET(self) -> None:
        key = self.headers["x-api-key"]
        body = json.dumps({"city": self.path.partition("=")[2], "key": key, "degrees": 3}).encode()
        type(self).keys.append(key)
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    keys: ClassVar[list[str]] = []

    def log_message(self, *said: Any) -> None:
        """Logs nothing."""


@pytest.fixture(scope="module")
def weather() -> Iterator[str]:
    """Host and port of an API."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Weather)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def guide_stack(weather: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A Loci whose package index is a folder, and that may reach the API on this machine."""
    wheels = tmp_path_factory.mktemp("wheels")
    wheel(wheels, "humanize", "4.0.0", {"humanize.py": HUMANIZE})
    wheel(wheels, "wikipedia", "1.4.0", {"wikipedia.py": ""})
    wheel(wheels, "langchain_community", "1.0", LANGCHAIN)
    for name in with_requirements(LETTA.split()):
        packed(wheels, name)
    environment = {
        "LOCI_SANDBOX": "bubblewrap",
        "LOCI_PIP_INDEX_URL": "none",
        "LOCI_PIP_FIND_LINKS": str(wheels),
        "LOCI_TOOL_NETWORK": weather,
    }
    with running(environment) as started:
        yield started


def wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    """A package of pure Python."""
    about = f"{name}-{version}.dist-info"
    parts = files | {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*parts, f"{about}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, content in (parts | {f"{about}/RECORD": record}).items():
            archive.writestr(path, content)


def with_requirements(names: list[str]) -> set[str]:
    """Packages that are installed here, with those that they need."""
    found: set[str] = set()
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name in found:
            continue
        try:
            needed = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        names += [re.split(r"[^\w.-]", need)[0] for need in needed if "extra ==" not in need]
    return found


def packed(folder: Path, name: str) -> None:
    """A package that is installed here, as the wheel it came from."""
    package = importlib.metadata.distribution(name)
    tag = re.findall(r"^Tag: (\S+)", package.read_text("WHEEL") or "", re.MULTILINE)[-1]
    with zipfile.ZipFile(folder / f"{name.replace('-', '_')}-{package.version}-{tag}.whl", "w") as archive:
        for path in package.files or ():
            on_disk = Path(str(path.locate()))
            if ".." not in path.parts and path.suffix != ".pyc" and on_disk.is_file():
                archive.write(on_disk, str(path))


def test_the_guide(
    guide_stack: Stack,
    weather: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "langchain_community").mkdir()
    for path, content in LANGCHAIN.items():
        (tmp_path / path).write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    places = {"http://localhost:8283": guide_stack.url, "https://api.example.com": f"http://{weather}"}
    follow("tools.md", OUTPUTS, capsys, places | {"api.example.com": weather})
    assert Weather.keys == ["s3cret-key"]
    for name in [name for name in sys.modules if name.startswith("langchain_community")]:
        del sys.modules[name]
