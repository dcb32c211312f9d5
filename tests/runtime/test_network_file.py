"""Network files: what they mean, and how bad ones are refused: all problems at once, each with its line."""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.broker.settings import Neighbour, Routing, Settings, Stream
from holdfast.clock import MILLISECOND, SECOND
from holdfast.events.event import DEFAULT_LIMITS, Limits
from holdfast.filters.topic import parse_pattern
from holdfast.messages.streams import Guarantee, Order
from holdfast.node.settings import Acknowledge
from holdfast.runtime.addresses import Address
from holdfast.runtime.network_checks import may_overlap
from holdfast.runtime.network_document import (
    Override,
    overrides_from_environment,
    overrides_from_flags,
)
from holdfast.runtime.network_file import Network, NetworkFileError, StreamEntry, read_network
from holdfast.runtime.network_keys import DACK_EVERY_MS, TABLES

SMALL = """\
name = "small"
[[broker]]
name = "a"
listen = "127.0.0.1:7000"
admin = "localhost:7100"
[[broker]]
name = "b"
parent = "a"
listen = "[::1]:7000"
data = "/var/b"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "network.toml"
    path.write_text(SMALL)
    return path


def problems(path: Path, text: str | bytes, overrides: list[Override] | None = None) -> list[str]:
    """What is wrong with a text, without the name of the file."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(NetworkFileError) as raised:
        read_network(path, overrides or [])
    assert str(raised.value) == "\n".join(raised.value.problems)
    return [problem.removeprefix(f"{path}, ") for problem in raised.value.problems]


# What a file means


def test_a_small_file_means_what_it_says_and_has_the_codes_defaults(file: Path) -> None:
    network = read_network(file)
    assert (network.name, network.delta, network.insecure) == ("small", 0, False)
    a, b = network.brokers
    assert (a.listen, a.admin, a.address) == (
        Address("127.0.0.1", 7000),
        Address("localhost", 7100),
        a.listen,
    )
    assert (b.listen, b.admin, b.parent) == (Address("::1", 7000), None, "a")
    assert (a.data, b.data) == (file.parent / "data" / "a", Path("/var/b"))
    everything = StreamEntry("default", ("#",), Guarantee.DURABLE, Order.FIFO, retain_bytes=10 << 30)
    assert network.streams == (everything,)
    dack, streams = DACK_EVERY_MS * MILLISECOND, (everything.stream("a"),)
    common: dict[str, Any] = {"brokers": ("a", "b"), "dack_every_ns": dack}
    assert network.settings("a", 3) == Settings(
        "a", 3, (Neighbour("b", None, answers_at="[::1]:7000"),), streams, **common
    )
    assert network.settings("b", 1) == Settings(
        "b", 1, (Neighbour("a", "127.0.0.1:7000"),), streams, **common
    )
    with pytest.raises(KeyError):
        network.settings("c", 1)


