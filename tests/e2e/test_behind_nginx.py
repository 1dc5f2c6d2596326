"""Loci behind a real nginx, by the file that docs/proxy.md shows: links, pages, streams, sockets, big bodies."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from letta_client import Letta
from websockets.sync.client import connect

from tests.e2e.conftest import Providers
from tests.e2e.helpers import create
from tests.e2e.stack import ROOT, is_listening, own_port, running
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply
from tests.polling import wait_until

_MODEL = "openai/gpt-4o-mini"
# What operators often add: compression of whatever there is.
_MAIN = """
daemon off;
{user}
worker_processes 1;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  gzip on;
  gzip_proxied any;
  gzip_min_length 1;
  gzip_types *;
{server}
}}
"""


def _documented() -> str:
    """The server that docs/proxy.md shows."""
    (block,) = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs/proxy.md").read_text(), re.DOTALL)
    return str(block)


@contextmanager
def _nginx(server: str, port: int) -> Iterator[None]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("needs nginx (the package of that name)")
    with tempfile.TemporaryDirectory(prefix="loci-nginx-") as folder:
        settings = Path(folder) / "nginx.conf"
        settings.write_text(_MAIN.format(folder=folder, server=server, user="user root;" if os.getuid() == 0 else ""))
        command = [program, "-p", folder, "-c", str(settings), "-e", "stderr"]
        started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: is_listening(port) or started.poll() is not None)
            assert started.poll() is None, started.stderr and started.stderr.read()
            yield
        finally:
            started.terminate()
            started.communicate(timeout=30)


@pytest.fixture(scope="module", params=["taken away", "left"])
def url(request: pytest.FixtureRequest, providers: Providers) -> Iterator[str]:
    """Where nginx serves Loci; its path is taken away of requests, or left in them."""
    with own_port() as port:
        public = f"http://127.0.0.1:{port}/loci"
        settings = {"LOCI_PUBLIC_URL": public, "LOCI_TRUSTED_PROXIES": "127.0.0.1"}
        with running(providers.environment() | settings) as stack:
            server = _documented().replace("127.0.0.1:8080", f"127.0.0.1:{port}")
            passed = stack.url if request.param == "left" else f"{stack.url}/"
            with _nginx(server.replace("http://127.0.0.1:8283/", passed), port):
                yield public


@pytest.fixture
def agent_id(url: str) -> str:
    """An agent, made through nginx."""
    client: Any = Letta(base_url=url)
    return create(client, _MODEL)


def test_the_official_client_and_links(url: str, agent_id: str, openai_fake: OpenAIServer) -> None:
    openai_fake.answer(lambda _: Reply(text="Hello."))
    client: Any = Letta(base_url=url)
    told = client.agents.messages.create(agent_id, input="Hi.")
    assert [one.content for one in told.messages if one.message_type == "assistant_message"] == ["Hello."]
    with httpx.Client(base_url=url) as http:
        assert "/loci/openapi.json" in http.get("/docs").text
        assert http.get("/openapi.json").json()["servers"] == [{"url": "/loci"}]
        device = http.post("/v1/environments/register", json={"deviceId": "d", "connectionName": "Laptop"}).json()
    assert device["wsUrl"].startswith(f"ws{url.removeprefix('http')}/")


def test_a_stream_is_not_held_back(url: str, agent_id: str, openai_fake: OpenAIServer) -> None:
    rest = openai_fake.gate()
    openai_fake.answer(lambda _: Reply(text="First, and then the rest of it.", gate=rest, gate_after=2))
    body = {"input": "Talk.", "streaming": True, "stream_tokens": True}
    with (
        httpx.Client(base_url=url, timeout=30) as http,
        http.stream("POST", f"/v1/agents/{agent_id}/messages/stream", json=body) as answer,
    ):
        said = ""
        for line in answer.iter_lines():
            event = json.loads(line.removeprefix("data: ")) if line.startswith("data: {") else {}
            if event.get("message_type") == "assistant_message":
                said += event["content"]
                # The model has said no more yet, and this is here.
                rest.open()
    assert said == "First, and then the rest of it."


def test_a_socket(url: str, agent_id: str, openai_fake: OpenAIServer) -> None:
    openai_fake.answer(lambda _: Reply(text="Over a socket."))
    with connect(f"ws{url.removeprefix('http')}/v1/agents/{agent_id}/ws") as socket:
        socket.send(json.dumps({"type": "send", "input": "Hi."}))
        heard: list[Any] = []
        while not heard or heard[-1].get("type") != "end":
            heard.append(json.loads(socket.recv(30)))
    assert [one["content"] for one in heard if one.get("message_type") == "assistant_message"] == ["Over a socket."]


def test_a_large_upload_and_one_that_is_too_large(url: str) -> None:
    with httpx.Client(base_url=url, timeout=60) as http:
        folder = http.post("/v1/folders/", json={"name": "behind", "embedding": "loci/hash"}).json()["id"]
        upload = f"/v1/folders/{folder}/upload"
        assert http.post(upload, files={"file": ("a.txt", b"word " * 400_000)}).status_code == 200
        assert http.post(upload, files={"file": ("b.txt", b"x" * (102 * 1024 * 1024))}).status_code == 413
