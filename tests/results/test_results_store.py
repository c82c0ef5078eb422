"""One store: the annotations of a result's fields say how it is written and read."""

import importlib
import json
import pkgutil
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pytest
import xarray as xr

import dpmodels as dp
from dpmodels import results
from dpmodels.digest import digest
from dpmodels.errors import FrameError
from dpmodels.models.load import RESULTS
from dpmodels.outside import Amount, Bounded, parse
from dpmodels.released import CountsRelease
from dpmodels.results import open_saved
from dpmodels.results.base import Result
from dpmodels.results.call import DescribedCall
from dpmodels.results.netcdf import Saved, file_bytes
from dpmodels.results.store import FORMAT, _arrays, read_result, result_bytes

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
    bare = {name: None for name in ("coder", "coders") if hasattr(fit, name)}
    assert digest(replace(again, **bare)) == digest(replace(fit, **bare))
    assert result_bytes(again) == result_bytes(fit)


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


def test_what_can_be_saved_can_be_loaded():
    assert set(kinds()) == set(RESULTS)


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_an_array_of_a_file_has_one_place_in_a_result(kind):
    names = [way[-1] for way, _ in _arrays(kind)]
    assert names
    assert len(set(names)) == len(names)


@dataclass(frozen=True, repr=False)
class Trimmed(Result):
    call: DescribedCall
    release: CountsRelease
    share: Amount
    weights: Annotated[Bounded, "part"] | None
    coder: object = None


def test_a_new_kind_of_result_is_written_by_its_annotations(tmp_path):
    table = ASKED["table"]()
    weights = np.linspace(0, 1, len(table.release.values))
    full = Trimmed(table.call, table.release, 0.1, weights, coder=print)
    bare = replace(full, share=0.0, weights=None)
    for own in (full, bare):
        own.save(tmp_path / "fit.nc", overwrite=True)
        again = read_result(open_saved(tmp_path / "fit.nc", FORMAT), [Trimmed])
        assert digest(again) == digest(replace(own, coder=None))
    with pytest.raises(FrameError, match="share: expected 0 or a number between"):
        result_bytes(replace(full, share=-1.0))
    with pytest.raises(FrameError, match=r"array 'weights': expected the shape \(7,\)"):
        result_bytes(replace(full, weights=weights[1:]))


def test_dimensions_have_names_for_other_readers(tmp_path):
    expected = {
        "pca": {"second": ("variable", "variable_"), "total": ("variable",)},
        "subspace": {"frame": ("variable", "component")},
        "quantile": {"values": ("group", "prob", "place"), "counts": ("group",)},
        "hist": {"breaks": ("edge",), "values": ("part",)},
    }
    for name, dims in expected.items():
        ASKED[name]().save(tmp_path / name)
        with xr.open_dataset(tmp_path / name, engine="scipy") as data:
            assert {array: data[array].dims for array in dims} == dims
            assert parse(data.attrs["facts"].encode())["kind"] in {own.__name__ for own in RESULTS}


@pytest.mark.parametrize("written", ["dpmodels.pca/1", "dpmodels.table/1", "dpmodels.result/2"])
def test_another_format_is_refused_with_what_to_do(written, tmp_path):
    path = tmp_path / "fit.nc"
    path.write_bytes(file_bytes(written, json.dumps({}), {}))
    with pytest.raises(FrameError, match=f"{written}.*version of dpmodels that saved it"):
        dp.load(path)


@pytest.mark.parametrize("kind", ["Codebook", "PCAresult", "", None, 3, ["PCAResult"]])
def test_only_results_are_made_of_files(saved, kind):
    other = Saved(FORMAT, {**saved.facts, "kind": kind}, saved.arrays)
    with pytest.raises(FrameError, match="kind: expected one of 'PCAResult', 'SubspaceResult'"):
        read_result(other, RESULTS)


def test_arrays_stand_where_the_facts_leave_room_for_them(saved):
    facts, arrays = saved.facts, dict(saved.arrays)
    filled = {**facts, "release": {**facts["release"], "second": [[1.0]]}}
    less = {name: own for name, own in arrays.items() if name != "second"}
    for says, other in [
        ("release.second: expected an array, found a list", (filled, arrays)),
        ("release.second: expected an array, found null", (facts, less)),
        ("array 'x' is not of such a result", (facts, {**arrays, "x": np.zeros(1)})),
        (r"array 'total': expected the shape \(4,\)", (facts, {**arrays, "total": np.zeros(3)})),
        ("release.total: .* within 1e", (facts, {**arrays, "total": np.full(4, 1e31)})),
        ("kind: expected one of", ([], arrays)),
    ]:
        with pytest.raises(FrameError, match=says):
            read_result(Saved(FORMAT, *other), RESULTS)