def test_every_setting_reaches_the_broker(file: Path) -> None:
    text = """
routing = "flooding"
delta = 3
[overlay]
acknowledge = "conf"
dack_every_ms = 40
refill = false
[neighbours]
heartbeat_ms = 20
detect_after_ms = 90
probe_every_ms = 30
[clients]
heartbeat_ms = 400
grace_ms = 50
[limits]
clients_max = 5
subscriptions_max = 6
held_max = 7
payload_bytes = 8
topic_levels = 9
[durable]
expire_after = "30d"
cache_bytes = 10
report_every_ms = 11
silence_every_ms = 12
vouch_every_ms = 13
[[stream]]
name = "orders"
topics = ["orders/#", "trades/+"]
order = "none"
guarantee = "best-effort"
[[stream]]
name = "rest"
topics = ["trades/+/+"]
pubends = 3
retain = "1.5h"
retain_bytes = "2MB"
expires = "valid until"
lake = true
[[stream]]
name = "ordered"
topics = ["ordered"]
order = "total"
retain_bytes = "unlimited"
"""
    head, brokers = SMALL.split("\n", 1)
    file.write_text(head + text + brokers)
    settings = read_network(file).settings("b", 2)
    assert settings.routing is Routing.FLOODING
    assert (settings.delta, settings.acknowledge, settings.refill) == (3, Acknowledge.CONF, False)
    assert settings.dack_every_ns == 40 * MILLISECOND
    assert settings.heartbeat_ns == 20 * MILLISECOND
    assert settings.detect_after_ns == 90 * MILLISECOND
    assert settings.probe_every_ns == 30 * MILLISECOND
    assert settings.client_heartbeat_ns == 400 * MILLISECOND
    assert settings.client_grace_ns == 50 * MILLISECOND
    assert (settings.clients_max, settings.subscriptions_max, settings.held_max) == (5, 6, 7)
    assert (settings.limits.payload_bytes, settings.limits.topic_levels) == (8, 9)
    assert settings.limits.topic_bytes == DEFAULT_LIMITS.topic_bytes
    assert settings.expire_after_ns == 30 * 86_400 * SECOND
    assert (settings.cache_bytes, settings.report_every_ns) == (10, 11 * MILLISECOND)
    assert settings.silence_every_ns == 12 * MILLISECOND
    assert settings.vouch_every_ns is None, "nobody reads its logs"
    file.write_text(file.read_text().replace('name = "b"', 'name = "b"\nreader = "127.0.0.1:7999"'))
    assert read_network(file).settings("b", 2).vouch_every_ns == 13 * MILLISECOND
    assert settings.streams == (
        Stream("orders", ("orders/#", "trades/+"), Order.NONE),
        Stream(
            "rest",
            ("trades/+/+",),
            Order.FIFO,
            Guarantee.DURABLE,
            3,
            None,
            5_400 * SECOND,
            2_000_000,
            "valid until",
            lake=True,
        ),
        Stream("ordered", ("ordered",), Order.TOTAL, Guarantee.DURABLE, 1, "a", None, None),
    )


def test_the_log_of_a_total_order_is_at_the_root_unless_another_broker_is_named(file: Path) -> None:
    """B3.6: one sequencer, the same one for every broker."""
    stream = '[[stream]]\nname = "s"\ntopics = ["#"]\norder = "total"\n'
    file.write_text(SMALL + stream)
    assert [read_network(file).settings(name, 1).streams[0].sequencer for name in "ab"] == ["a", "a"]
    file.write_text(f'{SMALL}{stream}sequencer = "b"\n')
    assert [read_network(file).settings(name, 1).streams[0].sequencer for name in "ab"] == ["b", "b"]


def test_each_stream_chooses_its_guarantee(file: Path) -> None:
    file.write_text(
        SMALL
        + '[[stream]]\nname = "s"\ntopics = ["a"]\nguarantee = "reliable"\n'
        + '[[stream]]\nname = "t"\ntopics = ["b"]\nguarantee = "best-effort"\n'
        + '[[stream]]\nname = "u"\ntopics = ["c"]\n'
    )
    assert [each.guarantee for each in read_network(file).settings("a", 1).streams] == [
        Guarantee.RELIABLE,
        Guarantee.BEST_EFFORT,
        Guarantee.DURABLE,
    ]


def test_there_is_a_key_for_every_setting_of_a_broker() -> None:
    keys = {key.sets for table in TABLES.values() for key in table.values()}
    given = {
        "name",
        "incarnation",
        "neighbours",
        "brokers",
        "streams",
        "limits",
    }  # by the brokers and streams of the file
    of_scenarios = {"trace_forwards", "home", "address"}  # a broker of a file joins nobody later
    of_simulations = {"told_bytes", "relayed_bytes"}  # neighbours have to agree
    settings = {one.name for one in (*fields(Settings), *fields(Limits))}
    assert keys - {""} == settings - given - of_scenarios - of_simulations


def test_children_dial_the_address_where_it_is_not_where_the_parent_listens(file: Path) -> None:
    file.write_text(
        "insecure = true\n"
        + SMALL.replace(
            'listen = "127.0.0.1:7000"', 'listen = "0.0.0.0:7000"\naddress = "a.example.org:7000"'
        )
    )
    assert read_network(file).settings("b", 1).neighbours == (Neighbour("a", "a.example.org:7000"),)


CHAIN = "".join(
    f'[[broker]]\nname = "{name}"\nlisten = "127.0.0.1:{7000 + i}"\n{parent}'
    for i, (name, parent) in enumerate(
        [
            ("a", ""),
            ("b", 'parent = "a"\n'),
            ("c", 'parent = "b"\n'),
            ("d", 'parent = "c"\n'),
            ("e", 'parent = "b"\n'),
        ]
    )
)


