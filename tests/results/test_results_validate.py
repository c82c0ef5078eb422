"""What no annotation says of a release from a file: each contradiction is refused by its name."""

import copy
import math
import pickle
from copy import deepcopy
from dataclasses import replace

import forged
import numpy as np
import pytest
from folded import each

import dpmodels as dp
from dpmodels.errors import DPModelsError, FrameError, NotAvailable
from dpmodels.privacy import adjacency
from dpmodels.released import Ball, MomentNoise
from dpmodels.results.store import saved_of

BOOK = dp.codebook(a=(0, 10), b=(-1, 1), g=["p", "q", "r"], g2=[0, 1])
RNG = np.random.default_rng(8)
ROWS = {
    "a": RNG.uniform(0, 10, 300),
    "b": RNG.uniform(-1, 1, 300),
    "g": RNG.choice(["p", "q", "r"], 300),
    "g2": RNG.choice([0, 1], 300),
}
PURE = {"codebook": BOOK, "eps": 2.0}
FITS = {
    "pca": dp.dp_pca("~ a + b", ROWS, **PURE),
    "ppca": dp.dp_pca("~ a + b", ROWS, **PURE, mechanism="ppca", ncomp=1),
    "glm": dp.dp_glm("g2 ~ a", ROWS, **PURE),
    "mean": dp.dp_mean("a ~ g", ROWS, **PURE),
    "summary": dp.dp_summary("a + g ~ g2", ROWS, **PURE),
    "partition": dp.dp_hist("a ~ g", ROWS, **PURE, breaks=16, mechanism="partition"),
    "quantile": dp.dp_quantile("a ~ g", ROWS, **PURE, probs=[0.25, 0.5]),
}
SHARED = dp.dp_pca(
    "~ a", sites={"x": ROWS, "y": deepcopy(ROWS)}, protocol="full", **PURE, delta=1e-6
).release.shared
BOUGHT = FITS["glm"].release.curvature
FLAT = Ball(np.zeros(len(FITS["glm"].call.names) - 1), 0.0, 0.0, 0.0)
HALF = replace(BOUGHT, end=None)
SCORED = replace(BOUGHT, score=np.zeros(len(BOUGHT.bread)))
UNKNOWN = replace(BOUGHT, first_noise=replace(BOUGHT.first_noise, off=math.nan))
LAWLESS = replace(BOUGHT, bread_noise=replace(BOUGHT.bread_noise, off=math.nan))
RUNS = FITS["partition"].release
BELOW = (*RUNS.levels[:-2], 5, 0)
MOVED, FIRST = RUNS.starts + 1, np.append(RUNS.starts[:-1], 0.0)
CASES = [
    ("pca", {"rows": None}, "release.rows: not a number of rows as under 'replace'"),
    ("pca", {"rows": -1}, "release.rows: not a number of rows"),
    ("pca", {"shared": replace(SHARED, size=-1)}, "release.shared: expected numbers"),
    ("pca", {"total": None}, "array 'total' is missing: call.center"),
    ("pca", {"noise": MomentNoise(1.0, 1.0, math.nan, 1.0)}, "release.noise: .* a law"),
    ("pca", {"noise": MomentNoise(1.0, 1.0, 1.0, math.nan)}, "release.noise: .* a law"),
    ("pca", {"noise": MomentNoise(1.0, math.nan, 1.0, 1.0)}, "release.noise: .* a law"),
    ("ppca", {"variances": np.ones(1)}, "without a number of rows or noise"),
    ("glm", {"gradient_sd": math.nan}, "release: array 'gradient' is there, and a noise sd is nan"),
    (
        "glm",
        {"coefficient_sd": math.nan},
        "release: array 'gradient' is there, and a noise sd is nan",
    ),
    ("glm", {"curvature": HALF}, "release.curvature: expected first, first_noise and end"),
    ("glm", {"curvature": SCORED}, "release.curvature: expected score, score_sd and end"),
    ("glm", {"curvature": UNKNOWN}, "release.curvature: first was bought"),
    ("glm", {"curvature": LAWLESS}, "release.curvature: bought, and a noise sd"),
    ("glm", {"ball": FLAT}, "release.ball.radius: expected a number from"),
    ("mean", {"noise_sd": 0.0}, "release.noise_sd: expected a positive number"),
    ("summary", {"noise_sd": 0.0}, "release.noise_sd: expected a positive number"),
    ("mean", {"step": 2.0}, "release.step: expected a part of a row, at most 1"),
    ("mean", {"paired": True}, "release.paired: expected false but for the mean"),
    ("partition", {"shape": (1, 48)}, "release.shape: not that of the table"),
    ("partition", {"levels": BELOW}, "release.sizes, levels, noise_sds: not those"),
    ("partition", {"noise_sds": RUNS.noise_sds[1:]}, "release.sizes, levels, noise_sds"),
    ("partition", {"starts": MOVED}, "array 'starts': not the first cells of runs"),
    ("partition", {"starts": FIRST}, "array 'starts': expected the incomplete rows"),
    ("mean", {"noise_sd": math.inf}, "release.noise_sd: expected 0 or a number"),
    ("quantile", {"rank_sd": np.zeros((3, 2))}, "expected positive numbers"),
]


