"""All audits of the package, or of the exhibits, and the table they come to."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

from dpmodels.audit.joint import JOINT, JointAudited
from dpmodels.audit.outcome import AuditTable, Outcome
from dpmodels.audit.persons import PERSONS
from dpmodels.audit.registry import REGISTRY, Audited
from dpmodels.audit.verb import audit
from dpmodels.errors import NotAvailable

# Of each audit of something that keeps its claim: of many none is to be flagged by chance.
SMALL: Final = 1 - 1e-6
FULL: Final = 1 - 2e-4
EXHIBIT: Final = 0.95


def run_all(
    lines: Sequence[Audited | JointAudited] = (*REGISTRY, *PERSONS, *JOINT), *, full: bool = False
) -> AuditTable:
    """Audit mechanisms, verbs and protocols between sites, all by default.

    A full audit takes minutes for all of them; a small one seconds.
    """
    made, confidence = [], FULL if full else SMALL
    for line in lines:
        runs = line.full if full else line.small
        start = time.perf_counter()
        found = audit(line.verb, line.pair, runs=runs, confidence=confidence)
        made.append(Outcome.of(line.name, found, time.perf_counter() - start))
    size = "at full size" if full else "small"
    return AuditTable(f"Audits of the package, {size}", confidence, tuple(made))


def exhibits() -> Any:
    """Import the mechanisms with known faults, ``EXHIBITS``, and their mended twins, ``CORRECT``.

    They stand beside the tests of the source tree. NotAvailable where that is not there.
    """
    if "exhibits" not in sys.modules:
        folder = Path(__file__).parents[2] / "tests" / "audit" / "exhibits"
        spec = spec_from_file_location(
            "exhibits", folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if not folder.is_dir() or spec is None or spec.loader is None:
            raise NotAvailable(
                "the exhibits are part of the source tree, tests/audit/exhibits, and are not "
                "installed with the package: run this in a copy of the source, with the package "
                'installed by pip install -e ".[test]"'
            )
        module = module_from_spec(spec)
        sys.modules["exhibits"] = module
        spec.loader.exec_module(module)
    return sys.modules["exhibits"]


def run_exhibits() -> AuditTable:
    """Audit every exhibit, and its twin without the fault."""
    made, known = [], exhibits()
    for name, exhibit in known.EXHIBITS.items():
        made += [
            _exhibited(name, exhibit, EXHIBIT, faulty=True),
            _exhibited(f"{name}, mended", known.CORRECT[name], FULL, faulty=False),
        ]
    return AuditTable("Audits of the exhibits", FULL, tuple(made))


def _exhibited(name: str, exhibit: Any, confidence: float, *, faulty: bool) -> Outcome:
    start = time.perf_counter()
    found = audit(
        exhibit.recipe,
        exhibit.pair,
        eps=exhibit.eps,
        delta=exhibit.delta,
        runs=exhibit.runs,
        confidence=confidence,
    )
    return Outcome.of(name, found, time.perf_counter() - start, faulty=faulty)
