"""Files of the first format, as version 0.1 of this package wrote them in a simulation."""

from pathlib import Path

import pytest

import dpmodels as dp
from dpmodels.errors import DPModelsError, FrameError, NotAvailable
from dpmodels.models.load import FORMAT_1, KINDS, result_of_format_1
from dpmodels.results.store import Saved, open_saved, replay

FILES = sorted((Path(__file__).parent / "format_1").glob("*.nc"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_the_first_format_prints_what_it_printed_then(path, tmp_path):
    printed = path.with_suffix(".txt").read_text("utf-8")
    fit = dp.load(path)
    assert str(fit.summary()).rstrip("\n") + "\n" == printed
    if getattr(fit.call, "part_of", ""):
        # The file has not the declarations of the release that it is a part of.
        with pytest.raises(NotAvailable, match="no request"):
            fit.save(tmp_path / "fit.nc")
        return
    fit.save(tmp_path / "fit.nc")
    assert str(dp.load(tmp_path / "fit.nc").summary()).rstrip("\n") + "\n" == printed


def test_there_is_a_file_of_every_kind():
    assert {open_saved(path, FORMAT_1).facts["kind"] for path in FILES} == set(KINDS)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("pca", {"kind": "Codebook"}, "kind: expected one of 'PCAResult'"),
        ("pca", {"kind": None}, "kind: expected one of"),
        ("pca", {"call": {}}, "call lacks 'formula'"),
        ("pca", {"release": 3}, "release: expected an object"),
        ("pca", {"model": 3}, "it has 'model'"),
        ("mean", {"kind": "VarResult"}, "array 'values': expected the shape"),
        ("table", {"kind": "MeanResult"}, "dp_mean takes one variable"),
        ("hist", {"variable": 3}, "variable: expected a text"),
        ("lm", {"model": {"intercept": True, "weights": "x"}}, "x"),
    ],
)
def test_a_forged_file_of_the_first_format_is_refused(name, change, says):
    saved = open_saved(FILES[0].with_name(f"{name}.nc"), FORMAT_1)
    with pytest.raises(DPModelsError, match=says):
        result_of_format_1(Saved(FORMAT_1, {**saved.facts, **change}, saved.arrays))
    with pytest.raises(FrameError):
        replay(saved)
