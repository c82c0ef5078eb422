"""One store: a request, and a release by the annotations of its fields; the rest is replayed."""

import json
import pickle
from copy import copy, deepcopy
from typing import get_args

import numpy as np
import pytest
import xarray as xr
from verb_entry import BOOK, ROWS, fitted
from verbs import forms

import dpmodels as dp
from dpmodels.digest import release_digest
from dpmodels.errors import FrameError
from dpmodels.external_files import parse
from dpmodels.mechanisms import Zero
from dpmodels.released import AnyRelease
from dpmodels.results import open_saved
from dpmodels.results.store import FORMAT, Saved, arrays_of, file_bytes, replay, result_bytes

FORMS = forms("stored")
ROWS_OF_TWO = {**ROWS, "id": np.arange(300) // 2}
ARGUMENTS = {"codebook": BOOK, "eps": 2.0, "delta": 1e-6}


def stored(name):
    return fitted(FORMS[name])


# Besides the forms of the table: options that a request keeps, and what is derived from a fit.
MORE = {
    "levels of a response": lambda: dp.dp_glm(
        "region ~ age", ROWS, family="multinomial", **ARGUMENTS
    ),
    "tuned": lambda: dp.dp_glm(
        "seen ~ age", ROWS, ridge=dp.tune([10.0, 100.0]), row_norm=0.9, codebook=BOOK, eps=2.0
    ),
    "unit": lambda: dp.dp_pca("~ age + wage", ROWS, row_norm="unit", scale="range", **ARGUMENTS),
    "ends of bins": lambda: dp.dp_hist(
        "age ~ sex", ROWS, breaks=np.array([0, 25, 100]), **ARGUMENTS
    ),
    "subset": lambda: dp.dp_mean(
        "age ~ sex", ROWS, subset="wage > 0", ledger=dp.Ledger(eps=9.0, delta=1e-5), **ARGUMENTS
    ),
    "persons": lambda: dp.dp_lm("age ~ wage", ROWS_OF_TWO, person="id", rows=2, **ARGUMENTS),
    "robust": lambda: dp.dp_lm("age ~ wage + sex", ROWS, vcov="HC", **ARGUMENTS),
    "part: cov": lambda: stored("moments of levels").cov("~ wage + age"),
    "part: pca": lambda: stored("moments of levels").pca(
        "~ age + wage", ncomp=1, center=False, scale="sd"
    ),
    "part: lm": lambda: stored("moments of levels").lm("age ~ wage + sex"),
    "part: cca": lambda: stored("moments of levels").cca("age + wage ~ sex"),
    "part of a part": lambda: stored("moments of levels").cov("~ wage + age").pca(1),
    "components": lambda: stored("cov ~ age + wage").pca(1, "sd"),
    "means of a test": lambda: stored("ttest age ~ sex").means,
    "counts of bins": lambda: stored("hist age ~ sex").table,
    "one of a summary": lambda: stored("summary age + region ~ sex")["age"],
    "counts of a summary": lambda: stored("summary age + region ~ sex")["region"],
}


@pytest.fixture(scope="module", params=[*FORMS, *MORE])
def fit(request):
    return stored(request.param) if request.param in FORMS else MORE[request.param]()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "fit.nc"
    fitted(FORMS["pca add-remove"]).save(path)
    return open_saved(path)


def test_what_is_read_back_is_the_same_to_the_last_bit(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert type(again) is type(fit)
    assert release_digest(again.call) == release_digest(fit.call)
    assert release_digest(again.release) == release_digest(fit.release)
    assert str(again.summary()) == str(fit.summary())
    assert again.tidy().equals(fit.tidy())
    assert result_bytes(again) == result_bytes(fit)


def test_what_is_pickled_or_copied_is_the_same(fit):
    for again in (pickle.loads(pickle.dumps(fit)), copy(fit), deepcopy(fit)):
        assert type(again) is type(fit)
        assert release_digest(again.call) == release_digest(fit.call)
        assert release_digest(again.release) == release_digest(fit.release)
        assert str(again.summary()) == str(fit.summary())


def test_every_result_has_a_reading_in_every_format(fit):
    reading, plain = fit.summary(reading=True), fit.summary()
    begins = "Reading: by "
    if isinstance(fit.release.guarantee, dp.Pufferfish):
        begins = "Reading: for anyone whose prior is "
    elif fit.release.info == Zero.info:
        begins = "Reading: no row contributed to it"
    for how in ("as_text", "as_html", "as_latex", "as_markdown"):
        assert begins in getattr(reading, how)()
        assert begins not in getattr(plain, how)()


@pytest.mark.parametrize("kind", get_args(AnyRelease), ids=lambda kind: kind.__name__)
def test_an_array_of_a_file_has_one_place_in_a_release(kind):
    names = [path[-1] for path, _ in arrays_of(kind)]
    assert names
    assert len(set(names)) == len(names)


def test_dimensions_have_names_for_other_readers(tmp_path):
    expected = {
        "pca add-remove": {"second": ("variable", "variable_"), "total": ("variable",)},
        "pca subspace": {"frame": ("variable", "component")},
        "quantile age ~ region": {"values": ("group", "prob", "place"), "counts": ("group",)},
        "hist age ~ sex": {"values": ("part",)},
    }
    for name, dims in expected.items():
        fitted(FORMS[name]).save(tmp_path / name)
        with xr.open_dataset(tmp_path / name, engine="scipy") as data:
            assert {array: data[array].dims for array in dims} == dims
            facts = parse(data.attrs["facts"].encode())
            assert set(facts) == {"request", "release", "ledger", "reason"}


@pytest.mark.guarding
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
    less = {name: array for name, array in arrays.items() if name != "second"}
    for says, facts_changed in [
        ("release.second: expected an array, found a list", (filled, arrays)),
        ("release.second: expected an array, found null", (facts, less)),
        ("array 'x' is not of such a result", (facts, {**arrays, "x": np.zeros(1)})),
        (r"array 'total': expected the shape \(4,\)", (facts, {**arrays, "total": np.zeros(3)})),
        ("release.total: .* within 1e", (facts, {**arrays, "total": np.full(4, 1e31)})),
        ("it: expected an object, found a list", ([], arrays)),
        ("it lacks 'request'", ({}, arrays)),
    ]:
        with pytest.raises(FrameError, match=says):
            replay(Saved(FORMAT, *facts_changed))
