"""The links between hosts: what each direction does to what crosses it, and whether it is cut."""

from __future__ import annotations

from random import Random

from holdfast.scenarios.topology import DEFAULT_QUALITY, LinkQuality

__all__ = ["Link", "Links"]


class Link:
    """One direction between two hosts. Connections over it come and go; its quality and its being cut stay."""

    __slots__ = ("is_cut", "quality")

    def __init__(self, quality: LinkQuality = DEFAULT_QUALITY) -> None:
        self.quality = quality
        self.is_cut = False

    def draw_delay(self, random: Random) -> int:
        """How long something takes to cross now."""
        quality = self.quality
        if quality.jitter_ns:
            return quality.delay_ns + random.randint(0, quality.jitter_ns)
        return quality.delay_ns


class Links:
    """All links, by the names of their hosts; one that was never spoken of is as the default has it."""

    def __init__(self) -> None:
        self._links: dict[tuple[str, str], Link] = {}

    def forget(self, name: str) -> None:
        """A host is gone for good."""
        self._links = {pair: link for pair, link in self._links.items() if name not in pair}

    def link(self, sender: str, receiver: str) -> Link:
        """The link in one direction, by the names of its hosts."""
        found = self._links.get((sender, receiver))
        if found is None:
            found = self._links[sender, receiver] = Link()
        return found

    def set_quality(self, sender: str, receiver: str, quality: LinkQuality) -> None:
        """Change one direction of a link, for whatever is sent from now on."""
        self.link(sender, receiver).quality = quality

    def cut(self, a: str, b: str) -> None:
        """Let everything between two hosts vanish."""
        self.link(a, b).is_cut = self.link(b, a).is_cut = True

    def heal(self, a: str, b: str | None = None) -> None:
        """Undo cuts between two hosts, or all those of one."""
        for (sender, receiver), link in self._links.items():
            if a in (sender, receiver) and (b is None or b in (sender, receiver)):
                link.is_cut = False
