import numpy as np
import pandas as pd
import pytest
import xarray as xr

from dpmodels.errors import NotAvailable

BY_COMPONENT = [
    "eigenvals",
    "sdev",
    "explained_variance_ratio",
    "explained_variance_ratio_noise_sd",
]


@pytest.mark.parametrize("name", BY_COMPONENT)
@pytest.mark.parametrize("ncomp", [1, 3, 5])
def test_values_by_component_are_labelled(make, name, ncomp):
    values = getattr(make(ncomp=ncomp), name)
    assert isinstance(values, xr.DataArray)
    assert (values.name, values.dims, values.dtype) == (name, ("component",), np.float64)
    assert list(values["component"].to_numpy()) == [f"PC{i + 1}" for i in range(ncomp)]


def test_loadings_are_labelled(make):
    loadings = make(ncomp=2, names=["a", "b", "c", "d", "a long name"]).loadings
    assert (loadings.name, loadings.dims, loadings.shape) == (
        "loadings",
        ("variable", "component"),
        (5, 2),
    )
    assert list(loadings["variable"].to_numpy()) == ["a", "b", "c", "d", "a long name"]
    assert list(loadings["component"].to_numpy()) == ["PC1", "PC2"]


def test_components_are_those_of_the_released_matrix(make):
    matrix = np.diag([0.1, 0.6, 0.3]) + 0.05
    fit = make(matrix=matrix)
    values, vectors = np.linalg.eigh(matrix)
    np.testing.assert_allclose(fit.eigenvals, values[::-1])
    np.testing.assert_allclose(fit.sdev, np.sqrt(values[::-1]))
    np.testing.assert_allclose(np.abs(fit.loadings), np.abs(vectors[:, ::-1]))
    assert fit.total_variance == pytest.approx(1.15)


def test_largest_first_and_largest_loading_positive(make):
    fit = make()
    assert (np.diff(fit.eigenvals) < 0).all()
    loadings = fit.loadings.to_numpy()
    assert (loadings[np.abs(loadings).argmax(axis=0), range(5)] > 0).all()
    np.testing.assert_allclose(loadings.T @ loadings, np.eye(5), atol=1e-12)


def test_negative_variances_are_shown_as_zero_and_kept_in_the_spectrum(make):
    fit = make(matrix=np.diag([0.5, -0.1]), noise=0.1)
    assert fit.eigenvals.to_numpy().tolist() == [pytest.approx(0.5), 0.0]
    assert fit.sdev.to_numpy()[1] == 0.0
    assert fit.noise()["eigenvalue"].iloc[1] == pytest.approx(-0.1)


def test_shares_of_all_components_add_up_to_one(make):
    for noise in (1e-4, 0.02, 0.1):
        assert float(make(noise=noise).explained_variance_ratio.sum()) == pytest.approx(1.0)


def test_shares_are_nan_where_the_total_is_noise(make):
    fit = make(matrix=np.diag([0.1, -0.1, 0.05]), noise=0.1)
    assert np.isnan(fit.total_variance)
    assert np.isnan(fit.explained_variance_ratio).all()


def test_center(make):
    mean = [0.1, -0.2, 0.0, 0.3, 0.4]
    origin, divisor = np.arange(5.0), np.full(5, 10.0)
    fit = make(mean=mean, origin=origin, divisor=divisor, lower=origin - 10, upper=origin + 10)
    assert (fit.center.name, fit.center.dims) == ("center", ("variable",))
    np.testing.assert_allclose(fit.center, origin + 10 * np.array(mean))
    assert make(center=False).center is None


def test_numbers_of_rows(make):
    fixed, bought = make(), make(neighbours="add-remove")
    assert (fixed.nobs, fixed.nobs_origin) == (1_000, "public")
    assert isinstance(fixed.nobs, int)
    assert (bought.nobs, bought.nobs_origin) == (1_000.0, "private, noise sd 3.2")
    assert fixed.ncomplete == bought.ncomplete == 1_000.0


def test_noise_of_an_entry_and_floor_are_plain_numbers(make):
    fit = make(noise=0.01)
    assert isinstance(fit.noise_sd, float)
    # The mean's noise adds a little at a mean of zero: nothing to first order.
    assert fit.noise_sd == pytest.approx(0.01)
    assert isinstance(fit.noise_floor, float)
    assert fit.spectrum.distinct.tolist() == [True, True, True, False, False]
    assert fit.noise_floor == fit.spectrum.floor[3]
    assert make(noise=1e-6).noise_floor < 1e-5


def test_total_variance_and_its_noise(make):
    fit = make(noise=0.01)
    sd, by_count = np.sqrt(5 * 2) * 0.01, sum((0.9, 0.5, 0.2, 0.02, 0.01)) * 3.2 / 1_000
    assert fit.total_variance == pytest.approx(1.63)
    assert fit.total_variance_noise_sd == pytest.approx(np.hypot(sd, by_count), rel=1e-6)


def test_weak_variables_are_named(make):
    matrix = np.diag([0.5, 0.4, 0.001])
    fit = make(matrix=matrix, noise=0.01, scale="sd", names=["p", "q", "r"])
    assert fit.weak_variables == "r"
    assert make(matrix=matrix, noise=0.01, names=["p", "q", "r"]).weak_variables == ""
    assert fit.total_variance < 3
    assert make(matrix=matrix, noise=1e-6, scale="sd").total_variance == pytest.approx(3.0)


def test_everything_is_computed_from_the_release_alone(make):
    first, two = make(noise=0.01), make(noise=0.01)
    assert first.to_xarray().identical(two.to_xarray())
    assert first.summary().as_text() == two.summary().as_text()


def test_to_xarray(make):
    fit = make(noise=0.01, ncomp=4, mean=np.full(5, 0.1))
    data = fit.to_xarray()
    assert isinstance(data, xr.Dataset)
    assert dict(data.sizes) == {"variable": 5, "component": 4}
    assert data["loadings"].identical(fit.loadings)
    assert data["center"].identical(fit.center)
    panel = fit.noise()
    for name in ("noise_sd", "floor", "distinct", "debiased", "lower", "upper", "cos2"):
        np.testing.assert_array_equal(data[name], panel[name])
    assert data.attrs["formula"] == "~ ."
    assert data.attrs["simulated"] == 0
    assert {"Guarantee", "Mechanism", "Neighbours"} <= set(data.attrs)
    assert "center" not in make(center=False).to_xarray()


def test_to_xarray_can_be_written(make, tmp_path):
    data = make(noise=0.01).to_xarray()
    data.to_netcdf(tmp_path / "all.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "all.nc", engine="scipy") as again:
        np.testing.assert_array_equal(again["eigenvals"], data["eigenvals"])


def test_repr_names_no_number_of_a_row(make):
    text = repr(make(noise=0.01))
    assert text == (
        "<PCAResult '~ .': 5 components, 3 above the noise floor, eps = 1, delta = 1e-06>"
    )


def test_frames_are_pandas(make):
    fit = make()
    for table in (fit.noise(), fit.noise_int(), fit.conf_int(), fit.tidy(), fit.glance()):
        assert isinstance(table, pd.DataFrame)


def test_transform_without_a_coding(make):
    fit = make()
    bare = type(fit)(fit.call, fit.release)
    with pytest.raises(NotAvailable, match=r"dp\.load"):
        bare.transform({"x0": [0.0]})
