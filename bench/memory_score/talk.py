"""A life as people talk of it: two speakers, short turns, and questions whose evidence is known. Pure.

Turns are made of exchanges, one kind for each thing that a search has to bring: words, other words for the same, the
turn after the one that has the words, who said it, when, a picture's caption, several sessions, and what is true now.
Between them people say what people say.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID, uuid5

from bench.memory_score.history import History, Note, Question
from bench.memory_score.talk_words import (
    CHATTER,
    CONCEPTS,
    DISHES,
    HOBBIES,
    LIKES,
    NAMES,
    PEOPLE,
    PETS,
    PLACES,
    SCENES,
    THINGS,
    VERDICTS,
    WORDS,
)

_NAMESPACE = UUID("2f0c4f0b-54d5-4a52-8f0c-6d1f2a1f7a11")
_BEGIN = datetime(2025, 1, 5, 18, 0, tzinfo=UTC)
_BETWEEN_SESSIONS, _TURN = timedelta(days=13), timedelta(seconds=25)


@dataclass(frozen=True, slots=True)
class TalkSize:
    """The size of the talk: each tenant is a pair of people."""

    tenants: int = 4
    sessions: int = 24
    exchanges: int = 10


@dataclass(slots=True)
class _Pair:
    """Two people while their talk is being made. `decks`: what was not yet talked of."""

    number: int
    seed: int
    random: Random
    speakers: tuple[str, str]
    decks: dict[str, list[str]]
    session: int = 0
    notes: list[Note] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    meals: dict[str, list[UUID]] = field(default_factory=dict)
    homes: dict[str, list[UUID]] = field(default_factory=dict)

    def say(self, speaker: str, text: str) -> UUID:
        """Adds a turn, a little after the last one of the session."""
        place = sum(note.tags == self._tags for note in self.notes)
        note_id = uuid5(_NAMESPACE, f"{self.seed} {self.number} {self.session} {place}")
        made_at = _BEGIN + self.session * _BETWEEN_SESSIONS + place * _TURN
        self.notes.append(Note(note_id, self.number, f"{speaker}: {text}", made_at, self._tags))
        return note_id

    def ask(self, kind: str, text: str, *evidence: UUID, outdated: Sequence[UUID] = ()) -> None:
        """Adds a question."""
        self.questions.append(Question(kind, self.number, text, frozenset(evidence), frozenset(outdated)))

    def pick(self, deck: str) -> str:
        """Returns something that was not yet talked of; when all was, anything."""
        return self.decks[deck].pop() if self.decks[deck] else self.random.choice(_DECKS[deck])

    def has(self, *decks: str) -> bool:
        """Returns whether something is left of each."""
        return all(self.decks[deck] for deck in decks)

    def turn_about(self) -> tuple[str, str]:
        """Returns who begins, and the other."""
        one, other = self.random.sample(self.speakers, 2)
        return one, other

    @property
    def _tags(self) -> tuple[str, ...]:
        return (f"session-{self.session}",)


_DECKS: Mapping[str, Sequence[str]] = {
    "pets": PETS,
    "hobbies": HOBBIES,
    "places": PLACES,
    "things": THINGS,
    "scenes": SCENES,
    "likes": LIKES,
}


def make_talk(seed: int, size: TalkSize) -> History:
    """Returns the talk of a seed."""
    pairs = [_make_pair(seed, number, size) for number in range(size.tenants)]
    return History(
        [note for pair in pairs for note in pair.notes],
        {},
        frozenset(),
        [question for pair in pairs for question in pair.questions],
        WORDS,
    )


def _make_pair(seed: int, number: int, size: TalkSize) -> _Pair:
    random = Random(f"talk {seed} {number}")
    first, second = random.sample(PEOPLE, 2)
    decks = {name: random.sample(deck, len(deck)) for name, deck in _DECKS.items()}
    pair = _Pair(number, seed, random, (first, second), decks)
    for session in range(size.sessions):
        pair.session = session
        _chat(pair)
        for _ in range(size.exchanges):
            random.choice(_EXCHANGES)(pair)
            _chat(pair)
    pair.questions.extend(_questions_at_the_end(pair))
    return pair


def _chat(pair: _Pair) -> None:
    for _ in range(pair.random.randint(0, 3)):
        one, other = pair.turn_about()
        pair.say(one, pair.random.choice(CHATTER).format(other=other))


def _class(pair: _Pair) -> None:
    """The words of the question stand in the turn."""
    one, other = pair.turn_about()
    if not pair.has("hobbies"):
        return
    hobby, place = pair.pick("hobbies"), pair.random.choice(PLACES)
    said = pair.say(one, f"I signed up for a {hobby} class down in {place}, it starts on Monday.")
    pair.say(other, "Oh nice, good for you!")
    pair.ask("same words", f"Where does {one} take {hobby} classes?", said)


def _pet(pair: _Pair) -> None:
    """The answer is two turns later and has no word of the question."""
    one, other = pair.turn_about()
    if not pair.has("pets"):
        return
    pet, name = pair.pick("pets"), pair.random.choice(NAMES)
    pair.say(one, pair.random.choice((f"So, we finally got a {pet}!", f"Guess who has a {pet} now.")))
    pair.say(other, pair.random.choice(("No way! What do you call it?", "Aww. Does it have a name yet?")))
    said = pair.say(one, pair.random.choice((f"{name}. It was the kids' idea.", f"We went with {name} in the end.")))
    pair.ask("turn after", f"What is the name of {one}'s {pet}?", said)


def _purchase(pair: _Pair) -> None:
    """The question has another word for the thing."""
    one, other = pair.turn_about()
    if not pair.has("things"):
        return
    word = pair.pick("things")
    others = next(group for group in CONCEPTS if word in group)
    said = pair.say(one, pair.random.choice((f"I bought a {word} last week.", f"Well, the {word} is here at last.")))
    pair.say(other, "Was it expensive?")
    asked = pair.random.choice([synonym for synonym in others if synonym != word])
    pair.ask("other words", f"Did {one} get a new {asked}?", said)


def _picture(pair: _Pair) -> None:
    """The words are in the caption."""
    one, other = pair.turn_about()
    if not pair.has("scenes"):
        return
    scene = pair.pick("scenes")
    said = pair.say(one, f"Look at this one! [picture: a photo of {scene}]")
    pair.say(other, "Wow, lovely.")
    pair.ask("picture", f"Who shared a picture of {scene}?", said)


def _opinion(pair: _Pair) -> None:
    """Both speak of the same; the question is about one of them, whose turn does not name it."""
    one, other = pair.turn_about()
    if not pair.has("likes"):
        return
    like = pair.pick("likes")
    pair.say(one, f"I could spend all day with {like}, you know me.")
    said = pair.say(other, pair.random.choice(VERDICTS))
    pair.ask("speaker", f"What does {other} think of {like}?", said)


def _meal(pair: _Pair) -> None:
    """The same again and again, in different months."""
    one, other = pair.turn_about()
    if pair.random.random() < 0.6:
        return
    dish = pair.random.choice(DISHES)
    said = pair.say(one, f"I cooked {dish} for the neighbours yesterday.")
    pair.say(other, "Did they like it?")
    pair.meals.setdefault(one, []).append(said)


def _home(pair: _Pair) -> None:
    """What was true before."""
    one, other = pair.turn_about()
    if pair.random.random() < 0.6:
        return
    place = pair.random.choice(PLACES)
    said = pair.say(one, pair.random.choice((f"I moved to {place}, by the way.", f"My new flat in {place} is ready.")))
    pair.say(other, "Again? Send me the address.")
    pair.homes.setdefault(one, []).append(said)


_EXCHANGES: Sequence[Callable[[_Pair], None]] = (_class, _pet, _purchase, _picture, _opinion, _meal, _home)


def _questions_at_the_end(pair: _Pair) -> Iterator[Question]:
    made_at = {note.id: note.made_at for note in pair.notes}
    for speaker, meals in pair.meals.items():
        for month in sorted({made_at[meal].replace(day=1, hour=0, minute=0, second=0) for meal in meals}):
            then = [meal for meal in meals if (made_at[meal].year, made_at[meal].month) == (month.year, month.month)]
            text = f"What did {speaker} cook in {month:%B %Y}?"
            yield Question("month", pair.number, text, frozenset(then))
        if len(meals) >= 2:
            text = f"What has {speaker} cooked for the neighbours?"
            yield Question("several sessions", pair.number, text, frozenset(meals))
    for speaker, homes in pair.homes.items():
        text = f"Where has {speaker} moved to, where is the flat now?"
        yield Question("changed since", pair.number, text, frozenset(homes[-1:]), frozenset(homes[:-1]))
