"""One pubend at one broker, whichever: what is known of it, who else is told, and who is asked [BZA §3].

Knowledge comes from upstream, the next broker on the way to the pubend, or from the pubend's own log; it goes to
those who follow. What is missing is asked for once, whoever wants it. Where it all comes from and goes to is for the
``plane`` to say; here is what belongs to one pubend.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.broker.durable.hosted import Hosted
from holdfast.clock import Instant
from holdfast.events.event import Content
from holdfast.events.packed import unpack
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, ORIGIN, Items, Tick, Version
from holdfast.streams.curiosity import Curiosity
from holdfast.streams.istream import Receiver, Sender
from holdfast.streams.knowledge import Knowledge

__all__ = ["Course"]


class Course:
    """``is_own``: the pubend is here, and upstream is its log; and the lake, if there is one (``has_lake``)."""

    def __init__(self, pubend: str, stream: str, *, is_own: bool, has_lake: bool = False) -> None:
        self.pubend = pubend
        self.stream = stream
        self.is_own = is_own
        self.has_lake = has_lake
        self.is_known = False  #: the network has told us of it
        self.knowledge = Knowledge(pubend)
        self.curiosity = Curiosity(pubend)
        self.senders: dict[str, Sender] = {}  #: by the station that follows
        self.receivers: dict[str, Receiver] = {}  #: by the station that is followed
        self.upstream: str | None = None  #: whom we follow now
        self._contents: dict[Tick, Content] = {}  #: of events that came in this step
        self.is_reading = False  #: the log is being read; one reading at a time
        self.is_reading_lake = False  #: and one of the lake
        self.lake_problem = ""  #: why the lake could not be read, if it could not,
        self.lake_again_at: Instant = 0  #: and when it is tried again
        self.hosted = Hosted(self)  #: the subscribers here

    @property
    def is_wanted(self) -> bool:
        """Whether anybody wants to know of it."""
        return bool(self.senders) or self.hosted.is_wanted

    def ask(self, version: Version, spans: list[tuple[int, int]]) -> None:
        """Something is missing for ourselves."""
        if spans:
            self.curiosity.ask(None, spans, version)

    def edge_told(self) -> int:
        """Up to where anything was told of it, on whatever session."""
        if self.is_own:
            return self.knowledge.edge
        edges = [receiver.edge for receiver in self.receivers.values() if receiver.edge is not None]
        return max(edges, default=ORIGIN)

    def read(self, items: Items) -> None:
        """Read the events of items, before anything is believed of them.

        :raises MalformedEvent: if one cannot be read.
        """
        for tick, publication in zip(items.ticks, items.publications, strict=True):
            if publication is not None:
                self._contents[tick] = unpack(publication.event)

    def know_contents(self, ticks: Sequence[Tick], contents: Sequence[Content]) -> None:
        """What is in events that come in this step: they were read where they entered."""
        self._contents.update(zip(ticks, contents, strict=True))

    def contents(self, ticks: Sequence[Tick], publications: Sequence[Publication]) -> list[Content]:
        """What is in events: they were read when they came, or stood in our own log."""
        known = self._contents
        if not known:
            return [unpack(publication.event) for publication in publications]
        pairs = zip(ticks, publications, strict=True)
        return [known.get(tick) or unpack(publication.event) for tick, publication in pairs]

    def keep_versions(self) -> None:
        """Tell apart only the versions that somebody waits for, here or beyond."""
        constream = self.hosted.constream
        current = [] if constream is None else constream.versions
        told = [sender.covered_by for sender in self.senders.values()]
        self.knowledge.keep_versions([*current, *told, *self.curiosity.versions])

    def forget_contents(self) -> None:
        """The step is over."""
        self._contents.clear()

    def learn(self, items: Items) -> None:
        """Something is known that was not."""
        self.knowledge.add(items)
        self.curiosity.on_items(items)

    def become_version(self, station: str, under: Version, ours: Version) -> Items | None:
        """A follower wants more than it did; silence to be told first, if any."""
        sender = self.senders.get(station)
        if sender is None or under <= sender.under:
            return None
        silence, _ = sender.become_version(under, max(ours, sender.covered_by))
        return silence if len(silence) else None

    def follow(self, station: str, under: Version, ours: Version) -> Sender:
        """Somebody follows from now on, or anew."""
        self.curiosity.withdraw(station)
        sender = self.senders[station] = Sender(self.knowledge)
        if under:
            sender.become_version(under, ours)
        return sender

    def unfollow(self, station: str) -> None:
        """Somebody does not follow any more."""
        self.senders.pop(station, None)
        self.curiosity.withdraw(station)

    def on_gone(self, station: str) -> None:
        """A session is over."""
        self.unfollow(station)
        self.receivers.pop(station, None)
        if self.upstream == station:
            self.upstream = None

    def asked_by(self, station: str, version: Version, spans: list[tuple[int, int]]) -> None:
        """A follower asks."""
        sender = self.senders.get(station)
        if sender is not None:
            ours = ABSOLUTE if version == ABSOLUTE else sender.covering(version)
            self.curiosity.ask(station, spans, ours)
