"""Rounds for means and variances along one transcript: what is printed and what it costs."""

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
        previous, self.exact = self.exact, []
        return previous


@pytest.mark.product
@pytest.mark.parametrize("budget", [PureDP(30.0), ZCDP(50.0)], ids=str)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("form", forms("rounds").values(), ids=lambda form: form.id)
def test_along_a_transcript_neighbours_print_alike_and_lose_what_is_charged(
    monkeypatch, form, relation, budget
):
    """The losses of both rounds add up along every transcript, here of ranges that are found."""
    rng = np.random.default_rng(0)
    base = list(
        zip(rng.lognormal(1, 1, 60), rng.poisson(1, 60), rng.choice(list("uvw"), 60), strict=True)
    )
    pairs = pairwise(ODD) if relation == "replace" else ((row, None) for row in ODD)
    furthest, texts = 0.0, set()
    for number, pair in enumerate([*pairs, *([(ODD[0], ODD[1])] * (relation == "replace"))]):
        transcript = Transcript()
        monkeypatch.setattr(count_noise, "noisy_sums", transcript)
        printed, exact = [], []
        for row in pair:
            rows = [*base[:30], *([row] if row else []), *base[30:]]
            table = dict(zip(BOOK, map(list, zip(*rows, strict=True)), strict=True))
            words = {"codebook": BOOK, "budget": budget, "adjacency": relation}
            with dp.simulation(seed=number):
                fit = form.function(form.formula, table, mechanism="rounds", **words)
            printed.append((release_digest(fit.release), fit.summary().as_text()))
            exact.append(transcript.again())
            texts.add(fit.release.held is not None)
        assert printed[0] == printed[1]
        monkeypatch.undo()
        power = 2 if isinstance(budget, ZCDP) else 1
        distance = [
            float((abs(left - right) ** power).sum()) / (power * scale**power)
            for left, right, scale in zip(*exact, transcript.scales, strict=True)
        ]
        furthest = max(furthest, sum(distance))
    granted = budget.rho if isinstance(budget, ZCDP) else budget.eps
    assert True in texts or form.formula == "week ~ region", "no range is found, so none is tried"
    assert 0.9 * granted <= furthest <= granted
