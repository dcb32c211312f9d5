"""A broker and its clients: who they are, what they publish, what they subscribe to.

Clients are welcomed once the broker is ready; a client that comes earlier waits. Whoever comes under a name
takes over from who had it, and that one is told and does not come back. Later is who comes later: the clocks of
two machines, which incarnations of clients are read from, need not agree.
"""

from __future__ import annotations

from holdfast.broker.admission import Entrance
from holdfast.broker.clients import Clients
from holdfast.broker.delivery import Delivery
from holdfast.broker.sessions import Breach, Effects, End, Sessions, brief
from holdfast.broker.settings import Settings
from holdfast.broker.statistics import Counters
from holdfast.clock import Instant
from holdfast.errors import FilterError
from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted, Batch, Publish
from holdfast.messages.session import Farewell, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.streams import StreamOrder
from holdfast.messages.subscriptions import Refused, Subscribe, Unsubscribe
from holdfast.overlay.transport import Send
from holdfast.routing.advertisement import Advertisement, Reused
from holdfast.routing.port import ClientPort
from holdfast.routing.table import Table

__all__ = ["Hosting"]

LATER = "a later client has this name"


class Hosting:
    """What clients say, and what is said to them."""

    def __init__(
        self,
        settings: Settings,
        sessions: Sessions,
        clients: Clients,
        table: Table,
        advertisement: Advertisement,
        delivery: Delivery,
        counters: Counters,
        end: End,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._clients = clients
        self._table = table
        self._advertisement = advertisement
        self._delivery = delivery
        self._counters = counters
        self._end = end
        self._streams = tuple(StreamOrder(stream.name, stream.order) for stream in settings.streams)
        self._entrance = Entrance(settings.streams, settings.limits)
        self._waiting: dict[int, Hello] = {}  #: clients that came before we were ready, by connection

    # Introductions

    def on_hello(self, connection: int, hello: Hello, is_ready: bool, now: Instant) -> Effects:
        """A client has dialled us."""
        settings = self._settings
        known = self._clients.get(hello.node)
        if known is None and len(self._clients) + len(self._waiting) >= settings.clients_max:
            full = f"{settings.name} has its {settings.clients_max} clients"
            return self._end(connection, Farewell.FULL, full, now)
        if not is_ready:
            self._waiting[connection] = hello
            return []
        return self._welcome(connection, hello, now)

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
        port.gone_at = None
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
            streams=self._streams,
        )
        return [*effects, Send(connection, [welcome])]

    # Goodbyes

    def on_lost(self, connection: int, port: ClientPort | None, now: Instant) -> None:
        """A connection with a client is gone; its grace time begins."""
        self._waiting.pop(connection, None)
        if port is not None and port.connection == connection:
            self._clients.become_gone(port, now)

    def remove(self, port: ClientPort) -> Effects:
        """A client is gone for good, and its subscriptions with it."""
        effects: Effects = []
        for number in port.numbers:
            subscription = SubscriptionId(port.name, port.incarnation, number)
            effects += self._advertisement.on_unsubscribe(port, subscription, is_asked=False)
        self._clients.remove(port)
        return effects

    def remove_expired(self, now: Instant) -> Effects:
        """Those whose grace time is over."""
        return [effect for port in self._clients.expired(now) for effect in self.remove(port)]

    # Messages

    def on_message(self, port: ClientPort, message: Message) -> Effects:
        """A client in session says something."""
        if isinstance(message, Publish):
            return self._on_publish(port, message.batch)
        match message:
            case Heartbeat():
                return []
            case Subscribe(subscription):
                self._check_own(port, subscription)
                return self._on_subscribe(port, message)
            case Unsubscribe(subscription):
                self._check_own(port, subscription)
                port.numbers.pop(subscription.number, None)
                return self._advertisement.on_unsubscribe(port, subscription)
            case _:
                raise Breach(f"{type(message).__name__} from a client")

    def _check_own(self, port: ClientPort, subscription: SubscriptionId) -> None:
        if (subscription.subscriber, subscription.incarnation) != (port.name, port.incarnation):
            raise Breach("a subscription of somebody else's")

    def _on_subscribe(self, port: ClientPort, message: Subscribe) -> Effects:
        assert port.connection is not None
        problem = self._no_room(port, message.subscription)
        if problem is None:
            try:
                effects = self._advertisement.on_subscribe(port, message)
            except (FilterError, Reused) as error:
                problem = str(error)
            else:
                port.numbers[message.subscription.number] = None
                return effects
        return [Send(port.connection, [Refused(message.subscription, brief(problem))])]

    def _no_room(self, port: ClientPort, subscription: SubscriptionId) -> str | None:
        """Why there can be no further subscription, if there cannot."""
        settings = self._settings
        if self._advertisement.knows(port, subscription):
            return None
        if len(port.numbers) >= settings.client_subscriptions_max:
            return f"{port.name} has its {settings.client_subscriptions_max} subscriptions"
        if len(self._table) + self._advertisement.pending >= settings.subscriptions_max:
            return f"{settings.name} has its {settings.subscriptions_max} subscriptions"
        return None

    def _on_publish(self, port: ClientPort, batch: Batch) -> Effects:
        publications = batch.publications
        if not publications:
            return []
        for publication in publications:
            if publication.publisher != port.name:
                raise Breach(f"an event under the name of {publication.publisher!r}")
        admission = self._entrance.admit(port, publications)
        effects: Effects = []
        for admitted in admission.admitted:
            self._counters.published += len(admitted.events)
            effects += self._delivery.route(admitted.stream, admitted.batch, admitted.events, None)
        self._counters.duplicates += len(admission.duplicates)
        self._counters.rejected += len(admission.rejected)
        answers: list[Message] = [*admission.rejected]
        answers.append(Accepted(publications[-1].n, tuple(admission.duplicates)))
        assert port.connection is not None
        effects.append(Send(port.connection, answers))
        return effects
