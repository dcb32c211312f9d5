"""How many examples a property gets: few in `make test`, as many as HOLDFAST_EXAMPLES says in `make soak`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings


def examples(default: int) -> settings:
    """Settings for a property that is soaked."""
    count = int(os.environ.get("HOLDFAST_EXAMPLES", default))
    # Examples that draw whole histories are large and slow to generate; that is what they are for.
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=count, deadline=None, suppress_health_check=slow)
