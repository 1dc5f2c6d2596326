"""The text of a message that is embedded, and the words that find it. Pure."""

import re
from collections.abc import Iterable

from services.agent.core.messages import Call, Message, Part, Return, searchable
from services.agent.core.window.excerpts import pieces
from services.common.core.vectors import to_embed
from services.common.core.words import index_words, query_words

# A summary repeats what it stands for, a client's answers show in the returns that came of them, and the prompt is
# in every window.
EMBEDDED_ROLES = ("user", "assistant", "tool")
SEARCH_TOOL = "conversation_search"
# Postgres keeps at most 1 MB in a tsvector, whatever the words; a longer text has several. What has no spaces has many
# more words to a character; they are cut for so many pieces.
_SEARCHED_CHARACTERS = 100_000
_UNSPACED_CHARACTERS, _MOST_CUT = 20_000, 2
# Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]"
)
_HEARTBEAT = '{"type": "heartbeat"'


def embedding_text(message: Message) -> str:
    """Returns the text that a message's vector stands for, at most 20,000 bytes; empty for one that is found by words
    alone.

    What an agent searched for, and what it was shown, would be the best answer to the same question ever after.
    """
    if message.role not in EMBEDDED_ROLES:
        return ""
    text = "\n".join(filter(None, map(_part_text, message.parts))).strip()
    if message.role == "user" and text.startswith(_HEARTBEAT):
        return ""
    return to_embed(text)


def _part_text(part: Part) -> str:
    if isinstance(part, Call | Return) and part.name == SEARCH_TOOL:
        return ""
    return searchable(part)


def index_texts(text: str) -> list[str]:
    """Returns the texts whose words a text is found by, one at least: its pieces as they are, with what is written
    without spaces once more as characters and pairs of neighbours.
    """
    if not _is_unspaced(text):
        return list(pieces(text, _SEARCHED_CHARACTERS))
    parts = list(pieces(text, _UNSPACED_CHARACTERS))
    return [_with_pairs(part, index_words(part)) for part in parts[:_MOST_CUT]] + parts[_MOST_CUT:]


def query_text(text: str) -> str:
    """Returns the text whose words are looked for: a query, with the same pairs."""
    return _with_pairs(text, query_words(text)) if _is_unspaced(text) else text


def _is_unspaced(text: str) -> bool:
    return not text.isascii() and _UNSPACED.search(text) is not None


def _with_pairs(text: str, words: Iterable[str]) -> str:
    return " ".join([text, *(word for word in words if len(word) <= 2 and not word.isascii())])
