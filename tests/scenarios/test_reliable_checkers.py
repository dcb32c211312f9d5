"""What reliable runs promise, on traces written by hand: each promise kept, and each broken in one place."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.checkers.completeness import completeness
from holdfast.scenarios.checkers.copies import copies
from holdfast.scenarios.checkers.delay import delay
from holdfast.scenarios.checkers.no_interest import no_interest
from holdfast.scenarios.checkers.soundness import soundness
from holdfast.scenarios.checkers.tags import tags
from holdfast.scenarios.checkers.tree import Tree
from scenario_traces import Lines

#: p behind f, g and h, as seen from s at b; q at b itself; r at g.
TREE = {"b": None, "f": "b", "g": "f", "h": "g", "p": "h", "s": "b", "q": "b", "r": "g"}
PARTITION = {"lead": "b", "incarnation": 1, "seq": 1, "fragment": ["f", "g"]}
OTHER = {"lead": "b", "incarnation": 2, "seq": 1, "fragment": ["f", "g"]}


class Reliable(Lines):
    """A reliable run in which s subscribes at 1."""

    def __init__(self, *partial: dict[str, Any], **run: Any) -> None:
        super().__init__(**{"guarantee": "reliable", "delta": 1, "tree": TREE, **run})
        self.ask(0.9, "subscribe", "s")
        asked = {"subscriber": "s", "subscription": "all", "filter": "a", "durable": False}
        self.add(1, "s", "subscribed", **asked, partial=list(partial))

    def publish_at(self, t: float, publisher: str, n: int, *, accepted: bool = True) -> None:
        self.add(t, publisher, "publish", publisher=publisher, n=n, topic="a", attributes={})
        if accepted:
            self.add(t + 0.01, publisher, "accepted", publisher=publisher, n=n, pubend=publisher, tick=n)

    def deliver_at(self, t: float, publisher: str, n: int, *tagged: tuple[dict[str, Any], bool]) -> None:
        marks = [{**{k: v for k, v in each.items() if k != "fragment"}, "bar": bar} for each, bar in tagged]
        event = {"publisher": publisher, "n": n, "topic": "a", "pubend": publisher, "tick": n, "tags": marks}
        self.add(t, "s", "deliver", subscriber="s", subscription="all", **event)

    def upgraded(self, t: float, *cleared: dict[str, Any], partial: tuple[dict[str, Any], ...] = ()) -> None:
        fields = {"cleared": list(cleared), "partial": list(partial)}
        self.add(t, "s", "upgraded", subscriber="s", subscription="all", **fields)

    def gap(self, t: float, publisher: str, after: int, upto: int) -> None:
        fields = {"pubend": publisher, "after": after, "upto": upto, "reason": "beyond delta"}
        self.add(t, "s", "gap", subscriber="s", subscription="all", **fields)

    def lost(self) -> list[str]:
        return [violation.message.split()[0] for violation in completeness(self.trace())]

    def untagged(self) -> list[str]:
        return [violation.message.split()[0] for violation in tags(self.trace())]


# Lost


@pytest.mark.parametrize("fault", ["crash", "freeze", "cut"])
def test_a_reliable_run_owes_everything_whatever_broke(fault: str) -> None:
    lines = Reliable()
    lines.fault(1.5, fault, "f")
    lines.publish_at(2, "p", 1)
    assert lines.lost() == ["p#1"]


def test_who_is_disconnected_is_owed_all_the_same() -> None:
    lines = Reliable()
    lines.fault(1.5, "disconnect", "s")
    lines.publish_at(2, "p", 1)
    assert lines.lost() == ["p#1"]


@pytest.mark.parametrize("end", ["crash", "leave"])
def test_who_has_crashed_or_left_is_owed_nothing_more(end: str) -> None:
    lines = Reliable()
    lines.publish_at(1.4, "p", 1)
    lines.deliver_at(1.6, "p", 1)
    lines.publish_at(1.7, "p", 2)
    lines.fault(1.8, end, "s")
    lines.publish_at(2, "p", 3)
    assert lines.lost() == []


def test_what_was_not_accepted_is_not_owed() -> None:
    lines = Reliable()
    lines.publish_at(2, "p", 1, accepted=False)
    assert lines.lost() == []


def test_what_a_gap_announces_is_not_lost_silently() -> None:
    lines = Reliable()
    for n in (1, 2, 3, 4):
        lines.publish_at(n + 1, "p", n)
    lines.gap(6, "p", 1, 3)
    lines.gap(6, "q", 0, 9)
    assert lines.lost() == ["p#1", "p#4"]


# Partitions


def test_from_behind_a_partition_nothing_is_owed_until_it_is_cleared() -> None:
    lines = Reliable(PARTITION)
    lines.publish_at(2, "p", 1)
    lines.publish_at(2, "q", 1)
    lines.publish_at(2, "r", 1)
    lines.upgraded(3, PARTITION)
    lines.publish_at(4, "p", 2)
    assert lines.lost() == ["p#2", "q#1"]


def test_a_way_past_only_a_part_of_the_fragment_is_not_behind_it() -> None:
    lines = Reliable({**PARTITION, "fragment": ["f", "g", "h"]})
    lines.publish_at(2, "p", 1)
    lines.publish_at(2, "r", 1)
    assert lines.lost() == ["r#1"]


@pytest.mark.parametrize("met_last", [1.2, 1.8], ids=["before it came", "since"])
def test_who_came_to_a_node_of_the_fragment_is_behind_it_if_the_lead_cannot_have_heard(
    met_last: float,
) -> None:
    """r hangs on the middle of the fragment, and was started again when nobody could tell b of it (seed 1323, wild)."""
    lines = Reliable({**PARTITION, "fragment": ["f", "g", "h"]})
    lines.fault(1.1, "crash", "r")
    lines.fault(1.4, "restart", "r")
    lines.add(1.5, "r", "recovered", nodes=["r", "g"])
    lines.add(met_last, "b", "recovered", nodes=["b", "s"])
    lines.publish_at(2, "r", 1)
    lines.publish_at(2, "q", 1)
    assert lines.lost() == (["q#1"] if met_last < 1.5 else ["q#1", "r#1"])


def test_a_partition_is_cleared_by_its_own_name_only() -> None:
    lines = Reliable(PARTITION, OTHER)
    lines.upgraded(3, PARTITION, partial=(OTHER,))
    lines.publish_at(4, "p", 1)
    lines.upgraded(5, OTHER)
    lines.publish_at(6, "p", 2)
    assert lines.lost() == ["p#2"]


def test_an_upgrade_may_name_a_new_partition() -> None:
    lines = Reliable(PARTITION)
    lines.upgraded(3, PARTITION, partial=(OTHER,))
    lines.publish_at(4, "p", 1)
    assert lines.lost() == []


def test_after_a_bar_everything_is_owed_before_the_upgrade() -> None:
    lines = Reliable(PARTITION)
    for n in (1, 2, 3):
        lines.publish_at(2 + n / 10, "p", n)
    lines.deliver_at(3, "p", 2, (PARTITION, True))
    assert lines.lost() == ["p#3"]


# Tags (I11)


def test_what_comes_from_behind_an_open_partition_is_tagged() -> None:
    lines = Reliable(PARTITION)
    lines.publish_at(1.5, "p", 1)
    lines.deliver_at(2, "p", 1)
    lines.publish_at(1.6, "p", 2)
    lines.deliver_at(2.1, "p", 2, (OTHER, False))
    lines.publish_at(1.7, "p", 3)
    lines.deliver_at(2.2, "p", 3, (PARTITION, False))
    lines.publish_at(1.8, "q", 1)
    lines.deliver_at(2.3, "q", 1)
    lines.upgraded(3, PARTITION)
    lines.publish_at(3.1, "p", 4)
    lines.deliver_at(3.5, "p", 4)
    assert lines.untagged() == ["p#1", "p#2"]


def test_best_effort_has_no_tags() -> None:
    lines = Reliable(PARTITION, guarantee="best-effort")
    lines.publish_at(1.5, "p", 1)
    lines.deliver_at(2, "p", 1)
    assert lines.untagged() == []


def test_a_bar_is_not_taken_back() -> None:
    lines = Reliable(PARTITION)
    for n, bar in ((1, False), (2, True), (3, True), (4, False)):
        lines.publish_at(2, "p", n)
        lines.deliver_at(2 + n / 10, "p", n, (PARTITION, bar))
    assert lines.untagged() == ["p#4"]


def test_bars_of_other_publishers_and_partitions_say_nothing() -> None:
    lines = Reliable(PARTITION, OTHER)
    lines.publish_at(2, "p", 1)
    lines.publish_at(2, "r", 1)
    lines.deliver_at(3, "p", 1, (PARTITION, True), (OTHER, False))
    lines.deliver_at(3, "r", 1, (PARTITION, False), (OTHER, True))
    assert lines.untagged() == []


# Late (I4), delays (I33), copies (I32)


def test_what_comes_after_unsubscribed_is_late() -> None:
    lines = Reliable()
    lines.publish_at(2, "p", 1)
    lines.unsubscribe(3, "s")
    lines.deliver_at(4, "p", 1)
    assert [violation.kind for violation in soundness(lines.trace())] == ["late"]


def test_an_event_must_not_wait_for_a_repair() -> None:
    lines = Reliable()
    lines.fault(1.5, "crash", "g")
    lines.publish_at(2, "p", 1)
    lines.fault(9, "restart", "g")
    lines.deliver_at(9.5, "p", 1)
    trace = lines.trace()
    assert [violation.message for violation in delay(trace, within_seconds=2)] == [
        "p#1 took 7.500 s to s for all"
    ]
    assert delay(trace, within_seconds=8) == []


@pytest.mark.parametrize("node", ["p", "s"])
def test_an_event_may_wait_for_its_own_publisher_and_subscriber(node: str) -> None:
    lines = Reliable()
    lines.fault(1.5, "freeze", node)
    lines.publish_at(2, "p", 1)
    lines.fault(9, "unfreeze", node)
    lines.deliver_at(9.5, "p", 1)
    assert delay(lines.trace(), within_seconds=2) == []


def _copy(lines: Reliable, t: float, sender: str, receiver: str, n: int = 1) -> None:
    fields = {"from": sender, "to": receiver, "publisher": "p", "n": n, "again": False}
    lines.add(t, sender, "forward", **fields)


def test_at_rest_a_link_is_crossed_once_and_nobody_is_passed_by() -> None:
    lines = Reliable()
    lines.publish_at(4, "p", 1)
    _copy(lines, 4.1, "g", "f")
    _copy(lines, 4.2, "g", "f")
    _copy(lines, 4.2, "g", "b")
    found = [violation.message for violation in copies(lines.trace())]
    assert found == ["p#1 went from g to f again", "p#1 went from g to b, which are no neighbours"]


def test_what_is_broken_excuses_copies_until_it_is_repaired_and_a_while_longer() -> None:
    lines = Reliable()
    lines.fault(4, "cut", "f", "b")
    lines.fault(20, "heal", "f")
    for n, t in ((1, 6.0), (2, 20.5), (3, 30.0)):
        lines.publish_at(t, "p", n)
        _copy(lines, t, "g", "b", n)
    assert [violation.message.split()[0] for violation in copies(lines.trace())] == ["p#3"]


def test_a_reliable_publisher_sends_nothing_that_nobody_wants() -> None:
    for guarantee, expected in (("reliable", 1), ("best-effort", 0)):
        lines = Reliable(guarantee=guarantee)
        lines.add(5, "p", "publish", publisher="p", n=1, topic="b", attributes={})
        _copy(lines, 5, "p", "h")
        assert len(no_interest(lines.trace())) == expected


def test_all_of_it_is_checked() -> None:
    lines = Reliable(PARTITION)
    lines.publish_at(4, "p", 1)
    lines.deliver_at(4.5, "p", 1)
    _copy(lines, 4.1, "g", "b")
    assert [violation.kind for violation in check_all(lines.trace())] == ["untagged", "copies"]


def test_a_path_leads_up_and_down_the_tree() -> None:
    tree = Tree(TREE)
    assert tree.path("p", "r") == ("p", "h", "g", "r")
    assert tree.path("s", "s") == ("s",)
    assert tree.distance("s", "p") == 5
    assert [tree.is_edge(a, b) for a, b in (("g", "h"), ("h", "g"), ("f", "h"))] == [True, True, False]
