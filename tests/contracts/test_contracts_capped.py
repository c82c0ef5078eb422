"""Descriptions under a survey design: what one unit moves, by verb, against what is charged.

Integers of both rounds are recorded where they get their noise, for tables that differ in one unit,
under one released cap. Their distance in units of the noise is at most what the events allow.
"""

from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.mechanisms import count_noise
from dpmodels.mechanisms.sampled import capped
from dpmodels.postprocess.weight_caps import WeightCap

BOOK = dp.codebook(y=(0, 10), g=["a", "b"], s=["n", "m"])
WEIGHTS = {"weights": "w", "strata": "s", "bounds": (1, 20), "weights_are": "design"}
VERBS = {
    "mean": (dp.dp_mean, "y ~ g", {}),
    "total": (dp.dp_total, "y ~ g", {}),
    "var": (dp.dp_var, "y ~ g", {}),
    "ttest": (dp.dp_ttest, "y ~ g", {}),
    "table": (dp.dp_table, "~ g", {}),
    "hist": (dp.dp_hist, "~ y", {"breaks": [0, 2, 5, 10]}),
    "quantile": (dp.dp_quantile, "~ y", {"probs": 0.5}),
}
BY_ROWS = {"var", "quantile"}  # They take no psu=
BUDGETS = {"pure": {"eps": 1.0}, "gaussian": {"eps": 1.0, "delta": 1e-6}}


def sample(rng, n_rows=24):
    return {
        "y": rng.choice([0.0, 3.0, 10.0], n_rows),
        "g": rng.choice(["a", "b"], n_rows),
        "s": rng.choice(["n", "m"], n_rows),
        "w": rng.choice([1.0, 4.0, 20.0, np.nan], n_rows),
        "u": np.repeat(np.arange(n_rows // 3), 3),
    }


def replaced(rows, rng, psu):
    """Return the rows with one unit of other values."""
    extra = {name: column.copy() for name, column in rows.items()}
    changed = np.flatnonzero(rows["u"] == 2) if psu else np.array([5])
    extra["y"][changed] = rng.choice([0.0, 10.0], len(changed))
    extra["g"][changed] = rng.choice(["a", "b"])
    extra["s"][changed] = rng.choice(["n", "m"])
    extra["w"][changed] = rng.choice([1.0, 20.0, 1e9])
    return extra


def recorded(verb, rows, psu, budget, patch):
    """Return the integers that got noise, each over its scale, and what a unit is charged."""
    call, formula, options = VERBS[verb]
    noises, noisy, released = [], count_noise._noisy, capped._released_cap

    def kept(plan, exact, entropy):
        noises.append(np.asarray(exact, dtype=float).ravel() / plan.scale)
        return noisy(plan, exact, entropy)

    def fixed(*args):
        released(*args)
        return WeightCap(8.0, 1.0, 0.1, 1.0)

    patch.setattr(count_noise, "_noisy", kept)
    patch.setattr(capped, "_released_cap", fixed)
    design = dp.design(**WEIGHTS, psu="u" if psu else None)
    with dp.simulation(seed=1):
        fit = call(formula, rows, codebook=BOOK, design=design, **options, **BUDGETS[budget])
    patch.undo()
    return np.concatenate(noises), fit.release.events


CASES = [
    (verb, psu, budget)
    for verb, psu, budget in product(VERBS, (False, True), BUDGETS)
    if not (psu and verb in BY_ROWS)
]


@pytest.mark.expensive
@pytest.mark.parametrize(("verb", "psu", "budget"), CASES)
def test_a_unit_moves_what_gets_noise_by_what_is_charged(verb, psu, budget):
    rng, moves = np.random.default_rng(8), []
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(6):
            rows = sample(rng)
            tables = rows, replaced(rows, rng, psu)
            (first, events), (two, _) = (
                recorded(verb, table, psu, budget, patch) for table in tables
            )
            distance = np.abs(first - two)
            moves.append(float(distance.sum() if budget == "pure" else (distance**2).sum()))
    power = 1 if budget == "pure" else 2
    allowed = sum(event.count / event.multiplier**power for event in events)
    assert 0.3 * allowed < max(moves) <= allowed * (1 + 1e-9)


def test_a_cap_of_each_row_would_not_protect_a_unit(monkeypatch):
    """The planted fault: rows of a sampling unit that are capped each by itself."""
    from dpmodels.statistics import sampled

    lines = sampled._Lines.__init__

    def by_row(self, units, cap, tally):
        lines(self, units._replace(totals=units.weights), cap, tally)

    rng, moves = np.random.default_rng(8), []
    monkeypatch.setattr(sampled._Lines, "__init__", by_row)
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(4):
            rows = sample(rng)
            changed = replaced(rows, rng, True)
            unit = np.flatnonzero(rows["u"] == 2)
            changed["w"][unit], changed["g"][unit] = 20.0, ["a", "b", "b"]
            (first, events), (two, _) = (
                recorded("table", table, True, "gaussian", patch) for table in (rows, changed)
            )
            moves.append(float(((first - two) ** 2).sum()))
    assert max(moves) > sum(event.count / event.multiplier**2 for event in events)
