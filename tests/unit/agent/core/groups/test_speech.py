"""What is shown of a speech while it is said is always a beginning of what it will be, or is declared void."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from services.agent.core.events import Abandoned, Delta, Ended, Event, MessagePiece, RunView
from services.agent.core.facts import RunStatus, Usage
from services.agent.core.groups.speech import Speech
from services.agent.core.messages import Call, Message, Part, Reasoning, Text, piece_otid

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN, STEP, FIRST, SECOND = UUID(int=9), UUID(int=8), UUID(int=256), UUID(int=512)
SPEECH = Message(UUID(int=1024), "assistant", (), NOW, RUN, STEP, name="Ada", sender_id="agent-1")


def delta(text: str, message_id: UUID = FIRST) -> Delta:
    """More of a member's message."""
    return Delta(1, message_id, UUID(int=7), piece_otid(message_id, 0), Text(text))


def whole(*parts: Part, message_id: UUID = FIRST) -> MessagePiece:
    """A member's message, now durable."""
    return MessagePiece(1, Message(message_id, "assistant", parts, NOW), piece_otid(message_id, 0), parts)


def shown(*events: Event) -> str:
    """What a reader has of it in the end."""
    speech, text = Speech(SPEECH), ""
    for event in events:
        for each in speech.seen(event):
            assert each.step_id == STEP
            if isinstance(each, Delta):
                assert (each.name, each.sender_id, each.message_id) == ("Ada", "agent-1", SPEECH.id)
                assert isinstance(each.part, Text)
                text += each.part.text
            else:
                text = ""
    return text


def test_it_is_shown_as_it_comes() -> None:
    speech = Speech(SPEECH)
    (one,) = speech.seen(delta("It is "))
    assert isinstance(one, Delta)
    assert (one.part, one.otid) == (Text("It is "), piece_otid(SPEECH.id, 0))
    (two,) = speech.seen(delta("blue."))
    assert isinstance(two, Delta)
    assert two.part == Text("blue.")
    assert list(speech.seen(whole(Text("It is blue.")))) == []


def test_what_did_not_come_in_pieces_comes_whole() -> None:
    assert shown(whole(Text("It is blue."))) == "It is blue."
    assert shown(delta("It "), whole(Text("It is blue."))) == "It is blue."


def test_several_messages_have_an_empty_line_between_them() -> None:
    later = (delta("It is ", SECOND), delta("blue.", SECOND), whole(Text("It is blue."), message_id=SECOND))
    assert shown(delta("Well."), whole(Text("Well.")), *later) == "Well.\n\nIt is blue."
    call = Call("", "call_0", "send_message", '{"message": "It is blue."}')
    assert shown(whole(Text("Well.")), whole(call, message_id=SECOND)) == "Well.\n\nIt is blue."


def test_texts_around_a_call_are_two() -> None:
    second = replace(delta("Six."), otid=piece_otid(FIRST, 2))
    call = Call("", "call_0", "roll", "{}")
    pieces = (whole(Text("I roll.")), whole(call), whole(Text("Six.")))
    assert shown(delta("I roll."), second, *pieces) == "I roll.\n\nSix."
    speech = Speech(SPEECH)
    assert len([each for event in (delta("I roll."), second, *pieces) for each in speech.seen(event)]) == 2


def test_what_was_given_up_is_void() -> None:
    assert shown(whole(Text("Well.")), delta("It is", SECOND), Abandoned(1, STEP, SECOND, 1)) == "Well."
    assert shown(delta("It is"), Abandoned(1, STEP, None, 1), delta("Blue."), whole(Text("Blue."))) == "Blue."


def test_a_run_that_ends_in_the_middle_takes_back_what_it_was_about_to_say() -> None:
    view = RunView(RUN, UUID(int=1), UUID(int=1), RunStatus.CANCELLED, 1, NOW)
    assert shown(whole(Text("Well.")), delta("It is", SECOND), Ended(2, view, None, Usage(), 1, None)) == "Well."


def test_thoughts_and_calls_are_the_members_own() -> None:
    call = Call("", "call_0", "roll", "{}")
    thought = replace(delta(""), part=Reasoning("Hm."))
    assert shown(thought, whole(Reasoning("Hm.")), whole(call), whole(Text("Six."), message_id=SECOND)) == "Six."
