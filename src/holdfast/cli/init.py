"""`holdfast init`: a network file to start from, with everything that can be set in it and what it means."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from holdfast.cli.failure import Failure

__all__ = ["DEFAULT_FILE", "NETWORK_FILE", "add_arguments"]

#: Where every command looks for the network file if it is told no other.
NETWORK_FILE: Final = Path("network.toml")

#: A line that begins with '#' and a key, without a space between, shows a default; tests hold it to the code's.
DEFAULT_FILE: Final = """\
# A Holdfast network: three brokers on this machine and one stream.
#
#   holdfast up                      runs all of it until Ctrl-C
#   holdfast broker left             runs one broker of it
#   holdfast status                  says how it is
#   holdfast network plan            says what would stop if some of it failed
#   holdfast sub "orders/#"          shows what is published; holdfast pub orders/eu < events publishes
#   holdfast stream ls               says what is logged, and who still needs it
#
# A line like '#delta = 0' shows a default: take away the '#' and change it. Above this file stand the variables
# HOLDFAST_ROUTING, HOLDFAST_LIMITS_PAYLOAD_BYTES … of the environment, above those '--set routing=flooding' and
# '--set limits.payload_bytes=1000' on the command line. An unknown key is refused, not passed over.

# The network's name, for people.
name = "example"

# How many brokers or links may fail at a time, near each other, while the rest go on around them: brokers also
# connect to those up to delta + 1 hops away when nearer ones are gone, and every event of a reliable stream is kept
# by delta + 1 brokers of its way until it is safe. 'holdfast network plan' says what would stop nevertheless.
#delta = 0

# How publications find their way: "filter" sends them only where somebody wants them, "flooding" everywhere.
#routing = "filter"

# There is no TLS yet, so an address that leaves this machine is refused. true allows it: everybody on the way can
# then read and forge what is sent.
#insecure = false


# Brokers form a tree: one has no parent, every other dials its own.

[[broker]]
name = "root"
# Where clients and other brokers connect: host:port, an IPv6 address in brackets.
listen = "127.0.0.1:7000"
# Where others dial, if that is not where it listens (0.0.0.0, a container, a name).
# address = "broker-1.example.org:7000"
# Health (/livez, /readyz, /startupz), /metrics for Prometheus, and /status. Without it there are none.
admin = "127.0.0.1:7100"
# Where a log reader serves its logs to Spark, a process of its own that the broker starts; it needs pyarrow.
# reader = "127.0.0.1:7200"
# Its folder, with its logs, beside this file unless it begins with '/'; what is not said is "data/" and its name.
# data = "data/root"

[[broker]]
name = "left"
parent = "root"
listen = "127.0.0.1:7001"
admin = "127.0.0.1:7101"

[[broker]]
name = "right"
parent = "root"
listen = "127.0.0.1:7002"
admin = "127.0.0.1:7102"


# Streams: sets of topics with a promise. A topic belongs to one stream, so patterns must not overlap.

[[stream]]
name = "everything"
# Patterns: '+' is one level, '#' the rest.
topics = ["#"]
# What is promised. "durable": accepted means on the disk of the publisher's broker, one copy of it; subscribers get
# everything once and in order, and may leave and return, anywhere; what is given up early is announced as a gap.
# "reliable": once and in order, to everybody who is subscribed, while at most delta brokers or links are down; beyond
# that late, or announced as a gap. "best-effort": never a duplicate, nothing more than TCP between live neighbours.
# Streams of all three kinds may stand side by side; beside a durable one a client of a reliable one is told by a gap
# what it missed while its own broker was down. "archived" does not exist yet.
#guarantee = "durable"
# "fifo": the events of one publisher arrive in the order of their numbers; "none": as they come; "total": all
# subscribers see all events in the same order, which is that of one log, so only with "durable".
#order = "fifo"
# Where that log is; the root, unless another broker is named.
# sequencer = "root"
# How many logs a broker has for its publishers. More than one only help where one disk is not enough.
#pubends = 1
# Of what not everybody has acknowledged, how old it may become before it goes all the same ("90s", "12h", "7d"), and
# how large a log may; "forever" and "unlimited" let those who never come back fill the disk.
#retain = "forever"
#retain_bytes = "10GiB"
# The attribute in which publishers say when an event expires, in seconds since 1970; it may go then. Without this key
# nothing expires, and neither does an event without the attribute.
# expires = "valid_until"
# The attributes that have a column of their own where the stream is a table, with their types: BOOLEAN, BIGINT, DOUBLE,
# STRING or BINARY, such as "price DOUBLE, sym STRING". Others are in the tables too, but not as columns.
#attributes = ""
# Who is so far behind that the logs have given up what it needs is told of a gap; with true, its events come from the
# stream's table, as far as they are there. Brokers then read the lake's folder, and need pyarrow and deltalake.
#lake = false


