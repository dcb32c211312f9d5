"""A DataFrame published as one epoch: what ``foreachBatch`` calls.

def each(batch, number):
holdfast.pipeline.publish(batch, "alarms", number, network="network.toml", stream="alarms", topic="alarms")

query.writeStream.foreachBatch(each).option("checkpointLocation", "alarms.checkpoint").start()
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

__all__ = ["publish"]


def publish(
    df: DataFrame,
    app: str,
    version: int,
    *,
    network: str | Path,
    stream: str,
    topic: str | None = None,
    topic_column: str | None = None,
    attributes_column: str | None = None,
    payload_column: str | None = None,
) -> None:
    """Publish the rows of a DataFrame as version ``version`` of ``app``: all of them, once, or none.

    A version that is done, or below one that is, is done already, and nothing happens. The session must know the sink
    (``holdfast.pipeline.register``); what goes wrong is raised by Spark, with our error in its text.
    """
    options = {
        "network": str(network),
        "stream": stream,
        "topic": topic,
        "topicColumn": topic_column,
        "attributesColumn": attributes_column,
        "payloadColumn": payload_column,
        "txnAppId": app,
        "txnVersion": str(version),
    }
    given = {name: text for name, text in options.items() if text is not None}
    df.write.format("holdfast").options(**given).mode("append").save()
