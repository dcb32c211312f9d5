"""Up to where the logs of a broker must go: what its tables say, read without disturbing it.

Tables belong to one process. So a copy of them is read, and before the logs are: a broker that runs beside us saves
where a log ends only after it has written it. A copy that cannot be read, since it was made while they changed, says
nothing; tables that are damaged keep the broker from starting, and are named then.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.errors import EnvironmentsFault
from holdfast.runtime.real_store import TABLES_FILE
from holdfast.storage.real_tables import RealTables
from holdfast.streams.ends import read_ends

__all__ = ["known_ends"]


def known_ends(folder: Path) -> Mapping[str, int]:
    """The last index each log in a folder has had on disk, by its name, as far as is known."""
    if not (folder / TABLES_FILE).exists():
        return {}
    with TemporaryDirectory() as copy, suppress(EnvironmentsFault, OSError):
        for path in folder.glob(f"{TABLES_FILE}*"):  # with what SQLite has not yet put into the file itself
            if not path.name.endswith(("-reserve", "-shm")):
                shutil.copyfile(path, Path(copy) / path.name)
        with RealTables(Path(copy) / TABLES_FILE) as tables:
            return read_ends({name: tables.read(name) for name in tables.names()}).by_folder()
    return {}
