"""`holdfast derive`: a query over streams, run for ever, whose results are a stream again (docs/derive.md)."""
