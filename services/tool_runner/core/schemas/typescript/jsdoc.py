"""JSDoc comments: what a function does, what its parameters are. Pure."""

import re
from dataclasses import dataclass, field

_NAME = re.compile(r"\[?\s*(?P<name>[\w$.]+)\s*(?P<default>=[^\]]*)?\]?\s*(?:-\s*)?(?P<text>.*)", re.DOTALL)

# Tags whose text the model reads, too.
_SAID = frozenset({"deprecated", "example", "note", "remarks", "see", "summary", "throws", "todo"})


@dataclass(frozen=True)
class Parameter:
    """`type` is as written, "" without one."""

    text: str
    type: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Doc:
    """`parameters` by name; those of a destructured one by the last part of it (`options.city` is `city`)."""

    description: str = ""
    parameters: dict[str, Parameter] = field(default_factory=dict)


def parse_doc(comment: str) -> Doc:
    """Returns the parts of a comment `/** ... */`; nothing of any other."""
    if not comment.startswith("/**"):
        return Doc()
    lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment[3:].removesuffix("*/").splitlines()]
    blocks = _blocks(lines)
    description = blocks[0][1]
    parameters: dict[str, Parameter] = {}
    for tag, text in blocks[1:]:
        if tag in ("param", "arg", "argument", "prop", "property"):
            parameters |= _parameter(text)
        elif tag == "description":
            description = f"{description}\n{text}"
        elif tag.lower() in _SAID:
            description = f"{description}\n\n{tag.capitalize()}: {text}"
    return Doc(description.strip(), parameters)


def _blocks(lines: list[str]) -> list[tuple[str, str]]:
    """Returns (tag, text) for the text before the first tag, with the tag "", and for each tag."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        if match := re.match(r"\s*@(\w+)\s*(.*)", line):
            blocks.append((match[1], [match[2]]))
        else:
            blocks[-1][1].append(line)
    return [(tag, "\n".join(text).strip()) for tag, text in blocks]


def _parameter(text: str) -> dict[str, Parameter]:
    written, rest = _type_in_braces(text)
    match = _NAME.match(rest)
    if not match:
        return {}
    optional = rest.startswith("[") or written.endswith("=")
    description = " ".join(match["text"].split())
    return {match["name"].split(".")[-1]: Parameter(description, _as_typescript(written), optional)}


def _type_in_braces(text: str) -> tuple[str, str]:
    """Returns the type in braces, and what follows it."""
    if not text.startswith("{"):
        return "", text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            return text[1:place].strip(), text[place + 1 :].strip()
    return "", text


def _as_typescript(written: str) -> str:
    """Translates JSDoc's own notation: `*`, `?string`, `string=`, `Object.<string, number>`."""
    plain = written.removesuffix("=").lstrip("!").replace(".<", "<")
    plain = re.sub(r"\b[Oo]bject<", "Record<", plain)
    plain = re.sub(r"(^|[<,|(]\s*)\?([\w.]+)", r"\1(\2 | null)", plain)
    names = {
        "*": "any",
        "Object": "object",
        "String": "string",
        "Number": "number",
        "Boolean": "boolean",
        "int": "integer",
    }
    return names.get(plain, plain)
