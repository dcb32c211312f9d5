"""Where the history is: files of JSON Lines, the data folder of a broker, or a stream of a network."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from holdfast.errors import CallersFault
from holdfast.pipeline.cost.stretches import LocalTicks, RemoteTicks, Stretch, line_stretches
from holdfast.pipeline.ranges import Ranges
from holdfast.streams.pubend_names import owner_in

__all__ = ["history_bytes", "stretches_of"]

STORE: Final = "streams"  #: in a broker's data folder
COLUMNS: Final = ("kind", "tick", "topic", "time", "content_type", "payload", "attributes")
#: A log is divided into so many ranges at least, where Spark reads it.
RANGES_MIN: Final = 16


def stretches_of(paths: list[Path], stream: str | None, *, local_segments: bool = False) -> list[Stretch]:
    """What is to be read.

    :raises CallersFault: if a path is nothing of the kind.
    :raises EnvironmentsFault: if a log cannot be asked how far it goes.
    """
    found: list[Stretch] = []
    for path in paths:
        if not path.exists():
            raise CallersFault(f"{path}: there is no such file or folder")
        if path.is_dir():
            found += _of_broker(path, _needed(path, stream))
        elif path.suffix == ".toml":
            found += _of_network(path, _needed(path, stream), local_segments=local_segments)
        else:
            found += line_stretches(path)
    return found


def history_bytes(paths: list[Path]) -> int:
    """How much there is to read, about; what lies elsewhere counts for nothing."""
    sizes = [
        sum(each.stat().st_size for each in path.rglob("*.segment")) if path.is_dir() else path.stat().st_size
        for path in paths
        if path.exists()
    ]
    return sum(sizes)


def _needed(path: Path, stream: str | None) -> str:
    if stream is None:
        raise CallersFault(f"{path} has logs; expected --stream, to say which of its streams is meant")
    return stream


def _of_broker(folder: Path, stream: str) -> list[Stretch]:
    store = folder / STORE if (folder / STORE).is_dir() else folder
    ends = Ranges(store).ends(stream)
    if not ends:
        raise CallersFault(f"{folder}: no log of a stream {stream}; expected the data folder of a broker")
    return [LocalTicks(store, pubend, end.first, end.last) for pubend, end in ends.items()]


def _of_network(network: Path, stream: str, *, local_segments: bool) -> list[Stretch]:
    if find_spec("pyarrow") is None or find_spec("pyspark") is None:
        raise CallersFault(f"{network}: streams of a network need the extra: pip install 'holdfast[spark]'")
    from holdfast.pipeline.origins import origins_of
    from holdfast.pipeline.planning import ranges_between
    from holdfast.pipeline.reading import Task

    origins = origins_of(network, stream, local=local_segments)
    ends = origins.ends()
    first = {pubend: end.first for pubend, end in ends.items()}
    last = {pubend: end.last for pubend, end in ends.items()}
    task = Task(origins, COLUMNS, {}, None, "row", silence=False)
    stretches: list[Stretch] = []
    for pubend, after, upto in ranges_between(first, last, RANGES_MIN):
        place = origins.places[owner_in(pubend)]
        if isinstance(place, Path):
            stretches.append(LocalTicks(place, pubend, after, upto))
        else:
            stretches.append(RemoteTicks(task, pubend, after, upto))
    return stretches
