"""Published algorithms for tables of counts, which are part of the source tree."""

from __future__ import annotations

from typing import Any

from dpmodels.source_tree import load_source


def published_algorithms() -> Any:
    """Import the algorithms for one axis, ``LINE``, and for two axes, ``PLANE``.

    They are in benchmarks/algorithms.py of the source tree. NotAvailable if it does not exist.
    """
    return load_source(
        "benchmarks.algorithms", "benchmarks/algorithms.py", "the published algorithms"
    )
