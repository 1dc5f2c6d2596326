"""Models on this machine: small real ones, each in a process that holds little and may do less."""

from __future__ import annotations

import asyncio
import http.server
import json
import math
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from services.llm_gateway.core.errors import LlmConnection, LlmServerError, ProviderInvalid
from services.llm_gateway.core.models import EmbeddingModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.vendors.local import hub
from services.llm_gateway.vendors.local.client import LocalModel, OnnxProvider
from services.llm_gateway.vendors.local.folder import read_folder
from services.llm_gateway.vendors.local.process import ModelProcess
from tests.fakes.tiny_models import MEANINGS, make_embedding, make_reranker

MODEL = EmbeddingModel("local", "local", "tiny", "", len(MEANINGS) + 1, 64, "tiny")
MIB = 1024 * 1024


def config(**options: object) -> ProviderConfig:
    return ProviderConfig("local", "local", "", "none", "", "", is_vendor=False, options=options)


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    return str(make_embedding(tmp_path / "tiny"))


@pytest.fixture
async def provider(tiny: str) -> AsyncIterator[OnnxProvider]:
    made = OnnxProvider(config(embedding=tiny, threads=1, memory_mib=1_024))
    yield made
    await made.close()


@pytest.fixture
async def model(tiny: str) -> AsyncIterator[LocalModel]:
    made = LocalModel(tiny, config(threads=1, memory_mib=1_024))
    yield made
    await made.close()


def cosine(one: Any, other: Any) -> float:
    return float(sum(a * b for a, b in zip(one, other, strict=True)))


def proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


async def test_words_that_mean_the_same_are_near(provider: OnnxProvider) -> None:
    texts = ["The boat", "a ship", "a doctor", "A physician and a loaf", *["bread"] * 20]
    embeddings = await provider.embed(MODEL, texts)
    boat, ship, doctor, both, *loaves = embeddings.vectors
    assert len(loaves) == 20
    assert all(math.isclose(cosine(one, one), 1.0, rel_tol=1e-5) for one in embeddings.vectors)
    assert cosine(boat, ship) > 0.95
    assert cosine(boat, doctor) < 0.1
    assert cosine(doctor, both) == pytest.approx(cosine(loaves[0], both), abs=0.05)
    assert embeddings.prompt_tokens == 2 + 2 + 2 + 5 + 20


async def test_what_it_says_of_its_model_needs_no_process(provider: OnnxProvider, model: LocalModel) -> None:
    [listed] = await provider.list_models(2.0)
    assert (listed.name, listed.dimensions) == ("tiny", len(MEANINGS) + 1)
    assert model.listed() == listed
    assert model.pid is None


async def test_the_process_is_closed_in_and_ends_with_its_provider(tmp_path: Path) -> None:
    process = ModelProcess(read_folder(make_embedding(tmp_path / "tiny")), threads=1, memory_mib=1_024)
    await process.embed(["boat"])
    assert process.pid is not None
    child = psutil.Process(process.pid)
    limits = proc(process.pid, "limits")
    assert str(1_024 * MIB) in next(line for line in limits.splitlines() if line.startswith("Max address space"))
    assert "NoNewPrivs:\t1" in proc(process.pid, "status")
    # Its own, and at most one that computes.
    assert child.num_threads() <= 3
    await process.close()
    assert not child.is_running()
    # The next call starts another.
    vectors, _ = await process.embed(["ship"])
    assert len(vectors) == 1
    await process.close()


async def test_a_process_that_dies_is_an_error_and_then_begins_anew(model: LocalModel) -> None:
    await model.embed(["boat"])
    psutil.Process(model.pid).kill()
    with pytest.raises(LlmServerError, match="its process ended"):
        await model.embed(["boat"])
    assert len((await model.embed(["boat"])).vectors) == 1


async def test_a_call_that_is_given_up_leaves_no_answer_for_the_next(provider: OnnxProvider) -> None:
    await provider.embed(MODEL, ["boat"])
    given_up = asyncio.create_task(provider.embed(MODEL, ["doctor"] * 200))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    [boat, ship] = (await provider.embed(MODEL, ["boat", "ship"])).vectors
    assert cosine(boat, ship) > 0.95


async def test_the_first_token_alone_where_the_model_says_so_and_no_more_tokens_than_it_takes(tmp_path: Path) -> None:
    folder = make_embedding(tmp_path / "tiny", first_token=True, longest=4)
    process = ModelProcess(read_folder(folder), threads=1, memory_mib=1_024)
    [first, boat], tokens = await process.embed(["ship doctor bread bread bread bread", "boat"])
    assert cosine(first, boat) > 0.99
    assert tokens == 4 + 1
    await process.close()


