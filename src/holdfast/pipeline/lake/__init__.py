"""Streams as tables that last: every durable stream a table of Delta Lake (docs/lake.md, decision 0019)."""
