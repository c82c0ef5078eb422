"""One store: the annotations of a result's fields say how it is written and read."""

import importlib
import json
import pkgutil
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pytest
import xarray as xr
from verb_entry import fitted
from verbs import forms

import dpmodels as dp
from dpmodels import results
from dpmodels.digest import digest
from dpmodels.errors import FrameError
from dpmodels.mechanisms import Zero
from dpmodels.models.load import RESULTS
from dpmodels.outside import Amount, Bounded, parse
from dpmodels.released import CountsRelease
from dpmodels.results import open_saved
from dpmodels.results.base import Result
from dpmodels.results.call import DescribedCall
from dpmodels.results.netcdf import Saved, file_bytes
from dpmodels.results.store import FORMAT, _arrays, read_result, result_bytes

FORMS = forms("stored")


@pytest.fixture(scope="module", params=FORMS)
def fit(request):
    return fitted(FORMS[request.param])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "fit.nc"
    fitted(FORMS["pca add-remove"]).save(path)
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
    told, plain = fit.summary(reading=True), fit.summary()
    begins = "Reading: by "
    if isinstance(fit.release.guarantee, dp.Pufferfish):
        begins = "Reading: who believes "
    elif fit.release.card == Zero.card:
        begins = "Reading: no row had a part in it"
    for how in ("as_text", "as_html", "as_latex", "as_markdown"):
        assert begins in getattr(told, how)()
        assert begins not in getattr(plain, how)()


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
    table = fitted(FORMS["table ~ region + sex"])
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
        "pca add-remove": {"second": ("variable", "variable_"), "total": ("variable",)},
        "pca subspace": {"frame": ("variable", "component")},
        "quantile age ~ region": {"values": ("group", "prob", "place"), "counts": ("group",)},
        "hist age ~ sex": {"breaks": ("edge",), "values": ("part",)},
    }
    for name, dims in expected.items():
        fitted(FORMS[name]).save(tmp_path / name)
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