def test_a_broker_knows_everybody_within_delta_and_one_hops_nearer_ones_first(file: Path) -> None:
    """R0.4: the map of δ+1 hops. A child dials its parent; farther away either end may dial [B0.20]."""
    file.write_text(f'name = "chain"\ndelta = 1\n{CHAIN}')
    assert read_network(file).settings("b", 1).neighbours == (
        Neighbour("a", "127.0.0.1:7000"),
        Neighbour("c", None, answers_at="127.0.0.1:7002"),
        Neighbour("e", None, answers_at="127.0.0.1:7004"),
        Neighbour("d", "127.0.0.1:7003", "c"),
    )
    assert read_network(file).settings("d", 1).neighbours == (
        Neighbour("c", "127.0.0.1:7002"),
        Neighbour("b", "127.0.0.1:7001", "c"),
    )
    within_three = read_under(file, {"HOLDFAST_DELTA": "2"}, []).settings("d", 1).neighbours
    assert [each.name for each in within_three] == ["c", "b", "a", "e"]
    assert [each.beside for each in within_three] == [None, "c", "b", "b"]


def test_where_brokers_are_bypassed_a_leaf_must_be_dialled_too(file: Path) -> None:
    text = SMALL.replace("[::1]:7000", "0.0.0.0:7000")
    file.write_text(f"insecure = true\n{text}")
    assert read_network(file).broker("b").listen.host == "0.0.0.0"
    (found,) = problems(file, f"insecure = true\ndelta = 1\n{text}")
    assert found.startswith(
        "line 11: with delta = 1 others than its parent dial b, and cannot dial 0.0.0.0:7000;"
    )


