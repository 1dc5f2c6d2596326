"""Models from their hub: fetched on first use, then kept in the hub's own cache, of which HF_HOME says where it is."""

import re
from pathlib import Path

import httpx2
from huggingface_hub import snapshot_download
from huggingface_hub.utils.tqdm import disable_progress_bars

from services.llm_gateway.vendors.local.folder import FILES

# None: as the hub's client has them, by HF_ENDPOINT and HF_HOME.
ENDPOINT: str | None = None
CACHE: Path | None = None
_NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+?)(?:@(?P<revision>[\w./-]+))?")


class HubFailed(Exception):
    """The hub did not give the model; the text says why, without a full stop."""


def is_hub_name(text: str) -> bool:
    """Returns whether a text has the form owner/name or owner/name@revision."""
    return _NAME.fullmatch(text) is not None


def fetch(name: str) -> Path:
    """Returns the folder of a model's files, which it fetches where they are not there yet. Raises HubFailed."""
    match = _NAME.fullmatch(name)
    assert match is not None
    disable_progress_bars()
    try:
        folder = snapshot_download(
            match["repository"],
            revision=match["revision"],
            allow_patterns=list(FILES),
            endpoint=ENDPOINT,
            cache_dir=CACHE,
        )
    except (OSError, httpx2.HTTPError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise HubFailed(f"{name} did not come from its hub ({reason or type(error).__name__})") from error
    return Path(folder)
