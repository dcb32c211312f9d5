"""Members that die without a word: their home misses them, asks around, and expels them [B0.25].

A member may have lost its home and be served by another broker within reach, so its home alone cannot tell that it is
dead. A home that has had no session with a member of its own for the grace time asks the brokers it is in session with,
and they ask on, each question once. Who is in session with the member says so, and that goes back the way the question
came; then the grace begins again. If nobody says so, the member's life is over.

Nothing is concluded from the silence of those who could not be asked: as long as there is a way from the home on which
no broker can be reached, the member may be there, and the home waits. A home that is down expels nobody, and nobody
does so in its place.

With δ = 0 a member speaks with its home or with nobody, and nobody is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.clock import SECOND, Instant
from holdfast.messages.message import Message
from holdfast.messages.overlay import Missing, Present, Role
from holdfast.node.station import Station
from holdfast.overlay.transport import Log, Send, TransportEffect

if TYPE_CHECKING:
    from holdfast.node.node import Node

__all__ = ["Absence", "Absences"]

Effects = list[TransportEffect]

#: So many are expelled at a time: each costs a look at every station, and sessions must not be kept waiting for that.
EXPELLED_MAX: Final = 10


@dataclass(slots=True)
class Absence:
    """A member beside us without a session."""

    since: Instant | None = None  #: when it was first missed, or somebody last knew of it
    asked_since: Instant | None = None  #: when all brokers around were first asked, and have been ever since
    ask_at: Instant = 0  #: when to ask again

    def begin(self, now: Instant) -> None:
        """The grace begins."""
        self.since = now
        self.asked_since = None


@dataclass(slots=True)
class _Question:
    """The last we were asked about a member: by which life of its home, its number there, and whom to answer."""

    life: int
    number: int
    asker: str | None


class Absences:
    """What a broker does about members that are missed: its own, and those it is asked about."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._away = node.reach.away
        self._questions: dict[str, _Question] = {}
        self._number = 0  #: of our own questions
        settings = node.settings
        self._grace_ns = settings.member_grace_ns
        self._ask_every_ns = settings.detect_after_ns
        # A question passes at most δ+1 sessions that stand between us and whoever serves the member. One of them may
        # just have failed: that is noticed after detect_after, and who stands in for it is met, or given up, after
        # another. A question that is lost that way is asked again after one more.
        self.answer_within_ns = (2 * (settings.delta + 1) + 1) * settings.detect_after_ns

    # The home

    def tick(self, now: Instant) -> Effects:
        """Ask for those whose grace is over; expel who was not heard of. Costs nothing for members in session."""
        overdue = [name for name, absence in self._away.items() if self._is_overdue(absence, now)]
        if not overdue or not self._node.is_recovered:
            return []
        if self._node.settings.delta == 0:
            return self._expel(overdue, now)
        if not all(map(self._is_asked, self._node.brokers_beside())):
            for name in overdue:
                self._away[name].asked_since = None
            return []
        unheard = [name for name in overdue if self._is_unheard(self._away[name], now)]
        return self._expel(unheard, now) + self._ask(overdue, now)

    def _is_overdue(self, absence: Absence, now: Instant) -> bool:
        if absence.since is None:
            absence.begin(now)
        return absence.since is not None and now >= absence.since + self._grace_ns

    def _is_unheard(self, absence: Absence, now: Instant) -> bool:
        return absence.asked_since is not None and now >= absence.asked_since + self.answer_within_ns

    def _is_asked(self, station: Station) -> bool:
        """Whether everybody from a broker on, away from us, is asked by way of the nearest who are there."""
        if station.is_open:
            return True
        beyond = self._node.brokers_beyond(station.name)
        return station.is_bypassed and bool(beyond) and all(map(self._is_asked, beyond))

    def _ask(self, names: list[str], now: Instant) -> Effects:
        due = [name for name in names if name in self._away and now >= self._away[name].ask_at]
        if not due:
            return []
        self._number += 1
        for name in due:
            absence = self._away[name]
            absence.ask_at = now + self._ask_every_ns
            if absence.asked_since is None:
                absence.asked_since = now
        life = self._node.settings.incarnation
        topology = self._node.topology
        return self._to_brokers(
            [Missing(name, topology[name].incarnation, life, self._number) for name in due], but=None
        )

    def _expel(self, names: list[str], now: Instant) -> Effects:
        effects: Effects = []
        for name in names[:EXPELLED_MAX]:
            since = self._away[name].since
            assert since is not None
            reason = f"it was not heard of for {(now - since) // SECOND} s"
            effects.append(Log("warning", "a member is expelled", {"member": name, "reason": reason}))
            effects += self._node.visitors.expel(name, reason, now)
        return effects

    def _to_brokers(self, messages: list[Message], but: Station | None) -> Effects:
        return [
            Send(station.connection, messages)
            for station in self._node.reach.brokers.values()
            if station.connection is not None and station.is_told and station is not but
        ]

    # Whoever is asked

    def on_missing(self, sender: Station, missing: Missing) -> Effects:
        """A member's home asks, or somebody asks for it."""
        member = self._node.reach.get(missing.client)
        if member is None or member.place.role is Role.BROKER or member.distance == 1:
            return []  # it is out of reach, or gone; or the question is our own
        assert sender.connection is not None
        if member.connection is not None and member.incarnation >= missing.incarnation:
            return [Send(sender.connection, [Present(member.name, member.incarnation)])]
        known = self._questions.get(missing.client)
        if known is not None and known.life == missing.life and known.number >= missing.number:
            return []
        self._questions[missing.client] = _Question(missing.life, missing.number, sender.name)
        return self._to_brokers([missing], but=sender)

    def on_present(self, present: Present, now: Instant) -> Effects:
        """Somebody is in session with a member."""
        absence = self._away.get(present.client)
        if absence is not None:
            if present.incarnation >= self._node.topology[present.client].incarnation:
                absence.begin(now)
            return []
        question = self._questions.get(present.client)
        asker = None if question is None or question.asker is None else self._node.reach.get(question.asker)
        if question is None or asker is None or asker.connection is None:
            return []
        question.asker = None  # one answer will do
        return [Send(asker.connection, [present])]

    def forget(self, name: str) -> None:
        """A member is gone for good."""
        self._questions.pop(name, None)
