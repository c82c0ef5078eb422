"""Results made from chosen releases: no noise is drawn, so every table is repeatable."""

import math

import numpy as np
import pytest

import dpmodels as dp
import dpmodels.models
from dpmodels.design import row_coder
from dpmodels.formula import design
from dpmodels.mechanisms import Gauss
from dpmodels.privacy import ApproxDP, GaussianEvent, adjacency
from dpmodels.released import MomentNoise, MomentsRelease
from dpmodels.results import MomentsCall, PCAResult

SPECTRUM = (0.9, 0.5, 0.2, 0.02, 0.01)


def call_of(names, **changes):
    size = len(names)
    call_facts = {
        "formula": "~ .",
        "codebook": dp.codebook.uniform(names, (-1, 1)),
        "names": tuple(names),
        "lower": np.full(size, -1.0),
        "upper": np.ones(size),
        "origin": np.zeros(size),
        "divisor": np.ones(size),
        "row_norm": math.sqrt(size),
        "worst_case": math.sqrt(size),
        "unit_rows": False,
        "center": True,
        "scale": "range",
        "denoise": "auto",
        "ncomp": size,
    }
    return MomentsCall(**{**call_facts, **changes})


@pytest.fixture
def make():
    """Build a result whose released covariance and noise are the ones given."""

    def build(
        spectrum=SPECTRUM,
        *,
        matrix=None,
        noise=1e-3,
        rows=1_000,
        neighbours="replace",
        guarantee=None,
        simulated=False,
        names=None,
        mean=None,
        **changes,
    ):
        if matrix is None:
            turn = np.linalg.qr(np.random.default_rng(1).normal(size=(len(spectrum),) * 2))[0]
            matrix = turn @ np.diag(spectrum) @ turn.T
        size = len(matrix)
        mean = np.zeros(size) if mean is None else np.asarray(mean)
        call = call_of(names or [f"x{j}" for j in range(size)], **changes)
        unit = call.row_norm**2
        # The noise variance of the mean, which the result gives back, is taken off first.
        entry = noise * (rows - 1) / unit
        mean_noise = entry * math.sqrt(unit) / 10
        covariance_of_mean = (
            (mean_noise * math.sqrt(unit) / rows) ** 2 * np.eye(size) if call.center else 0.0
        )
        offset = rows * (np.outer(mean, mean) - covariance_of_mean)
        divisor = rows - 1 if call.center else rows
        release = MomentsRelease(
            count=float(rows),
            total=rows * mean / math.sqrt(unit) if call.center else None,
            second=(matrix * divisor + offset) / unit,
            noise=MomentNoise(3.2, mean_noise, entry * math.sqrt(2), entry),
            rows=rows if neighbours == "replace" else None,
            info=Gauss.info,
            guarantee=guarantee or ApproxDP(1.0, 1e-6),
            adjacency=adjacency(neighbours),
            events=(GaussianEvent(4.2),),
            simulated=simulated,
        )
        return PCAResult(call, release, row_coder(design(call.formula, call.codebook)))

    return build
