"""Up to where the logs of a broker must go: what its tables say, read without disturbing it.

They are read before the logs are: a broker that runs beside us saves where a log ends only after it has written it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from holdfast.errors import EnvironmentsFault
from holdfast.runtime.tables_copy import TablesCopy
from holdfast.streams.ends import read_ends

__all__ = ["known_ends"]


def known_ends(folder: Path) -> Mapping[str, int]:
    """The last index each log in a folder has had on disk, by its name, as far as is known."""
    with suppress(EnvironmentsFault):
        return read_ends(TablesCopy(folder).read() or {}).by_folder()
    return {}
