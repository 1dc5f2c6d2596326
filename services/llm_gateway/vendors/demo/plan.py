"""The demo model's rules: from the last user message to tool calls and an answer. Pure and deterministic.

In this order, the first that applies:
    a transcript to summarise         repeats what the people in it said, shortened
    use TOOL with name=value, ...     calls it (directives.py)
    what is my name? / who am I?      answers from the memory blocks
    what do I like?                   answers from the memory blocks
    what do you know about X?         searches archival memory, or else the conversation, and answers from
    both remember that X                   puts X into archival memory, or else into the block `human`
    my name is N / I like X           notes it in the block `human`
    anything else                     says what it is and what it understands
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from services.llm_gateway.core.chat import ToolSpec
from services.llm_gateway.vendors.demo.directives import PlannedCall, Step, read_directive
from services.llm_gateway.vendors.demo.memory import HUMAN, Pen, blocks_in, lines_about, name_in

_WHO = re.compile(r"\b(what(?:'s| is) my name|who am i)\b", re.IGNORECASE)
_LIKES = re.compile(r"\bwhat do i like\b", re.IGNORECASE)
_ABOUT = re.compile(r"\bwhat do you (?:know|remember) about ([^?.!\n]+)", re.IGNORECASE)
_REMEMBER = re.compile(r"\bremember that (.+)", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(r"\b(?:(?i:my name is|my name's)|(?i:call me)(?= [A-Z])) ([^\W\d_][\w'’-]*(?: [A-Z][\w'’-]*)*)")
_LIKE = re.compile(r"(?i:\bI (?:really |also )?(?:like|love|enjoy)) (.+?)(?=[.!?;\n]|,? and (?:I|my) |$)")
_TRANSCRIPT = re.compile(r"<transcript>\n(.*)\n</transcript>", re.DOTALL)
_SAID = re.compile(r"^\[[^]\n]*\] (?:user|earlier summary)[^:\n]*: (.+)$", re.MULTILINE)
_MOST_LINES, _LONGEST_LINE = 40, 200
_SIGNATURE = "(I am loci/demo, a demonstration that follows a few fixed rules, not a language model.)"
_HELP = (
    "I understand: 'my name is ...', 'I like ...', 'remember that ...', 'what do you know about ...?', "
    "'what is my name?', and 'use TOOL with name=value, ...'. For a real model set OPENAI_API_KEY or "
    "ANTHROPIC_API_KEY where Loci runs."
)
_LONGEST_RESULT = 2_000


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a planned call."""

    call: PlannedCall
    text: str
    failed: bool


Answer = Callable[[Sequence[CallResult]], str]


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps of calls, one step per model call, and then an answer made from all they returned."""

    steps: Sequence[Step]
    answer: Answer


def plan(text: str, system: str, tools: Sequence[ToolSpec]) -> Plan:
    """Returns the plan for a user's message; the same for every step of its turn."""
    if match := _TRANSCRIPT.search(text):
        return _summary(match[1])
    steps, missing = read_directive(text, tools)
    if steps:
        return Plan(steps, _report)
    if missing:
        offered = ", ".join(sorted(tool.name for tool in tools)) or "none"
        return _say(f"I have no tool called {missing}. My tools: {offered}.")
    blocks = blocks_in(system)
    if _WHO.search(text):
        name = name_in(blocks)
        return _say(f"Your name is {name}." if name else "I do not know your name yet. Tell me: my name is ...")
    if _LIKES.search(text):
        likes = [line.partition(":")[2].strip() for line in blocks.get(HUMAN, "").splitlines() if "Likes:" in line]
        return _say(f"You like {', '.join(likes)}." if likes else "You have not told me what you like.")
    if match := _ABOUT.search(text):
        return _search(match[1].strip(), blocks, tools)
    pen = Pen(tools, blocks, has_section="<memory_blocks>" in system)
    if match := _REMEMBER.search(text):
        return _remember(match[1].strip(), pen, tools)
    return _note(text, pen) or _say("Hello. " + _HELP)


def _summary(transcript: str) -> Plan:
    lines = [line[:_LONGEST_LINE] for line in _SAID.findall(transcript)]
    text = "\n".join(f"- {line}" for line in lines[-_MOST_LINES:])
    return _say(f"The user said, among {len(lines)} things:\n{text}\n")


def _say(sentence: str) -> Plan:
    return Plan((), lambda _: _sign(sentence))


def _sign(sentence: str) -> str:
    return f"{sentence} {_SIGNATURE}"


def _report(returned: Sequence[CallResult]) -> str:
    parts = (f"{item.call.name} {'failed' if item.failed else 'returned'}: {item.text}" for item in returned)
    return _sign("\n".join(parts) + "\n")


def _search(topic: str, blocks: dict[str, str], tools: Sequence[ToolSpec]) -> Plan:
    names = {tool.name for tool in tools}
    known = lines_about(topic, blocks)
    searching = next((name for name in ("archival_memory_search", "conversation_search") if name in names), None)
    steps = [[PlannedCall(searching, {"query": topic})]] if searching else []

    def answer(returned: Sequence[CallResult]) -> str:
        lines = [f"In my memory blocks: {'; '.join(known)}."] if known else []
        for item in returned:
            lines.append(f"{item.call.name} {'failed' if item.failed else 'says'}: {item.text}")
        nothing = f"I know nothing about {topic}."
        return _sign(f"About {topic}:\n" + "\n".join(lines) + "\n" if lines else nothing)

    return Plan(steps, answer)


def _remember(fact: str, pen: Pen, tools: Sequence[ToolSpec]) -> Plan:
    if any(tool.name == "archival_memory_insert" for tool in tools):
        call = PlannedCall("archival_memory_insert", {"content": fact})
        return Plan([[call]], _confirm(f"I put it into archival memory: {fact}"))
    if not pen.can_write:
        return _say("I have no memory tool here, so I cannot remember it.")
    return Plan([[pen.add(fact)]], _confirm(f"I noted it in my memory: {fact}"))


def _note(text: str, pen: Pen) -> Plan | None:
    name, like = _NAME.search(text), _LIKE.search(text)
    if not name and not like:
        return None
    lines = ([f"Name: {name[1]}"] if name else []) + ([f"Likes: {like[1].strip()}"] if like else [])
    greeting = f"Nice to meet you, {name[1]}." if name else "Good to know."
    if not pen.can_write:
        return _say(f"{greeting} I have no memory tool here, so I will not remember it.")
    new = [line for line in lines if not pen.knows(line)]
    if not new:
        return _say(f"{greeting} I knew that already.")
    old_name = pen.name_line()
    if name and old_name and new[0].startswith("Name:"):
        call = pen.change(old_name, "\n".join(new))
    else:
        call = pen.add("\n".join(new))
    return Plan([[call]], _confirm(f"{greeting} I wrote it into my memory: {'; '.join(new)}."))


def _confirm(sentence: str) -> Answer:
    def answer(returned: Sequence[CallResult]) -> str:
        failures = [f"{item.call.name} failed: {item.text}" for item in returned if item.failed]
        return _sign("I could not keep that. " + "; ".join(failures) if failures else sentence)

    return answer


def readable(text: str) -> str:
    """A tool's result for people: the message in it where it is an object with one, cut to a page."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        text = value["message"]
    return text if len(text) <= _LONGEST_RESULT else f"{text[:_LONGEST_RESULT]}..."
