"""A clean trace of so many deliveries is clean to the audit on Spark; all kinds of violations planted in it are found.

python tests/large_planted.py ROWS SEED        which is how `make soak` calls it
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from holdfast.pipeline.audit.spark import audit_with_spark
from large_trace import make, plant


def main() -> int:
    rows, seed = map(int, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.parquet"
        make(rows, path)
        clean = audit_with_spark([path])
        expected = plant(path, seed)
        planted = audit_with_spark([path])
    for each in [*clean.violations, *planted.violations]:
        sys.stdout.write(f"{each.kind}: {each.words}\n")
    return 0 if clean.is_kept and dict(planted.counts) == expected else 1


if __name__ == "__main__":
    sys.exit(main())
