"""The disk work of a simulated node: the store of ``streams``, on a disk that forgets, in virtual time.

What a core asks for within one instant is a turn of its lane; it takes a moment, drawn by the seed, and what is asked
for meanwhile is the next. A turn is carried out at its end: nobody can see whether its bytes were written earlier.
Except in a crash. So when the node crashes with a turn under way, the turn is carried out then, up to an operation of
the disk drawn by the seed, before it or after it, where the power goes: between append, sync and metadata. What was not
synced the disk forgets or tears; a transaction of the tables happened or did not; or everything was done, and only
nobody heard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from holdfast.clock import MICROSECOND
from holdfast.simulator.clock import VirtualClock
from holdfast.simulator.disk import SimulatedDisk
from holdfast.simulator.lake import SimulatedLake
from holdfast.storage.files import Files, Subfolder
from holdfast.storage.log import LogSettings
from holdfast.storage.tables import Change, SimulatedTables
from holdfast.streams.store import LANES, Lane, Store
from holdfast.streams.storing import ChopEvents, DiskEffect, DiskInput, Recovered

__all__ = ["SimulatedStore"]

COMMIT_NS: Final = 1_000 * MICROSECOND
READ_NS: Final = 200 * MICROSECOND
JITTER: Final = 0.5  #: a turn takes so much more or less, at most
HALVES_MAX: Final = (
    5  #: a crash comes within 2 to the power of this many half operations of a turn, mostly sooner
)


class SimulatedStore:
    """A node's store; it outlives crashes, as its disk, tables and lake do. ``hand`` takes inputs for the core."""

    def __init__(
        self,
        clock: VirtualClock,
        disk: SimulatedDisk,
        random: Random,
        hand: Callable[[DiskInput], None],
        settings: LogSettings | None = None,
        lake: SimulatedLake | None = None,
    ) -> None:
        self.lake = lake
        self.tables = SimulatedTables()
        self.recovered = Recovered()  #: what was found at the last start
        self._clock = clock
        self._random = random
        self._hand = hand
        self._settings = settings
        self._power = _Power()
        self._folders = _Folders(_PoweredFiles(disk, self._power))
        self._powered_tables = _PoweredTables(self.tables, self._power)
        self._life: _Life | None = None

    def start(self) -> None:
        """Begin a life: open what there is, and say so in ``recovered``.

        :raises NoLog, DiskFailed: as ``Store.recover``.
        """
        assert self._life is None
        store = Store(self._folders, self._powered_tables, self._identity, self._settings, self.lake)
        self.recovered = store.recover()
        self._life = _Life(store)

    def submit(self, effect: DiskEffect) -> None:
        """Have something done, in the next turn of its lane."""
        life = self._life
        assert life is not None, "the node is down"
        lane = LANES[type(effect)]
        life.waiting[lane].append(effect)
        if lane not in life.turns:
            life.turns[lane] = ()
            self._clock.at(self._clock.now, self._begin, (life, lane))

    def crash(self) -> None:
        """End a life in the midst of whatever is under way; the disk itself is to be crashed next."""
        life, self._life = self._life, None
        assert life is not None
        for lane, effects in life.turns.items():
            self._power.goes_in = self._random.randrange(1 << self._random.randint(0, HALVES_MAX))
            with suppress(_PowerCut):
                life.store.turn(lane, effects)
                life.store.rest(lane)
            self._power.goes_in = -1

    def _begin(self, begun: tuple[_Life, Lane]) -> None:
        life, lane = begun
        if life is self._life:
            effects, life.waiting[lane] = life.waiting[lane], []
            life.turns[lane] = effects
            self._fill_lake(life, effects)
            mean = READ_NS if lane is Lane.READS else COMMIT_NS
            takes = int(mean * self._random.uniform(1 - JITTER, 1 + JITTER))
            self._clock.at(self._clock.now + takes, self._finish, begun)

    def _fill_lake(self, life: _Life, effects: Sequence[DiskEffect]) -> None:
        """Release follows the lake: it has taken whatever a log is about to give up."""
        if self.lake is not None:
            for effect in effects:
                if isinstance(effect, ChopEvents):
                    self.lake.take(life.store, effect.pubend)

    def _finish(self, begun: tuple[_Life, Lane]) -> None:
        life, lane = begun
        if life is not self._life:
            return  # of a former life
        for stimulus in (*life.store.turn(lane, life.turns[lane]), *life.store.rest(lane)):
            self._hand(stimulus)
        if life.waiting[lane]:
            self._begin(begun)
        else:
            del life.turns[lane]

    def _identity(self) -> bytes:
        return self._random.randbytes(16)


class _Life:
    """From a start to a crash: ``turns`` are under way, one at most for each lane."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting: dict[Lane, list[DiskEffect]] = {lane: [] for lane in Lane}
        self.turns: dict[Lane, Sequence[DiskEffect]] = {}


class _PowerCut(BaseException):
    """The power went; nothing in the program may notice."""


class _Power:
    """Goes after so many half operations; with -1 it stays."""

    def __init__(self) -> None:
        self.goes_in = -1

    def operate(self, operation: Callable[[], None]) -> None:
        """Do something that can be cut short before it has happened, and after."""
        self._pass_half()
        operation()
        self._pass_half()

    def _pass_half(self) -> None:
        if self.goes_in == 0:
            raise _PowerCut
        if self.goes_in > 0:
            self.goes_in -= 1


class _PoweredTables:
    """Tables that change while there is power."""

    def __init__(self, tables: SimulatedTables, power: _Power) -> None:
        self.names = tables.names
        self.read = tables.read
        self._tables = tables
        self._power = power

    def apply(self, changes: Sequence[Change]) -> None:
        """All or none, and possibly without anybody hearing of it."""
        self._power.operate(lambda: self._tables.apply(changes))


class _PoweredFiles:
    """Files of a disk that works while there is power."""

    def __init__(self, disk: SimulatedDisk, power: _Power) -> None:
        self.read = disk.read
        self.size = disk.size
        self.state = disk.state
        self.names = disk.names
        self.room = disk.room
        self._disk = disk
        self._operate = power.operate

    def append(self, name: str, *pieces: bytes) -> None:
        """As the disk."""
        self._operate(lambda: self._disk.append(name, *pieces))

    def append_stable(self, name: str, *pieces: bytes) -> None:
        """One after the other: the power may go between them."""
        self.append(name, *pieces)
        self.sync(name)

    def prepare(self, name: str, room: int) -> None:
        """As the disk, one after the other."""
        self._operate(lambda: self._disk.write_zeros(name, room))
        self.sync(name)

    def sync(self, name: str) -> None:
        """As the disk."""
        self._operate(lambda: self._disk.sync(name))

    def truncate(self, name: str, size: int) -> None:
        """As the disk."""
        self._operate(lambda: self._disk.truncate(name, size))

    def rewrite(self, name: str, offset: int) -> None:
        """As the disk."""
        self._operate(lambda: self._disk.rewrite(name, offset))

    def replace(self, name: str, data: bytes) -> None:
        """As the disk."""
        self._operate(lambda: self._disk.replace(name, data))

    def remove(self, name: str) -> None:
        """As the disk."""
        self._operate(lambda: self._disk.remove(name))


class _Folders:
    """Folders of one disk, by the names of their files."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def names(self) -> list[str]:
        """Those of which there is a file."""
        return sorted({name.split("/")[0] for name in self._files.names() if "/" in name})

    def files(self, name: str) -> Files:
        """One of them; what is the same is the disk beneath."""
        return Subfolder(self._files, name)
