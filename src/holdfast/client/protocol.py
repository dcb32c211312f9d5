"""The client without IO: one session with a broker, kept up for as long as the application wants.

A session that breaks is opened again, with growing pauses. Subscriptions are then made again under their old ids,
and events that were not acknowledged are sent again under their old numbers, in order: the broker, or the edge of
the subscriber, turns away what had arrived. Where the numbers of a publisher show that something may be missing
since, a gap says so.

What was delivered and not yet consumed is bounded: past a subscription's buffer the client stops reading, and the
broker sees a slow subscriber. Of streams that are logged it sends no more than that (``reading``), and goes on after an
interruption where the client stood.

A client may know several brokers, and goes from one to the next. Its events are logged at its *home* all the same, the
broker the first of them was sent to: there it is known what of them had arrived, and there they stay in order.
"""

from __future__ import annotations

from typing import Final, assert_never

from holdfast.client.backoff import Backoff
from holdfast.client.effect import Acknowledged, Away, Effect, Ended, Ready, Unsuited
from holdfast.client.inbox import BEYOND_DELTA, Subscription
from holdfast.client.input import (
    AddSubscription,
    Commit,
    Consumed,
    EndSubscription,
    Input,
    Leave,
    Open,
    SetHome,
    Submit,
)
from holdfast.client.ledger import Ledger
from holdfast.client.logged import Answer
from holdfast.client.membership import welcome_problem
from holdfast.client.outbox import publishes
from holdfast.client.settings import Settings
from holdfast.clock import Instant
from holdfast.identity import Element
from holdfast.messages.durable import Logged, Ousted, Portion, Saved
from holdfast.messages.message import Message
from holdfast.messages.overlay import Lapse
from holdfast.messages.publications import (
    Accepted,
    Deliveries,
    Publication,
    Rejected,
)
from holdfast.messages.session import MEMBER, VERSION, Farewell, Goodbye, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.streams import Guarantee
from holdfast.messages.subscriptions import Confirmed, Refused, Subscribe, Unsubscribe, Upgraded, Withdrawn
from holdfast.overlay.session import HELLO_WITHIN_NS, Session, heartbeat_problem
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    ConnectFailed,
    Disconnected,
    Log,
    Pause,
    Received,
    Resume,
    Send,
    Wake,
)

__all__ = ["ClientCore"]

#: After these there is no point in coming back.
FINAL: Final = {
    Farewell.TAKEN_OVER,
    Farewell.UNKNOWN,
    Farewell.VERSION,
    Farewell.PROTOCOL,
}


