"""What the outcomes of the runs look like, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpmodels.audit.claim import Claim
from dpmodels.audit.result import Finding, Reach
from dpmodels.audit.runs import Runs, commonest

_MANY_REPEATS = 1e-3  # a choice: releases of the small tables here have atoms of such sizes


def remarks(
    rows: Runs, neighbour: Runs, *, reach: Reach, claim: Claim, tested: bool
) -> tuple[Finding, ...]:
    """Describe what came of all runs besides rates of events, and what could have been found."""
    return (*_outcomes(rows, neighbour), *_values(rows, neighbour), *_reach(reach, claim, tested))


def _outcomes(rows: Runs, neighbour: Runs) -> Iterator[Finding]:
    common = commonest(rows, neighbour)
    for kind in sorted({*rows.kinds, *neighbour.kinds}):
        shares = f"in {rows.share(kind):.3g} of the runs on the rows and "
        shares += f"{neighbour.share(kind):.3g} on the neighbour"
        if kind.startswith("raises"):
            yield Finding("raised", f"The recipe {kind} {shares}.")
        elif "not finite" in kind:
            yield Finding("not finite", f"It releases {kind}, {shares}.")
        elif kind != common:
            yield Finding("shape", f"It releases {kind} {shares}, elsewhere {common}.")


def _values(rows: Runs, neighbour: Runs) -> Iterator[Finding]:
    kind = commonest(rows, neighbour)
    for side, name in ((rows, "rows"), (neighbour, "neighbour")):
        values = side.of(kind)
        if len(values) < 2 or not values.shape[1]:
            continue
        distinct = len(np.unique(values, axis=0))
        if distinct == 1:
            yield Finding(
                "constant", f"Every release of the {name} is the same: there is no noise."
            )
        elif 1 - distinct / len(values) > _MANY_REPEATS:
            share = 1 - distinct / len(values)
            yield Finding(
                "repeats",
                f"{share:.2g} of the releases of the {name} repeat another one to the last bit: "
                "the law has atoms, or noise was used twice.",
            )


def _reach(reach: Reach, claim: Claim, tested: bool) -> Iterator[Finding]:
    if not tested:
        yield Finding("no test", "Nothing could be tested: no runs gave numbers, or too few did.")
    if reach.largest <= claim.value:
        yield Finding(
            "few runs",
            f"So few runs can show no {claim.unit} above {reach.largest:.3g}, less than is "
            "claimed: no release could have been flagged.",
        )
    elif math.isinf(reach.smallest):
        yield Finding("few runs", "With so few runs hardly any release would have been flagged.")
