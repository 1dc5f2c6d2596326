"""A sentence-embedding model from a folder, as the provider `local` runs it, in this process."""

from array import array
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

from services.llm_gateway.vendors.local.child import Model
from services.llm_gateway.vendors.local.folder import read_folder


def local_embedding(folder: Path) -> Callable[[str], list[float]]:
    """Returns the embedding of a text."""
    files = read_folder(folder)
    options = {"longest": files.longest, "first_token": files.first_token, "threads": 1}
    model = Model(files.graph.read_bytes(), files.tokenizer.read_bytes(), options)

    def embed(text: str) -> list[float]:
        return list(array("f", b64decode(model.embed([text])["vectors"])))

    return embed
