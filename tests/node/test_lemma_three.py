"""Lemma 3, executable: what crosses a large fragment says so, and after a barred tag nothing is missing [KJ §7].

R0.57, I11, over random chains cut in two while a subscription is made: by crashes or by cuts, healed in any order.
"""

from __future__ import annotations

from random import Random

import pytest
from harness import Delivery, Net
from schedules import leftovers


class Parted:
    """A random chain whose middle fails for a while, node by node or link by link, with a subscription meanwhile."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random = Random(seed)
        self.delta = delta = random.choice((1, 1, 2))
        before, after = random.randint(1, 3), random.randint(1, 3)
        fragment = [f"F{i}" for i in range(random.randint(delta + 1, delta + 2))]
        chain = [*(f"A{i}" for i in range(before)), *fragment, *(f"Z{i}" for i in range(after))]
        self.net = Net(f"S-{'-'.join(chain)}-P A0-T", delta, dack_every_ms=random.choice((200, 1000)))
        self.fragment = fragment
        self.last_near, self.first_far = chain[before - 1], chain[before + len(fragment)]

    def run(self) -> None:
        net, random = self.net, self.random
        net.subscribe("T", 1, "# WHERE k = 1")
        net.run(1000)
        links = list(zip([self.last_near, *self.fragment], [*self.fragment, self.first_far], strict=True))
        by_link = random.random() < 0.5
        if by_link:
            for name in self.fragment:
                net.world.isolate(name)
        else:
            net.crash(*self.fragment)
        self.busy(random.randint(1000, 1800))
        net.subscribe("S")
        self.busy(random.randint(100, 800))
        repairs = list(self.fragment)
        random.shuffle(repairs)
        for name in repairs:
            if by_link:
                net.world.network.heal(name)
            else:
                net.restart(name)
            self.busy(random.choice((30, 300, 1200)))
        assert links
        self.busy(3000)
        net.run(4000)

    def busy(self, ms: int) -> None:
        end = self.net.now + ms
        while self.net.now < end:
            self.net.run(self.random.randint(5, 60))
            self.net.publish("P", k=self.random.choice((1, 2)))

    def problems(self) -> list[str]:
        net, found = self.net, []
        partitions = net.partial("S")
        deliveries = net.memories["S"].deliveries
        full_at = net.full_at("S")
        if full_at is None:
            return ["never FULL"]
        keys = {(each.lead, each.incarnation, each.number) for each in partitions}
        for _, _, _, left in net.memories["S"].upgraded:
            keys |= {(each.lead, each.incarnation, each.number) for each in left}
        for each in deliveries:
            if each.at < full_at and not any(
                (tag.lead, tag.incarnation, tag.number) in keys for tag in each.tags
            ):
                found.append(
                    f"{each.event} came untagged at {net.ms(each.at)}, FULL was at {net.ms(full_at)}"
                )
        for key in keys:
            bars = [
                tag.bar
                for each in deliveries
                for tag in each.tags
                if (tag.lead, tag.incarnation, tag.number) == key
            ]
            if bars != sorted(bars):
                found.append(f"after \\bar of {key} a plain one")
        return found + self.dropped(deliveries)

    def dropped(self, deliveries: list[Delivery]) -> list[str]:
        """After the first with nothing but bars, or published after FULL, none may be missing."""
        full_at = self.net.full_at("S")
        assert full_at is not None
        times = self.net.memories["P"].published_at
        starts = [each.event.n for each in deliveries if each.tags and all(tag.bar for tag in each.tags)]
        starts += [event.n for event, at in times.items() if at > full_at]
        got = {each.event.n for each in deliveries}
        return [
            f"P#{event.n} was dropped" for event in times if event.n >= min(starts) and event.n not in got
        ]


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_kj7_lemma_3_what_crosses_a_fragment_is_tagged_and_after_a_bar_nothing_is_missing(first: int) -> None:
    for seed in range(first, first + 10):
        run = Parted(seed)
        run.run()
        assert run.net.partial("S"), "the fragment is large"
        assert run.problems() == [], f"Parted({seed})"
        assert leftovers(run.net) == [], f"Parted({seed})"
