"""A client that does not know its network yet: it asks, and becomes what the network wants it to be.

Where all streams are best-effort, or one is durable, it is and stays a plain client. Where one is reliable and none
durable its broker invites it to be a node of the overlay, and says who is around; then it goes on as a member, on the
same connection and with what its application has asked for. As long as it only subscribes it is a subscriber, whom
nobody need tell what others want.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from holdfast.client.input import Open
from holdfast.client.ledger import Ledger
from holdfast.client.member import MemberCore
from holdfast.client.membership import membership_of
from holdfast.client.protocol import ClientCore
from holdfast.client.settings import Settings
from holdfast.clock import Instant
from holdfast.messages.session import Welcome

__all__ = ["Newcomer"]

#: A broker probes who was lost at each probe time; of clients there are many, and they wait longer, up to so many.
PROBES_MAX: Final = 10


class Newcomer:
    """Driven by ``step`` and ``next_deadline``, as ``overlay.transport`` says."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.name
        self._settings = settings
        self._address: str | None = None
        self._core: ClientCore | MemberCore = ClientCore(settings, asks=True)

    @property
    def is_member(self) -> bool:
        """Whether the client is a node of the overlay."""
        return isinstance(self._core, MemberCore)

    @property
    def is_ready(self) -> bool:
        """Whether somebody is there to speak with."""
        return self._core.is_ready

    @property
    def stranger(self) -> str | None:
        """Where somebody has taken the last connection, and does not answer as a broker."""
        return self._core.stranger if isinstance(self._core, ClientCore) else None

    @property
    def ledger(self) -> Ledger:
        """What the application has asked for, and is owed."""
        return self._core.ledger

    @property
    def unacknowledged(self) -> int:
        """How many submitted events wait for their acknowledgement."""
        return self._core.unacknowledged

    @property
    def turned_away(self) -> int:
        """How many deliveries had passed before."""
        return self._core.turned_away

    def next_deadline(self) -> Instant | None:
        """When to be woken."""
        return self._core.next_deadline()

    def step(self, stimulus: Any, now: Instant) -> list[Any]:
        """Take one input, and say what is to be done about it."""
        if isinstance(stimulus, Open):
            self._address = stimulus.address
        core = self._core
        effects: list[Any] = [*core.step(stimulus, now)]
        if isinstance(core, ClientCore) and core.invitation is not None:
            effects += self._become_member(core, *core.invitation, now)
        return effects

    def _become_member(self, core: ClientCore, connection: int, welcome: Welcome, now: Instant) -> list[Any]:
        settings = replace(self._settings, broker=core.address)
        membership = membership_of(settings, welcome, self._address)
        core.ledger.incarnation = membership.incarnation
        assert welcome.invitation is not None
        probe_ns = membership.probe_every_ns
        most_ns = min(self._settings.backoff_max_ns, PROBES_MAX * probe_ns)
        self._core = MemberCore(
            replace(self._settings, backoff_min_ns=2 * probe_ns, backoff_max_ns=most_ns),
            membership,
            welcome.streams,
            limits=welcome.invitation.limits,
            ledger=core.ledger,
            last_number=welcome.last_number,
            standing=connection,
        )
        return self._core.step(Open(), now)
