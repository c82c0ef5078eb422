"""tidy() of every result: the same ten columns, nan where a number is not available."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from verb_entry import fitted
from verbs import forms

import dpmodels as dp
from dpmodels.errors import NotAvailable
from dpmodels.released import RunsRelease
from dpmodels.results.bounds import QuantileResult
from dpmodels.results.cov import CovResult
from dpmodels.results.estimate_table import COLUMNS

STORED = forms("stored")
NUMBERS = [name for name in COLUMNS if name != "identified"]


def tidy_of(fit):
    """Intervals of components are those of eigenvalues; loadings have none."""
    eigenvalues = hasattr(fit, "loadings") and hasattr(fit, "sdev")
    return fit.tidy("eigenvalues") if eigenvalues else fit.tidy()


def check_columns(fit, table):
    columns, keys = list(table), list(fit.estimates.keys)
    if hasattr(fit, "loadings") and "column" not in table:
        keys = ["PC"]
    assert keys
    assert columns[: len(keys) + len(COLUMNS)] == [*keys, *COLUMNS]
    assert (table[NUMBERS].dtypes == np.float64).all()
    assert table["identified"].dtype == "boolean"
    labels = [name.startswith("label") for name in columns]
    assert labels == sorted(labels)
    assert not table[keys].duplicated().any()


@pytest.mark.parametrize("name", STORED)
def test_every_table_has_the_same_columns_after_its_keys(name):
    fit = fitted(STORED[name])
    check_columns(fit, fit.tidy())


@pytest.mark.parametrize("name", STORED)
def test_intervals_of_the_table_are_those_of_the_result(name):
    fit = fitted(STORED[name])
    try:
        table = tidy_of(fit)
    except NotAvailable:
        assert hasattr(fit, "loadings")
        return
    check_columns(fit, table)
    for kind, law in (("noise", fit.noise_int), ("conf", fit.conf_int)):
        values = table[[f"{kind}_low", f"{kind}_high"]].to_numpy()
        try:
            ends = law()
        except NotAvailable:
            assert np.isnan(values).all()
            continue
        if ends.index.name == "hypothesis":
            ends = ends.loc[table["hypothesis"]]
        if kind == "conf" and "proportion" in table:
            # Of counts these are intervals of shares, those of means in an overview are not.
            of_shares = table["proportion_low"].notna()
            shares = table[["proportion_low", "proportion_high"]][of_shares]
            np.testing.assert_array_equal(shares, ends[of_shares.to_numpy()])
            values, ends = values[~of_shares], ends[~of_shares.to_numpy()]
        np.testing.assert_array_equal(values, ends[["lower", "upper"]].to_numpy())


def check_units(table):
    """Assert that estimate, errors and intervals of a row are in one unit."""
    estimate, error = table["estimate"], table["std_error"]
    # Whole counts and positive semidefinite covariances are made of unbiased ones, about
    # which the intervals are, those of counts not below 0. A logarithm of a p-value with noise may
    # be above 0, where its interval ends.
    slack = 1e-9 * (1 + estimate.abs())
    if "released" in table:
        for released in (table["released"], table["released"].clip(lower=0)):
            slack += (released - estimate).abs().fillna(0)
    # Counts of a selection are unbiased and may be below 0, where their intervals end.
    if "above_next" in table:
        slack += -estimate.clip(upper=0)
    if "p_adjusted" in table:
        slack += estimate.clip(lower=0)
    for kind in ("noise", "conf"):
        low, high = table[f"{kind}_low"], table[f"{kind}_high"]
        assert (low <= high)[high.notna()].all()
        is_known = estimate.notna() & high.notna()
        assert (low - slack <= estimate)[is_known].all()
        assert (estimate <= high + slack)[is_known].all()
    assert (error >= table["noise_sd"] - slack)[error.notna() & table["noise_sd"].notna()].all()
    sampled = table["identified"].fillna(value=False) & table["conf_high"].notna()
    return error[sampled]


@pytest.mark.parametrize("name", STORED)
def test_a_row_is_in_one_unit_and_has_a_standard_error_with_its_interval(name):
    fit = fitted(STORED[name])
    errors = check_units(fit.tidy())
    # Intervals of quantiles, of covariances and of parts of runs follow from no symmetric law of
    # the estimate.
    runs = isinstance(fit.release, RunsRelease)
    without = runs or isinstance(fit, QuantileResult | CovResult)
    assert errors.isna().all() if without else errors.notna().all()


@pytest.mark.parametrize("eps", [0.1, 0.5, 2.0, 8.0, 50.0])
@pytest.mark.parametrize("mechanism", ["auto", "objective", "gradients"])
def test_logits_have_standard_errors_where_identified(mechanism, eps):
    form = STORED["glm sex ~ age + wage"]
    fit = form.ask(eps=eps, delta=1e-6, mechanism=mechanism)
    errors = check_units(fit.tidy())
    assert errors.notna().all()
    assert len(errors) == fit.identified.sum()


def test_intervals_of_counts_are_those_of_shares_times_the_complete_rows():
    fit = fitted(STORED["table ~ region + sex"])
    for level in (0.5, 0.95):
        table, ends = fit.estimates.tidy(level), fit.conf_int(level)
        np.testing.assert_array_equal(table["conf_high"], ends["upper"] * fit.ncomplete)
        np.testing.assert_array_equal(table["proportion_low"], ends["lower"])
    width = table["conf_high"] - table["conf_low"]
    np.testing.assert_allclose(width / table["std_error"], 2 * 1.96, rtol=0.05)
    assert fit.to_dataset()["conf_low"].attrs == {"units": "rows"}
    assert fit.to_dataset()["proportion_low"].attrs == {}


@pytest.mark.parametrize("name", STORED)
def test_a_dataset_has_the_numbers_of_the_table_and_what_the_release_is(name):
    fit = fitted(STORED[name])
    table, data = fit.tidy(), fit.to_dataset()
    assert set(data.variables) == set(table)
    for column in NUMBERS:
        np.testing.assert_array_equal(data[column], table[column])
    facts = ("formula", "guarantee", "mechanism", "neighbours", "noise", "simulated")
    assert tuple(data.attrs) == facts
    assert data.attrs["noise"]


def test_a_dataset_has_units_and_labels():
    data = fitted(STORED["mean age ~ sex"]).to_dataset(0.9)
    assert data["estimate"].attrs == data["conf_low"].attrs == {"units": "years"}
    assert data["p_value"].attrs == data["count"].attrs == {}
    assert data.sizes == {"sex": 2}
    ends = fitted(STORED["mean age ~ sex"]).conf_int(0.9)
    np.testing.assert_array_equal(data["conf_high"], ends["upper"])
    assert fitted(STORED["var age ~ sex"]).to_dataset()["estimate"].attrs["units"] == "(years)^2"


def test_a_dataset_can_be_written(tmp_path):
    for name in ("pca of levels", "table ~ region + sex", "svm sex ~ age"):
        data = fitted(STORED[name]).to_dataset()
        data.to_netcdf(tmp_path / "fit.nc", engine="scipy")


@pytest.mark.parametrize("kind", ["pca ~ age + wage", "pca subspace", "svm sex ~ age"])
def test_a_result_without_a_picture_of_its_own_is_drawn_as_its_table(kind):
    fit = fitted(STORED[kind])
    ax = fit.plot(caption=False)
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    table = fit.tidy("eigenvalues") if kind == "pca ~ age + wage" else fit.tidy()
    assert len(labels) == len(table)
    assert ("without intervals" in ax.get_xlabel()) == (kind != "pca ~ age + wage")
    points = np.concatenate([part.get_offsets()[:, 0] for part in ax.collections])
    assert kind == "pca ~ age + wage" or points.tolist() == table["estimate"].tolist()
    plt.close(ax.figure)


@pytest.mark.parametrize("name", STORED)
def test_attributes_of_coefficients_are_the_columns_of_the_table(name):
    fit = fitted(STORED[name])
    if not isinstance(getattr(fit, "params", None), pd.Series):
        return
    table = fit.tidy().set_index(list(fit.estimates.keys))
    for column, attribute in (("estimate", "params"), ("std_error", "bse")):
        values = getattr(fit, attribute, None)
        if isinstance(values, pd.Series):
            np.testing.assert_array_equal(table[column], values.to_numpy()[order(fit, table)])


@pytest.mark.parametrize("name", [name for name in STORED if not name.startswith("ttest")])
def test_estimates_are_indexed_by_the_keys_of_the_table(name):
    fit = fitted(STORED[name])
    keys = list(fit.estimates.keys)
    for attribute in ("params", "bse", "bse_noise", "tvalues"):
        values = getattr(fit, attribute, None)
        if isinstance(values, pd.Series):
            assert [f"{key}" for key in values.index.names] == keys, attribute
    if hasattr(fit, "tvalues"):
        assert fit.conf_int().index.names == keys


@pytest.mark.parametrize("name", ["lm age ~ wage", "glm sex ~ age", "survey fit", "svm sex ~ age"])
def test_predictions_are_series(name):
    rows = {"age": [20.0, 40.0], "wage": [1.0, 2.0], "sex": [0, 1], "region": ["n", "e"]}
    fit = STORED[name].ask(**({} if name.startswith("survey") else {"eps": 50.0}))
    predictions = fit.predict(rows)
    assert isinstance(predictions, pd.Series)
    assert predictions.name
    assert predictions.index.equals(pd.RangeIndex(2))
    frame = pd.DataFrame(rows, index=["u", "v"])
    assert fit.predict(frame).equals(predictions.set_axis(frame.index))


def order(fit, table):
    return fit.params.index.get_indexer(table.index)


def test_quantiles_have_the_intervals_that_were_bought():
    fit = dp.dp_quantile("y ~ 1", {"y": range(99)}, codebook={"y": (0, 99)}, eps=9.0, level=0.8)
    table = fit.tidy()
    np.testing.assert_array_equal(table["conf_low"], fit.conf_int()["lower"])
    assert table["conf_low"].notna().all()


def test_keys_that_are_called_as_numbers_keep_their_values():
    book = dp.codebook(y=dp.Numeric(0, 4, label="Yield"), estimate=["u", "v"], label=["s", "t"])
    rows = {"y": [1.0, 2.0] * 50, "estimate": ["u", "v"] * 50, "label": ["s", "t"] * 50}
    table = dp.dp_mean("y ~ estimate + label", rows, codebook=book, eps=9.0).tidy()
    assert list(table)[:3] == ["estimate_", "label_", "estimate"]
    assert table["estimate_"].tolist() == ["u", "u", "v", "v"]
    assert set(table["label"]) == {"Yield"}


def test_what_follows_from_a_fit_has_the_same_columns():
    words = {"codebook": {"a": ["u", "v"], "b": ["x", "y"], "n": (0, 4)}, "eps": 50.0}
    rows = {"a": ["u", "v", "v"] * 200, "b": ["x", "y"] * 300, "n": [0.0, 1.0, 4.0] * 200}
    margins = dp.dp_margins("~ a * b", rows, **words)
    check_columns(margins.table("a", "b"), margins.table("a", "b").tidy())
    model = margins.loglin("~ a + b")
    check_columns(model, model.tidy())
    path = dp.dp_lm("n ~ a + b", rows, delta=1e-6, **words).lasso_path()
    check_columns(path, path.tidy())
