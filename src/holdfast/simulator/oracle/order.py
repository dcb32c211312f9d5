"""I6: nothing overtakes: first copies have rising numbers, and nothing earlier for a peer waits unsent [B0.9]."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.messages.overlay import Relay
from holdfast.node.trails import numbered
from holdfast.simulator.oracle.annals import Annals, Law, Said, Step

__all__ = ["HeadOfLine"]


class HeadOfLine(Law):
    """By connection what was sent on it, and up to where nothing earlier was left out."""

    def __init__(self, annals: Annals) -> None:
        super().__init__(annals)
        self._sent: dict[int, set[int]] = {}
        self._whole: dict[int, int] = {}
        self._first_sent: dict[int, int] = {}  #: by connection the last

    def judge(self, step: Step) -> Iterator[str]:
        """Of the publications that are sent."""
        latest: dict[int, tuple[str, int]] = {}
        for said in step.said:
            if not isinstance(said.message, Relay) or said.message.refill:
                continue
            own = [column for each, column in numbered(said.message.trail) if each.node == step.name]
            column = own[-1] if own else [0]
            if not said.message.again:
                yield from self._is_rising(step, said, column)
            self._sent.setdefault(said.connection, set()).update(column)
            latest[said.connection] = said.peer, max(column[-1], latest.get(said.connection, ("", 0))[1])
        for connection, (peer, upto) in latest.items():
            yield from self._is_whole(step, connection, peer, upto)

    def _is_rising(self, step: Step, said: Said, column: list[int]) -> Iterator[str]:
        before = self._first_sent.get(said.connection, 0)
        if column[0] <= before:
            yield f"I6: {step.name} sent {said.peer} its {column[0]} for the first time, after {before}"
        self._first_sent[said.connection] = max(before, column[-1])

    def _is_whole(self, step: Step, connection: int, peer: str, upto: int) -> Iterator[str]:
        """Whether everything for this peer, up to a number, has been sent on this connection or is safe."""
        station = step.node.reach.get(peer)
        if station is None:
            return
        sent, whole = self._sent[connection], self._whole.get(connection, 0)
        for segment in reversed(step.node.plane.queue.values()):
            if segment.first <= whole:
                break
            if segment.first > upto or (share := segment.take_for(station)) is None:
                continue
            if missing := [segment.first + i for i in share.at if segment.first + i not in sent]:
                yield f"I6: {step.name} sent {peer} its {upto} before {missing[0]}"
        self._whole[connection] = max(whole, upto)