async def test_a_reranker_says_how_well_each_text_answers(tmp_path: Path) -> None:
    model = LocalModel(str(make_reranker(tmp_path / "judge", ["boat", "harbour"])), config(threads=1))
    scores = await model.compare("harbour", ["a boat in the harbour", "bread", "the boat"])
    assert sorted(range(3), key=lambda place: -scores[place]) == [0, 2, 1]
    assert all(0 < score < 1 for score in scores)
    await model.close()


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("model.onnx", "has no model.onnx or onnx/model.onnx; export the model to ONNX"),
        ("tokenizer.json", "has no tokenizer.json"),
        ("config.json", "does not say hidden_size"),
    ],
)
async def test_a_folder_without_a_file_says_which(tmp_path: Path, missing: str, problem: str) -> None:
    (make_embedding(tmp_path / "tiny") / missing).unlink()
    made = OnnxProvider(config(embedding=str(tmp_path / "tiny")))
    with pytest.raises(ProviderInvalid, match=problem):
        await made.list_models(2.0)
    with pytest.raises(ProviderInvalid, match=problem):
        await made.embed(MODEL, ["boat"])
    await made.close()


async def test_a_file_that_is_no_model_is_said_to_be_none(tmp_path: Path) -> None:
    (make_embedding(tmp_path / "tiny") / "model.onnx").write_bytes(b"no graph")
    made = OnnxProvider(config(embedding=str(tmp_path / "tiny")))
    with pytest.raises(ProviderInvalid, match=r"cannot be used: .*Protobuf"):
        await made.embed(MODEL, ["boat"])
    await made.close()


class Hub(http.server.BaseHTTPRequestHandler):
    """A hub with one model, as the hub's client asks for it."""

    folder: Path
    asked: list[str]
    commit = "0123456789abcdef0123456789abcdef01234567"

    def do_HEAD(self) -> None:
        self._answer(head=True)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self._answer(head=False)

    def _answer(self, *, head: bool) -> None:
        name = self.path.partition(f"/{self.commit}/")[2].partition("?")[0]
        files = {path.relative_to(self.folder).as_posix(): path for path in self.folder.rglob("*") if path.is_file()}
        if self.path.startswith("/api/models/owner/tiny/tree/"):
            entries = [
                {"type": "file", "path": path, "size": file.stat().st_size, "oid": f"{hash(path):x}"}
                for path, file in files.items()
            ]
            body = json.dumps(entries).encode()
        elif self.path.startswith("/api/models/owner/tiny"):
            siblings = [{"rfilename": path} for path in files]
            body = json.dumps({"id": "owner/tiny", "sha": self.commit, "siblings": siblings}).encode()
        elif self.path.startswith("/owner/tiny/resolve/") and name in files:
            body = files[name].read_bytes()
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", f'"{name or "list"}"')
        self.send_header("X-Repo-Commit", self.commit)
        self.end_headers()
        if not head:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    handler = type("TinyHub", (Hub,), {"folder": make_embedding(tmp_path / "tiny"), "asked": []})
    (tmp_path / "tiny" / "weights.safetensors").write_bytes(b"much")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(hub, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr(hub, "CACHE", tmp_path / "cache")
        yield handler
        server.shutdown()


async def test_a_model_comes_from_its_hub_once(hub_server: type[Hub]) -> None:
    made = OnnxProvider(config(embedding="owner/tiny"))
    [listed] = await made.list_models(2.0)
    assert (listed.name, listed.dimensions) == ("tiny", None)
    assert hub_server.asked == []
    [boat, ship] = (await made.embed(MODEL, ["boat", "ship"])).vectors
    assert cosine(boat, ship) > 0.95
    await made.close()
    fetched = [path for path in hub_server.asked if "/resolve/" in path]
    assert any(path.endswith("/model.onnx") for path in fetched)
    # Nothing but what is used.
    assert not any("weights" in path for path in fetched)
    again = OnnxProvider(config(embedding="owner/tiny"))
    await again.embed(MODEL, ["boat"])
    await again.close()
    assert [path for path in hub_server.asked if "/resolve/" in path] == fetched


async def test_a_hub_that_does_not_have_it_is_an_error_that_says_what_to_do(hub_server: type[Hub]) -> None:
    made = OnnxProvider(config(embedding="owner/other"))
    with pytest.raises(LlmConnection, match=r"owner/other did not come from its hub .*put its files into a folder"):
        await made.embed(MODEL, ["boat"])
    await made.close()
