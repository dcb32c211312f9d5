"""Streams as tables: the data pipeline on Spark (docs/spark.md)."""
