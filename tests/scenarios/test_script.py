"""Reading scripts, and refusing them."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn_scenarios import configurations, everything_supported, scripts
from examples import examples
from holdfast.clock import MILLISECOND, SECOND
from holdfast.filters.parse import parse_filter
from holdfast.scenarios.commands import (
    At,
    ClockShift,
    Crash,
    Cut,
    Disconnect,
    Drain,
    Expel,
    Freeze,
    Heal,
    Isolate,
    Join,
    Leave,
    Publish,
    Reconnect,
    Restart,
    SetLink,
    Slow,
    Status,
    Subscribe,
    Unfreeze,
    Unsubscribe,
    Wait,
)
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.distributions import Choice, Constant
from holdfast.scenarios.language import ScenarioError
from holdfast.scenarios.script import Script, parse_script
from holdfast.scenarios.topology import Link, LinkQuality, Process

NETWORK = parse_configuration(
    """Guarantee durable
    Site a Parent none
    Site c Parent a
    Process b is broker On a URL tcp://localhost:0/
    Process d is broker On c URL tcp://localhost:0/
    Process s is subscriber On a URL tcp://localhost:0/
    Process p is publisher On c URL tcp://localhost:0/"""
)
EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "sesdad"

EVERYTHING = """\
# a comment, then every command
Subscriber s Subscribe /p00-0
subscriber s SUBSCRIBE orders/# WHERE price > 100 As big Durable

Subscriber s Unsubscribe big
Subscriber s Disconnect
Subscriber s Reconnect
Subscriber s Reconnect On c
Slow s 0.5
Publisher p Publish 3 Ontopic "a b" Interval 0 With sym=choice(IBM,SAP) urgent=true Payload xml
Publisher p Publish 1 Ontopic /t Interval 200 Payload 100
Wait 15000
Status
Drain 10000
At 250.5 Crash b
Restart b
Freeze p
Unfreeze p
Join Process q is publisher On a URL tcp://localhost:0/pub
Crash q
Leave q
Expel d
Cut a c
Isolate s
Heal a
Heal a d
Link a -> c Delay 5 Loss 0.25
Clock b Shift -50
"""


def parsed(text: str) -> Script:
    with everything_supported():
        return parse_script(text, "script.txt", NETWORK)


def refusal(text: str) -> str:
    with pytest.raises(ScenarioError) as refused, everything_supported():
        parse_script(text, "script.txt", NETWORK)
    return str(refused.value)


