"""The cuts in a prompt that make room for messages: open files first, then blocks. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import UUID

from services.agent.core.ports import DirectoryView, FileView, MemoryView
from services.agent.core.ports_journal import Prompt
from services.agent.core.prompt.directories import version_of
from services.agent.core.window.budget import excess, missing_tokens, shorten, shorten_files
from services.agent.core.window.sizes import BYTES_PER_TOKEN, bytes_of, estimate_text


def fit_prompt(
    view: MemoryView,
    compiled: Callable[[MemoryView], Prompt],
    *,
    window: int,
    of_tools: int,
    newest: Callable[[], int],
) -> Prompt:
    """Returns the prompt of a memory, with so much of its files and blocks as there is room for in a window.

    of_tools: tokens of the tools. newest: tells the tokens of the messages that shall not be cut for files.
    """
    prompt = compiled(view)
    fixed = estimate_text(prompt.text) + of_tools
    over = excess(window, fixed)
    if _has_open_files(view):
        over = max(over, missing_tokens(window, fixed, newest()))
    if over and view.directories:
        view = with_short_files(view, over)
        prompt = compiled(view)
        fixed = estimate_text(prompt.text) + of_tools
        over = excess(window, fixed)
    return compiled(with_short_blocks(view, over)) if over else prompt


def _has_open_files(view: MemoryView) -> bool:
    return any(file.is_open for directory in view.directories for file in directory.files)


def with_short_files(view: MemoryView, over: int) -> MemoryView:
    """Returns the memory with `over` tokens less of open files, or as many as there are; where these are not enough,
    without the names of the others. It counts as the same version.
    """
    files = [file for directory in view.directories for file in directory.files if file.is_open]
    contents = shorten_files([file.content for file in files], over)
    short = {file.id: replace(file, content=text) for file, text in zip(files, contents, strict=True)}
    saved = sum(bytes_of(file.content) - bytes_of(short[file.id].content) for file in files)
    listed = saved >= over * BYTES_PER_TOKEN
    directories = tuple(_with_files(directory, short, listed=listed) for directory in view.directories)
    version = version_of(view.directories) if view.files_version is None else view.files_version
    return replace(view, directories=directories, files_version=version)


def with_short_blocks(view: MemoryView, over: int) -> MemoryView:
    """Returns the memory with `over` tokens less of blocks, or as many as there are."""
    values = shorten([block.value for block in view.blocks], over)
    blocks = tuple(replace(block, value=value) for block, value in zip(view.blocks, values, strict=True))
    return replace(view, blocks=blocks)


def _with_files(directory: DirectoryView, short: Mapping[UUID, FileView], *, listed: bool) -> DirectoryView:
    files = (short.get(file.id, file) for file in directory.files)
    return replace(directory, files=tuple(file for file in files if listed or file.is_open))
