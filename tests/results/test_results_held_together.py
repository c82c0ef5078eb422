"""What no annotation says of a result: each contradiction is refused by its name."""

import math
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.released import Ball, MomentNoise
from dpmodels.results.store import result_bytes

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
    "margins": dp.dp_margins("~ g*g2", ROWS, **PURE, delta=1e-6, mechanism="residual"),
}
SHARED = dp.dp_pca(
    "~ a", sites={"x": ROWS, "y": deepcopy(ROWS)}, protocol="full", **PURE, delta=1e-6
).release.shared
BOUGHT = FITS["glm"].release.curvature
FLAT = Ball(np.zeros(len(FITS["glm"].call.names) - 1), 0.0, 0.0, 0.0)
LAWLESS = replace(BOUGHT, bread_noise=replace(BOUGHT.bread_noise, off=math.nan))
FACTS = FITS["mean"].call.tables[0]
UNLEVELLED = replace(FITS["margins"].call.tables[0], levels=())
RUNS = FITS["partition"].release
BELOW = (*RUNS.levels[:-2], 5, 0)
MOVED, FIRST = RUNS.starts + 1, np.append(RUNS.starts[:-1], 0.0)
CASES = [
    ("pca", "release", {"rows": None}, "release.rows: not a number of rows as under 'replace'"),
    ("pca", "release", {"rows": -1}, "release.rows: not a number of rows"),
    ("pca", "release", {"shared": replace(SHARED, size=-1)}, "release.shared: expected numbers"),
    ("pca", "release", {"total": None}, "array 'total' is missing: call.center"),
    ("pca", "release", {"noise": MomentNoise(1.0, 1.0, math.nan, 1.0)}, "release.noise: .* a law"),
    ("pca", "release", {"noise": MomentNoise(1.0, 1.0, 1.0, math.nan)}, "release.noise: .* a law"),
    ("pca", "release", {"noise": MomentNoise(1.0, math.nan, 1.0, 1.0)}, "release.noise: .* a law"),
    ("pca", "call", {"ncomp": 3}, "call.ncomp: expected a number from 1 to 2"),
    ("pca", "call", {"divisor": np.array([1.0, 0.0])}, "'divisor': no ranges, or no scaling"),
    ("pca", "call", {"lower": np.full(2, 20.0)}, "arrays 'lower', 'upper', 'divisor': no ranges"),
    ("pca", "call", {"divisor": np.full(2, 1e-30)}, "columns are not scaled within"),
    ("pca", "call", {"names": ("a",)}, "array 'lower': expected the shape"),
    ("ppca", "release", {"variances": np.ones(1)}, "without a number of rows or noise"),
    ("glm", "release", {"gradient_sd": math.nan}, "release: array 'gradient' is there, and nan"),
    ("glm", "release", {"coefficient_sd": math.nan}, "release: array 'gradient' is there, and nan"),
    ("glm", "release", {"curvature": LAWLESS}, "release.curvature: bought, and the law"),
    ("glm", "release", {"ball": FLAT}, "release.ball.radius: expected a number from"),
    ("glm", "call", {"matrix": np.diag([1e-300, 1.0])}, "'matrix': expected a number from 1e-120"),
    ("mean", "call", {"tables": ()}, "call.tables: expected one at least"),
    ("mean", "call", {"tables": (replace(FACTS, upper=-1.0),)}, "no table of levels and of a"),
    ("mean", "call", {"tables": (FACTS, FACTS)}, "array 'values': expected the shape"),
    ("mean", "release", {"step": 2.0}, "release.step: expected a part of a row, at most 1"),
    ("mean", "release", {"paired": True}, "release.paired: expected false but for the mean"),
    ("partition", "release", {"shape": (1, 48)}, "release.shape: not that of the table"),
    ("partition", "release", {"levels": BELOW}, "release.sizes, levels, noise_sds: not those"),
    ("partition", "release", {"noise_sds": RUNS.noise_sds[1:]}, "release.sizes, levels, noise_sds"),
    ("partition", "release", {"starts": MOVED}, "array 'starts': not the first cells of runs"),
    ("partition", "release", {"starts": FIRST}, "array 'starts': expected the incomplete rows"),
    ("mean", "release", {"noise_sd": 0.0}, "release.noise_sd: expected a positive number"),
    ("summary", "release", {"noise_sd": 0.0}, "release.noise_sd: expected a positive number"),
    ("pca", "call", {"row_norm": 0.0}, "call.row_norm: expected a positive number"),
    ("mean", "release", {"noise_sd": math.inf}, "release.noise_sd: expected 0 or a number"),
    ("margins", "call", {"tables": (UNLEVELLED,)}, "expected the levels of each variable"),
    ("quantile", "call", {"tables": (FACTS, FACTS)}, "call.tables: expected one$"),
    ("quantile", "release", {"rank_sd": np.zeros((3, 2))}, "expected positive numbers"),
]


@pytest.mark.parametrize(("name", "part", "change", "says"), CASES)
def test_a_contradiction_is_refused_by_its_name(name, part, change, says):
    fit = FITS[name]
    assert result_bytes(fit)
    with pytest.raises(FrameError, match=says):
        result_bytes(replace(fit, **{part: replace(getattr(fit, part), **change)}))


def test_a_plane_has_two_numbers(tmp_path):
    fit = dp.dp_hist("a + b ~ g", ROWS, **PURE, breaks=4, mechanism="grid")
    other = replace(fit, call=replace(fit.call, formula="a ~ g"))
    (tmp_path / "fit.nc").write_bytes(result_bytes(other))
    with pytest.raises(FrameError, match=r"call\.formula: expected two numbers"):
        dp.load(tmp_path / "fit.nc")


def test_quantiles_have_a_value_for_each_of_their_probs():
    with pytest.raises(FrameError, match="expected the shape"):
        result_bytes(replace(FITS["quantile"], probs=(0.5,)))


def test_a_histogram_has_one_more_break_than_bins():
    fit = dp.dp_hist("~ a", ROWS, **PURE, breaks=4)
    with pytest.raises(FrameError, match=r"array 'breaks': expected the shape \(5,\)"):
        result_bytes(replace(fit, breaks=fit.breaks[1:]))
