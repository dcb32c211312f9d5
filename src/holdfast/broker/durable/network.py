"""What readers need of the rest of the broker."""

from __future__ import annotations

from typing import Protocol

from holdfast.broker.durable.course import Course
from holdfast.broker.durable.reader import Reader
from holdfast.clock import Instant
from holdfast.filters.expression import Filter
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Letter
from holdfast.messages.subscriptions import Resume
from holdfast.messages.ticks import Tick
from holdfast.routing.port import ClientPort

__all__ = ["Network"]


class Network(Protocol):
    """The durable plane, as those see it who serve readers."""

    now: Instant
    forgotten_at: (
        Instant  #: when a broker was last forgotten: it has been started again, and makes itself known anew
    )

    @property
    def clock(self) -> Tick:
        """The present as a tick."""

    def emit(self, effect: object) -> None:
        """Have something done."""

    def courses_for(self, filter: Filter) -> list[Course]:
        """The pubends whose events a filter may match."""

    def admit(self, course: Course, since: Tick | None) -> None:
        """See to it that nothing above a tick is given up without us; None: from now on."""

    def edge_of(self, pubend: str) -> Tick:
        """The highest tick of a pubend that was ever told here."""

    def claim(self, course: Course, tick: Tick) -> None:
        """Somebody has consumed a pubend up to a tick that it may know nothing of."""

    def touch(self, course: Course) -> None:
        """Something of a course has changed."""

    def direct(self, reader: Reader) -> None:
        """Whoever reads a durable subscription gets what is not logged, too, while it is there."""

    def new_id(self) -> SubscriptionId:
        """An id for a subscription of the broker's."""

    def postpone(
        self, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume, until: Instant
    ) -> None:
        """Let a durable subscription be read later."""

    def post(self, letter: Letter) -> None:
        """Send a letter to a broker; without a way it is lost."""

    def reaches(self, broker: str) -> bool:
        """Whether there is a way to a broker."""

    @property
    def others(self) -> frozenset[str]:
        """All other brokers of the network, as far as they are known."""

    @property
    def has_heard_all(self) -> bool:
        """Whether every broker of the network has made itself known since we started, as far as they are known."""

    def given_to(self, durable: str) -> str | None:
        """The broker that was just told where a durable subscription stands, and is going to read it."""

    def give_up(self, port: ClientPort, subscription: int) -> None:
        """A client does not wait any more for what it wanted to read."""

    def awaited_by_later(self, port: ClientPort, subscription: SubscriptionId, resume: Resume) -> str:
        """Why a client that was interrupted cannot go on: another waits that came after it; empty: none does."""

    def supersede(self, durable: str) -> None:
        """Whoever waits for a durable subscription waits in vain: another client reads it."""

    def fetch(
        self, broker: str, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume
    ) -> None:
        """Ask a broker where a durable subscription stands, and then ``take_over``."""

    def spread(self, reader: Reader) -> None:
        """Make a durable reader's subscription known to the network."""

    def withdraw(self, reader: Reader) -> None:
        """The network need not know it any more."""
