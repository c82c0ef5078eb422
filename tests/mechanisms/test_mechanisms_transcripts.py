"""Rounds for means and variances along one transcript: what is told, and what it costs in all."""

from itertools import pairwise

import numpy as np
import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.digest import release_digest
from dpmodels.mechanisms import count_noise
from dpmodels.privacy import ZCDP, PureDP

BOOK = dp.codebook(wage=(-3, 1_000), week=dp.Numeric(0, 15, step=1), region=["u", "v", "w"])
ODD = ((0, 0, "u"), (1_000, 15, "v"), (-3, 7.5, "w"), (1e308, -1e308, "u"), (None, 3, "v"))
ODD += ((2, None, "u"), (float("inf"), 2.5, "?"), (1.5, 1, None), (-0.0, 1e-320, "w"))


class Transcript:
    """Gives each release of counts the values it had the first time; notes the exact ones."""

    def __init__(self):
        self.values, self.exact, self.scales = [], [], []
        self.own = count_noise.noisy_sums

    def __call__(self, parts, draw, entropy):
        ((exact, scale),) = parts
        turn = len(self.exact)
        self.exact.append(exact)
        if turn == len(self.values):
            self.values.append(self.own(parts, draw, entropy)[0])
            self.scales.append(scale)
        assert self.scales[turn] == scale
        return [self.values[turn]]

    def again(self):
        found, self.exact = self.exact, []
        return found


@pytest.mark.product
@pytest.mark.parametrize("budget", [PureDP(30.0), ZCDP(50.0)], ids=str)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("form", forms("rounds").values(), ids=lambda form: form.id)
def test_along_a_transcript_neighbours_print_alike_and_lose_what_is_charged(
    monkeypatch, form, relation, budget
):
    """The losses of both rounds add up along every transcript, here of ranges that are found."""
    rng = np.random.default_rng(0)
    others = list(
        zip(rng.lognormal(1, 1, 60), rng.poisson(1, 60), rng.choice(list("uvw"), 60), strict=True)
    )
    pairs = pairwise(ODD) if relation == "replace" else ((row, None) for row in ODD)
    furthest, found = 0.0, set()
    for number, pair in enumerate([*pairs, *([(ODD[0], ODD[1])] * (relation == "replace"))]):
        told = Transcript()
        monkeypatch.setattr(count_noise, "noisy_sums", told)
        shown, exact = [], []
        for row in pair:
            rows = [*others[:30], *([row] if row else []), *others[30:]]
            table = dict(zip(BOOK, map(list, zip(*rows, strict=True)), strict=True))
            words = {"codebook": BOOK, "budget": budget, "adjacency": relation}
            with dp.simulation(seed=number):
                fit = form.function(form.formula, table, mechanism="rounds", **words)
            shown.append((release_digest(fit.release), fit.summary().as_text()))
            exact.append(told.again())
            found.add(fit.release.held is not None)
        assert shown[0] == shown[1]
        monkeypatch.undo()
        power = 2 if isinstance(budget, ZCDP) else 1
        apart = [
            float((abs(one - other) ** power).sum()) / (power * scale**power)
            for one, other, scale in zip(*exact, told.scales, strict=True)
        ]
        furthest = max(furthest, sum(apart))
    granted = budget.rho if isinstance(budget, ZCDP) else budget.eps
    assert True in found or form.formula == "week ~ region", "no range is found, so none is tried"
    assert 0.9 * granted <= furthest <= granted
