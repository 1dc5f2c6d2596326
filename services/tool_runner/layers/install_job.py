"""The installation of packages: a program in a sandbox whose way out leads to the package index alone."""

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from services.tool_runner.core.job import MIB, File, Job, Language, Limits, Mode
from services.tool_runner.core.network_policy import Host, Policy, canonical
from services.tool_runner.core.ports import Tunnel
from services.tool_runner.egress.egress import Egress
from services.tool_runner.layers import wheels
from services.tool_runner.layers.package_managers import npm_file, pip_file

NO_INDEX = "none"
_FILES_OF_PYPI = "files.pythonhosted.org"
_INSTALLER = Path(__file__).with_name("installer.py")


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """The operator's settings. `from_source`: whether pip may build packages, running their code in the sandbox."""

    folder: Path
    pip_index_url: str = "https://pypi.org/simple"
    pip_find_links: tuple[str, ...] = ()  # addresses, or folders of this machine
    npm_registry: str = "https://registry.npmjs.org"
    from_source: bool = False
    most_bytes: int = 512 * MIB  # of one layer
    seconds: float = 300.0  # for making one
    most: int = 50  # that are kept


def job(settings: LayerSettings, requirements: tuple[str, ...], language: Language) -> Job:
    """Returns the installer as a program in a sandbox, which writes a tar."""
    node = language is Language.NODE
    installer = npm_file() if node else pip_file()
    plan = {
        "kind": "npm" if node else "pip",
        "requirements": requirements,
        "options": ["--registry", settings.npm_registry] if node else _pip_options(settings),
        "pip": installer.name if installer and not node else "",
        "npm": installer.name if installer and node else "",
    }
    inputs = (File(_INSTALLER.name, _INSTALLER.read_bytes()), *((installer,) if installer else ()))
    disk = settings.most_bytes
    limits = Limits(seconds=settings.seconds, memory=2 * disk + 512 * MIB, processes=128, cpus=2.0, disk=disk)
    argv = ("python3", "-I", f"/inputs/{_INSTALLER.name}", json.dumps(plan))
    return Job("", "", {}, limits=limits, language=language, mode=Mode.PROCESS, argv=argv, inputs=inputs)


def _pip_options(settings: LayerSettings) -> list[str]:
    indexed = settings.pip_index_url != NO_INDEX
    links = [link if "://" in link else wheels.URL for link in settings.pip_find_links]
    options = ["--index-url", settings.pip_index_url] if indexed else ["--no-index"]
    options += [] if settings.from_source else ["--only-binary", ":all:"]
    for link in links:
        options += ["--find-links", link]
    # What an operator names by http is trusted as it is named.
    for url in (*([settings.pip_index_url] if indexed else ()), *links):
        if url.startswith("http://"):
            options += ["--trusted-host", urlsplit(url).netloc.rpartition("@")[2]]
    return options


def tunnel(settings: LayerSettings, egress: Egress, language: Language) -> Tunnel:
    """Returns a way out to the package index alone. The operator named these hosts: they may be private."""
    urls = [settings.npm_registry]
    if language is Language.PYTHON:
        urls = [settings.pip_index_url, *settings.pip_find_links, f"https://{_FILES_OF_PYPI}"]
    places = [urlsplit(url) for url in urls if "://" in url]
    hosts = tuple(Host(name, place.port, vouched=True) for place in places if (name := canonical(place.hostname or "")))
    way_out = egress.tunnel(Policy(hosts))
    folder = next((link for link in settings.pip_find_links if "://" not in link), None)
    return wheels.WheelTunnel(Path(folder), way_out) if folder and language is Language.PYTHON else way_out
