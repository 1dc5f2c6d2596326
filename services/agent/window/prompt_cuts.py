"""What a prompt shows less of, so that messages fit beside it: open files first, then blocks. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from services.agent.directories import version_of
from services.agent.ports import DirectoryView, FileView, MemoryView
from services.agent.window.budget import shortened, shortened_files
from services.agent.window.sizes import BYTES_PER_TOKEN, bytes_of


def has_open_files(view: MemoryView) -> bool:
    """Whether there is anything that `with_short_files` may cut."""
    return any(file.is_open for directory in view.directories for file in directory.files)


def with_short_files(view: MemoryView, over: int) -> MemoryView:
    """The memory with `over` tokens less of open files, or as many as there are; where these are not enough, without
    the names of the others. It counts as the same version.
    """
    files = [file for directory in view.directories for file in directory.files if file.is_open]
    contents = shortened_files([file.content for file in files], over)
    short = {file.id: replace(file, content=text) for file, text in zip(files, contents, strict=True)}
    saved = sum(bytes_of(file.content) - bytes_of(short[file.id].content) for file in files)
    listed = saved >= over * BYTES_PER_TOKEN
    directories = tuple(_with_files(directory, short, listed=listed) for directory in view.directories)
    version = version_of(view.directories) if view.files_version is None else view.files_version
    return replace(view, directories=directories, files_version=version)


def with_short_blocks(view: MemoryView, over: int) -> MemoryView:
    """The memory with `over` tokens less of blocks, or as many as there are."""
    values = shortened([block.value for block in view.blocks], over)
    blocks = tuple(replace(block, value=value) for block, value in zip(view.blocks, values, strict=True))
    return replace(view, blocks=blocks)


def _with_files(directory: DirectoryView, short: Mapping[UUID, FileView], *, listed: bool) -> DirectoryView:
    files = (short.get(file.id, file) for file in directory.files)
    return replace(directory, files=tuple(file for file in files if listed or file.is_open))