def test_every_command_is_read() -> None:
    big = "orders/# WHERE price > 100"
    drawn = (("sym", Choice(("IBM", "SAP"))), ("urgent", Constant(True)))
    assert parsed(EVERYTHING).commands == (
        Subscribe("s", "/p00-0", parse_filter("/p00-0"), "s#1", line=2),
        Subscribe("s", big, parse_filter(big), "big", durable=True, line=3),
        Unsubscribe("s", "big", "big", line=5),
        Disconnect("s", line=6),
        Reconnect("s", line=7),
        Reconnect("s", "c", line=8),
        Slow("s", MILLISECOND // 2, line=9),
        Publish("p", 3, "a b", 0, drawn, "xml", line=10),
        Publish("p", 1, "/t", 200 * MILLISECOND, (), 100, line=11),
        Wait(15 * SECOND, line=12),
        Status(line=13),
        Drain(10 * SECOND, line=14),
        At(250_500_000, Crash("b", line=15), line=15),
        Restart("b", line=16),
        Freeze("p", line=17),
        Unfreeze("p", line=18),
        Join(Process("q", "publisher", "a", "tcp://localhost:0/pub"), line=19),
        Crash("q", line=20),
        Leave("q", line=21),
        Expel("d", line=22),
        Cut("a", "c", line=23),
        Isolate("s", line=24),
        Heal("a", line=25),
        Heal("a", "d", line=26),
        SetLink(Link("a", "c", LinkQuality(5 * MILLISECOND, loss=0.25), one_way=True), line=27),
        ClockShift("b", -50 * MILLISECOND, line=28),
    )


def test_a_printed_script_keeps_its_lines() -> None:
    script = parsed(EVERYTHING)
    assert parsed(str(script)) == script
    assert str(script).split("\n")[4] == "Subscriber s Unsubscribe big"


def test_a_script_made_elsewhere_is_written_from_line_one() -> None:
    script = Script.of([Wait(MILLISECOND), At(0, Crash("b")), Status()])
    assert str(script) == "Wait 1\nAt 0 Crash b\nStatus\n"
    assert [command.line for command in script.commands] == [1, 2, 3]
    assert parsed(str(script)) == script


@examples(100)
@given(configurations().flatmap(lambda drawn: st.tuples(st.just(drawn), scripts(drawn))))
def test_a_script_reads_back_from_its_text(drawn: tuple[object, Script]) -> None:
    configuration, script = drawn
    with everything_supported():
        assert parse_script(str(script), "drawn", configuration) == script  # type: ignore[arg-type]


def test_timed_commands_are_apart_the_earliest_first() -> None:
    script = parsed("At 20 Crash b\nWait 5\nAt 10 Crash d\nAt 10 Crash s\nStatus")
    assert [at.command.process for at in script.timed if isinstance(at.command, Crash)] == ["d", "s", "b"]
    assert [type(step) for step in script.steps] == [Wait, Status]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "Frobnicate",
            "script.txt, line 1: unexpected 'Frobnicate'; expected one of Subscriber, Publisher, Slow",
        ),
        ("Site x Parent a", "unexpected 'Site'"),
        ("Crash nobody", "there is no process nobody; expected the name of a process"),
        ("Crash a", "there is no process a"),
        ("Crash b c", "unexpected 'c'; expected the end of the line"),
        ("Subscriber p Subscribe x", "p is a publisher; expected the name of a subscriber"),
        ("Subscriber s Sing", "expected Subscribe, Unsubscribe, Disconnect or Reconnect"),
        ("Subscriber s Subscribe", "the line ends; expected a filter"),
        ("Subscriber s Subscribe a WHERE", "the filter, column 8: unexpected end of the filter"),
        ('Subscriber s Subscribe "a" WHERE x', "unexpected 'WHERE'; expected As, Durable or the end"),
        ('Subscriber s Subscribe "a" As n x', "unexpected 'x'; expected Durable or the end"),
        ('Subscriber s Subscribe "a" As s#1', "'s#1' is no name"),
        ("Subscriber s Subscribe x Durable As n", "the filter, column 3: unexpected 'Durable'"),
        ("Subscriber s Unsubscribe x", "s has no subscription 'x' left to end"),
        ("Subscriber s Reconnect On x", "there is no site x with a broker"),
        ("Slow p 5", "p is a publisher"),
        ("Publisher s Publish 1 Ontopic x Interval 1", "s is a subscriber; expected the name of a publisher"),
        ("Publisher p Publish 0 Ontopic x Interval 1", "'0' will not do; expected a number of events"),
        ("Publisher p Publish 1 Ontopic a/# Interval 1", "topic: contains the wildcard '#'"),
        ('Publisher p Publish 1 Ontopic "" Interval 1', "topic: is empty"),
        ("Publisher p Publish 1 Ontopic x", "the line ends; expected Interval"),
        ("Publisher p Publish 1 Ontopic x Interval 1 Size 5", "expected With, Payload or the end"),
        ("Publisher p Publish 1 Ontopic x Interval 1 With", "expected an attribute"),
        ("Publisher p Publish 1 Ontopic x Interval 1 Payload", "expected xml or a number of bytes"),
        ("Publisher p Publish 1 Ontopic x Interval 1 Payload 9999999", "from 0 to 1048576"),
        ("Publisher p Publish 1 Ontopic x Interval 1 Payload 5 With x=1", "expected the end of the line"),
        (f"Publisher p Publish 1 Ontopic x Interval 1 With y={'v' * 70_000}", "(limit value_bytes)"),
        ("Wait", "the line ends; expected Wait: milliseconds"),
        ("At 5 Wait 5", "Wait cannot stand behind At; expected a command that does not wait"),
        ("At 5 Drain 5", "Drain cannot stand behind At"),
        ("At 5 At 5 Crash b", "At cannot stand behind At"),
        ("At -5 Crash b", "'-5' will not do"),
        ("Cut a b", "a and b are the same"),
        ("Cut a", "the line ends; expected the name of a site or a process"),
        ("Heal a x", "there is no process x, and no site x with a broker"),
        ("Link a x", "there is no process x"),
        ("Join Process b is publisher On a URL tcp://h:0/", "the name b is taken"),
        ("Join Process z is broker On a URL tcp://h:0/", "a has the broker b already"),
        ("Clock b Shift", "expected Shift: milliseconds"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(line: str, says: str) -> None:
    assert says in refusal(line)


def test_all_bad_lines_are_reported_at_once() -> None:
    text = refusal("Crash x\nWait 5\nFreeze y\nSubscriber s Unsubscribe never\nWait z")
    assert [line.split(":")[0] for line in text.split("\n")] == [f"script.txt, line {n}" for n in (1, 3, 5)]


def test_nothing_but_a_scenario_error_escapes_from_mutated_files() -> None:
    odd = ['"', "#", "->", "''", "\0", "\ud800", "9" * 5000, "(", "=", " "]
    pieces = [*EVERYTHING.split(), *str(NETWORK).split(), *odd]
    unharmed: list[str] = []
    for seed in range(400):
        random = Random(seed)
        script, network = _mutated(EVERYTHING, pieces, random), _mutated(str(NETWORK), pieces, random)
        with everything_supported():
            with suppress(ScenarioError):
                parse_script(script, "f", NETWORK)
                unharmed.append("script")
            with suppress(ScenarioError):
                parse_configuration(network, "f")
                unharmed.append("network")
    survived = Counter(unharmed)
    assert all(0 < survived[file] < 300 for file in ("script", "network")), "mutations break most and not all"


def _mutated(text: str, pieces: list[str], random: Random) -> str:
    for _ in range(random.randint(1, 3)):
        at, to = sorted(random.randrange(len(text) + 1) for _ in range(2))
        match random.randrange(4):
            case 0:
                text = text[:at] + random.choice(pieces) + text[at:]
            case 1:
                text = text[:at] + text[min(to, at + 5) :]
            case 2:
                text = text[:at] + random.choice(pieces) + text[min(to, at + 5) :]
            case _:
                text = text[:at] + text[to : to + 40] + text[at:]
    return text


@pytest.mark.parametrize(
    ("network", "script", "commands"),
    [
        ("configuration1.txt", "script1.txt", 16),
        ("configuration1-two-publishers.txt", "two-publishers.txt", 12),
    ],
)
def test_the_scenarios_of_the_paper_are_read_as_they_are(network: str, script: str, commands: int) -> None:
    configuration = parse_configuration((EXAMPLES / network).read_text(), network)
    found = parse_script((EXAMPLES / script).read_text(), script, configuration)
    assert len(found.commands) == commands
    assert configuration.tree()["broker5"] == "broker3"
    assert str(configuration) == (EXAMPLES / network).read_text(), "it is canonical already"
    assert str(found) == (EXAMPLES / script).read_text()