class ClientCore:
    """Driven by ``step`` and ``next_deadline``, as ``overlay.transport`` says.

    ``asks``: whether the network wants it as a member. If so the answer is kept in ``invitation``, with the connection
    it came on, and nothing more happens here: ``newcomer`` goes on with it.
    """

    def __init__(self, settings: Settings, *, asks: bool = False) -> None:
        self.name = settings.name
        self.ledger = Ledger(
            settings.name, settings.incarnation, settings.unacknowledged_max, settings.sent_bytes
        )
        self.invitation: tuple[int, Welcome] | None = None
        self.stranger: str | None = None  #: where the last connection was taken, and no broker has answered
        self._settings = settings
        self._features = (MEMBER,) if asks else ()
        self._over = False

        # The session. Without a broker's name it has not been welcomed yet.
        self._session: Session | None = None
        self._broker: str | None = None
        self._dialling = False
        self._brokers = (settings.broker, *settings.others)
        self._dials = 0  #: that came to nothing, or to a session that was lost
        self._session_seq = 0
        self._backoff = Backoff(settings.name, settings.backoff_min_ns, settings.backoff_max_ns)
        self._dial_at: Instant | None = None
        self._paused = False
        self._control_seq = 0

        self._inbox = self.ledger.inbox
        self._outbox = self.ledger.outbox

    @property
    def address(self) -> str:
        """The broker that is dialled, or is spoken with."""
        return self._brokers[self._dials % len(self._brokers)]

    @property
    def unacknowledged(self) -> int:
        """How many submitted events wait for their acknowledgement."""
        return len(self._outbox)

    @property
    def turned_away(self) -> int:
        """How many deliveries had passed before."""
        return self._inbox.turned_away

    @property
    def is_ready(self) -> bool:
        """Whether there is a session."""
        return self._broker is not None and not self._over

    def step(self, stimulus: Input, now: Instant) -> list[Effect]:
        """Take one input, and say what is to be done about it."""
        if self._over:
            return [Close(stimulus.connection, "over")] if isinstance(stimulus, Connected) else []
        match stimulus:
            case Received(connection, messages):
                return self._on_received(connection, messages, now)
            case Submit(publications):
                return self._on_submit(publications, now)
            case SetHome(broker):
                self.ledger.home = broker
                return []
            case Consumed(number, count, logged):
                return self._on_consumed(number, count, logged, now)
            case Commit(number, places, ticket):
                self.ledger.logged.commit(number, places, ticket)
                return self._answer(([], self.ledger.logged.acknowledge(number)))
            case Wake():
                return self._on_wake(now)
            case Open():
                return self._dial()
            case Connected(connection, None):
                return [Close(connection, "nobody is expected")]
            case Connected(connection):
                return self._on_connected(connection, now)
            case ConnectFailed(_, reason):
                self._dialling = False
                self.stranger = None
                return [*self._retry(now), Log("info", "cannot reach the broker", {"reason": reason})]
            case Disconnected(connection, reason):
                return self._on_disconnected(connection, reason, now)
            case AddSubscription():
                return self._on_add(stimulus, now)
            case EndSubscription(number, keep):
                return self._on_end(number, now, keep=keep)
            case Leave():
                return self._on_leave()
            case _:
                assert_never(stimulus)

    def next_deadline(self) -> Instant | None:
        """When the broker must be dialled, greeted by a heartbeat, or given up."""
        if self._over:
            return None
        session = self._session
        if session is None:
            return self._dial_at
        given_up_at = session.heard_at + session.silent_after_ns
        if self._broker is None:
            return given_up_at
        return session.heartbeat_at if self._paused else min(session.heartbeat_at, given_up_at)

    # The session

    @property
    def _connection(self) -> int | None:
        """Where the broker hears us, once it has welcomed us."""
        return None if self._session is None or self._broker is None else self._session.connection

    def _dial(self) -> list[Effect]:
        self._dialling = True
        self._dial_at = None
        return [Connect("", self.address)]

    def _retry(self, now: Instant) -> list[Effect]:
        self._dials += 1
        self._dial_at = now + self._backoff.next_pause()
        return []

    def _on_connected(self, connection: int, now: Instant) -> list[Effect]:
        self._dialling = False
        self.stranger = self.address
        self._session_seq += 1
        settings = self._settings
        self._session = Session(connection, now, max(settings.detect_after_ns, HELLO_WITHIN_NS))
        hello = Hello(
            self.name,
            Kind.CLIENT,
            settings.incarnation,
            self._session_seq,
            settings.principal,
            settings.heartbeat_ns,
            features=self._features,
        )
        return [Send(connection, [hello])]

    def _on_disconnected(self, connection: int, reason: str, now: Instant) -> list[Effect]:
        return self._lose(reason, now) if self._is_on(connection) else []

    def _is_on(self, connection: int) -> bool:
        return self._session is not None and self._session.connection == connection

    def _lose(self, reason: str, now: Instant) -> list[Effect]:
        was_ready = self._broker is not None
        self._session = self._broker = None
        self._paused = False
        self._retry(now)
        if not was_ready:
            return []
        self._inbox.begin_doubt()
        return [Away(reason), *self.ledger.on_away()]

    def _drop(self, farewell: Farewell, reason: str, now: Instant) -> list[Effect]:
        """Give up the connection from this side."""
        assert self._session is not None
        connection = self._session.connection
        parting: list[Effect] = [Send(connection, [Goodbye(farewell, reason)]), Close(connection, reason)]
        return parting + self._lose(reason, now)

    def _on_wake(self, now: Instant) -> list[Effect]:
        session = self._session
        if session is None:
            due = self._dial_at is not None and now >= self._dial_at and not self._dialling
            return self._dial() if due else []
        if not self._paused and session.is_silent(now):
            return self._drop(Farewell.SILENT, "nothing heard from the broker", now)
        if session.may_beat(now):
            session.heartbeat_at = now + session.heartbeat_every_ns
            return [Send(session.connection, [Heartbeat()])]
        return []

    def _give_up(self, durable: str) -> list[Effect]:
        """We were to be a node of the network, and where a stream is durable no client is."""
        problem = (
            f"the stream {durable!r} of this network is durable, and where one is no client is a node of it"
        )
        return self._leave(Unsuited(problem))

    def _on_leave(self) -> list[Effect]:
        return self._leave(Ended(Farewell.LEAVING, "left"))

    def _leave(self, ended: Ended | Unsuited) -> list[Effect]:
        self._over = True
        if self._session is None:
            return [ended]
        connection = self._session.connection
        goodbye = Goodbye(Farewell.LEAVING, "the client leaves")
        return [Send(connection, [goodbye]), Close(connection, "left"), ended]

    # What the broker says

    def _on_received(self, connection: int, messages: list[Message], now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        if self._session is not None:
            self._session.hear(now)
        for message in messages:
            if not self._is_on(connection) or self._over:
                break
            effects += self._on_message(message, now)
        if self._connection is not None and not self._over:
            effects += self._send(self._connection, self._outbox.due())  # answers have made room
        return effects

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        if isinstance(message, Welcome | Goodbye):
            self.stranger = None
        match message:
            case Welcome() if self._broker is None:
                return self._on_welcome(message, now)
            case Goodbye(farewell, reason):
                return self._on_goodbye(farewell, reason, now)
            case Deliveries() if self._broker is not None:
                return self._on_deliveries(message)
            case Portion() | Logged() | Saved() if self._broker is not None:
                return self._answer(self.ledger.logged.hear(message))
            case Ousted(number, reason) if self._broker is not None:
                return self.ledger.on_ousted(number, reason)
            case Accepted(upto, duplicates) if self._broker is not None:
                return self._on_accepted(upto, duplicates)
            case Heartbeat():
                return []
            case Lapse() if self._broker is not None:
                self._inbox.begin_doubt(BEYOND_DELTA, is_forgotten=False)
                return []
            case Confirmed(subscription, partial, token, born, seat) if self._broker is not None:
                told = self.ledger.on_confirmed(subscription, partial, token, born, seat)
                answer = told, self.ledger.logged.acknowledge(subscription.number)
                return [*self._answer(answer), *self._pause_if_full()]
            case Refused(subscription, problem, code) if self._broker is not None:
                return [*self.ledger.on_refused(subscription, problem, code), *self._resume_if_possible(now)]
            case Withdrawn(subscription) if self._broker is not None:
                return [*self.ledger.on_withdrawn(subscription), *self._pause_if_full()]
            case Rejected(n, problem, code) if self._broker is not None:
                return self.ledger.on_rejected(n, problem, code)
            case Upgraded(subscription, cleared, partial) if self._broker is not None:
                return self.ledger.on_upgraded(subscription, cleared, partial)
            case _:
                return self._drop(Farewell.PROTOCOL, f"unexpected {type(message).__name__}", now)

    def _on_welcome(self, welcome: Welcome, now: Instant) -> list[Effect]:
        session = self._session
        assert session is not None
        problem = heartbeat_problem(welcome.heartbeat_ns) or welcome_problem(welcome)
        expected = welcome.kind is Kind.BROKER and welcome.version == VERSION
        if not expected or welcome.session != self._session_seq:
            problem = f"a Welcome by a {welcome.kind}, version {welcome.version}, session {welcome.session}"
        if problem is not None:
            return self._drop(Farewell.PROTOCOL, problem, now)
        if self._features and welcome.invitation is not None:
            self.invitation = session.connection, welcome
            return []
        durable = [each.stream for each in welcome.streams if each.guarantee is Guarantee.DURABLE]
        if self._settings.is_member and durable:
            return self._give_up(durable[0])
        self._inbox.learn(welcome.streams)
        self._broker = welcome.node
        self._backoff.reset()
        settings = self._settings
        session.begin(now, settings.heartbeat_ns, welcome.heartbeat_ns, settings.detect_after_ns)
        effects: list[Effect] = [Ready(welcome.node, welcome.last_number)]
        again: list[Message] = [
            self._subscribe(number, subscription)
            for number, subscription in self._inbox.subscriptions.items()
        ]
        for number, ending in self.ledger.ending.items():
            # it has a name, and this broker may not know our number for it
            if ending.reading.durable is not None:
                again.append(self._subscribe(number, ending))
            again.append(Unsubscribe(self.ledger.id(number)))
        # What the broker may have had is sent all the same: only its answer tells accepted from rejected.
        self._outbox.begin()
        again += self._publishes(self._outbox.due())
        if again:
            effects.append(Send(session.connection, again))
        return effects + self._pause_if_full()

    def _on_goodbye(self, farewell: Farewell, reason: str, now: Instant) -> list[Effect]:
        assert self._session is not None
        closing: list[Effect] = [Close(self._session.connection, reason)]
        if farewell in FINAL:
            self._over = True
            return [*closing, Ended(farewell, reason)]
        return closing + self._lose(f"{farewell}: {reason}", now)

    # Publishing

    def _on_submit(self, publications: list[Publication], now: Instant) -> list[Effect]:
        self._outbox.submit(publications)
        if self._connection is None or not publications:
            return []
        due = self._outbox.due(publications)
        return [*self._send(self._connection, due), *self._resume_if_possible(now)]

    def _send(self, connection: int, publications: list[Publication]) -> list[Effect]:
        return [Send(connection, self._publishes(publications))] if publications else []

    def _publishes(self, publications: list[Publication]) -> list[Message]:
        """As messages to our broker, which learns our home if that is another."""
        assert self._broker is not None
        if publications and not self.ledger.home:
            self.ledger.home = self._broker
        home = "" if self.ledger.home == self._broker else self.ledger.home
        parts = self._outbox.by_heard(publications)
        return [message for heard, part in parts for message in publishes(part, home, heard)]

    def _on_accepted(self, upto: int, duplicates: tuple[int, ...]) -> list[Effect]:
        highest = self._outbox.accept(upto)
        return [*([Acknowledged(highest, duplicates)] if highest else []), *self._pause_if_full()]

    # Subscribing

    def _subscribe(self, number: int, subscription: Subscription) -> Subscribe:
        self._control_seq += 1
        vector = (Element(self.name, self._settings.incarnation, self._control_seq),)
        resume = subscription.reading.resume(subscription.acknowledging.places)
        return Subscribe(self.ledger.id(number), subscription.filter, vector, resume=resume)

    def _on_add(self, wish: AddSubscription, now: Instant) -> list[Effect]:
        added = self.ledger.add(wish)
        if self._connection is None:
            return []
        return [
            Send(self._connection, [self._subscribe(wish.number, added)]),
            *self._resume_if_possible(now),
        ]

    def _on_end(self, number: int, now: Instant, *, keep: bool) -> list[Effect]:
        last_words = self.ledger.end(number, keep=keep)
        if self._connection is None:
            return self.ledger.let_go()
        return [*self._answer(([], last_words)), *self._resume_if_possible(now)]

    # Deliveries

    def _on_deliveries(self, message: Deliveries) -> list[Effect]:
        return [*self._inbox.take(message), *self._pause_if_full()]

    def _pause_if_full(self) -> list[Effect]:
        if self._paused or self._connection is None or not self.ledger.is_full:
            return []
        self._paused = True
        return [Pause(self._connection)]

    def _on_consumed(self, number: int, count: int, logged: int, now: Instant) -> list[Effect]:
        self._inbox.consume(number, count)
        credit = self.ledger.logged.consume(number, logged)
        return [*self._answer(([], credit)), *self._resume_if_possible(now)]

    def _answer(self, answer: Answer) -> list[Effect]:
        """What the application hears, and the broker is told if it is there: a new session begins with all of it."""
        effects, messages = answer
        if not messages or self._connection is None:
            return effects
        return [Send(self._connection, messages), *effects]

    def _resume_if_possible(self, now: Instant) -> list[Effect]:
        if not self._paused or self._session is None or not self.ledger.has_room:
            return []
        self._paused = False
        self._session.hear(now)  # while nothing was read, nothing could be heard
        return [Resume(self._session.connection)]
