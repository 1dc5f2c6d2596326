"""A model on this machine is the default embedding: agents find by meaning what has no word of the question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from tests.e2e.stack import running
from tests.fakes.tiny_models import MEANINGS, make_embedding, make_reranker


def test_passages_and_files_are_found_by_meaning_and_ordered_by_a_reranker(tmp_path: Path) -> None:
    settings = {
        "LOCI_LOCAL_EMBEDDING": str(make_embedding(tmp_path / "tiny")),
        "LOCI_LOCAL_RERANKER": str(make_reranker(tmp_path / "judge", ["blue"])),
        # Of what stands beside something nothing is found here.
        "LOCI_NEIGHBOUR_SHARE": "0",
    }
    with running(settings) as stack:
        client: Any = stack.client()
        models = {model.handle: model for model in client.models.embeddings.list()}
        assert models["local/tiny"].embedding_dim == len(MEANINGS) + 1
        assert not any(handle.startswith("local/") for handle in (model.handle for model in client.models.list()))
        agent = client.agents.create(model="loci/demo")
        assert agent.embedding_config.handle == "local/tiny"
        for text in ("Her boat is at the pier", "A loaf on the table", "The blue vessel"):
            client.agents.passages.create(agent.id, text=text)
        vector = {"search_mode": "vector"}
        [first, second, *_] = client.agents.passages.search(agent.id, query="ship", extra_query=vector).results
        assert {first.content, second.content} == {"Her boat is at the pier", "The blue vessel"}
        # The reranker knows one word alone.
        [best, *_] = client.agents.passages.search(agent.id, query="boat").results
        assert best.content == "The blue vessel"
        # Whose it is: the server's files are no tenant's.
        made = httpx.post(
            f"{stack.url}/v1/providers/",
            json={"name": "mine", "provider_type": "local", "api_key": "x", "options": {"embedding": "/etc"}},
        )
        assert made.status_code in (400, 422)
        assert "only its operator sets it up" in made.text
