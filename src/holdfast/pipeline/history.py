"""What was: the events of streams that a filter matches, from one moment to another, out of lake and logs together.

    for item in holdfast.history("orders/# WHERE price > 100", since="2026-01-31T00:00:00Z"):
        ...

Moments are those at which events were accepted, which is what ticks count. Items come in their order, over all pubends;
an event is what a durable subscriber would have got (its time to the microsecond, as tables have it), and where
something is lost there is a gap.

What reads tables is loaded when it is first used: it need not be installed for anything else.
"""

from __future__ import annotations

from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.pipeline.errors import NotInstalled
from holdfast.runtime.network_file import Network

if TYPE_CHECKING:
    from holdfast.pipeline.origin import From
    from holdfast.pipeline.past import History

__all__ = ["Moment", "check_installed", "history"]

#: RFC 3339 text, or a datetime that knows its zone.
Moment = str | datetime
_NEEDED: Final = ("pyarrow", "deltalake")


def check_installed(*others: str) -> None:
    """What reads and writes tables is there, and what else is needed.

    :raises NotInstalled: naming what is missing.
    """
    missing = [name for name in (*others, *_NEEDED) if find_spec(name) is None]
    if missing:
        names = " and ".join([*([", ".join(missing[:-1])] if missing[1:] else []), missing[-1]])
        raise NotInstalled(f"this needs {names}; pip install 'holdfast[spark]'")


def history(
    filter: str = "#",
    *,
    network: str | Path | Network = "network.toml",
    stream: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    read_from: From = "auto",
    local_segments: bool = False,
) -> History:
    """What a filter matches, of all durable streams that can have such topics, or of one.

    ``since`` is the first moment that is meant, ``until`` the first that is not any more; without them it is from the
    beginning, up to what is stable now. What was forgotten before the beginning is not mentioned; after ``since`` it is
    a gap. ``read_from``: ``auto``, the lake where the logs have forgotten; ``log`` or ``lake``, one of them alone.

    :raises FilterError: if the filter is none.
    :raises BadOption: naming what else will not do.
    :raises NotInstalled: if the extra ``spark`` is not there.
    """
    check_installed()
    from holdfast.pipeline.past import history_of

    return history_of(filter, network, stream, since, until, read_from, local=local_segments)
