from __future__ import annotations

from holdfast.simulator.transcript import HEADING, Transcript
from simulations import CHAIN, simulated

SCRIPT = """Subscriber u3 Subscribe "orders WHERE price > 0" As far
Publisher p Publish 5 Ontopic orders Interval 0 With price=randint(1,9)
Wait 100
Subscriber u3 Unsubscribe far
Cut b2 b3
Wait 1000
"""


def test_a_transcript_tells_the_whole_story() -> None:
    transcript = Transcript()
    simulated(CHAIN, SCRIPT, transcript=transcript)
    heading, *lines = str(transcript).splitlines()
    assert heading == HEADING
    story = "\n".join(" ".join(line.split()[1:]) for line in lines)
    for line in [
        "b2 = started, incarnation 1",
        "u3 > dial b3:1",
        "b2 > dial b1",
        "b1 < connected from b2",
        "b1 < b2: Hello(b2, broker, incarnation 1, session 1)",
        "b1 > b2: Welcome(b1, incarnation 1, session 1)",
        "u3 > b3: Subscribe(u3.1#1, orders WHERE price > 0)",
        "b3 < b2: Confirmed(b3.1#1)",
        "b3 > u3: Confirmed(u3.1#1)",
        "u3 = subscribed subscriber=u3 subscription=far filter=orders WHERE price > 0 durable=False partial=[]",
        "p > b1: Publish(p#1, p#2, p#3 and 2 more)",
        "b1 > p: Accepted(5)",
        "b1 > b2: Publications(p#1, p#2, p#3 and 2 more)",
        "b3 > u3: Deliveries(p#1, p#2, p#3 and 2 more to 1)",
        "u3 > b3: Unsubscribe(u3.1#1)",
        "u3 < b3: Withdrawn(u3.1#1)",
        "u3 > b3: Goodbye(leaving: the client leaves)",
    ]:
        assert line in story
    assert "Heartbeat" not in story
    assert "b3 > close b2: nothing heard for 0.5 s" in story


def test_a_transcript_keeps_its_last_lines_and_counts_the_others() -> None:
    transcript = Transcript(lines_max=3)
    for n in range(5):
        transcript.note(n, "node", "=", f"state {n}")
    assert str(transcript).splitlines()[1] == "… 2 earlier lines"
    assert [line.split("= ")[1] for line in transcript.lines] == ["state 2", "state 3", "state 4"]
