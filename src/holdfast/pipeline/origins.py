"""Where the pubends of a stream are read: at the log readers of their brokers, or in their folders.

A pubend's name says whose it is, so a task needs no more than this to find what it is to read, when it reads it. It is
made by the driver, from the network file, and travels with the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from holdfast.messages.streams import Guarantee
from holdfast.pipeline.errors import BadOption, NoPubend
from holdfast.pipeline.pages import Page, reach, read_page
from holdfast.pipeline.ranges import End, Ranges
from holdfast.pipeline.remote import RemoteRanges
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest
from holdfast.runtime.addresses import Address
from holdfast.runtime.broker_process import STORE_FOLDER
from holdfast.runtime.network_file import BrokerEntry, Network, NetworkFileError, read_network
from holdfast.streams.pubend_names import owner_in

__all__ = ["Origin", "Origins", "network_at", "origins_of"]

_WILDCARDS = ("0.0.0.0", "::")


class Origin(Protocol):
    """What the pubends of one broker are asked; raises what ``Ranges`` does."""

    def ends(self, stream: str) -> dict[str, End]:
        """How far they go."""

    def reach(self, request: ReachRequest) -> ReachAnswer:
        """How far so many events go."""

    def page(self, request: ReadRequest) -> Page:
        """Rows."""


class LocalRanges:
    """The pubends of a broker whose folder is here."""

    def __init__(self, folder: Path) -> None:
        self._ranges = Ranges(folder)

    def ends(self, stream: str) -> dict[str, End]:
        """How far they go."""
        return self._ranges.ends(stream)

    def reach(self, request: ReachRequest) -> ReachAnswer:
        """How far so many events go."""
        return reach(self._ranges, request)

    def page(self, request: ReadRequest) -> Page:
        """Rows."""
        return read_page(self._ranges, request)


@dataclass(slots=True)
class Origins:
    """By broker where it is read: an address, or a folder."""

    stream: str
    places: dict[str, Address | Path]
    _open: dict[str, Origin] = field(default_factory=dict)

    def __getstate__(self) -> tuple[str, dict[str, Address | Path]]:
        return self.stream, self.places

    def __setstate__(self, state: tuple[str, dict[str, Address | Path]]) -> None:
        self.stream, self.places = state
        self._open = {}

    def at(self, broker: str) -> Origin:
        """Who is asked of a broker's pubends."""
        if broker not in self._open:
            place = self.places.get(broker)
            if place is None:
                raise NoPubend(f"there is no broker {broker} in the network file")
            if isinstance(place, Path):
                self._open[broker] = LocalRanges(place)
            else:
                self._open[broker] = RemoteRanges(broker, place)
        return self._open[broker]

    def of(self, pubend: str) -> Origin:
        """Who is asked of a pubend."""
        return self.at(owner_in(pubend))

    def ends(self) -> dict[str, End]:
        """How far all pubends of the stream go."""
        return {
            pubend: end for broker in self.places for pubend, end in self.at(broker).ends(self.stream).items()
        }


def network_at(path: Path) -> Network:
    """What a network file says.

    :raises BadOption: if it cannot be used.
    """
    try:
        return read_network(path)
    except NetworkFileError as error:
        raise BadOption("network", str(error)) from error


def origins_of(network: Path, stream: str, *, local: bool) -> Origins:
    """Where a stream of a network file is read.

    :raises BadOption: if the file cannot be used, or says too little.
    """
    found = network_at(network)
    entry = next((each for each in found.streams if each.name == stream), None)
    if entry is None:
        names = ", ".join(each.name for each in found.streams)
        raise BadOption("stream", f"there is no stream {stream} in {network}; expected {names}")
    if entry.guarantee is not Guarantee.DURABLE:
        raise BadOption("stream", f"{stream} is {entry.guarantee}, and only durable streams are logged")
    if local:
        return Origins(stream, {each.name: each.data / STORE_FOLDER for each in found.brokers})
    silent = [each.name for each in found.brokers if each.reader is None]
    if silent:
        problem = f"{network} has no reader for {', '.join(silent)}"
        raise BadOption("network", f'{problem}; expected reader = "host:port" for each [[broker]]')
    return Origins(stream, {each.name: _dialled(each) for each in found.brokers})


def _dialled(broker: BrokerEntry) -> Address:
    """Where a log reader is dialled: one that listens everywhere, where its broker is."""
    assert broker.reader is not None
    host, port = broker.reader
    return Address(broker.address.host if host in _WILDCARDS else host, port)
