"""One store: a request, and a release by the annotations of its fields; the rest is replayed."""

import importlib
import json
import pickle
import pkgutil
from copy import copy, deepcopy
from typing import get_args

import numpy as np
import pytest
import xarray as xr

import dpmodels as dp
from dpmodels import results
from dpmodels.digest import digest
from dpmodels.errors import FrameError
from dpmodels.outside import parse
from dpmodels.released import AnyRelease
from dpmodels.results import open_saved
from dpmodels.results.base import Result
from dpmodels.results.netcdf import Saved, file_bytes
from dpmodels.results.store import FORMAT, arrays_of, replay, result_bytes

BOOK = dp.codebook(
    a=dp.Numeric(0, 10, unit="m"),
    b=(-1, 1),
    g=["p", "q", "r"],
    h=[0, 1],
    w=(0, 2),
    k=dp.Integer(0, 8),
)
RNG = np.random.default_rng(8)
ROWS = {
    "a": RNG.uniform(0, 10, 300),
    "b": RNG.uniform(-1, 1, 300),
    "g": RNG.choice(["p", "q", "r"], 300),
    "h": RNG.choice([0, 1], 300),
    "w": RNG.uniform(0, 2, 300),
    "k": RNG.integers(0, 9, 300),
}
APPROX = {"codebook": BOOK, "eps": 2.0, "delta": 1e-6}
PURE = {"codebook": BOOK, "eps": 2.0}
DEVICE = dp.randomized_response([0, 1], lie="1/5")


def surveyed(formula, **words):
    return dp.dp_survey(formula, ROWS, codebook=BOOK, device={"h": DEVICE}, **words)


