"""The logs keep what the lake does not have: a durable subscription that is acknowledged with every commit.

Without one a log gives up what its subscribers have acknowledged, whether or not the lake has taken it. With it the
release follows the table: never beyond what is in it, and never far behind.
"""

from __future__ import annotations

from holdfast.pipeline.acknowledging import Acknowledging
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.origins import Origins
from holdfast.runtime.network_file import Network
from holdfast.streams.checkpoint_token import Place, Token

__all__ = ["Keeping"]


class Keeping:
    """The subscription of one table; that of the stream orders under the name lake is called lake-orders."""

    def __init__(self, network: Network, table: LakeTable, origins: Origins, name: str) -> None:
        self._table = table
        self._origins = origins
        self._subscription = Acknowledging(network, table.stream, f"{name}-{table.stream}", None)

    def begin(self) -> None:
        """Have the subscription: made where the table ends, if it is not there.

        :raises BadOption, NoSubscription: as ``Acknowledging``.
        """
        if self._subscription.place() is None:
            self._subscription.make(self._place())

    def acknowledge(self) -> None:
        """What is in the table may go. To be said again and again, though nothing is new.

        A filter has one pattern, and a stream may have several, so the subscription is to everything; in the logs of
        other streams it is carried along whenever this is said, and would hold them up if it were not.

        :raises NoSubscription: if the subscription was ended.
        """
        self._subscription.acknowledge(self._place())

    def _place(self) -> Token:
        """How far the table goes; in pubends that it does not have, where their logs begin. Who is away, is later."""
        return Token(
            {
                pubend: Place(
                    end.incarnation, end.first if (place := self._table.place(pubend)) is None else place
                )
                for pubend, end in self._origins.reachable()[0].items()
            }
        )
