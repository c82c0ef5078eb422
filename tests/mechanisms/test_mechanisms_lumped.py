"""Rare levels merged by noisy counts: what it costs, and how far a row moves the counts."""

from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import PrivateDesign, Scaling
from dpmodels.design.rows import Terms, rows_of
from dpmodels.formula.response import level_blocks, of_blocks, two_sided
from dpmodels.mechanisms import Facts
from dpmodels.mechanisms.lumped import LEVELS, Lumped
from dpmodels.mechanisms.regression import AdaSSP, Ellipsoid, Moments, Scores
from dpmodels.noise.lattice import choose_lattice
from dpmodels.privacy import ZCDP, ApproxDP, adjacency, total_eps, total_rho
from dpmodels.statistics import Passes
from dpmodels.statistics.passes import level_counts

BOOK = dp.codebook(g=["a", "b", "c"], h=["p", "q", "r", "s"], x=(0, 1), y=(0, 1))
SIDES = two_sided("y ~ x + g + h", BOOK)
INDICATORS = of_blocks("levels", SIDES.joint.codebook, level_blocks(SIDES))
BASES = [Moments(), AdaSSP(), Ellipsoid(), Scores()]


def facts(columns=7, relation="replace"):
    return Facts(columns, adjacency(relation), centred=True)


def counts_of(rows):
    """Exact numbers of rows by level, of rows (g, h)."""
    table = {"g": [g for g, _ in rows], "h": [h for _, h in rows]}
    table |= {"x": [0.5] * len(rows), "y": [0.5] * len(rows)}
    columns = len(INDICATORS.names)
    about = Scaling(np.full(columns, 0.5), np.full(columns, 0.5), *(np.sqrt(columns),) * 2)
    bound = rows_of(Terms(INDICATORS.codebook)).bound(table)
    design = PrivateDesign(bound, INDICATORS, about)
    passes = Passes((design,), choose_lattice(columns, 10.0))
    return passes.measured(level_counts).cross()[0].astype(float)


def test_neighbours_are_within_the_sensitivity_of_the_counts():
    pool = list(product(["a", "b", "c", None], ["p", "q", "r", "s", "strange"]))
    base = [("a", "p"), ("b", "q")]
    answers = [counts_of([*base, row]) for row in pool]
    distance = [np.linalg.norm(left - right) for left in answers for right in answers]
    alone = [np.linalg.norm(answer - counts_of(base)) for answer in answers]
    assert max(distance) == pytest.approx(np.sqrt(2 * 2))
    assert max(alone) == pytest.approx(np.sqrt(2))
    for relation, longest in (("replace", max(distance)), ("add-remove", max(alone))):
        mechanism = Lumped(Moments(), INDICATORS, 5.0, lambda merged: None)
        plan = mechanism.plan(facts(relation=relation), ApproxDP(1.0, 1e-6))
        assert plan.scales[LEVELS] >= plan.events[-1].multiplier * longest


def test_counts_are_those_of_complete_rows():
    rows = [("a", "p"), ("a", "s"), ("c", "s"), (None, "s"), ("b", None)]
    np.testing.assert_array_equal(counts_of(rows), [2, 0, 1, 1, 0, 0, 2])


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.info.name)
@pytest.mark.parametrize("guarantee", [ZCDP(0.1), ApproxDP(1.0, 1e-6)], ids=str)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_events_compose_to_the_guarantee_whatever_the_columns_are(base, guarantee, relation):
    mechanism = Lumped(base, INDICATORS, 5.0, lambda merged: None)
    plans = [mechanism.plan(facts(columns, relation), guarantee) for columns in (4, 7, 40)]
    assert plans[0].events == plans[1].events == plans[2].events
    if isinstance(guarantee, ZCDP):
        spent = total_rho(plans[0].events) / guarantee.rho
    else:
        spent = total_eps(plans[0].events, guarantee.delta) / guarantee.eps
    assert 1 - 1e-6 < spent <= 1
