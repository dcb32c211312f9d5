"""A broker and its clients: who they are, what they publish, what they subscribe to.

Clients are welcomed once the broker is ready; a client that comes earlier waits. Whoever comes under a name
takes over from who had it, and that one is told and does not come back. Later is who comes later: the clocks of
two machines, which incarnations of clients are read from, need not agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from holdfast.broker.admission import Entrance
from holdfast.broker.clients import Clients
from holdfast.broker.delivery import Delivery
from holdfast.broker.durable.names import is_reserved
from holdfast.broker.durable.plane import DurablePlane
from holdfast.broker.durable.readers import Readers
from holdfast.broker.members import Members
from holdfast.broker.sessions import Effects, End, Sessions
from holdfast.broker.settings import Settings
from holdfast.broker.statistics import Counters
from holdfast.clock import Instant
from holdfast.errors import FilterError
from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Acknowledge, Credit, Detach
from holdfast.messages.message import Message
from holdfast.messages.overlay import Lapse
from holdfast.messages.publications import Accepted, Publication, Publish
from holdfast.messages.session import Farewell, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.staging import Commit, Discard, Stage
from holdfast.messages.streams import Guarantee
from holdfast.messages.subscriptions import (
    Confirmed,
    Partition,
    Refused,
    Resume,
    Subscribe,
    Unsubscribe,
    Upgraded,
    Withdrawn,
)
from holdfast.node.breach import Breach, brief
from holdfast.node.interest import Interest
from holdfast.node.node import Node
from holdfast.overlay.transport import Send
from holdfast.routing.port import ClientPort, Outstanding

__all__ = ["Hosting"]

LATER = "a later client has this name"

#: Why there is no durable subscription, and no other beginning than now.
NOT_LOGGED: Final = "no stream of this network is logged: subscriptions begin now, and end with their client"

#: So many events are sent to a client that has not said how many it has room for.
CREDIT: Final = 1_000


class Hosting:
    """What clients say, and what is said to them."""

    def __init__(
        self,
        settings: Settings,
        sessions: Sessions,
        clients: Clients,
        node: Node,
        delivery: Delivery,
        members: Members,
        counters: Counters,
        end: End,
    ) -> None:
        self._durable: DurablePlane | None = None
        self._settings = settings
        self._sessions = sessions
        self._clients = clients
        self._node = node
        self._spread = node.spread
        self._delivery = delivery
        self._members = members
        self._counters = counters
        self._end = end
        self._reliable = {each.name for each in settings.streams if each.guarantee is Guarantee.RELIABLE}
        self._entrance = Entrance(settings.streams, settings.limits)
        self._waiting: dict[int, Hello] = {}  #: clients that came before we were ready, by connection
        self._invited: dict[int, None] = {}  #: connections of those who were asked to be members
        self._subscriptions = 0  #: how many there have been
        self._subscribers: dict[SubscriptionId, tuple[ClientPort, SubscriptionId]] = {}  #: by our own id
        self._ended: dict[SubscriptionId, str] = {}  #: names of durable ones that their clients have ended
        self._answers: list[ClientPort] = []  #: whose events have been accepted since
        self._recalled: dict[ClientPort, str] = {}  #: who must come again, and why

    def become_durable(self, plane: DurablePlane) -> None:
        """Some streams are logged."""
        self._durable = plane

    def new_id(self) -> SubscriptionId:
        """An id for a subscription of the broker's."""
        self._subscriptions += 1
        return SubscriptionId(self._settings.name, self._settings.incarnation, self._subscriptions)

    # Introductions

    def on_hello(self, connection: int, hello: Hello, is_ready: bool, now: Instant) -> Effects:
        """A client has dialled us."""
        self._invited.pop(connection, None)
        if not self._has_room(hello.node):
            return self.turn_away(connection, now)
        if not is_ready:
            self._waiting[connection] = hello
            return []
        return self._welcome(connection, hello, now)

    def admits(self, connection: int, hello: Hello) -> bool:
        """Whether there is room for a node. Who was invited has a place; who hangs on another broker needs none."""
        is_invited = connection in self._invited
        self._invited.pop(connection, None)
        is_ours = hello.overlay is not None and hello.overlay.home == self._settings.name
        is_client = hello.kind is Kind.CLIENT
        return is_invited or not (is_ours and is_client) or self._has_room(hello.node)

    def turn_away(self, connection: int, now: Instant) -> Effects:
        """There is no room."""
        full = f"{self._settings.name} has its {self._settings.clients_max} clients"
        return self._end(connection, Farewell.FULL, full, now)

    def _has_room(self, name: str) -> bool:
        """Whether a client can have a place, or has one."""
        if self._clients.get(name) is not None or self._members.is_ours(name):
            return True
        coming = len(self._waiting) + len(self._invited)
        taken = len(self._clients) + self._node.topology.clients_beside
        return taken + coming < self._settings.clients_max

    def is_waiting(self, connection: int) -> bool:
        """Whether a client has said Hello and not been answered."""
        return connection in self._waiting

    def welcome_waiting(self, now: Instant) -> Effects:
        """The broker is ready."""
        effects: Effects = []
        while self._waiting:
            connection = next(iter(self._waiting))
            effects += self._welcome(connection, self._waiting.pop(connection), now)
        return effects

    def _welcome(self, connection: int, hello: Hello, now: Instant) -> Effects:
        port = self._clients.get(hello.node)
        if self._members.invites(hello):
            self._invited[connection] = None
            return [*self._end_earlier(port, now), Send(connection, [self._members.invitation(hello)])]
        if port is not None and hello.incarnation in port.superseded:
            return self._end(connection, Farewell.TAKEN_OVER, LATER, now)
        effects: Effects = []
        if port is not None and port.connection is not None:
            again = port.incarnation == hello.incarnation
            farewell = Farewell.REPLACED if again else Farewell.TAKEN_OVER
            effects += self._end(port.connection, farewell, "the client came again" if again else LATER, now)
        if port is None:
            port = self._clients.admit(hello.node, hello.incarnation)
        elif port.incarnation != hello.incarnation:
            effects += self.remove(port)
            port = self._clients.succeed(port, hello.incarnation)
        port.connection = connection
        port.session_upto = 0
        port.gone_at = None
        self._forget_unanswered(port)
        self._sessions.assign(connection, port)
        self._counters.sessions += 1
        settings = self._settings
        heartbeat_ns = settings.client_heartbeat_ns
        session = self._sessions[connection]
        session.begin(now, heartbeat_ns, hello.heartbeat_ns, settings.detect_after_ns)
        welcome = Welcome(
            settings.name,
            Kind.BROKER,
            settings.incarnation,
            hello.session,
            heartbeat_ns,
            last_number=port.last_number,
            streams=self._members.streams,
        )
        return [*effects, Send(connection, [welcome])]

    def _end_earlier(self, port: ClientPort | None, now: Instant) -> Effects:
        """A client becomes a member under a name a plain one had."""
        if port is None:
            return []
        ending = (
            [] if port.connection is None else self._end(port.connection, Farewell.TAKEN_OVER, LATER, now)
        )
        return ending + self.remove(port)

    # Goodbyes

    def on_lost(self, connection: int, port: ClientPort | None, now: Instant) -> None:
        """A connection with a client is gone; its grace time begins."""
        self._waiting.pop(connection, None)
        self._invited.pop(connection, None)
        if port is not None and port.connection == connection:
            self._clients.become_gone(port, now)
            if self._durable is not None:
                self._durable.readers.on_lost(port)

    def remove(self, port: ClientPort) -> Effects:
        """A client is gone for good, and its subscriptions with it."""
        effects: Effects = []
        self._clients.remove(port)
        self._forget_unanswered(port)
        for own in port.numbers.values():
            del self._subscribers[own]
            effects += self._withdraw(own)
        return effects

    def _forget_unanswered(self, port: ClientPort) -> None:
        """Whoever begins a session sends again what it has no answer for; the rest it may have heard elsewhere.

        So it is with logs, which answer for themselves. Events of reliable streams began here, and only here it becomes
        known that they are safe: those are waited for, whether they are sent again or not.
        """
        if self._durable is not None:
            self._durable.pubends.forget(port.name)
            port.unlogged = Outstanding()

    def _withdraw(self, own: SubscriptionId) -> Effects:
        if self._durable is not None:
            self._durable.readers.end_own(own)
        return self._spread.unsubscribe(own)

    def remove_expired(self, now: Instant) -> Effects:
        """Those whose grace time is over."""
        return [effect for port in self._clients.expired(now) for effect in self.remove(port)]

    # Messages

    def on_message(self, port: ClientPort, message: Message) -> Effects:
        """A client in session says something."""
        if isinstance(message, Publish):
            return self._on_publish(port, message)
        match message:
            case Heartbeat():
                return []
            case Subscribe(subscription):
                self._check_own(port, subscription)
                return self._on_subscribe(port, message)
            case Unsubscribe(subscription):
                self._check_own(port, subscription)
                return self._on_unsubscribe(port, subscription)
            case Credit() | Acknowledge() | Detach() if self._durable is not None:
                return self._on_reading(port, message, self._durable.readers)
            case Stage() | Commit() | Discard() if self._durable is not None:
                self._durable.epochs.on_message(port, message, self._entrance)
                return []
            case _:
                raise Breach(f"{type(message).__name__} from a client")

    def _on_reading(
        self, port: ClientPort, message: Credit | Acknowledge | Detach, readers: Readers
    ) -> Effects:
        match message:
            case Credit(subscription, count):
                readers.credit(port, subscription, count)
            case Acknowledge():
                readers.acknowledge(port, message)
            case Detach(subscription):
                readers.detach(port, subscription)
                return _said(port, Withdrawn(SubscriptionId(port.name, port.incarnation, subscription)))
        return []

    def _check_own(self, port: ClientPort, subscription: SubscriptionId) -> None:
        if (subscription.subscriber, subscription.incarnation) != (port.name, port.incarnation):
            raise Breach("a subscription of somebody else's")

    # Subscribing: to the network the subscriptions of plain clients are ours, under ids of our own

    def _on_subscribe(self, port: ClientPort, message: Subscribe) -> Effects:
        assert port.connection is not None
        subscription, resume = message.subscription, message.resume
        own = port.numbers.get(subscription.number)
        try:
            filter = parse_filter(message.filter)
        except FilterError as error:
            return [Send(port.connection, [Refused(subscription, brief(str(error)), "filter")])]
        if is_reserved(filter.pattern.levels):  # or anybody could pass for a broker, and have what goes there
            refusal = f"no event has a topic that {filter} could match"
            return _said(port, Refused(subscription, brief(refusal)))
        if self._durable is None and resume is not None and _asks_for_more(resume):
            return _said(port, Refused(subscription, NOT_LOGGED))
        if self._durable is not None and resume is not None:
            resume = self._durable.readers.begun(resume)
        if resume is not None and resume.durable is not None:
            return self._subscribe_durably(port, subscription, filter, resume)
        problem = self._no_room(port) if own is None else None
        if self._durable is not None and resume is not None:
            ahead = self._durable.readers.ahead(resume)
            if ahead is not None:
                return _said(port, Refused(subscription, ahead, "token-ahead"))
        if problem is None:
            if own is None:
                return self._subscribe(port, subscription, filter, resume)
            known = self._spread.interests[own]
            if known.filter == filter:
                return self._confirm_again(port, subscription, known, resume)
            problem = f"{subscription} is {known.text}, and cannot become {filter}"
        return [Send(port.connection, [Refused(subscription, brief(problem))])]

    def _subscribe(
        self, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume | None
    ) -> Effects:
        own = self.new_id()
        port.numbers[subscription.number] = own
        self._subscribers[own] = port, subscription
        if self._durable is not None and self._durable.is_read(filter):
            self._durable.readers.pass_by(port, subscription, own, filter, resume or Resume(CREDIT))
        return self._spread.subscribe(port, own, filter, subscription.number)

    def _confirm_again(
        self, port: ClientPort, subscription: SubscriptionId, known: Interest, resume: Resume | None
    ) -> Effects:
        """A client is back, and its subscription was kept."""
        readers = None if self._durable is None else self._durable.readers
        if readers is not None and readers.resume(port, subscription.number, resume or Resume(CREDIT)):
            return []
        return _said(port, Confirmed(subscription, tuple(known.partial))) if known.is_installed else []

    def _subscribe_durably(
        self, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume
    ) -> Effects:
        problem = self._no_room(port)
        if problem is None and len(str(resume.durable).encode()) > self._settings.limits.publisher_bytes:
            problem = f"the name of a durable subscription has at most {self._settings.limits.publisher_bytes} bytes"
        if self._durable is None or not self._durable.is_read(filter):
            problem = f"no durable stream has a topic that {filter} could match"
        if problem is not None or self._durable is None:
            return _said(port, Refused(subscription, brief(str(problem))))
        self._durable.readers.read(port, subscription, filter, resume)
        return []

    def _no_room(self, port: ClientPort) -> str | None:
        """Why there can be no further subscription, if there cannot."""
        settings = self._settings
        if len(port.numbers) >= settings.client_subscriptions_max:
            return f"{port.name} has its {settings.client_subscriptions_max} subscriptions"
        if len(self._spread.interests) >= settings.subscriptions_max:
            return f"{settings.name} has its {settings.subscriptions_max} subscriptions"
        return None

    def _on_unsubscribe(self, port: ClientPort, subscription: SubscriptionId) -> Effects:
        assert port.connection is not None
        own = port.numbers.pop(subscription.number, None)
        if own is not None:
            return self._withdraw(own)
        reader = None if self._durable is None else self._durable.readers.of(port, subscription.number)
        if reader is not None and self._durable is not None:
            self._subscribers[reader.own] = port, subscription
            self._ended[reader.own] = reader.name
            self._durable.readers.detach(port, subscription.number)
            self._durable.readers.end(reader.name, f"{reader.name} was ended")
            return []
        if self._durable is not None and self._durable.wishes.end(port, subscription):
            return []  # it is told when it is over
        if any(whose == (port, subscription) for whose in self._subscribers.values()):
            return []  # it is being withdrawn
        return [Send(port.connection, [Withdrawn(subscription)])]

    def on_subscribed(self, own: SubscriptionId, partial: tuple[Partition, ...]) -> Effects:
        """The network knows a subscription."""
        if self._durable is not None and self._durable.on_subscribed(own, partial):
            return []
        port, subscription = self._subscribers[own]
        return _said(port, Confirmed(subscription, partial))

    def on_unsubscribed(self, own: SubscriptionId) -> Effects:
        """The network has forgotten one."""
        whose, durable = self._subscribers.pop(own, None), self._ended.pop(own, None)
        if whose is None:
            return []
        if self._durable is not None and durable is not None:
            self._durable.wishes.on_over(durable, *whose)
            return []
        return _said(whose[0], Withdrawn(whose[1]))

    def on_upgraded(
        self, own: SubscriptionId, cleared: tuple[Partition, ...], partial: tuple[Partition, ...]
    ) -> Effects:
        """Partitions are over for one."""
        if self._durable is not None and self._durable.on_upgraded(own, cleared, partial):
            return []
        whose = self._subscribers.get(own)
        return [] if whose is None else _said(whose[0], Upgraded(whose[1], cleared, partial))

    # Publishing

    def _on_publish(self, port: ClientPort, message: Publish) -> Effects:
        publications = message.batch.publications
        if not publications:
            return []
        strangers = {publication.publisher for publication in publications} - {port.name}
        if strangers:
            raise Breach(f"an event under the name of {min(strangers)!r}")
        home, port.heard = self._home_of(port, message), message.heard
        admission = self._entrance.admit(port, publications)
        effects: Effects = []
        for admitted in admission.admitted:
            self._counters.published += len(admitted.events)
            if self._durable is not None and admitted.stream in self._durable.streams:
                port.unlogged.add(_numbers(admitted.batch.publications))
                batch = admitted.batch.publications
                self._durable.publish(port, admitted.stream, batch, admitted.events, home)
            elif admitted.stream in self._reliable:
                if port.lapses_marked != self._node.lapses.heard:
                    effects += self._mark(port, admitted.batch.publications[0].n - 1)
                port.unsafe.add(_numbers(admitted.batch.publications))
                tags = self._node.spread.partitions.tags_of_own()
                effects += self._node.plane.originate(admitted.stream, admitted.batch, admitted.events, tags)
            else:
                effects += self._delivery.route(admitted.stream, admitted.batch, admitted.events, None)
        self._counters.duplicates += len(admission.duplicates)
        self._counters.rejected += len(admission.rejected)
        if self._durable is not None:  # where events are is said before they are acknowledged
            effects += self._durable.take_effects()
        answers: list[Message] = [*admission.rejected]
        port.accepted_upto = max(port.accepted_upto, publications[-1].n)
        port.session_upto = max(port.session_upto, publications[-1].n)
        if not port.unsafe and not port.unlogged:
            answers.append(Accepted(publications[-1].n, tuple(admission.duplicates)))
        assert port.connection is not None
        return [*effects, Send(port.connection, answers)] if answers else effects

    def _home_of(self, port: ClientPort, message: Publish) -> str:
        """Where a client's events are logged: always the same broker, as long as it lives."""
        home = message.home or self._settings.name
        if len(home.encode()) > self._settings.limits.publisher_bytes:
            raise Breach("a home under a name that no broker can have")
        if port.home not in (None, home):
            raise Breach(f"{home!r} as the home of {port.name!r}, after {port.home!r}")
        port.home = home
        return home

    def on_safe(self, publications: list[Publication]) -> None:
        """Events of a reliable stream that clients of ours published are accepted."""
        numbers: dict[str, list[int]] = {}
        for publication in publications:
            numbers.setdefault(publication.publisher, []).append(publication.n)
        for publisher, safe in numbers.items():
            port = self._clients.get(publisher)
            if port is not None and port.unsafe.discard(sorted(safe)):
                self._answers.append(port)

    def on_logged(self, port: ClientPort, numbers: Iterable[Sequence[int]]) -> None:
        """Events of a durable stream are on disk, or were refused; each sequence ascends."""
        for each in numbers:
            port.unlogged.discard(each)
        self._answers.append(port)

    def recall(self, port: ClientPort, reason: str) -> None:
        """A client is to come again, and to send again what it has no answer for."""
        self._recalled[port] = reason

    def on_lapse(self, lapse: Lapse) -> Effects:
        """Events may be missing: clients hear so, and others up to where ours have published."""
        effects: Effects = []
        for port in self._clients.all():
            effects += _said(port, lapse)
            if self._reliable and port.last_number:
                effects += self._mark(port, port.last_number)
        return effects

    def _mark(self, port: ClientPort, upto: int) -> Effects:
        port.lapses_marked = self._node.lapses.heard
        return self._node.mark(min(self._reliable), port.name, upto)

    def accept(self) -> Effects:
        """Tell those whose events have been accepted since; where events are logged, after they were told where."""
        effects: Effects = [] if self._durable is None else self._durable.take_effects()
        answers, self._answers = self._answers, []
        for port in dict.fromkeys(answers):
            upto = min(port.answered_upto, port.session_upto)
            if port.connection is not None and upto:
                effects.append(Send(port.connection, [Accepted(upto)]))
        return [*effects, *self._send_away()] if self._recalled else effects

    def _send_away(self) -> Effects:
        """End the sessions of those who must come again."""
        assert self._durable is not None
        recalled, self._recalled = self._recalled, {}
        return [
            effect
            for port, reason in recalled.items()
            if port.connection is not None
            for effect in self._end(port.connection, Farewell.FULL, reason, self._durable.now)
        ]


def _asks_for_more(resume: Resume) -> bool:
    """Whether a subscription is to be more than one that begins now and ends with its client."""
    return bool(resume.durable or resume.token) or resume.start is not None


def _numbers(publications: Sequence[Publication]) -> Sequence[int]:
    """Those of one publisher's events, which ascend and mostly are neighbours."""
    first, last = publications[0].n, publications[-1].n
    if last - first == len(publications) - 1:
        return range(first, last + 1)
    return [publication.n for publication in publications]


def _said(port: ClientPort, message: Message) -> Effects:
    return [] if port.connection is None else [Send(port.connection, [message])]
