"""A life in sessions: what was said, what was changed later, and questions whose evidence is known. Pure.

Facts are about people: an attribute (a concept, which has several names) and its value (a place). Some are
contradicted by a later note, some are corrected in place, some are deleted. Tenants share people, attributes and
places, but not what was said.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TypeVar
from uuid import UUID, uuid5

from bench.memory_score.vocabulary import Vocabulary, vocabulary

T = TypeVar("T")

_NAMESPACE = UUID("6f1d0f0e-5a44-4c1b-9a37-0d5d0c6f6b11")
_BEGIN = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)
_TICKET = "Ticket"
_SAID = (
    "{person} told me that the {attribute} is {value} now.",
    "For {person} the {attribute} has been {value} since last week.",
    "I noted it down: {person}, {attribute}, {value}.",
    "We talked about {attribute}s, and {person} said it was {value}.",
)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a history. A tenant holds sessions x (facts + talk) notes."""

    tenants: int = 3
    people: int = 40
    sessions: int = 60
    facts: int = 12
    talk: int = 20
    questions: int = 60


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was remembered."""

    id: UUID
    tenant: int
    text: str
    made_at: datetime
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """The content of a note."""

    note: Note
    person: str
    concept: int
    word: str
    value: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a kind; `evidence` are the notes that answer it.

    outdated: notes that say what was true before. gone: text that no answer may hold any more.
    """

    kind: str
    tenant: int
    text: str
    evidence: frozenset[UUID]
    outdated: frozenset[UUID] = frozenset()
    start: datetime | None = None
    end: datetime | None = None
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """notes: as first remembered, in order of time. corrected: new texts. deleted: notes that were taken back.

    words: those that it is made of, None for one that people said.
    """

    notes: Sequence[Note]
    corrected: dict[UUID, str]
    deleted: frozenset[UUID]
    questions: Sequence[Question]
    words: Vocabulary | None = None

    def text(self, note: Note) -> str:
        """Returns the text as it is at the end."""
        return self.corrected.get(note.id, note.text)


@dataclass(slots=True)
class _Tenant:
    """One tenant's life while it is being made."""

    number: int
    random: Random
    notes: list[Note] = field(default_factory=list)
    current: dict[tuple[str, int], Fact] = field(default_factory=dict)
    before: dict[tuple[str, int], list[Fact]] = field(default_factory=dict)
    corrected: dict[UUID, tuple[Fact, Fact]] = field(default_factory=dict)
    deleted: dict[UUID, Fact] = field(default_factory=dict)
    codes: dict[str, Note] = field(default_factory=dict)


def make(seed: int, size: Size) -> History:
    """The history of a seed."""
    words = vocabulary(seed, concepts=50, synonyms=4, people=size.people, places=300, filler=1_500)
    tenants = [_Tenant(number, Random(f"tenant {seed} {number}")) for number in range(size.tenants)]
    for tenant in tenants:
        for session in range(size.sessions):
            _session(tenant, session, words, size, seed)
        _afterwards(tenant, words)
    return History(
        [note for tenant in tenants for note in tenant.notes],
        {old.note.id: new.note.text for tenant in tenants for old, new in tenant.corrected.values()},
        frozenset(note_id for tenant in tenants for note_id in tenant.deleted),
        [question for tenant in tenants for question in _questions(tenant, words, size)],
        words,
    )


def _session(tenant: _Tenant, session: int, words: Vocabulary, size: Size, seed: int) -> None:
    random, at = tenant.random, _BEGIN + timedelta(days=5 * session)
    kinds = ["fact"] * size.facts + ["talk"] * size.talk
    random.shuffle(kinds)
    for place, kind in enumerate(kinds):
        note_id = uuid5(_NAMESPACE, f"{seed} {tenant.number} {session} {place}")
        made_at, tags = at + timedelta(minutes=place), (f"session-{session}", kind)
        if kind == "talk":
            note = Note(note_id, tenant.number, _talk(tenant, words, note_id), made_at, tags)
            tenant.notes.append(note)
            if note.text.startswith(_TICKET):
                tenant.codes[note.text.split()[1]] = note
            continue
        fact = _fact(random, words, Note(note_id, tenant.number, "", made_at, tags), _subject(tenant, words))
        tenant.notes.append(fact.note)
        key = (fact.person, fact.concept)
        if key in tenant.current:
            tenant.before.setdefault(key, []).append(tenant.current[key])
        tenant.current[key] = fact


