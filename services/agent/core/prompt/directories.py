"""Folders and files as the system prompt shows them. Pure.

The format is that of the reference API: limits, then each folder with its open files in full and the others by name.
"""

import hashlib
from collections.abc import Sequence

from services.agent.core.ports import DirectoryView, FileView


def render_directories(directories: Sequence[DirectoryView], most_open: int) -> str:
    """Returns the section; empty without folders."""
    if not directories:
        return ""
    opened = sum(file.is_open for directory in directories for file in directory.files)
    limits = ("<file_limits>", f"- current_files_open={opened}", f"- max_files_open={most_open}", "</file_limits>")
    return "\n".join(["<directories>", *limits, *map(_directory, directories), "</directories>"])


def version_of(directories: Sequence[DirectoryView]) -> str | None:
    """Returns a hash that changes with the section of the folders; None without any."""
    return hashlib.sha256(render_directories(directories, 0).encode()).hexdigest() if directories else None


def _directory(directory: DirectoryView) -> str:
    lines = [f'<directory name="{_attribute(directory.name)}">']
    for name, text in (("description", directory.description), ("instructions", directory.instructions)):
        if text:
            lines += [f"<{name}>{text}</{name}>"]
    lines += map(_file, directory.files)
    if (more := directory.file_count - len(directory.files)) > 0:
        lines.append(f"({more} more files are not listed; grep_files and semantic_search_files look through all.)")
    return "\n".join([*lines, "</directory>"])


def _file(file: FileView) -> str:
    name = f'name="{_attribute(file.name)}"'
    if not file.is_open:
        return f'<file status="closed" {name}></file>'
    metadata = ("<metadata>", "- read_only=true", f"- chars_current={len(file.content)}", "</metadata>")
    return "\n".join([f'<file status="open" {name}>', *metadata, "<value>", file.content, "</value>", "</file>"])


def _attribute(text: str) -> str:
    """Returns what cannot end the attribute, nor the section; an ampersand in a name stays as it is."""
    return text.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
