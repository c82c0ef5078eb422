import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError

CODEBOOK = dp.codebook(
    {"a b": (0, 10)},
    y=dp.Numeric(-1, 1, unit="m", label="a height"),
    group=["p", "q", "r"],
    grade=[1, 2],
)
FORMULA = "~ Q('a b') + y:group + C(grade)"
PUBLIC = {"a b": [1.0, 5.0], "y": [0.5, np.nan], "group": ["q", "r"], "grade": [2, 1]}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    return {
        "a b": rng.uniform(0, 10, 800),
        "y": rng.uniform(-1, 1, 800),
        "group": rng.choice(["p", "q", "r"], 800),
        "grade": rng.choice([1, 2], 800),
    }


WAYS = [
    {"eps": 1.0, "delta": 1e-6},
    {"eps": 1.0, "delta": 1e-6, "scale": "sd", "adjacency": "add-remove"},
    {"budget": dp.ZCDP(0.5), "center": False, "scale": None, "ncomp": 2},
]


@pytest.fixture(params=WAYS, ids=str)
def fit(request, table):
    return dp.dp_pca(FORMULA, table, codebook=CODEBOOK, **request.param)


def test_what_is_read_back_prints_the_same_in_every_format(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    for form in ("as_text", "as_html", "as_latex", "as_markdown"):
        assert getattr(again.summary(), form)() == getattr(fit.summary(), form)()
    assert repr(again) == repr(fit)
    assert again._repr_html_() == fit._repr_html_()


def test_what_is_read_back_holds_the_same_values(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    again = dp.load(str(tmp_path / "fit.nc"))
    assert again.to_xarray().identical(fit.to_xarray())
    assert again.release.events == fit.release.events
    assert again.release.guarantee == fit.release.guarantee
    assert again.release.adjacency == fit.release.adjacency
    assert again.call.codebook == fit.call.codebook
    for table in ("noise", "noise_int", "tidy", "glance"):
        assert getattr(again, table)().equals(getattr(fit, table)())


def test_what_is_read_back_transforms_alike(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    scores = dp.load(tmp_path / "fit.nc").transform(PUBLIC)
    assert scores.identical(fit.transform(PUBLIC))
    assert np.isnan(scores[1]).all()
    assert not np.isnan(scores[0]).any()


def test_what_is_read_back_saves_the_same(fit, tmp_path):
    fit.save(tmp_path / "one.nc")
    dp.load(tmp_path / "one.nc").save(tmp_path / "two.nc")
    assert dp.load(tmp_path / "two.nc").to_xarray().identical(fit.to_xarray())


def test_a_simulation_stays_one(table, tmp_path):
    with dp.simulation(seed=1):
        fit = dp.dp_pca("~ y", table, codebook=CODEBOOK, eps=1.0, delta=1e-6)
    fit.save(tmp_path / "fit.nc")
    assert dp.load(tmp_path / "fit.nc").simulated


def test_a_file_that_is_missing_or_another(tmp_path):
    with pytest.raises(FrameError, match="save"):
        dp.load(tmp_path / "nothing.nc")
    (tmp_path / "other.nc").write_bytes(b"no netCDF at all")
    with pytest.raises(FrameError, match="save"):
        dp.load(tmp_path / "other.nc")


def test_a_file_of_another_kind(tmp_path):
    import xarray as xr

    xr.Dataset(attrs={"format": "dpmodels.pca/99", "facts": "{}"}).to_netcdf(
        tmp_path / "later.nc", engine="scipy"
    )
    with pytest.raises(FrameError, match="pca/99"):
        dp.load(tmp_path / "later.nc")
    xr.Dataset({"x": ("i", [1.0])}).to_netcdf(tmp_path / "plain.nc", engine="scipy")
    with pytest.raises(FrameError, match="save"):
        dp.load(tmp_path / "plain.nc")
