"""Talk that is made from a seed, and the questions about it."""

from bench.memory_score.talk import TalkSize, make_talk

SIZE = TalkSize(tenants=2, sessions=14)
KINDS = {
    "same words",
    "other words",
    "turn after",
    "picture",
    "speaker",
    "month",
    "several sessions",
    "changed since",
}


def test_the_same_seed_says_the_same() -> None:
    assert make_talk(1, SIZE) == make_talk(1, SIZE)
    assert make_talk(1, SIZE).notes != make_talk(2, SIZE).notes


def test_every_kind_of_question_has_its_evidence_among_the_turns_of_its_pair() -> None:
    talk = make_talk(1, SIZE)
    tenant_of = {note.id: note.tenant for note in talk.notes}
    assert len(tenant_of) == len(talk.notes)
    assert {question.kind for question in talk.questions} == KINDS
    for question in talk.questions:
        assert question.evidence, question
        assert {tenant_of[one] for one in question.evidence | question.outdated} == {question.tenant}
        assert not question.evidence & question.outdated
    for before, after in zip(talk.notes, talk.notes[1:], strict=False):
        assert before.made_at < after.made_at or before.tenant < after.tenant


def test_a_turn_after_shares_no_word_with_its_question() -> None:
    talk = make_talk(1, SIZE)
    text_of = {note.id: note.text for note in talk.notes}
    asked = [question for question in talk.questions if question.kind == "turn after"]
    assert asked
    for question in asked:
        [said] = question.evidence
        words = set(text_of[said].split(": ", 1)[1].lower().strip(".").split())
        assert not words & (set(question.text.lower().strip("?").split()) - {"the", "of", "is", "it"})