# What is refused


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("delta = -1", "delta is -1; expected a whole number from 0 to 16"),
        ("delta = true", "delta is true; expected a whole number from 0 to 16"),
        ('overlay.acknowledge = "none"', 'acknowledge is "none"; expected "dack" or "conf"'),
        ("overlay.dack_every_ms = 0", "dack_every_ms is 0; expected a whole number of milliseconds from 1"),
        ("overlay.refill = 1", "refill is 1; expected true or false"),
        ("refill = true", "refill is not known here; it belongs to [overlay]"),
        ('routing = "floding"', 'routing is "floding"; expected "filter" or "flooding"'),
        ("routng = 1", "routng is not known here; did you mean routing?"),
        ("zzz = 1", "zzz is not known here; expected one of name, delta, routing, insecure"),
        ("clients_max = 1", "clients_max is not known here; it belongs to [limits]"),
        ('insecure = "yes"', 'insecure is "yes"; expected true or false'),
        ("neighbours = 3", "neighbours is a value; expected a table: [neighbours]"),
        ("limits.clients_max = 0", "clients_max is 0; expected a whole number from 1 to 9007199254740992"),
        ("limits.clients_max = 1.5", "clients_max is 1.5; expected a whole number from"),
        ("limits.held_max = true", "held_max is true; expected a whole number from"),
        ("limits.cliens_max = 1", "cliens_max is not known here; did you mean clients_max?"),
        (
            "limits.payload_bytes = 8000000",
            "an event within these limits could have 9,050,112 bytes, more than",
        ),
        (
            "clients.grace_ms = 90000000",
            "grace_ms is 90000000; expected a whole number of milliseconds from 1 to 86400000",
        ),
        ("neighbours.detect_after_ms = 100", "detect_after_ms is not above heartbeat_ms"),
        ('stream = "a"', "stream is no array of tables; expected [[stream]]"),
        ('stream = [{name = "s"}]', "topics is missing in stream 1"),
        ('stream = [{name = "s", topics = "a"}]', 'topics is "a"; expected an array of topic patterns'),
        ('stream = [{name = "s", topics = ["a/#/b"]}]', "topics has the pattern \"a/#/b\": levels after '#'"),
        ('stream = [{name = "s", topics = ["a b"]}]', 'topics has the pattern "a b" with a space in it'),
        ('stream = [{name = "s", topics = []}]', "topics is []; expected an array of topic patterns"),
        (
            'stream = [{name = "s", topics = ["a"], guarantee = "archived"}]',
            'guarantee is "archived", which does not exist yet; expected "best-effort" or "reliable" or "durable"',
        ),
        (
            'stream = [{name = "s", topics = ["a"], guarantee = "reliable", order = "total"}]',
            'order is "total" and guarantee "reliable", which is not logged; expected guarantee = "durable"',
        ),
        (
            'stream = [{name = "s", topics = ["a"], guarantee = "best-effort", order = "total"}]',
            'order is "total" and guarantee "best-effort", which is not logged',
        ),
        (
            'stream = [{name = "s", topics = ["a"], guarantee = "reliable", retain = "7d"}]',
            'retain is for streams that are logged, and guarantee is "reliable"; expected guarantee = "durable"',
        ),
        (
            'stream = [{name = "s", topics = ["a"], sequencer = "a"}]',
            'sequencer is "a" and order "fifo"; expected order = "total"',
        ),
        (
            'stream = [{name = "s", topics = ["a"], order = "total", sequencer = "x"}]',
            'sequencer is "x", which is no broker; expected a, b',
        ),
        (
            'stream = [{name = "s", topics = ["a"], order = "total", pubends = 2}]',
            "pubends is 2, and a stream in total order has one; expected 1",
        ),
        (
            'stream = [{name = "s", topics = ["a"], pubends = 0}]',
            "pubends is 0; expected a whole number from 1 to 64",
        ),
        (
            'stream = [{name = "s", topics = ["a"], retain = "never"}]',
            'retain is "never"; expected a time such as "90s", "12h" or "7d", or "forever"',
        ),
        (
            'stream = [{name = "s", topics = ["a"], retain = 7}]',
            "retain is 7; expected a time such as",
        ),
        (
            'stream = [{name = "s", topics = ["a"], retain = "7 days"}]',
            'retain is "7 days"; expected a time such as',
        ),
        (
            'stream = [{name = "s", topics = ["a"], retain_bytes = "10G"}]',
            'retain_bytes is "10G"; expected a size such as "500MB" or "10GiB", from 1,048,576 bytes, or "unlimited"',
        ),
        (
            'stream = [{name = "s", topics = ["a"], retain_bytes = "10kB"}]',
            'retain_bytes is "10kB"; expected a size such as',
        ),
        (
            'stream = [{name = "s", topics = ["a"], lake = "yes"}]',
            'lake is "yes"; expected true or false',
        ),
        (
            'stream = [{name = "s", topics = ["a"], guarantee = "best-effort", lake = true}]',
            'lake is for streams that are logged, and guarantee is "best-effort"; expected guarantee = "durable"',
        ),
        (
            'stream = [{name = "s", topics = ["a"], expires = true}]',
            "expires is true; expected text",
        ),
        (
            'stream = [{name = "s", topics = ["a"], expires = ""}]',
            'expires is ""; expected text',
        ),
        (
            'stream = [{name = "s", topics = ["a"], guarantee = "best-effort", expires = "until"}]',
            'expires is for streams that are logged, and guarantee is "best-effort"; expected guarantee = "durable"',
        ),
        ('durable.expire_after = "0s"', 'expire_after is "0s"; expected a time such as'),
        (
            'stream = [{name = "s", topics = ["a/+"]}, {name = "t", topics = ["b", "#"]}]',
            "topics has #, which overlaps a/+ of stream s; expected every topic in one stream",
        ),
        (
            'stream = [{name = "s", topics = ["a"]}, {name = "s", topics = ["b"]}]',
            'name is "s", the same as of stream 1; expected another',
        ),
    ],
)
def test_a_bad_line_is_named_with_what_would_be_right(file: Path, line: str, problem: str) -> None:
    (found,) = problems(file, f"# a comment\n{line}\n{SMALL}")
    assert found.startswith(f"line 2: {problem}")


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ('name = "small"', "", 1, "name is missing"),
        ('name = "a"', "", 2, "name is missing in broker 1"),
        ('name = "b"', 'name = "a"', 7, 'name is "a", the same as of broker 1; expected another'),
        ('name = "b"', 'name = "b c"', 7, 'name is "b c"; expected a name of 1 to 100 letters'),
        ('parent = "a"', 'parent = "c"', 8, 'parent is "c", which is no broker; expected a'),
        (
            'parent = "a"',
            'parent = "b"',
            8,
            "b is above itself by way of its parent b; expected a tree with one root",
        ),
        ('parent = "a"', "", 6, "b has no parent, and neither has a; expected one root"),
        ('listen = "127.0.0.1:7000"', "listen = 7000", 4, "listen is 7000; expected text"),
        (
            'listen = "127.0.0.1:7000"',
            'listen = "7000"',
            4,
            'listen is "7000": expected host:port, with an IPv6',
        ),
        ('listen = "127.0.0.1:7000"', 'listen = "127.0.0.1:0"', 4, 'listen is "127.0.0.1:0": the port is 0'),
        (
            'listen = "127.0.0.1:7000"',
            'listen = "10.0.0.1:7000"',
            4,
            'listen is "10.0.0.1:7000": only loopback is allowed',
        ),
        ("localhost:7100", "localhost:7000", 5, 'admin is "localhost:7000", which is the listen of a'),
        ('listen = "127.0.0.1:7000"', "", 2, "listen is missing in broker 1"),
        (
            'data = "/var/b"',
            'folder = "/var/b"',
            10,
            "folder is not known here; expected one of name, parent",
        ),
        ('data = "/var/b"', 'adminn = "x"', 10, "adminn is not known here; did you mean admin?"),
        ('data = "/var/b"', 'reader = "[::1]:7000"', 10, 'reader is "[::1]:7000", which is the listen of b'),
        (
            'data = "/var/b"',
            'reader = "10.0.0.1:7200"',
            10,
            'reader is "10.0.0.1:7200": only loopback is allowed',
        ),
    ],
)
def test_a_bad_broker_is_named_with_its_line(file: Path, old: str, new: str, line: int, problem: str) -> None:
    assert old in SMALL
    assert problems(file, SMALL.replace(old, new))[0].startswith(f"line {line}: {problem}")