ASKED = {
    "pca": lambda: dp.dp_pca("~ a + b + g", ROWS, **APPROX, adjacency="add-remove"),
    "adaptive": lambda: dp.dp_pca("~ a + b", ROWS, **APPROX, mechanism="adaptive"),
    "subspace": lambda: dp.dp_pca("~ a + b", ROWS, **PURE, mechanism="ppca", ncomp=1),
    "cov": lambda: dp.dp_cov("~ a + g", ROWS, **APPROX, center=False, scale=None),
    "cca": lambda: dp.dp_cca("a + b ~ h", ROWS, **APPROX),
    "moments": lambda: dp.dp_moments("~ a + b + h", ROWS, **APPROX),
    "states": lambda: dp.dp_table(
        *("~ h", {**ROWS, "id": np.arange(300) // 9}),
        codebook=BOOK,
        time="k",
        person="id",
        budget=dp.Pufferfish(1.0, dp.markov_chain([0, 1], stay=(0.6, 0.7))),
    ),
    "lm": lambda: dp.dp_lm("a ~ b + g", ROWS, **APPROX, weights="w"),
    "glm": lambda: dp.dp_glm("h ~ a + b", ROWS, **PURE),
    "poisson": lambda: dp.dp_glm("a ~ b", ROWS, **APPROX, family="poisson"),
    "no law": lambda: dp.dp_glm("a ~ b", ROWS, **APPROX, family="poisson", inference=False),
    "svm": lambda: dp.dp_svm("h ~ a + b", ROWS, **PURE),
    "mean": lambda: dp.dp_mean("~ a", ROWS, **PURE, mechanism="paired"),
    "var": lambda: dp.dp_var("a ~ h", ROWS, **PURE),
    "ttest": lambda: dp.dp_ttest("a ~ h", ROWS, **PURE),
    "quantile": lambda: dp.dp_quantile("a ~ g", ROWS, **PURE, probs=[0.25, 0.5]),
    "hist": lambda: dp.dp_hist("a ~ h", ROWS, **PURE, breaks=4),
    "plane": lambda: dp.dp_hist("a + b ~ h", ROWS, **PURE, breaks=4, mechanism="grid"),
    "partition": lambda: dp.dp_hist("a ~ h", ROWS, **PURE, breaks=16, mechanism="partition"),
    "table": lambda: dp.dp_table("~ g + h", ROWS, **PURE),
    "answers": lambda: dp.dp_table("~ g + h", ROWS, **PURE, mechanism="randomized_response"),
    "survey": lambda: surveyed("~ g + h", weights="w", strata={"h": {0: 1, 1: 2}}),
    "survey fit": lambda: surveyed("h ~ a", strata="g"),
    "fdr": lambda: dp.dp_fdr("a + b + g ~ h", ROWS, **APPROX, most=2, method="by"),
    "fdr of logs": lambda: dp.dp_fdr("a + b ~ h", ROWS, **APPROX, most=2, mechanism="dp_bh"),
    "margins": lambda: dp.dp_margins("~ g*h", ROWS, **PURE, adjacency="add-remove"),
    "residual": lambda: dp.dp_margins("~ g*h", ROWS, **APPROX, mechanism="residual"),
    "select": lambda: dp.dp_select("~ g:h", ROWS, **PURE, k=3),
    "columns": lambda: dp.dp_select("a ~ b + g", ROWS, **APPROX, k=2),
    "z": lambda: dp.dp_select("h ~ a + b", ROWS, **PURE, score="z", values=False),
    "above": lambda: dp.dp_select("~ g", ROWS, **APPROX, threshold=50, values=False),
    "series": lambda: dp.dp_series("~ g", ROWS, time="k", by=3, **APPROX),
    "series of a tree": lambda: dp.dp_series("~ h", ROWS, time="k", **PURE),
    "survfit": lambda: dp.dp_survfit("Surv(k, h) ~ g", ROWS, **PURE),
    "survfit of a tree": lambda: dp.dp_survfit("Surv(k, h) ~ 1", ROWS, **PURE, mechanism="tree"),
    "summary": lambda: dp.dp_summary("a + g ~ h", ROWS, **APPROX),
    "bounds": lambda: dp.dp_bounds("~ a + b", ROWS, **PURE),
    "levels": lambda: dp.dp_levels("~ g", ROWS, eps=2.0, delta=1e-6),
    "levels of a response": lambda: dp.dp_glm("g ~ a", ROWS, **APPROX, family="multinomial"),
    "tuned": lambda: dp.dp_glm("h ~ a", ROWS, **PURE, ridge=dp.tune([10.0, 100.0]), row_norm=0.9),
    "unit": lambda: dp.dp_pca("~ a + b", ROWS, **APPROX, row_norm="unit", scale="range"),
    "ends of bins": lambda: dp.dp_hist("a ~ h", ROWS, **PURE, breaks=np.array([0, 2.5, 10])),
    "subset": lambda: dp.dp_mean("a ~ h", ROWS, **PURE, subset="b > 0", ledger=dp.Ledger(eps=9.0)),
    "persons": lambda: dp.dp_lm(
        "a ~ b", {**ROWS, "id": np.arange(300) // 2}, person="id", rows=2, **APPROX
    ),
    "robust": lambda: dp.dp_lm("a ~ b + h", ROWS, **APPROX, vcov="HC"),
    "part: cov": lambda: ASKED["moments"]().cov("~ b + a"),
    "part: pca": lambda: ASKED["moments"]().pca("~ a + b", ncomp=1, center=False, scale="sd"),
    "part: lm": lambda: ASKED["moments"]().lm("a ~ b + h"),
    "part: cca": lambda: ASKED["moments"]().cca("a + b ~ h"),
    "part of a part": lambda: ASKED["moments"]().cov("~ b + a").pca(1),
    "components": lambda: dp.dp_cov("~ a + b", ROWS, **APPROX).pca(1, "sd"),
    "means of a test": lambda: ASKED["ttest"]().means,
    "counts of bins": lambda: ASKED["hist"]().table,
    "one of a summary": lambda: ASKED["summary"]()["a"],
    "counts of a summary": lambda: ASKED["summary"]()["g"],
    "sites": lambda: dp.dp_pca(
        "~ a", sites={"x": ROWS, "y": deepcopy(ROWS)}, protocol="full", **APPROX
    ),
}


@pytest.fixture(scope="module", params=ASKED)
def fit(request):
    return ASKED[request.param]()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "fit.nc"
    ASKED["pca"]().save(path)
    return open_saved(path)


def test_what_is_read_back_is_the_same_to_the_last_bit(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert type(again) is type(fit)
    assert digest(again.call) == digest(fit.call)
    assert digest(again.release) == digest(fit.release)
    assert str(again.summary()) == str(fit.summary())
    assert again.tidy().equals(fit.tidy())
    assert result_bytes(again) == result_bytes(fit)


def test_what_is_pickled_or_copied_is_the_same(fit):
    for again in (pickle.loads(pickle.dumps(fit)), copy(fit), deepcopy(fit)):
        assert type(again) is type(fit)
        assert digest(again.call) == digest(fit.call)
        assert digest(again.release) == digest(fit.release)
        assert str(again.summary()) == str(fit.summary())


def test_every_result_has_a_reading_in_every_format(fit):
    told = fit.summary(reading=True)
    own = isinstance(fit.release.guarantee, dp.Pufferfish)
    begins = "Reading: who believes " if own else "Reading: by "
    for how in ("as_text", "as_html", "as_latex", "as_markdown"):
        assert begins in getattr(told, how)()
        assert begins not in getattr(fit.summary(), how)()


def kinds(base=Result):
    """Every class of results of a release that the package has, but for what several share."""
    for module in pkgutil.iter_modules(results.__path__, "dpmodels.results."):
        importlib.import_module(module.name)
    ours = [kind for kind in base.__subclasses__() if kind.__module__.startswith("dpmodels.")]
    return [leaf for kind in ours for leaf in (kinds(kind) or [kind])]


def test_every_kind_of_result_is_saved_here():
    saved = {type(make()) for make in ASKED.values()}
    assert set(kinds()) == saved


@pytest.mark.parametrize("kind", get_args(AnyRelease), ids=lambda kind: kind.__name__)
def test_an_array_of_a_file_has_one_place_in_a_release(kind):
    names = [path[-1] for path, _ in arrays_of(kind)]
    assert names
    assert len(set(names)) == len(names)


def test_dimensions_have_names_for_other_readers(tmp_path):
    expected = {
        "pca": {"second": ("variable", "variable_"), "total": ("variable",)},
        "subspace": {"frame": ("variable", "component")},
        "quantile": {"values": ("group", "prob", "place"), "counts": ("group",)},
        "hist": {"values": ("part",)},
    }
    for name, dims in expected.items():
        ASKED[name]().save(tmp_path / name)
        with xr.open_dataset(tmp_path / name, engine="scipy") as data:
            assert {array: data[array].dims for array in dims} == dims
            facts = parse(data.attrs["facts"].encode())
            assert set(facts) == {"request", "release", "ledger", "reason"}


@pytest.mark.parametrize("written", ["dpmodels.pca/1", "dpmodels.table/1", "dpmodels.result/3"])
def test_another_format_is_refused_with_what_to_do(written, tmp_path):
    path = tmp_path / "fit.nc"
    path.write_bytes(file_bytes(written, json.dumps({}), {}))
    with pytest.raises(FrameError, match=f"{written}.*version of dpmodels that saved it"):
        dp.load(path)


@pytest.mark.parametrize("name", ["Codebook", "Momentsrelease", "", None, 3, ["MomentsRelease"]])
def test_only_releases_are_made_of_files(saved, name):
    facts = {**saved.facts, "release": [name, saved.facts["release"][1]]}
    with pytest.raises(FrameError, match="release: name: expected one of 'MomentsRelease'"):
        replay(Saved(FORMAT, facts, saved.arrays))


def test_arrays_stand_where_the_facts_leave_room_for_them(saved):
    facts, arrays = saved.facts, dict(saved.arrays)
    kind, fields = facts["release"]
    filled = {**facts, "release": [kind, {**fields, "second": [[1.0]]}]}
    less = {name: own for name, own in arrays.items() if name != "second"}
    for says, other in [
        ("release.second: expected an array, found a list", (filled, arrays)),
        ("release.second: expected an array, found null", (facts, less)),
        ("array 'x' is not of such a result", (facts, {**arrays, "x": np.zeros(1)})),
        (r"array 'total': expected the shape \(4,\)", (facts, {**arrays, "total": np.zeros(3)})),
        ("release.total: .* within 1e", (facts, {**arrays, "total": np.full(4, 1e31)})),
        ("it: expected an object, found a list", ([], arrays)),
        ("it lacks 'request'", ({}, arrays)),
    ]:
        with pytest.raises(FrameError, match=says):
            replay(Saved(FORMAT, *other))
