"""What is to be written to a filtering log: in order, kept while there is no room, and silence for nothing [R1.19]."""

from __future__ import annotations

from holdfast.broker.durable.noting import Notes
from holdfast.streams.storing import NoteMatches

PUBEND = "orders@b/0"


Said = tuple[list[tuple[int, list[int]]], int, int]


def said(note: NoteMatches) -> Said:
    """Records, up to where, and after how many refusals."""
    return [(tick, list(numbers)) for tick, numbers in note.records], note.upto, note.refusals


def noted(notes: Notes) -> Said | None:
    """What is to be written now."""
    note = notes.next_note()
    return None if note is None else said(note)


def test_what_was_added_is_noted_together_and_once() -> None:
    notes = Notes(PUBEND)
    notes.begin(10)
    assert said(notes.first()) == ([], 10, 0)
    notes.add([(12, [1])], 15)
    notes.add([], 20)
    notes.add([(21, [1, 2])], 30)
    assert (len(notes), notes.is_stable) == (2, False)
    assert noted(notes) == ([(12, [1]), (21, [1, 2])], 30, 0)
    assert (len(notes), notes.is_stable) == (0, False)
    notes.add([(33, [2])], 40)
    assert noted(notes) == ([(33, [2])], 40, 0)


def test_silence_behind_what_is_on_disk_counts_as_on_disk_and_a_match_does_not() -> None:
    notes = Notes(PUBEND)
    notes.add([(12, [1])], 15)
    notes.next_note()
    notes.add([], 40)
    assert notes.on_stable(15) == 40
    assert notes.is_stable
    notes.add([(41, [1])], 50)
    notes.next_note()
    notes.add([(51, [1])], 60)
    assert notes.on_stable(50) == 50


def test_what_was_refused_is_noted_again_in_order_and_only_when_it_is_tried() -> None:
    notes = Notes(PUBEND)
    notes.add([(12, [1])], 15)
    notes.next_note()
    assert notes.on_refused("no room")
    assert [said(note) for note in notes.again()] == [([(12, [1])], 15, 1)]
    assert not notes.on_refused("no room"), "that is no news"
    notes.add([(21, [1])], 30)
    assert noted(notes) is None
    assert [(note.upto, note.refusals) for note in notes.again()] == [(15, 2), (30, 2)]
    assert notes.again() == []
    assert notes.on_stable(30) == 30
    assert notes.is_stable
    assert notes.problem is None


def test_a_log_that_could_not_be_made_is_tried_with_nothing_in_it() -> None:
    notes = Notes(PUBEND)
    notes.begin(10)
    notes.on_refused("no room")
    assert [said(note) for note in notes.again()] == [([], 10, 1)]
