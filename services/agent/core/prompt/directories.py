"""Folders and files as the system prompt shows them. Pure.

The format is that of the reference API: limits, then each folder with its open files in full and the others by name.
"""

import hashlib
from collections.abc import Sequence

from services.agent.core.ports import DirectoryView, FileView


def render_directories(directories: Sequence[DirectoryView], limits: tuple[int, int]) -> str:
    """Returns the section; empty without folders. `limits`: files that may be open, characters of each in view."""
    if not directories:
        return ""
    opened = sum(file.is_open for directory in directories for file in directory.files)
    most_open, characters = limits
    head = ("<file_limits>", f"- current_files_open={opened}", f"- max_files_open={most_open}", "</file_limits>")
    parts = (_directory(directory, characters) for directory in directories)
    return "\n".join(["<directories>", *head, *parts, "</directories>"])


def version_of(directories: Sequence[DirectoryView]) -> str | None:
    """Returns a hash that changes with the section of the folders; None without any."""
    return hashlib.sha256(render_directories(directories, (0, 0)).encode()).hexdigest() if directories else None


def _directory(directory: DirectoryView, characters: int) -> str:
    lines = [f'<directory name="{_attribute(directory.name)}">']
    for name, text in (("description", directory.description), ("instructions", directory.instructions)):
        if text:
            lines += [f"<{name}>{text}</{name}>"]
    lines += (_file(file, characters) for file in directory.files)
    if (more := directory.file_count - len(directory.files)) > 0:
        lines.append(f"({more} more files are not listed; grep_files and semantic_search_files look through all.)")
    return "\n".join([*lines, "</directory>"])


def _file(file: FileView, characters: int) -> str:
    content = file.content if file.is_open else ""
    sizes = (f"- chars_current={len(content)}", f"- chars_limit={characters}")
    value = ("<value>", content, "</value>") if file.is_open else ()
    head = f'<file status="{"open" if file.is_open else "closed"}" name="{_attribute(file.name)}">'
    return "\n".join([head, "<metadata>", "- read_only=true", *sizes, "</metadata>", *value, "</file>"])


def _attribute(text: str) -> str:
    """Returns what cannot end the attribute, nor the section; an ampersand in a name stays as it is."""
    return text.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
