"""The cache of layers: a folder with an archive for each, by its key; unpacked beside it where needed.

Used ones are kept, the oldest go. Several runners may share a folder: what is there under its name is whole.
"""

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
import time
from pathlib import Path

from services.tool_runner.core.job import Layer, SandboxUnavailable
from services.tool_runner.layers.archives import rewrite, unpack

_UNFINISHED = ".new-"
_ABANDONED_SECONDS = 3600.0
_GRACE_SECONDS = 3600.0  # a layer used so lately may be in the hands of a call


class LayerCache:
    """Blocking: called in threads. `most`: how many layers are kept; `most_bytes`: of one."""

    def __init__(self, folder: Path, *, most: int, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._folder = folder
        self._most = most

    def find(self, key: str) -> Layer | None:
        """Returns the layer, where it is there; it counts as used."""
        archive = self._folder / f"{key}.tar"
        try:
            os.utime(archive)
        except OSError:
            return None
        return Layer(key, archive)

    def new_file(self) -> Path:
        """Returns a file to receive an archive in; raises SandboxUnavailable."""
        try:
            self._make_folder()
        except OSError as error:
            raise SandboxUnavailable(f"packages cannot be kept in {self._folder} (LOCI_LAYER_DIR): {error}") from error
        return self._folder / f"{_UNFINISHED}{secrets.token_hex(8)}"

    def keep(self, key: str, received: Path) -> Layer:
        """Returns what is harmless of what was received, under its key; raises BadArchive and OSError."""
        clean = received.with_name(received.name + "-clean")
        try:
            rewrite(received, clean, self.most_bytes)
            clean.rename(self._folder / f"{key}.tar")
        finally:
            clean.unlink(missing_ok=True)
        self._drop_oldest()
        return Layer(key, self._folder / f"{key}.tar")

    def _make_folder(self) -> None:
        missing = [path for path in (self._folder, *self._folder.parents) if not path.exists()]
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in missing:
            path.chmod(0o711)  # whatever the umask is: tools are run as other users
        status = self._folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError("it is to be a folder of this user that no other may write to")

    def _drop_oldest(self) -> None:
        now = time.time()
        with contextlib.suppress(OSError):
            for unfinished in self._folder.glob(f"{_UNFINISHED}*"):
                if now - unfinished.lstat().st_mtime > _ABANDONED_SECONDS:
                    _remove(unfinished)
            layers = sorted(self._folder.glob("*.tar"), key=lambda path: path.stat().st_mtime)
            for archive in layers[: max(0, len(layers) - self._most)]:
                if now - archive.stat().st_mtime > _GRACE_SECONDS:
                    archive.unlink(missing_ok=True)
                    _remove(archive.with_suffix(""))


def unpack_layer(layer: Layer) -> Path:
    """Returns the folder with the layer's files, unpacked at the first call. Raises OSError.

    Its files are for everybody to read: where the runner is root, tools are run as another user.
    """
    folder = layer.archive.with_suffix("")
    if not folder.exists():
        new = folder.with_name(f"{_UNFINISHED}{secrets.token_hex(8)}")
        try:
            unpack(layer.archive, new)
            with contextlib.suppress(OSError):  # another one was faster
                new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return folder


def default_folder(home: str) -> Path:
    """Returns a folder below LOCI_HOME, else one of this user's among the temporary ones.

    Root's home is closed to the users that root's tools run as, so theirs is elsewhere.
    """
    if home and os.geteuid() == 0:
        return Path("/var/cache/loci/layers")
    return Path(home) / "layers" if home else Path(tempfile.gettempdir()) / f"loci-layers-{os.geteuid()}"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