@each("name, change, says", CASES)
def test_a_contradiction_is_refused_by_its_name(name, change, says):
    with pytest.raises(FrameError, match=says):
        forged.with_release(FITS[name], **change)


REQUESTS = [
    ("pca", {"verb": "cov"}, "request.options: 'ncomp' is not a parameter of the verb"),
    ("pca", {"verb": "load"}, "request.verb: 'load' is not a verb"),
    ("pca", {"verb": "..load"}, "request.verb: '..load' is not a verb"),
    ("pca", {"verb": "mean", "options": {}}, "dp_mean takes one variable"),
    ("pca", {"options": {"ncomp": 3}}, "ncomp=3: expected"),
    ("pca", {"options": {"scale": "sideways"}}, "scale="),
    ("pca", {"options": {"row_norm": -1.0}}, "row_norm="),
    ("pca", {"options": {"center": False}, "formula": "~ a"}, "array 'total': expected the shape"),
    ("pca", {"guarantee": dp.PureDP(3.0)}, "release.guarantee: not that of the request"),
    ("pca", {"adjacency": adjacency("add-remove")}, "release.adjacency: not that of the request"),
    ("pca", {"subset": "a > 1"}, "release.subset: not that of the request"),
    ("pca", {"subset": "elsewhere > 1"}, "elsewhere"),
    ("pca", {"formula": "~ a + elsewhere"}, "elsewhere"),
    ("glm", {"formula": "g2 ~ a + b"}, "array 'coefficients': expected the shape"),
    ("glm", {"verb": "svm", "options": {}}, None),
    ("mean", {"verb": "table"}, "'a': a is a number"),
    ("mean", {"verb": "var"}, "array 'values': expected the shape"),
    ("mean", {"formula": "~ a"}, "array 'values': expected the shape"),
    ("mean", {"verb": "ttest", "options": {"mu": 0.0}}, "compares two groups"),
    (
        "mean",
        {"verb": "quantile", "options": {"probs": (0.5,)}},
        "CountsRelease is not a release of",
    ),
    ("partition", {"options": {"breaks": 8}}, "release.shape: not that of the table"),
    ("partition", {"options": {"breaks": (0.0, 1.0)}}, "breaks="),
    ("quantile", {"options": {"probs": (0.5,)}}, "array 'values': expected the shape"),
]


@pytest.mark.guarding
@pytest.mark.parametrize(("name", "change", "says"), REQUESTS)
def test_a_request_that_does_not_fit_its_release_is_refused(name, change, says):
    if says is None:
        # What a release of coefficients is of, its request alone says.
        assert forged.with_request(FITS[name], **change).request.verb == change["verb"]
        return
    with pytest.raises(DPModelsError, match=says):
        forged.with_request(FITS[name], **change)


def test_what_is_derived_is_refused_of_another_parent():
    moments = dp.dp_moments("~ a + b", ROWS, **PURE | {"delta": 1e-6})
    part = moments.lm("a ~ b")
    assert forged.with_request(part).summary().as_text() == part.summary().as_text()
    for change, says in [
        ({"options": {}}, "request.options: not those of 'lm'"),
        ({"options": {"formula": 3}}, "formula"),
        ({"options": {"formula": "a ~ g"}}, "was not released"),
        ({"verb": "save"}, "request.verb: 'save' is not computed from its parent"),
        ({"parent": FITS["mean"].request}, "request.verb: 'lm' is not computed from its parent"),
    ]:
        with pytest.raises(DPModelsError, match=says):
            forged.with_request(part, **change)


def test_what_was_put_together_by_hand_has_no_file():
    changed = replace(FITS["pca"], call=replace(FITS["pca"].call, formula="~ b + a"))
    for act in (saved_of, pickle.dumps, copy.copy):
        with pytest.raises(NotAvailable, match="not returned by a verb, or was changed since"):
            act(changed)
