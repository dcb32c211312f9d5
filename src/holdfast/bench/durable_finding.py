"""An experiment of durable streams as a part of its page."""

from __future__ import annotations

from holdfast.bench.figure import table_lines
from holdfast.bench.overlay_finding import CHECK_COLUMNS, Finding

__all__ = ["experiment_markdown"]


def experiment_markdown(finding: Finding, experiment: str) -> str:
    """How it is repeated, what came out, what is claimed."""
    lines = [
        f"`holdfast bench durable --experiment {experiment}`, data in `{finding.name}.csv`. {finding.remark}",
        "",
        *table_lines(finding.columns, finding.summary_rows()),
        "",
        *table_lines(CHECK_COLUMNS, finding.check_rows()),
    ]
    return "\n".join(lines)
