"""The sockets of one driver: those it listens on, those it dials, and the links over them.

What happens on them becomes inputs of the core, handed to ``submit``. A link lives longer than the core's interest in
it: ``open`` holds those the core knows, ``_links`` every socket there is, those we are parting from too.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from holdfast.messages.message import Message
from holdfast.messages.session import Farewell
from holdfast.overlay.transport import Connected, ConnectFailed, Disconnected, Received
from holdfast.runtime.addresses import Address, BadAddress, parse_address, resolve, words_of
from holdfast.runtime.faults import Faults
from holdfast.runtime.link import Link, LinkLimits

__all__ = ["Connections", "listening_socket"]

CONNECT_SECONDS: Final = 5.0
CLOSE_SECONDS: Final = 2.0  #: how long peers have to close their side when we stop
BACKLOG: Final = 1024

#: When so much was read since the last turn, the next is at once: uvloop would read 8 MB from each connection first,
#: and whoever wants to read no more of one could not say so.
UNSERVED_BYTES_MAX: Final = 1024 * 1024


async def listening_socket(host: str, port: int, *, insecure: bool = False) -> socket.socket:
    """A socket that has its port, 0 being any free one; who dials it waits until somebody serves it.

    :raises BadAddress: unless it is loopback, or insecurity is allowed.
    :raises OSError: if it cannot be had.
    """
    address = await resolve(parse_address(str(Address(host, port)), insecure=insecure))
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # asyncio lets small writes leave at once only where the protocol is named, which socket.create_server does not.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class Connections:
    """All connections of a node, and the owner of their links."""

    def __init__(
        self,
        submit: Callable[[Any], None],
        turn: Callable[[], None],
        log: Callable[[str, str, Mapping[str, Any]], None],
        *,
        faults: Faults | None,
        limits: LinkLimits,
        links_max: int,
        insecure: bool,
    ) -> None:
        self.open: dict[int, Link] = {}
        self.unserved_bytes = 0  #: of messages that arrived since the last turn
        self._submit = submit
        self._turn = turn
        self._log = log
        self._faults = faults
        self._limits = limits
        self._links_max = links_max
        self._insecure = insecure
        self._links: dict[int, Link] = {}
        self._last_connection = 0
        self._dialling: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._is_refusing = False
        self._a_link_is_gone = asyncio.Event()

    def __len__(self) -> int:
        """How many sockets are open, those being closed included."""
        return len(self._links)

    @property
    def queued_bytes(self) -> int:
        """What waits in all links for peers to read."""
        return sum(link.queued_bytes for link in self._links.values())

    async def listen(self, host: str, port: int) -> int:
        """Accept connections; returns the port.

        :raises BadAddress: unless it is loopback, or insecurity is allowed.
        :raises OSError: if it cannot be had.
        """
        listener = await listening_socket(host, port, insecure=self._insecure)
        await self.serve(listener)
        return int(listener.getsockname()[1])

    async def serve(self, listener: socket.socket) -> None:
        """Accept connections on a socket that listens; it is closed with the others."""
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_server(self._new_link, sock=listener, backlog=BACKLOG))

    def dial(self, peer: str, address: str) -> None:
        """Connect; ``Connected`` or ``ConnectFailed`` is submitted."""
        task = asyncio.get_running_loop().create_task(self._connect(peer, address))
        self._dialling.add(task)
        task.add_done_callback(self._dialling.discard)

    async def _connect(self, peer: str, address: str) -> None:
        links: list[Link] = []  #: one, if it comes to that

        def new_link() -> Link:
            links.append(self._new_link(peer, address))
            return links[-1]

        try:
            if self._faults is not None and self._faults.is_cut(peer, self._faults.at(address)):
                raise OSError("cut off")
            host, port = parse_address(address, insecure=self._insecure)
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(CONNECT_SECONDS):
                await loop.create_connection(new_link, host, port)
        except TimeoutError:
            if not self._drop_answered(links):
                self._submit(ConnectFailed(peer, f"{address}: no answer within {CONNECT_SECONDS:g} s"))
        except asyncio.CancelledError:
            self._drop_answered(links)
            raise
        except BadAddress as error:
            self._submit(ConnectFailed(peer, str(error)))
        except OSError as error:
            self._submit(ConnectFailed(peer, f"{address}: {words_of(error)}"))
        except UnicodeError as error:
            self._submit(ConnectFailed(peer, f"{address}: {error}"))

    def _drop_answered(self, links: list[Link]) -> bool:
        """Whether a dial that is given up was answered just now. The loop has closed that; uvloop does not say so."""
        answered = [link for link in links if link.connection in self._links]
        for link in answered:
            link.connection_lost(None)
        return bool(answered)

    def close(self, link: Link, reason: str) -> None:
        """The core wants no more of a connection; the next flush closes it."""
        del self.open[link.connection]
        self._say("info", "connection closed", link, reason)
        link.close()

    def stop_listening(self) -> None:
        """Accept nothing any more."""
        self._is_refusing = True
        for server in self._servers:
            server.close()

    def abort(self) -> None:
        """Break all connections."""
        for link in list(self._links.values()):
            link.abort()

    async def close_all(self) -> None:
        """Close what is open, and wait until it is; leave no task and no socket behind."""
        self.stop_listening()
        for task in self._dialling:
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        self.open.clear()
        for link in list(self._links.values()):
            if link.cut:
                link.abort()
            else:
                link.close()
                link.flush()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._wait_no_link()
        except TimeoutError:
            self.abort()
            await self._wait_no_link()
        for server in self._servers:
            await server.wait_closed()

    async def _wait_no_link(self) -> None:
        while self._links:
            self._a_link_is_gone.clear()
            await self._a_link_is_gone.wait()

    # What the links call.

    def _new_link(self, peer: str | None = None, dialled: str | None = None) -> Link:
        self._last_connection += 1
        return Link(self, self._last_connection, peer, dialled, self._limits)

    def on_open(self, link: Link) -> None:
        """A connection stands."""
        self._links[link.connection] = link
        if self._is_refusing or len(self._links) > self._links_max:
            problem = "stopping" if self._is_refusing else f"more than {self._links_max} connections"
            self._say("warning", "connection refused", link, problem)
            link.abort()
            return
        self.open[link.connection] = link
        self._apply_faults(link)
        self._submit(Connected(link.connection, link.peer))

    def on_named(self, link: Link) -> None:
        """The peer has said who it is."""
        if self._faults is not None and link.dialled is not None and link.node is not None:
            self._faults.note(link.dialled, link.node)
        self._apply_faults(link)

    def on_messages(self, link: Link, messages: list[Message], size: int) -> None:
        """Messages arrived: one ``Received`` per link and turn."""
        self.unserved_bytes += size
        if link.arrived is None:
            link.arrived = messages
            self._submit(Received(link.connection, messages))
        else:
            link.arrived += messages
        if self.unserved_bytes > UNSERVED_BYTES_MAX:
            self._turn()

    def on_lost(self, link: Link, reason: str, farewell: Farewell | None) -> None:
        """A connection broke, or the link gave its peer up."""
        if farewell is None:
            self._say("info", "connection lost", link, reason)
        else:
            self._say("warning", f"peer given up, {farewell}", link, reason)
        self._submit(Disconnected(link.connection, reason))

    def on_gone(self, link: Link) -> None:
        """A socket is closed."""
        self._links.pop(link.connection, None)
        self._a_link_is_gone.set()

    def _say(self, level: str, text: str, link: Link, reason: str) -> None:
        self._log(level, text, {"peer": link.name, "address": link.address, "reason": reason})

    # What the Puppet Master calls.

    def cut(self, names: Iterable[str]) -> None:
        """Black-hole the connections with these nodes; needs ``faults``."""
        assert self._faults is not None, "cut is for drivers with faults"
        self._faults.cut(names)
        for link in self._links.values():
            self._apply_faults(link)

    def heal(self, names: Iterable[str]) -> None:
        """Undo ``cut``."""
        assert self._faults is not None, "heal is for drivers with faults"
        self._faults.heal(names)
        for link in list(self._links.values()):
            if not self._is_cut(link):
                link.heal()

    def _apply_faults(self, link: Link) -> None:
        link.cut = link.cut or self._is_cut(link)

    def _is_cut(self, link: Link) -> bool:
        if self._faults is None:
            return False
        answers = None if link.dialled is None else self._faults.at(link.dialled)
        return self._faults.is_cut(link.node, link.peer, answers)