def _subject(tenant: _Tenant, words: Vocabulary) -> tuple[str, int]:
    """Draws the person and the attribute of a fact: now and then one that has a fact, which this one contradicts."""
    if tenant.current and tenant.random.random() < 0.2:
        return tenant.random.choice(list(tenant.current))
    return tenant.random.choice(words.people), tenant.random.randrange(len(words.concepts))


def _fact(random: Random, words: Vocabulary, note: Note, subject: tuple[str, int], template: str = "") -> Fact:
    person, concept = subject
    word, value = random.choice(words.concepts[concept]), random.choice(words.places)
    said = (template or random.choice(_SAID)).format(person=person.capitalize(), attribute=word, value=value)
    text = f"{said} {words.small_talk(random, random.randint(3, 9)).capitalize()}."
    return Fact(Note(note.id, note.tenant, text, note.made_at, note.tags), person, concept, word, value)


def _talk(tenant: _Tenant, words: Vocabulary, note_id: UUID) -> str:
    """Small talk that names people and attributes without saying anything of them; now and then a ticket."""
    random = tenant.random
    talk = words.small_talk(random, random.randint(12, 30)).capitalize()
    if random.random() < 0.1:
        return f"{_TICKET} {note_id.hex[:4]}-{note_id.hex[4:8]} was about this: {talk}."
    if random.random() < 0.5:
        return f"{random.choice(words.people).capitalize()} came by. {talk}."
    return f"{talk}. Somebody mentioned a {random.choice(random.choice(words.concepts))}."


def _afterwards(tenant: _Tenant, words: Vocabulary) -> None:
    """Corrects some facts that were never contradicted in place at the end, and deletes some."""
    alone = [fact for key, fact in tenant.current.items() if key not in tenant.before]
    chosen = tenant.random.sample(alone, len(alone) // 4)
    for fact in chosen[: len(chosen) // 2]:
        new = _fact(tenant.random, words, fact.note, (fact.person, fact.concept), _SAID[0])
        tenant.corrected[fact.note.id] = (fact, new)
        tenant.current[fact.person, fact.concept] = new
    for fact in chosen[len(chosen) // 2 :]:
        tenant.deleted[fact.note.id] = fact
        del tenant.current[fact.person, fact.concept]


def _questions(tenant: _Tenant, words: Vocabulary, size: Size) -> Iterator[Question]:
    each = max(1, size.questions // 6)
    random, plain = tenant.random, [fact for key, fact in tenant.current.items() if key not in tenant.before]
    for fact in _some(random, plain, 2 * each):
        yield _asked("same words", tenant, fact, fact.word)
    for fact in _some(random, plain, 2 * each):
        others = [word for word in words.concepts[fact.concept] if word != fact.word]
        yield _asked("other words", tenant, fact, random.choice(others))
    for code in _some(random, list(tenant.codes), each // 2):
        yield Question("code", tenant.number, f"What was ticket {code}?", frozenset({tenant.codes[code].id}))
    changed = [key for key in tenant.before if key in tenant.current]
    for key in _some(random, changed, each):
        fact, earlier = tenant.current[key], tenant.before[key]
        outdated = frozenset(old.note.id for old in earlier)
        yield _asked("changed since", tenant, fact, fact.word, outdated=outdated)
        last, end = earlier[-1], fact.note.made_at - timedelta(seconds=1)
        yield _asked("as of then", tenant, last, last.word, end=end)
    for fact in _some(random, plain, each // 2):
        day = fact.note.made_at.replace(hour=0, minute=0)
        yield _asked("in a window", tenant, fact, fact.word, start=day, end=day + timedelta(days=1))
    for old, new in _some(random, list(tenant.corrected.values()), each // 2):
        yield _asked("corrected", tenant, new, old.word, gone=(old.note.text,))
    for fact in _some(random, list(tenant.deleted.values()), each // 2):
        text = f"What is the {fact.word} of {fact.person.capitalize()}?"
        yield Question("deleted", tenant.number, text, frozenset(), gone=(fact.note.text,))


def _asked(kind: str, tenant: _Tenant, fact: Fact, word: str, **more: object) -> Question:
    text = f"What is the {word} of {fact.person.capitalize()}?"
    return Question(kind, tenant.number, text, frozenset({fact.note.id}), **more)  # type: ignore[arg-type]


def _some(random: Random, items: Sequence[T], number: int) -> list[T]:
    return random.sample(items, min(number, len(items)))
