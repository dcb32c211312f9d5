"""A broker's counters and sizes for Prometheus: read when they are asked for, kept nowhere twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from holdfast.broker.broker import Broker
from holdfast.runtime.driver import Driver
from holdfast.runtime.metrics_durable import durable_metrics

__all__ = ["CONTENT_TYPE", "BrokerMetrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class BrokerMetrics(Collector):
    """One broker and its driver."""

    def __init__(self, broker: Broker, driver: Driver) -> None:
        self._broker = broker
        self._driver = driver
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def page(self) -> bytes:
        """The text Prometheus scrapes."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Every figure, as it is now."""
        broker, driver = self._broker, self._driver
        status = broker.status()
        overlay = status["overlay"]
        for name, count in asdict(broker.counters).items():
            family = CounterMetricFamily(f"holdfast_{name}", f"broker.statistics, {name}", labels=["broker"])
            family.add_metric([broker.name], count)
            yield family
        for name, count in asdict(broker.node.plane.counters).items():
            text = f"node.plane, {name}: events of reliable streams"
            family = CounterMetricFamily(f"holdfast_reliable_{name}", text, labels=["broker"])
            family.add_metric([broker.name], count)
            yield family
        turns = CounterMetricFamily("holdfast_turns", "Turns of the driver", labels=["broker"])
        turns.add_metric([broker.name], driver.turns)
        yield turns
        gauges = {
            "ready": ("1 once every neighbour was met or given up", broker.is_ready),
            "incarnation": ("Which life of the broker this is", broker.settings.incarnation),
            "clients": ("Clients that are connected or may still come back", len(broker.clients)),
            "subscriptions": ("Subscriptions in the routing table", status["subscriptions"]["installed"]),
            "held_publications": ("Publications that are not known to be safe", broker.holds_undelivered),
            "bypassed": ("Nodes within reach that were given up", len(overlay["down"])),
            "delta_left": ("How many more brokers or links may fail near here", overlay["budget"]),
            "stalled": ("Neighbours towards whom nothing may be sent on", len(overlay["stalled"])),
            "partitions": ("Partitions that stop subscriptions known here", len(overlay["partitions"])),
            "connections": ("Open sockets", len(driver.connections)),
            "queued_bytes": ("Bytes that wait for peers to read", driver.connections.queued_bytes),
        }
        for name, (text, value) in gauges.items():
            gauge = GaugeMetricFamily(f"holdfast_{name}", text, labels=["broker"])
            gauge.add_metric([broker.name], value)
            yield gauge
        if status["durable"] is not None:
            yield from durable_metrics(broker.name, status["durable"])