def test_a_circle_is_shown_at_everyone_in_it(file: Path) -> None:
    found = problems(file, SMALL.replace('name = "a"', 'name = "a"\nparent = "b"'))
    assert found == [
        "line 4: a is above itself by way of its parent b; expected a tree with one root",
        "line 9: b is above itself by way of its parent a; expected a tree with one root",
    ]


def test_an_address_for_every_interface_cannot_be_dialled(file: Path) -> None:
    text = SMALL.replace("127.0.0.1:7000", "0.0.0.0:7000")
    assert problems(file, f"insecure = true\n{text}") == [
        'line 5: the children of a cannot dial 0.0.0.0:7000; expected address = "host:port" beside it',
    ]


def test_brokers_on_every_interface_share_a_port_only_on_different_machines(file: Path) -> None:
    text = """insecure = true
name = "wide"
broker = [{name = "a", listen = "0.0.0.0:7000", address = "a.example.org:7000", admin = "0.0.0.0:7000"},
          {name = "b", listen = "0.0.0.0:7000", address = "b.example.org:7000", parent = "a"}]
"""
    assert problems(file, text) == [
        'line 3: admin is "0.0.0.0:7000", which is the listen of a; expected a port of its own'
    ]


def test_all_problems_come_at_once_in_the_order_of_the_lines(file: Path) -> None:
    found = problems(file, f'delta = -2\nfoo = 1\n{SMALL}[limits]\nattributes = "many"\n')
    assert [problem.split(":")[0] for problem in found] == ["line 1", "line 2", "line 14"]


def test_a_file_without_brokers_is_refused(file: Path) -> None:
    assert problems(file, 'name = "x"') == ["line 1: there is no broker; expected at least one [[broker]]"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\nb = = 2", "line 2, column 5: invalid value"),
        ("a = 1\na = 2", "line 2: cannot overwrite a value"),
        ('a = "', "line 1: unterminated string"),
        (b"# \xe4\n", "line 1: byte 0xE4 is not UTF-8; expected UTF-8 text"),
    ],
)
def test_what_is_no_toml_is_refused_with_its_place(file: Path, text: str | bytes, problem: str) -> None:
    (found,) = problems(file, text)
    assert problem in found


def test_a_missing_file_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        NetworkFileError, match=r"no\.toml: No such file or directory; 'holdfast init' writes one"
    ):
        read_network(tmp_path / "no.toml")


