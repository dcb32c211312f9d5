"""A publisher in a process of its own: it keeps its pace whatever the subscribers have to read.

When an event was sent stands in memory that both processes share; their clock is the same.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Mapping, MutableSequence
from contextlib import suppress
from multiprocessing.connection import Connection

from holdfast.bench.closing import Closing
from holdfast.bench.durable_load import DurableLoad
from holdfast.bench.durable_reception import FIRST
from holdfast.bench.durable_wire import Publisher
from holdfast.bench.network_wire import PUBLISHER, BenchFailed

__all__ = ["Pacer"]


class Pacer(Closing):
    """The publisher at a broker, seen from the one who measures; it has so many events at most."""

    def __init__(self, port: int, events_max: int) -> None:
        context = multiprocessing.get_context("spawn")
        stamps = context.RawArray("q", events_max)
        self.sent_at: Mapping[int, int] = _SentAt(stamps)
        self._answers, theirs = context.Pipe()
        self._process = context.Process(target=_publish, args=(port, theirs, stamps), daemon=True)
        self._process.start()
        theirs.close()
        self.wait()

    def begin(self, per_second: float, events: int) -> None:
        """Have events published one by one; ``wait`` waits for the last receipt."""
        self._answers.send((per_second, events))

    def wait(self) -> None:
        """Wait until it is ready for more.

        :raises BenchFailed: if it failed, or is gone.
        """
        try:
            problem = self._answers.recv()
        except EOFError:
            self._process.join()
            problem = f"it ended with status {self._process.exitcode}"
        if problem is not None:
            raise BenchFailed(f"{PUBLISHER}: {problem}")

    def close(self) -> None:
        """End it, and wait until it has."""
        self._answers.close()
        self._process.join()


class _SentAt(Mapping[int, int]):
    """When each number was sent, in ns; 0 if it was not."""

    def __init__(self, stamps: MutableSequence[int]) -> None:
        self._stamps = stamps

    def __getitem__(self, n: int) -> int:
        return self._stamps[n - FIRST]

    def __iter__(self) -> Iterator[int]:
        return iter(range(FIRST, FIRST + len(self._stamps)))

    def __len__(self) -> int:
        return len(self._stamps)


def _publish(port: int, asked: Connection, stamps: MutableSequence[int]) -> None:
    """The process: does what it is asked for, and says when it is ready for more, or what went wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who measures; this ends when it does
    try:
        with DurableLoad(Publisher(port, PUBLISHER), (), 0) as load:
            asked.send(None)
            while True:
                per_second, events = asked.recv()
                _pace(load, per_second, events, stamps)
                asked.send(None)
    except EOFError:
        return  # nobody asks any more
    except (BenchFailed, OSError) as error:
        with suppress(OSError):  # nobody is there to hear it
            asked.send(str(error))


def _pace(load: DurableLoad, per_second: float, events: int, stamps: MutableSequence[int]) -> None:
    def note(n: int, at_ns: int) -> None:
        stamps[n - FIRST] = at_ns

    upto = load.next + events
    load.pace(per_second, lambda: load.next < upto, note)
    load.wait_current()
