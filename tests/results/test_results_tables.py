import numpy as np
import pytest

from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.privacy import ZCDP, PureDP
from dpmodels.results.estimate_table import COLUMNS

PANEL = ["eigenvalue", "noise_sd", "floor", "distinct", "debiased", "lower", "upper", "cos2"]


def test_noise_panel(make):
    fit = make(noise=0.01)
    panel = fit.noise()
    assert list(panel.columns) == PANEL
    assert list(panel.index) == ["PC1", "PC2", "PC3", "PC4", "PC5"]
    assert panel.index.name == "component"
    assert panel["distinct"].tolist() == [True, True, True, False, False]
    np.testing.assert_array_equal(panel["distinct"], panel["eigenvalue"] > panel["floor"])
    values = panel[["debiased", "lower", "upper", "cos2"]]
    assert values.notna().all(axis=1).tolist() == panel["distinct"].tolist()
    assert values.isna().all(axis=1).tolist() == (~panel["distinct"]).tolist()
    distinct = panel[panel["distinct"]]
    assert (distinct["lower"] < distinct["debiased"]).all()
    assert (distinct["debiased"] < distinct["upper"]).all()
    assert ((distinct["cos2"] > 0) & (distinct["cos2"] <= 1)).all()
    assert len(make(ncomp=2).noise()) == 2


def test_noise_int_is_the_panels(make):
    fit = make(noise=0.01)
    table = fit.noise_int()
    assert list(table.columns) == ["lower", "upper"]
    assert table.equals(fit.noise()[["lower", "upper"]])


def test_levels(make):
    fit = make(noise=0.005)
    narrow, wide = fit.noise_int(0.5), fit.noise_int(0.999)
    assert (wide["upper"] - wide["lower"] > 2 * (narrow["upper"] - narrow["lower"]))[:3].all()
    for interval in (fit.noise_int, fit.conf_int):
        for level in (0.0, 1.0, -0.5, 95.0, 1, "0.95", None, float("nan")):
            with pytest.raises(ArgumentError, match=r"0\.95"):
                interval(level)


def test_conf_int_is_wider_and_has_its_own_name(make):
    fit = make(noise=0.005)
    noise, population = fit.noise_int(), fit.conf_int()
    assert list(population.columns) == ["lower", "upper"]
    assert list(population.index) == list(noise.index)
    width, narrower = (t["upper"] - t["lower"] for t in (population, noise))
    assert (width > narrower)[:3].all()
    assert population.isna().equals(noise.isna())
    assert not {"conf.low", "conf_low", "conf"} & {*fit.noise().columns, *fit.to_xarray()}


def test_conf_int_is_the_same_in_other_units(make):
    wide = {
        name: np.full(5, value)
        for name, value in (("lower", -3.0), ("upper", 3.0), ("divisor", 3.0))
    }
    plain, scaled = make(noise=0.005).conf_int(), make(noise=0.005, scale=None, **wide).conf_int()
    np.testing.assert_allclose(scaled, 9 * plain, rtol=1e-6)


def test_conf_int_is_longer_where_bounds_are_wider(make):
    # The same moments: within bounds of 2 for 1 a square can be more than four times as far.
    close = make(noise=1e-5)
    distant = make(
        noise=1e-5, lower=np.full(5, -2.0), upper=np.full(5, 2.0), row_norm=2 * np.sqrt(5)
    )
    narrow, wide = (
        (t["upper"] - t["lower"]).iloc[0] for t in (close.conf_int(), distant.conf_int())
    )
    assert 2 < wide / narrow < 3


def test_conf_int_needs_the_mean(make):
    with pytest.raises(NotAvailable, match="center=False"):
        make(center=False, noise=0.005).conf_int()


def test_conf_int_is_not_available_for_correlations(make):
    fit = make(scale="sd", noise=0.001)
    with pytest.raises(NotAvailable, match=r"noise_int\(\) is available"):
        fit.conf_int()
    assert fit.noise_int().notna().any(axis=None)


def test_tidy_loadings(make):
    fit = make(ncomp=2)
    table = fit.tidy()
    assert list(table.columns) == ["column", "PC", *COLUMNS]
    assert len(table) == 10
    for row in table.itertuples():
        assert row.estimate == float(fit.loadings.sel(variable=row.column, component=row.PC))


def test_tidy_eigenvalues(make):
    fit = make(ncomp=3)
    table = fit.tidy("eigenvalues")
    assert list(table.columns) == ["PC", *COLUMNS, "std_dev", "percent", "cumulative"]
    assert table["PC"].tolist() == ["PC1", "PC2", "PC3"]
    np.testing.assert_allclose(table["std_dev"], fit.sdev)
    np.testing.assert_allclose(table["percent"], fit.explained_variance_ratio)
    np.testing.assert_allclose(table["cumulative"], np.cumsum(fit.explained_variance_ratio))


@pytest.mark.parametrize("matrix", ["u", "v", "scores", None])
def test_tidy_of_another_name(make, matrix):
    with pytest.raises(ArgumentError, match="loadings"):
        make().tidy(matrix)


def test_glance(make):
    fit = make(noise=0.01, ncomp=4)
    row = fit.glance()
    assert len(row) == 1
    expected = {
        "nobs": 1_000,
        "ncolumns": 5,
        "ncomp": 4,
        "ndistinct": 3,
        "total_variance": fit.total_variance,
        "noise_sd": fit.noise_sd,
        "noise_floor": fit.noise_floor,
        "eps": 1.0,
        "delta": 1e-6,
        "adjacency": "replace",
        "mechanism": "gauss",
        "simulated": False,
    }
    for name, value in expected.items():
        assert row[name].iloc[0] == value, name
    assert np.isnan(row["rho"].iloc[0])


def test_glance_of_other_guarantees(make):
    zcdp = make(guarantee=ZCDP(0.3)).glance().iloc[0]
    assert (zcdp["rho"], zcdp["delta"]) == (0.3, 0.0)
    assert np.isnan(zcdp["eps"])
    pure = make(guarantee=PureDP(0.7)).glance().iloc[0]
    assert (pure["eps"], pure["delta"]) == (0.7, 0.0)