def test_a_byte_order_mark_does_no_harm(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert read_network(file).name == "small"


# What stands above the file


def read_under(file: Path, environment: dict[str, str], flags: list[str]) -> Network:
    return read_network(file, [*overrides_from_environment(environment, "b"), *overrides_from_flags(flags)])


def test_the_environment_stands_above_the_file_and_flags_above_both(file: Path) -> None:
    file.write_text('routing = "filter"\n' + SMALL + "[limits]\nclients_max = 1\nheld_max = 1\n")
    environment = {
        "HOLDFAST_ROUTING": "flooding",
        "HOLDFAST_LIMITS_CLIENTS_MAX": "2",
        "HOLDFAST_LIMITS_HELD_MAX": "2",
        "HOLDFAST_CLIENTS_GRACE_MS": "7",
        "HOLDFAST_LISTEN": "127.0.0.1:8000",
        "HOLDFAST_EXAMPLES": "100",
        "HOLDFAST_DATA": "",
    }
    network = read_under(file, environment, ["limits.held_max=3", "broker.a.listen=127.0.0.1:9000"])
    settings = network.settings("b", 1)
    assert settings.routing is Routing.FLOODING
    assert (settings.clients_max, settings.held_max) == (2, 3)
    assert settings.client_grace_ns == 7 * MILLISECOND
    assert [entry.listen.port for entry in network.brokers] == [9000, 8000]
    assert settings.neighbours == (Neighbour("a", "127.0.0.1:9000"),)
    assert network.broker("b").data == Path("/var/b"), "an empty variable says nothing"


def test_a_bad_value_above_the_file_is_blamed_on_who_said_it(file: Path) -> None:
    overrides = [
        *overrides_from_environment({"HOLDFAST_ROUTING": "x", "HOLDFAST_LIMITS_HELD_MAX": "many"}),
        *overrides_from_flags(
            ["insecure=1", "limits.held=1", "broker.c.listen=127.0.0.1:1", "broker.a.port=1", "x=1"]
        ),
    ]
    assert problems(file, SMALL, overrides) == [
        "--set limits.held: limits.held is no setting; expected limits.held_max",
        "--set broker.c.listen: broker.c.listen is no setting; expected the name of a broker: a, b",
        (
            "--set broker.a.port: broker.a.port is no setting; "
            "expected one of name, parent, listen, address, admin, reader, data"
        ),
        "--set x: x is no setting; expected KEY, TABLE.KEY, broker.NAME.KEY or stream.NAME.KEY",
        'HOLDFAST_ROUTING: routing is "x"; expected "filter" or "flooding"',
        "--set insecure: insecure is 1; expected true or false",
        'HOLDFAST_LIMITS_HELD_MAX: held_max is "many"; expected a whole number from 1 to 9007199254740992',
    ]


def test_a_variable_that_is_nearly_a_setting_is_refused() -> None:
    with pytest.raises(
        NetworkFileError, match="HOLDFAST_ROUTNG in the environment is no setting; did you mean"
    ):
        overrides_from_environment({"HOLDFAST_ROUTNG": "flooding"})


@pytest.mark.parametrize("flag", ["routing", "=1", "limits.=1", "broker..listen=1"])
def test_a_flag_of_another_form_is_refused(flag: str) -> None:
    with pytest.raises(NetworkFileError, match="expected KEY=VALUE"):
        overrides_from_flags([flag])


# Overlap of patterns

LEVELS = ["a", "b", ""]
TOPICS = [list(levels) for length in (1, 2, 3, 4) for levels in product(LEVELS, repeat=length)]
patterns = st.tuples(st.lists(st.sampled_from([*LEVELS, "+"]), max_size=3), st.booleans()).map(
    lambda drawn: "/" + "/".join([*drawn[0], *(["#"] if drawn[1] or not drawn[0] else [])])
)


@given(patterns, patterns)
def test_patterns_overlap_just_when_some_topic_matches_both(one: str, other: str) -> None:
    first, second = parse_pattern(one), parse_pattern(other)
    common = any(first.matches(topic) and second.matches(topic) for topic in TOPICS)
    assert may_overlap(first, second) == may_overlap(second, first) == common
