"""Attacks of another tenant on the services themselves: each RPC, with a foreign id in each field that takes one.

Both are made of the protos' descriptors, so that a new RPC is in it by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.json_format import ParseDict

from tests.e2e.stack import Stack
from tests.e2e.tenants.caller import Answer, Caller, calling
from tests.e2e.tenants.party import UUIDS, Party, changes, contents
from tests.e2e.tenants.rpc_ids import as_of_nothing, is_minted, thing_of
from tests.e2e.tenants.rpc_samples import ALTERNATIVES, NAMES_NOTHING, first_of, sample_of
from tests.e2e.tenants.rpcs import Rpc, put, rpcs, ways
from tests.e2e.tenants.samples import filled

Attack = tuple[Rpc, tuple[str, ...]]


def problems(rpc: Rpc, way: tuple[str, ...], caller: Caller, attacker: Party, victim: Party) -> Iterator[str]:
    """Puts an id of the victim's into one field of a request; yields what is wrong with the answer."""
    thing = thing_of(rpc, way)
    foreign, nobodys = str(victim.has[thing]), victim.nobodys(thing)
    answer, other = (caller.call(rpc, *_requests(rpc, way, attacker, value)) for value in (foreign, nobodys))
    said = f"{rpc.name} {'.'.join(way)}: {answer.status} {answer.text[:160]!r}"
    if _plain(answer, foreign) != _plain(other, nobodys):
        yield f"{said}, but of an id that is nobody's {other.status} {other.text[:160]!r}"
    if answer.status != "NOT_FOUND" and not is_minted(rpc, way) and not as_of_nothing(rpc, way):
        yield f"{said} is not NOT_FOUND"
    shown = victim.shown_in(answer.text, foreign)
    # Ids of what a run makes follow from its own.
    yield from (f"{said} shows {each}" for each in shown if each == victim.mark or not is_minted(rpc, way))


def _plain(answer: Answer, value: str) -> tuple[str, str]:
    return answer.status, "" if answer.status == "OK" else UUIDS.sub("", answer.text.replace(value, ""))


def _requests(rpc: Rpc, way: tuple[str, ...], attacker: Party, value: str) -> list[Any]:
    """Returns a request with what is the attacker's own in every field but one, after those of its stream."""
    words = attacker.words()
    first = [ParseDict(filled(each, words, attacker.fresh), rpc.request()) for each in first_of(rpc, way)]
    request = rpc.request()
    others = [each for each in ways(rpc.method.input_type) if len(each) == 1 and each != way]
    alternatives = ALTERNATIVES.get(rpc.method.containing_service.name, ())
    for each in others:
        if request.DESCRIPTOR.fields_by_name[each[0]].has_presence or _is_beside(each[0], way[0], alternatives):
            continue
        thing = thing_of(rpc, each)
        put(request, each, attacker.new(thing) if is_minted(rpc, each) else str(attacker.has[thing]))
    ParseDict(filled(sample_of(rpc, way), words, attacker.fresh), request)
    if "update_mask" in request.DESCRIPTOR.fields_by_name and len(way) > 1 and way[-1] != "id" and way[0] != "key":
        request.update_mask.paths[:] = sorted({*request.update_mask.paths, way[1]})
    put(request, way, value)
    return [*first, request]


def _is_beside(name: str, attacked: str, alternatives: Sequence[str]) -> bool:
    """Returns whether a field is none of a request in which another of its alternatives is attacked."""
    return name in alternatives and (attacked in alternatives or name != alternatives[0])


def test_a_foreign_id_is_as_good_as_none(open_stack: Stack, parties: tuple[Party, Party]) -> None:
    attacker, victim = parties
    before = contents(open_stack, victim)
    found = rpcs()
    attacks = [(rpc, way) for rpc in found for way in ways(rpc.method.input_type)]
    assert {rpc.name for rpc in found} - {rpc.name for rpc, _ in attacks} == NAMES_NOTHING
    assert len(attacks) > 400
    with calling(open_stack, attacker) as caller:
        wrong = [problem for rpc, way in _in_order(attacks) for problem in problems(rpc, way, caller, attacker, victim)]
    after = contents(open_stack, victim)
    assert not wrong, f"{len(wrong)} of {len(attacks)}:\n" + "\n".join(wrong)
    assert changes(before, after) == []


def _in_order(attacks: Sequence[Attack]) -> Iterator[Attack]:
    """Yields the attacks that make something of the attacker's under a foreign id last: what is made would be found by
    those after it.
    """
    yield from (attack for attack in attacks if not is_minted(*attack))
    yield from (attack for attack in attacks if is_minted(*attack))
