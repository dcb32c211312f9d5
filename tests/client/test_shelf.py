"""What waits to be taken, and the token after what was [R1.7, R1.8, R1.20]."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from portions import portion

from answered import numbered
from holdfast.client.effect import Delivered, Stretch
from holdfast.client.errors import GapFound
from holdfast.client.item import Gap, Item, LoggedEvent, Silence, TaggedEvent
from holdfast.client.reading import Reading
from holdfast.client.shelf import Shelf
from holdfast.events.event import Event
from holdfast.messages.publications import Copy, Tag
from holdfast.streams.checkpoint_token import Place, Token

PUBEND = "s@b/1"


def stretch(*ticks: int, after: int = 0, upto: int = 0, lost: int = 0, pubend: str = PUBEND) -> Stretch:
    reading = Reading(100)
    reading.begin(1, {pubend: (1, after)})
    made = reading.take(portion(*ticks, upto=upto, lost=lost, reason="retention", pubend=pubend))
    assert made is not None
    return made


def brief(item: Item) -> object:
    """An event by its tick, or its number if it has none; anything else as it is."""
    if isinstance(item, LoggedEvent):
        return item.tick
    return item.n if isinstance(item, Event) else item


def tick_of(shelf: Shelf, pubend: str = PUBEND) -> int:
    return shelf.token[pubend].tick


def test_taking_an_event_moves_the_token_to_it() -> None:
    shelf = Shelf()
    shelf.begin(Token({PUBEND: Place(1, 10), "other": Place(3, 5)}))
    shelf.add_stretch(stretch(12, 15, after=10))
    assert tick_of(shelf) == 10
    event = shelf.take()
    assert isinstance(event, LoggedEvent)
    assert (event.pubend, event.incarnation, event.tick, event.publisher) == (PUBEND, 1, 12, "p")
    assert shelf.token == Token({PUBEND: Place(1, 12), "other": Place(3, 5)})
    assert [brief(item) for item in shelf.take_batch()] == [15]
    assert tick_of(shelf) == 15
    assert not shelf


def test_silence_is_passed_over_once_everything_before_it_is_taken() -> None:
    shelf = Shelf()
    shelf.add_stretch(stretch(12, 15, upto=20))
    shelf.add_stretch(stretch(after=20, upto=30))
    shelf.take()
    assert tick_of(shelf) == 12
    shelf.take()
    assert tick_of(shelf) == 30
    shelf.add_stretch(stretch(after=30, upto=40))
    assert not shelf
    assert tick_of(shelf) == 40, "at once, if nothing is before it"


def test_who_asks_for_silence_is_given_it() -> None:
    shelf = Shelf(silence=True)
    shelf.add_stretch(stretch(12, upto=20))
    shelf.add_stretch(stretch(after=20, upto=30))
    assert brief(shelf.take()) == 12
    assert tick_of(shelf) == 12
    assert shelf.take() == Silence(PUBEND, 12, 30), "what nobody took meanwhile is one"
    assert tick_of(shelf) == 30
    shelf.add_stretch(stretch(after=30, upto=40))
    assert shelf.take_batch() == [Silence(PUBEND, 30, 40)]


def test_silence_that_nobody_takes_is_kept_once_for_each_pubend() -> None:
    shelf = Shelf(silence=True)
    shelf.add_stretch(stretch(5))
    for round_ in range(1, 100):
        for pubend in ("x", "y", "z"):
            shelf.add_stretch(stretch(after=round_, upto=round_ + 1, pubend=pubend))
    assert [brief(item) for item in shelf.take_batch()] == [
        5,
        Silence("x", 1, 100),
        Silence("y", 1, 100),
        Silence("z", 1, 100),
    ]


def test_silence_before_an_event_is_not_told_after_it() -> None:
    shelf = Shelf(silence=True)
    shelf.add_stretch(stretch(5, upto=8))
    shelf.add_stretch(stretch(10, after=8, upto=12))
    assert [brief(item) for item in shelf.take_batch()] == [
        5,
        Silence(PUBEND, 5, 8),
        10,
        Silence(PUBEND, 10, 12),
    ]


def test_a_gap_is_an_item_and_moves_the_token_behind_it() -> None:
    shelf = Shelf()
    shelf.add_stretch(stretch(25, after=10, lost=20))
    assert shelf.take() == Gap(PUBEND, 10, 20, "retention")
    assert tick_of(shelf) == 20
    assert brief(shelf.take()) == 25


def test_gaps_that_are_raised_end_a_batch_and_are_behind_us_then() -> None:
    shelf = Shelf(raises_gaps=True)
    shelf.add_stretch(stretch(5, upto=8))
    shelf.add_stretch(stretch(25, after=8, lost=20))
    assert [brief(item) for item in shelf.take_batch()] == [5]
    for take in (shelf.take_batch, shelf.take):
        with pytest.raises(GapFound, match=r"\(8\.\.20\] of s@b/1: retention"):
            take()
        assert tick_of(shelf) == 20
        assert brief(shelf.take()) == 25
        shelf.add_stretch(stretch(25, after=8, lost=20))


def test_streams_that_are_not_logged_have_no_part_in_the_token() -> None:
    shelf = Shelf()
    tag = Tag("b", 1, 1, bar=False)
    gap = Gap("q", 1, 2, "disconnected")
    first, second = numbered(1, 2)
    shelf.add_delivered(Delivered(1, [first, gap, second], [None, None, Copy(tags=(tag,))]))
    shelf.add_stretch(stretch(7))
    assert (shelf.plain, shelf.logged) == (3, 1)
    taken = shelf.take_batch()
    assert [brief(item) for item in taken] == [1, gap, 2, 7]
    assert isinstance(taken[2], TaggedEvent)
    assert set(shelf.token) == {PUBEND}
    assert (shelf.plain, shelf.logged) == (0, 0)
    assert shelf.places_of(gap) == shelf.places_of(taken[0]) == {}


def test_what_is_consumed_with_an_item_or_a_token() -> None:
    shelf = Shelf()
    shelf.begin(Token({PUBEND: Place(1, 10), "other": Place(1, 3)}))
    shelf.add_stretch(stretch(12, after=10))
    assert shelf.places_of(shelf.take()) == {PUBEND: 12}
    assert shelf.places_of(Gap(PUBEND, 1, 9, "x")) == shelf.places_of(Silence(PUBEND, 1, 9)) == {PUBEND: 9}
    token = Token({PUBEND: Place(1, 11), "other": Place(1, 2), "of another network": Place(1, 9)})
    assert shelf.places_of(token) == {PUBEND: 11, "other": 2}


def test_where_the_token_moved_is_told_once() -> None:
    shelf = Shelf()
    shelf.begin(Token({"other": Place(1, 3)}))
    shelf.add_stretch(stretch(12, 13, upto=20))
    shelf.take()
    assert shelf.pop_moved() == {PUBEND: 12}
    assert shelf.pop_moved() == {}
    shelf.take()
    assert shelf.pop_moved() == {PUBEND: 20}


def test_another_shelf_goes_on_where_this_one_stood() -> None:
    far, near = Shelf(silence=True), Shelf()
    far.add_stretch(stretch(12, 13, 14, upto=20))
    far.add_delivered(Delivered(1, [*numbered(1)], [None]))
    far.take()
    near.put(far.pop_all())
    assert (far.plain, far.logged, near.plain, near.logged) == (0, 0, 1, 2)
    assert not far
    far.add_stretch(stretch(after=20, upto=30))
    assert [brief(item) for item in near.take_batch()] == [13, 14, 1]
    assert tick_of(near) == 20
    near.put(far.pop_all())
    assert tick_of(near) == 30
    assert not near


STEPS = st.lists(
    st.tuples(st.sampled_from("xy"), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=20
)


@given(STEPS, st.lists(st.sampled_from(["take", "batch", "move"]), max_size=40), st.booleans())
def test_items_and_token_are_those_of_a_plain_list(
    steps: list[tuple[str, int, int, int]], takes: list[str], silence: bool
) -> None:
    """The twin: all items in a row, silences among them; the token is where the last one that is behind us ended."""
    shelf, near = Shelf(silence=silence), Shelf(silence=silence)
    stood = {"x": 0, "y": 0}
    row: list[tuple[str, int, object]] = []  # pubend, where it ends, the item as ``brief`` says it
    for pubend, lost, events, quiet in steps:
        after = stood[pubend]
        ticks = list(range(after + lost + 1, after + lost + events + 1))
        upto = after + lost + events + quiet
        if upto == after:
            continue
        stood[pubend] = upto
        shelf.add_stretch(
            stretch(*ticks, after=after, upto=upto, lost=after + lost if lost else 0, pubend=pubend)
        )
        if lost:
            row.append((pubend, after + lost, Gap(pubend, after, after + lost, "retention")))
        row += [(pubend, tick, tick) for tick in ticks]
        if quiet:
            row.append((pubend, upto, Silence(pubend, upto - quiet, upto)))
    moved_to_near = False
    taken: list[object] = []
    for how in takes:
        if how == "move" and not moved_to_near and not taken:
            moved_to_near = True
            near.put(shelf.pop_all())
        now = near if moved_to_near else shelf
        if now and how != "move":
            taken += [brief(now.take())] if how == "take" else [brief(item) for item in now.take_batch()]
    now = near if moved_to_near else shelf
    places = {pubend: place.tick for pubend, place in now.token.items()}
    rest = [brief(item) for item in now.take_batch()] if now else []
    expected = [item for _, _, item in row]
    merged = [item for item in taken + rest if not isinstance(item, Silence)]
    assert merged == [item for item in expected if not isinstance(item, Silence)]
    if not moved_to_near:
        assert {pubend: tick for pubend, (_, tick) in now.token.items()} == {
            pubend: tick for pubend, tick in stood.items() if tick
        }
        behind = _passed(row, taken)
        assert all(places.get(pubend, 0) >= tick for pubend, tick in behind.items())


def _passed(row: list[tuple[str, int, object]], taken: list[object]) -> dict[str, int]:
    """Where at least the token must be, after these items."""
    count = sum(not isinstance(item, Silence) for item in taken)
    places: dict[str, int] = {}
    for pubend, tick, item in row:
        if not isinstance(item, Silence):
            if not count:
                break
            count -= 1
            places[pubend] = tick
    return places
