"""Where the pubends of a stream are read: at the log readers of their brokers, or in their folders; and in the lake.

A pubend's name says whose it is, so a task needs no more than this to find what it is to read, when it reads it. It is
made by the driver, from the network file, and travels with the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from holdfast.errors import EnvironmentsFault
from holdfast.messages.streams import Guarantee
from holdfast.messages.ticks import ORIGIN
from holdfast.pipeline.errors import BadOption, NoPubend
from holdfast.pipeline.lake.auto import AutoRanges, joined_ends
from holdfast.pipeline.lake.ranges import LakeRanges
from holdfast.pipeline.origin import From, Logs, Origin
from holdfast.pipeline.pages import Page, read_page
from holdfast.pipeline.portions import reach
from holdfast.pipeline.ranges import End, Ranges, Silence
from holdfast.pipeline.remote import RemoteRanges
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest
from holdfast.runtime.addresses import Address
from holdfast.runtime.broker_process import STORE_FOLDER
from holdfast.runtime.network_file import BrokerEntry, Network, NetworkFileError, read_network
from holdfast.streams.pubend_names import owner_in

__all__ = ["Origins", "network_at", "origins_in", "origins_of"]

_WILDCARDS = ("0.0.0.0", "::")


class LocalRanges:
    """The pubends of a broker whose folder is here."""

    def __init__(self, folder: Path) -> None:
        self._ranges = Ranges(folder)

    def ends(self, stream: str) -> dict[str, End]:
        """How far they go."""
        return self._ranges.ends(stream)

    def silence(self, stream: str) -> Silence:
        """Up to where no more comes."""
        return self._ranges.silence(stream)

    def reach(self, request: ReachRequest) -> ReachAnswer:
        """How far so many events go."""
        return reach(self._ranges, request)

    def page(self, request: ReadRequest) -> Page:
        """Rows."""
        return read_page(self._ranges, request)


@dataclass(slots=True)
class Origins:
    """By broker where it is read, an address or a folder; and the table of the stream, if it is read too."""

    stream: str
    places: dict[str, Address | Path]
    table: Path | None = None
    _open: dict[str, Origin] = field(default_factory=dict)
    _logs: dict[str, Logs] = field(default_factory=dict)
    _lake: LakeRanges | None = None

    def __getstate__(self) -> tuple[str, dict[str, Address | Path], Path | None]:
        return self.stream, self.places, self.table

    def __setstate__(self, state: tuple[str, dict[str, Address | Path], Path | None]) -> None:
        self.stream, self.places, self.table = state
        self._open, self._logs = {}, {}
        self._lake = None

    @property
    def lake(self) -> LakeRanges | None:
        """The table, as something to read."""
        if self._lake is None and self.table is not None:
            self._lake = LakeRanges(self.table, self.stream, is_needed=not self.places)
        return self._lake

    def of(self, pubend: str) -> Origin:
        """Who is asked of a pubend; the lake alone, of one whose broker is not in the network file any more."""
        broker = owner_in(pubend)
        if broker not in self._open:
            place, lake = self.places.get(broker), self.lake
            if place is None:
                if lake is None:
                    raise NoPubend(f"there is no broker {broker} in the network file")
                self._open[broker] = lake
            else:
                log = self._log(broker, place)
                self._open[broker] = log if lake is None else AutoRanges(log, lake)
        return self._open[broker]

    def ends(self) -> dict[str, End]:
        """How far all pubends of the stream go."""
        logged = {
            pubend: end
            for broker, place in self.places.items()
            for pubend, end in self._log(broker, place).ends(self.stream).items()
        }
        return logged if self.lake is None else joined_ends(logged, self.lake.ends(self.stream))

    def silence(self) -> Silence:
        """Up to where no more events come at any broker; the lake alone never says so."""
        found = [self._log(broker, place).silence(self.stream) for broker, place in self.places.items()]
        logged = {pubend: end for each in found for pubend, end in each.pubends.items()}
        pubends = logged if self.lake is None else joined_ends(logged, self.lake.ends(self.stream))
        return Silence(min((each.upto for each in found), default=ORIGIN), pubends)

    def reachable(self) -> tuple[dict[str, End], dict[str, EnvironmentsFault]]:
        """How far the logs go; and by broker what is wrong with those that do not say."""
        found: dict[str, End] = {}
        problems: dict[str, EnvironmentsFault] = {}
        for broker, place in self.places.items():
            try:
                found |= self._log(broker, place).ends(self.stream)
            except EnvironmentsFault as problem:
                problems[broker] = problem
        return found, problems

    def _log(self, broker: str, place: Address | Path) -> Logs:
        """Who is asked of a broker's log."""
        if broker not in self._logs:
            self._logs[broker] = (
                LocalRanges(place) if isinstance(place, Path) else RemoteRanges(broker, place)
            )
        return self._logs[broker]


def network_at(path: Path) -> Network:
    """What a network file says.

    :raises BadOption: if it cannot be used.
    """
    try:
        return read_network(path)
    except NetworkFileError as error:
        raise BadOption("network", str(error)) from error


def origins_of(network: Path, stream: str, *, local: bool, source: From = "log") -> Origins:
    """Where a stream of a network file is read: its logs, its table, or both.

    :raises BadOption: if the file cannot be used, or says too little.
    """
    return origins_in(network_at(network), stream, local=local, source=source)


def origins_in(found: Network, stream: str, *, local: bool, source: From = "log") -> Origins:
    """The same, of a network file that is read already.

    :raises BadOption: if it says too little.
    """
    entry = next((each for each in found.streams if each.name == stream), None)
    if entry is None:
        names = ", ".join(each.name for each in found.streams)
        raise BadOption("stream", f"there is no stream {stream} in {found.path}; expected {names}")
    if entry.guarantee is not Guarantee.DURABLE:
        raise BadOption("stream", f"{stream} is {entry.guarantee}, and only durable streams are logged")
    table = None if source == "log" else found.lake / stream
    if source == "lake":
        return Origins(stream, {}, table)
    if local:
        return Origins(stream, {each.name: each.data / STORE_FOLDER for each in found.brokers}, table)
    silent = [each.name for each in found.brokers if each.reader is None]
    if silent:
        problem = f"{found.path} has no reader for {', '.join(silent)}"
        raise BadOption("network", f'{problem}; expected reader = "host:port" for each [[broker]]')
    return Origins(stream, {each.name: _dialled(each) for each in found.brokers}, table)


def _dialled(broker: BrokerEntry) -> Address:
    """Where a log reader is dialled: one that listens everywhere, where its broker is."""
    assert broker.reader is not None
    host, port = broker.reader
    return Address(broker.address.host if host in _WILDCARDS else host, port)
