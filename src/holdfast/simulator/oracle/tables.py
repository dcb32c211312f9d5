"""I9, I10, I14: tables come before publications, nothing waited for is dropped, nothing that is over comes back."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.identity import SubscriptionId
from holdfast.messages.overlay import Leave, Ready, Relay, Role, Told
from holdfast.messages.subscriptions import Confirmed, Grave, Heal, Lore, Subscribe, Unsubscribe
from holdfast.node.graves import NUMBER_MAX
from holdfast.node.interest import is_for
from holdfast.node.trails import numbered
from holdfast.simulator.oracle.annals import Annals, Law, Said, Step, events_of

__all__ = ["NoResurrection", "TablesFirst", "TuplesFirst", "WaitedFor"]


class TablesFirst(Law):
    """I9: on a connection nothing is published before both have told what they know; and refills come before that."""

    def __init__(self, annals: Annals) -> None:
        super().__init__(annals)
        self._told: set[int] = set()
        self._ready: set[int] = set()

    def judge(self, step: Step) -> Iterator[str]:
        """Of what is said on each connection, in order."""
        self._ready.update(each.connection for each in step.heard if isinstance(each.message, Ready))
        for said in step.said:
            match said.message:
                case Told():
                    self._told.add(said.connection)
                case Relay(refill=True) if said.connection in self._told:
                    yield f"B0.16: {step.name} gave back to {said.peer} after the handshake"
                case Relay(refill=False) if not (
                    said.connection in self._told and said.connection in self._ready
                ):
                    yield f"I9: {step.name} sent publications to {said.peer} before the tables"


class TuplesFirst(Law):
    """I9: on every connection a subscription is told before whatever was accepted after its installation [B0.22].

    Who has told of it, asked for it or confirmed it on a connection need not be told there.
    """

    def __init__(self, annals: Annals) -> None:
        super().__init__(annals)
        #: By node and life the installed subscriptions, each with the last number given before, as far as is known.
        self._installed: dict[tuple[str, int], dict[SubscriptionId, int]] = {}
        self._known: dict[int, set[SubscriptionId]] = {}  #: by connection, to the peer

    def judge(self, step: Step) -> Iterator[str]:
        """Of what is sent, in order."""
        for heard in step.heard:
            self._note(heard)
        for said in step.said:
            if isinstance(said.message, Relay) and not said.message.refill:
                yield from self._are_known(step, said, said.message)
            self._note(said)
        installed = self._installed.setdefault((step.name, step.life), {})
        for key, interest in step.node.spread.interests.items():
            if interest.is_installed:
                installed.setdefault(key, step.node.plane.counters.accepted)

    def _note(self, said: Said) -> None:
        match said.message:
            case Subscribe(subscription) | Confirmed(subscription):
                self._known.setdefault(said.connection, set()).add(subscription)
            case Lore(rows=rows) | Heal(rows=rows):
                self._known.setdefault(said.connection, set()).update(row.subscription for row in rows)

    def _are_known(self, step: Step, said: Said, relay: Relay) -> Iterator[str]:
        own = [column for each, column in numbered(relay.trail) if each.node == step.name]
        station = step.node.reach.get(said.peer)
        installed = self._installed.get((step.name, step.life), {})
        if not own or station is None:
            return
        for key in [each for each in installed if each not in self._known.get(said.connection, ())]:
            interest = step.node.spread.interests.get(key)
            if interest is not None and is_for(station, interest) and own[-1][-1] > installed[key]:
                yield f"I9: {step.name} sent {said.peer} its {own[-1][-1]} and has not told it of {key}"


class WaitedFor(Law):
    """I10 (Lemma 2): whoever a publication is new to on its way to a confirmed subscription, knows that."""

    def judge(self, step: Step) -> Iterator[str]:
        """Of what was new to a broker."""
        if step.node.settings.role is not Role.BROKER:
            return
        annals, interests = self.annals, step.node.spread.interests
        for verdict in step.verdicts:
            new = set(verdict.new)
            for event in (event for place, event in events_of(verdict.relay) if place in new):
                for standing in annals.owed(event):
                    key = standing.subscription
                    if step.name not in annals.tree.path(event.publisher, key.subscriber):
                        continue
                    interest = interests.get(key)
                    if interest is None or not interest.is_installed:
                        yield f"I10: {step.name} dropped {event} for {key}, which it does not know"


_ABOUT_SUBSCRIPTIONS = (Lore, Subscribe, Unsubscribe, Heal, Leave, Confirmed)


class NoResurrection(Law):
    """I14: what a node knows to be over does not come back there [B0.24]."""

    def __init__(self, annals: Annals) -> None:
        super().__init__(annals)
        self._over: dict[tuple[str, int], dict[Grave, None]] = {}

    def judge(self, step: Step) -> Iterator[str]:
        """Of what a node knows after it was told something of subscriptions.

        What came behind a session's end it has not read.
        """
        told = [
            each.message
            for each in step.heard
            if isinstance(each.message, _ABOUT_SUBSCRIPTIONS)
            and step.node.introductions.owns(each.connection)
        ]
        if not told:
            return
        over = self._over.setdefault((step.name, step.life), {})
        for message in told:
            match message:
                case Lore(graves=graves):
                    over.update(dict.fromkeys(graves))
                case Unsubscribe(subscription):
                    number = subscription.number
                    over[Grave(subscription.subscriber, subscription.incarnation, number, number)] = None
                case Leave(node, incarnation):
                    over[Grave(node, incarnation, 1, NUMBER_MAX)] = None
        for key in step.node.spread.interests:
            if any(_covers(grave, key) for grave in over):
                yield f"I14: {step.name} knows {key} again, which is over"


def _covers(grave: Grave, key: SubscriptionId) -> bool:
    owner = key.subscriber, key.incarnation
    return (grave.subscriber, grave.incarnation) == owner and grave.first <= key.number <= grave.last
