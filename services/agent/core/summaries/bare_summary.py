"""The summary that needs no model, and so cannot fail. Pure."""

from collections import Counter
from collections.abc import Sequence

from services.agent.core.messages import Message, calls_of
from services.agent.core.summaries.summary import summary_of
from services.agent.core.summaries.transcript import words_of
from services.agent.core.window.sizes import bytes_for, clip

_FOUND = "No summary of their content could be written; conversation_search finds each of them."
_MOST_TOOLS = 12


def bare_summary(messages: Sequence[Message], *, budget: int) -> str:
    """Returns a summary that needs no model and cannot fail, in at most `budget` tokens (1 at least): an earlier
    summary, then how much was said, by whom and when, the first and the last request, and the tools that were called.
    """
    most = bytes_for(budget)
    earlier = "\n\n".join(summary_of(message) for message in messages if message.role == "summary")
    spoken = [message for message in messages if message.role != "summary"]
    # Half for what was summarised before, a sixth for each request.
    lines = [clip(earlier, most // 2), *_account(spoken, most // 6)]
    return clip("\n".join(filter(None, lines)), most)


def _account(messages: Sequence[Message], most: int) -> list[str]:
    if not messages:
        return []
    first, last = (f"{each.created_at:%Y-%m-%d %H:%M %Z}".strip() for each in (messages[0], messages[-1]))
    roles = ", ".join(f"{count} {role}" for role, count in Counter(each.role for each in messages).items())
    lines = [f"{len(messages)} messages ({roles}) from {first} to {last}. {_FOUND}"]
    requests = [text for each in messages if each.role == "user" and (text := words_of(each).strip())]
    if requests:
        lines.append(f"The last request among them: {clip(requests[-1], most)}")
    if len(requests) > 1:
        lines.append(f"The first: {clip(requests[0], most)}")
    return [*lines, *_tools(messages)]


def _tools(messages: Sequence[Message]) -> list[str]:
    called = Counter(call.name for message in messages for call in calls_of(message))
    if not called:
        return []
    named = ", ".join(f"{name} ({count})" for name, count in called.most_common(_MOST_TOOLS))
    others = len(called) - _MOST_TOOLS
    return [f"Tools called: {named}{f' and {others} others' if others > 0 else ''}."]
