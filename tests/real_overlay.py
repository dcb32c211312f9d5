"""A reliable network of real processes under faults: ``python tests/real_overlay.py SECONDS SEED [RATE]``.

Thirteen brokers, δ = 2, four publishers, six subscribers, and for so many seconds 500 events per second (or RATE) in
all, while brokers are killed, frozen, restarted and cables are cut, never more than two at a time: nothing may be lost,
not even with a word of warning, repeated or reordered [issue 4; I1-I4], and the rate must be kept. A failing run prints
its seed and its scenario; the last line of a good one has its counts, for ``tools/soak.py``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from random import Random

from holdfast.puppet.run import Result, perform
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.checkers.history import EventKey, event_key
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script

BROKERS = 13
DELTA = 2
PUBLISHERS = 4
SUBSCRIBERS = 6
RATE = 500

#: The share of the rate that must have been published in time for it to be kept.
KEPT = 0.95

#: Patience enough for 24 processes on two cores: who is only slow must not be taken for failed.
SETTINGS = f"""\
Guarantee reliable
Delta {DELTA}
Heartbeat 200
DetectAfter 1500
ProbeEvery 200
DackEvery 200
"""
FILTERS = ("#", "orders/#", "orders/eu", "orders/+ WHERE price > 100", "# WHERE price <= 150", "news")
TOPICS = ("orders/eu", "orders/us", "news", "orders/eu")

#: Faults come in waves of one or two. After each there is so much time to recover, some of it for starting anew.
FIRST_WAVE_MS = 1_500
LASTING_MS = (300, 3_500)
RECOVERY_MS = 4_500


@dataclass(frozen=True)
class Drawn:
    """A scenario, as text."""

    configuration: str
    script: str

    def __str__(self) -> str:
        return f"{self.configuration}\n{self.script}"


def draw(seed: int, seconds: float, rate: int = RATE, faults: str | None = None) -> Drawn:
    """A tree, who is where on it, and what breaks when, unless that is given."""
    random = Random(f"{seed} real overlay")
    parents = {i: random.randint(max(0, i - 4), i - 1) for i in range(1, BROKERS)}
    configuration = SETTINGS + f"Seed {seed}\nSite s0 Parent none\n"
    configuration += "".join(f"Site s{i} Parent s{above}\n" for i, above in parents.items())
    configuration += "".join(_process(f"b{i}", "broker", i) for i in range(BROKERS))
    for i in range(PUBLISHERS):
        configuration += _process(f"p{i}", "publisher", random.randrange(BROKERS))
    for i in range(SUBSCRIBERS):
        configuration += _process(f"u{i}", "subscriber", random.randrange(BROKERS))
    script = "".join(f"Subscriber u{i} Subscribe {FILTERS[i]} As s{i}\n" for i in range(SUBSCRIBERS))
    for i in range(PUBLISHERS):
        count = max(1, round(seconds * rate / PUBLISHERS))
        publish = f"Publish {count} Ontopic {TOPICS[i]} Interval {1000 * PUBLISHERS / rate:g}"
        script += f"Publisher p{i} {publish} With price=uniform(1,200) Payload 300\n"
    script += _waves(random, parents, seconds) if faults is None else faults
    return Drawn(configuration, script + "Drain 60000\n")


def _waves(random: Random, parents: dict[int, int], seconds: float) -> str:
    """Faults in waves of up to δ; the last is over before the events end."""
    script = ""
    begins = FIRST_WAVE_MS
    while begins + LASTING_MS[1] < seconds * 1000:
        ends = begins
        for broker in random.sample(range(BROKERS), random.randint(1, DELTA)):
            kind = random.choice(("crash", "crash", "freeze", "cut"))
            link = random.choice(list(parents.items()))
            at = begins + random.randint(0, 1_000)
            until = at + random.randint(*LASTING_MS)
            script += _fault(kind, f"b{broker}", "b{} b{}".format(*link), at, until)
            ends = max(ends, until)
        begins = ends + RECOVERY_MS
    return script


def _process(name: str, kind: str, site: int) -> str:
    return f"Process {name} is {kind} On s{site} URL tcp://localhost:0/{name}\n"


def _fault(kind: str, broker: str, link: str, at: int, until: int) -> str:
    match kind:
        case "crash":
            return f"At {at} Crash {broker}\nAt {until} Restart {broker}\n"
        case "freeze":
            return f"At {at} Freeze {broker}\nAt {until} Unfreeze {broker}\n"
        case _:
            return f"At {at} Cut {link}\nAt {until} Heal {link}\n"


def performed(drawn: Drawn) -> Result:
    """Run it."""
    configuration = parse_configuration(drawn.configuration)
    return perform(configuration, parse_script(drawn.script, "script", configuration))


def problems(result: Result) -> list[str]:
    """All that is wrong with a run: within δ no gap excuses what is lost."""
    found = [str(violation) for violation in check_all(result.trace)]
    found += [f"a gap within delta: {dict(line)}" for line in result.trace if line["kind"] == "gap"]
    if result.failure is not None:
        found.insert(0, str(result.failure))
    return found if result.drained else ["not drained", *found]


def counts(result: Result) -> dict[str, int]:
    """What a run amounts to."""
    kinds = Counter(line["kind"] for line in result.trace)
    names = {
        "publish": "events",
        "deliver": "deliveries",
        "crash": "crashes",
        "freeze": "freezes",
        "cut": "cuts",
    }
    return {"runs": 1, **{name: kinds[kind] for kind, name in names.items()}}


def published_rate(result: Result) -> float:
    """Events per second, as they were published."""
    times = [line["t"] for line in result.trace if line["kind"] == "publish"]
    return len(times) / (max(times) - min(times)) if len(times) > 1 else 0.0


def longest_delay(result: Result) -> float:
    """The seconds from publisher to subscriber of the event that took longest: somebody had to be missed first."""
    times: dict[str, dict[EventKey, float]] = {"publish": {}, "deliver": {}}
    for line in result.trace:
        if line["kind"] in times:
            times[line["kind"]][event_key(line)] = line["t"]  # of several deliveries, the last
    published, delivered = times["publish"], times["deliver"]
    return max((t - published[key] for key, t in delivered.items() if key in published), default=0.0)


def main(seconds: float, seed: int, rate: int = RATE) -> int:
    """One run; its exit status."""
    drawn = draw(seed, seconds, rate)
    result = performed(drawn)
    found = problems(result)
    kept = published_rate(result)
    if kept < KEPT * rate:
        found.append(f"only {kept:.0f} of {rate} events/s were published")
    print(f"seed {seed}: {kept:.0f} events/s, the slowest took {longest_delay(result):.2f} s")  # noqa: T201
    if found:
        print("\n".join([*found[:50], str(drawn)]), file=sys.stderr)  # noqa: T201
        return 1
    print(f"counts: {json.dumps(counts(result))}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]), *map(int, sys.argv[3:])))