# Streams as tables of Delta Lake, which 'holdfast lake run' writes (docs/lake.md).
[lake]
# The folder, beside this file unless it begins with '/'; each stream has a folder of its name in it.
#path = "lake"


# Durable streams. The same for all brokers.
[durable]
# A durable subscription that nobody has read for so long ends: its name is free, and what it has not read may go.
#expire_after = "never"
# What Spark's tasks have staged and nobody has committed for so long goes; a driver that is away longer begins anew.
#staged_keep = "1d"
# How much of each log a broker keeps in memory, in bytes, for those who are a little behind.
#cache_bytes = 67108864
# How much may be on its way to the disk, in bytes; then publishers wait until half of it is written.
#logging_bytes = 268435456
# How often brokers tell each other what was delivered and acknowledged, so that logs can forget it.
#report_every_ms = 250
# How often a log that has nothing new says so.
#silence_every_ms = 100
# How often it says so on disk, if its broker has a reader: by that windows of 'holdfast derive' end on idle streams.
#vouch_every_ms = 5000


# How events of reliable streams are known to be safe. The same for all brokers.
[overlay]
# "dack": brokers tell each other from time to time what they have; "conf": they confirm every event, when every
# subscriber beyond has it.
#acknowledge = "dack"
# How often, in milliseconds, with "dack". Events are kept that much longer; publishers hear that much later that an
# event is accepted.
#dack_every_ms = 100
# Whether a broker that comes back without its memory is given back what others still keep, so that there are
# delta + 1 copies again.
#refill = true


# How brokers watch each other, in milliseconds.
[neighbours]
# How often a broker is heard on a quiet link.
#heartbeat_ms = 100
# Silence after which a neighbour is given up.
#detect_after_ms = 500
# How often who was given up is dialled again.
#probe_every_ms = 200


# How brokers treat clients, in milliseconds.
[clients]
# How often a client and its broker hear of each other.
#heartbeat_ms = 1000
# How long the subscriptions of a client that vanished are kept for its return.
#grace_ms = 5000
# The same for a client of a reliable stream, which is a member of the network and survives the failure of its broker
# (where no stream is durable: beside one, all clients are of the other kind).
# Its broker then asks the others whether they know of it; if not, it is expelled, and nothing is kept for it any more.
#member_grace_ms = 300000


# What is refused, by the name that stands here. Sizes are in bytes; text is counted in UTF-8.
[limits]
# Of one broker: clients, connected or waited for, subscriptions known, and those of one client.
#clients_max = 10000
#subscriptions_max = 1000000
#client_subscriptions_max = 10000
# Publications held for a neighbour while two brokers meet, and their bytes.
#held_max = 10000
#held_bytes_max = 67108864
# What Spark's tasks may have staged at one broker at a time, in bytes.
#staged_bytes_max = 1073741824
# Of one event.
#topic_bytes = 1024
#topic_levels = 64
#attributes = 256
#attribute_name_bytes = 256
#value_bytes = 65536
#attributes_bytes = 1048576
#payload_bytes = 1048576
#content_type_bytes = 256
#publisher_bytes = 256
"""


def add_arguments(commands: Any) -> None:
    """`holdfast init [FILE]`."""
    command = commands.add_parser("init", help="write a commented network file to start from")
    command.add_argument(
        "file", type=Path, nargs="?", default=NETWORK_FILE, metavar="FILE", help=f"[{NETWORK_FILE}]"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the file, never over another."""
    try:
        with options.file.open("x", encoding="utf-8") as file:
            file.write(DEFAULT_FILE)
    except FileExistsError:
        raise Failure(f"{options.file}: it is there already, and is left alone; name another file") from None
    except OSError as error:
        raise Failure(f"{options.file}: {error.strerror}") from error
    sys.stdout.write(f"{options.file} written. Read it, change it, then: holdfast up{_flag(options.file)}\n")
    return 0


def _flag(file: Path) -> str:
    return "" if file == NETWORK_FILE else f" --network {file}"
