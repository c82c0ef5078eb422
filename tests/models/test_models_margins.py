"""dp_margins: agreement, any margin inside, tests, models, persons, sites, refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.stats import chi2_contingency

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError, FrameError, NotAvailable
from dpmodels.models.margins import dp_margins
from dpmodels.privacy import ZCDP

BOOK = dp.codebook(sex=["F", "M"], region=["n", "s", "w"], drug=["no", "yes"], id=(0, 10**6))
FORMULA = "~ sex*region*drug"
HUGE = 1e9
BUDGETS = ({"eps": 0.5}, {"eps": 0.5, "delta": 1e-6}, {"budget": ZCDP(0.02)})


def rows(count=4000, seed=0):
    rng = np.random.default_rng(seed)
    region = rng.choice(["n", "s", "w"], count, p=[0.5, 0.3, 0.2])
    drug = rng.random(count) < np.where(region == "n", 0.2, 0.4)
    return {
        "sex": rng.choice(["F", "M", "?"], count, p=[0.5, 0.45, 0.05]),
        "region": region,
        "drug": np.where(rng.random(count) < 0.03, "", np.where(drug, "yes", "no")),
    }


def declared(data):
    return pd.DataFrame(data).replace({"?": None, "": None})


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_all_margins_agree(budget, adjacency):
    fit = dp_margins(
        "~ sex*region + region:drug + sex:drug",
        rows(),
        codebook=BOOK,
        adjacency=adjacency,
        **budget,
    )
    source = fit.source
    marginal = source.unbiased((1,))
    for term, axis in (((0, 1), 0), ((1, 2), 1)):
        np.testing.assert_allclose(source.unbiased(term).sum(axis=axis), marginal, atol=1e-6)
        assert (source.whole(term).sum(axis=axis) == source.whole((1,))).all()
    totals = {int(source.whole(term).sum()) for term in (*source.terms, (2,))}
    assert len(totals) == 1
    if adjacency == "replace":
        assert totals == {4000}
        assert source.unbiased((0, 2)).sum() == pytest.approx(4000)
    for term in source.terms:
        assert (source.whole(term) >= 0).all()


def test_a_margin_of_three_agrees_with_that_of_the_first_two():
    fit = dp_margins(FORMULA, rows(), codebook=BOOK, eps=0.3, adjacency="add-remove")
    table = fit.source.whole((0, 1, 2))
    assert (table.sum(axis=2) == fit.source.whole((0, 1))).all()
    assert (table.sum(axis=(0, 1)) == fit.source.whole((2,))).all()


def test_a_huge_budget_gives_the_tests_and_the_model_of_others():
    data = rows()
    fit = dp_margins(FORMULA, data, codebook=BOOK, eps=HUGE)
    frame = declared(data).dropna()
    two = declared(data)[["region", "drug"]].dropna()
    plain = chi2_contingency(pd.crosstab(two.region, two.drug), correction=False)
    test = fit.chi2_test("region", "drug")
    assert test.statistic == pytest.approx(plain.statistic, rel=1e-6)
    assert test.df == 2
    strata = [
        chi2_contingency(pd.crosstab(group.sex, group.drug), correction=False).statistic
        for _, group in frame.groupby("region")
    ]
    inputs = fit.chi2_test("sex", "drug", given="region")
    assert inputs.statistic == pytest.approx(sum(strata), rel=1e-6)
    assert inputs.df == 3
    assert fit.table("sex", "region", "drug").chi2_test(given=("region",)) == inputs
    counts = frame.groupby(["sex", "region", "drug"]).size().rename("n").reset_index()
    peer = smf.glm("n ~ sex*region + drug", counts, family=sm.families.Poisson()).fit()
    model = fit.loglin("~ sex*region + drug")
    assert sorted(model.names) == sorted(peer.params.index)
    np.testing.assert_allclose(model.params[peer.params.index], peer.params, rtol=1e-6)
    np.testing.assert_allclose(model.bse[peer.params.index], peer.bse, rtol=1e-6)
    assert model.deviance == pytest.approx(peer.deviance, rel=1e-6)
    assert model.df_resid == peer.df_resid


@pytest.mark.parametrize("missing", [False, True])
def test_a_model_is_fitted_to_margins_that_no_table_joins(missing):
    """That of all two-way margins, by statsmodels on the full table, what is missing a level."""
    data = rows()
    if not missing:
        data["sex"] = np.where(data["sex"] == "?", "F", data["sex"])
        data["drug"] = np.where(data["drug"] == "", "no", data["drug"])
    fit = dp_margins("~ (sex + region + drug)**2", data, codebook=BOOK, eps=HUGE)
    model = fit.loglin("~ (sex + region + drug)**2")
    full = declared(data).fillna("(missing)")
    levels = [["F", "M", "(missing)"], ["n", "s", "w"], ["no", "yes", "(missing)"]]
    labels = [
        level if missing else level[: len(level) - (level[-1] == "(missing)")] for level in levels
    ]
    every = pd.MultiIndex.from_product(labels, names=["sex", "region", "drug"])
    counts = full.groupby(["sex", "region", "drug"]).size().reindex(every, fill_value=0)
    table = counts.rename("n").reset_index()
    for name, order in zip(every.names, labels, strict=True):
        table[name] = pd.Categorical(table[name], order)
    peer = smf.glm("n ~ (sex + region + drug)**2", table, family=sm.families.Poisson()).fit()
    assert set(model.names) == set(peer.params.index)
    np.testing.assert_allclose(model.params[peer.params.index], peer.params, atol=1e-5)
    np.testing.assert_allclose(model.bse[peer.params.index], peer.bse, rtol=1e-3)
    assert model.fitted.shape == (2, 3, 2)
    text = " ".join(str(model.summary()).split())
    assert "no released table has all of its variables" in text
    assert ("(missing)]" in text) == missing
    with pytest.raises(ArgumentError, match="together"):
        fit.loglin("~ sex*region*drug")


def test_any_margin_inside_is_a_table_and_its_shares():
    fit = dp_margins("~ sex:region + drug", rows(), codebook=BOOK, eps=1.0)
    assert fit.terms == ("sex:region", "drug")
    table = fit.table("~ region + sex")
    assert table.factors == ("sex", "region")
    assert table.counts.dims == ("sex", "region")
    assert table.counts.sum().item() == table.ncomplete
    assert table.ncomplete + table.nincomplete == 4000
    shares = table.proportions("sex")
    np.testing.assert_allclose(shares.sum("region"), 1.0)
    assert len(table.tidy()) == len(table.noise_int()) == len(table.conf_int()) == 6
    assert len(fit.tidy()) == len(fit.noise_int()) == 6 + 2
    dataset = fit.to_xarray()
    assert (dataset["count[sex:region]"] == table.counts).all()
    assert fit.table("region").released.sum().item() == pytest.approx(
        fit.table("region").ncomplete, abs=60
    )


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda fit: fit.table("sex", "drug"), r"dp_margins\('~ sex\*drug'"),
        (lambda fit: fit.table("~ sex:drug"), "together"),
        (lambda fit: fit.table("age"), "in no margin"),
        (lambda fit: fit.table("sex", "sex"), "named twice"),
        (lambda fit: fit.table(), "write one or more"),
        (lambda fit: fit.table(3), "in no margin"),
        (lambda fit: fit.table(["sex", "region"]), "each by itself"),
        (lambda fit: fit.table("sex:drug"), "together"),
        (lambda fit: fit.loglin("~ sex*drug"), "together"),
        (lambda fit: fit.loglin("sex ~ drug"), "left side"),
        (lambda fit: fit.loglin("~ sex + cut(id, [0, 5, 9])"), "id"),
        (lambda fit: fit.chi2_test("sex"), "two variables or more"),
        (lambda fit: fit.chi2_test("sex", "drug"), "together"),
        (lambda fit: fit.chi2_test("sex", "region", given="drug"), "together"),
        (lambda fit: fit.chi2_test("sex", "region", given="sex"), "named twice"),
        (lambda fit: fit.table("sex").chi2_test(), "two variables or more"),
        (lambda fit: fit.plot("age"), "in no margin"),
    ],
)
def test_what_was_not_released_is_refused_with_what_to_write(ask, words):
    fit = dp_margins("~ sex*region + drug", rows(50), codebook=BOOK, eps=1.0)
    with pytest.raises((ArgumentError, FormulaError), match=words):
        ask(fit)


def test_a_margin_is_named_as_the_result_names_it():
    fit = dp_margins("~ sex*region + drug", rows(50), codebook=BOOK, eps=1.0)
    assert [":".join(fit.table(term).factors) for term in fit.terms] == list(fit.terms)
    assert repr(fit.chi2_test("sex:region")) == repr(fit.chi2_test("sex", "region"))


def test_products_that_mean_margins_are_no_table():
    with pytest.raises(FormulaError, match=r"dp_margins.*full cross"):
        dp.dp_table("~ sex:region + region:drug", rows(9), codebook=BOOK, eps=1.0)
    with pytest.raises(FormulaError, match=r"'~ sex\*region\*drug'"):
        dp.dp_table("~ sex*region + drug", rows(9), codebook=BOOK, eps=1.0)
    for formula in ("~ sex:region", "~ sex*region*drug", "~ sex + region", "drug ~ sex:region"):
        assert dp.dp_table(formula, rows(9), codebook=BOOK, eps=1.0).counts.ndim > 1


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("words", [{"eps": 0.2}, {"eps": 0.2, "delta": 1e-6}])
def test_persons_have_more_noise_and_their_own_unit(adjacency, words):
    data = rows(3000) | {"id": np.repeat(np.arange(1500), 2)}
    options = {"codebook": BOOK, "adjacency": adjacency, **words}
    alone = dp_margins("~ sex*region", data, **options)
    same = {"mechanism": alone.release.info.name, **options}
    fit = dp_margins("~ sex*region", data, person="id", rows=2, **same)
    by_mean = dp_margins("~ sex*region", data, person="id", rows="mean", **same)
    sd = alone.table("sex", "region").noise_sd
    assert fit.table("sex", "region").noise_sd == pytest.approx(2 * sd, rel=0.01)
    assert by_mean.table("sex", "region").noise_sd < 1.2 * sd
    assert by_mean.table("region").ncomplete == pytest.approx(1500, abs=20 * sd)
    assert "persons" in str(by_mean.summary())


def test_sites_release_what_one_table_would_and_a_subset_counts_alone():
    data = rows(900)
    first_rows = {name: column[:400] for name, column in data.items()}
    two = {name: column[400:] for name, column in data.items()}
    joint = dp_margins(
        FORMULA, sites={"x": first_rows, "y": two}, protocol="pooled", codebook=BOOK, eps=HUGE
    )
    fit = dp_margins(FORMULA, data, codebook=BOOK, eps=HUGE)
    assert (joint.release.values == fit.release.values).all()
    some = dp_margins("~ sex:region", data, codebook=BOOK, eps=HUGE, subset="drug == 'yes'")
    frame = declared(data).dropna(subset=["sex"])
    counts = frame[frame.drug == "yes"].groupby(["sex", "region"]).size().to_numpy()
    assert some.table("sex", "region").counts.to_numpy().ravel().tolist() == counts.tolist()


def test_a_file_whose_numbers_do_not_go_together_is_refused(tmp_path):
    fit = dp_margins("~ sex*region", rows(50), codebook=BOOK, eps=1.0)
    fit.save(tmp_path / "fit.nc")
    assert str(dp.load(tmp_path / "fit.nc").summary()) == str(fit.summary())
    object.__setattr__(fit, "release", replace(fit.release, noise_sds=(1.0, 2.0)))
    with pytest.raises(FrameError, match="noise_sds"):
        fit.save(tmp_path / "odd.nc")
    fit = dp_margins("~ sex*region", rows(50), codebook=BOOK, eps=1.0)
    object.__setattr__(fit, "request", replace(fit.request, formula="~ sex"))
    with pytest.raises(FrameError, match="array 'values': expected the shape"):
        fit.save(tmp_path / "shorter.nc")


def test_a_margin_and_a_model_print_and_draw_with_the_stamp():
    with dp.simulation(seed=2):
        fit = dp_margins("~ sex*region + (drug == 'yes')", rows(), codebook=BOOK, eps=1.0)
    table, model = fit.table("sex", "region"), fit.loglin("~ sex + region")
    for source in (fit, table, model):
        text = str(source.summary())
        assert "SIMULATION - NOT PRIVATE" in text
        assert "adds up to the public number" in text or source is model
    assert "drug == 'yes'" in str(fit.summary())
    assert [line.split()[0] for line in str(model.summary()).splitlines() if "[T." in line] == [
        "sex[T.M]",
        "region[T.s]",
        "region[T.w]",
    ]
    axes = fit.plot("region", "sex")
    assert [tick.get_text() for tick in axes.get_yticklabels()][:2] == ["F / n", "F / s"]
    assert model.tidy()["std_error"].gt(model.tidy()["noise_sd"]).all()
    assert model.noise_int().loc["sex[T.M]", "upper"] < model.conf_int().loc["sex[T.M]", "upper"]


def test_a_large_margin_prints_and_has_no_test():
    book = dp.codebook(a=list(range(80)), b=list(range(80)))
    fit = dp_margins("~ a:b", {"a": [3] * 50, "b": [7] * 50}, codebook=book, eps=HUGE)
    assert fit.table("a", "b").counts.sel(a=3, b=7).item() == 50
    assert "too many cells" in fit.chi2_test("a", "b").reason
    with pytest.raises(NotAvailable, match="2,000 at most"):
        fit.loglin("~ a + b")
    assert "6,400" in str(fit.summary())


def test_a_model_that_noise_leaves_without_rows_says_so():
    with dp.simulation(seed=3):
        fit = dp_margins("~ sex:region", rows(8), codebook=BOOK, eps=0.01)
    with pytest.raises(NotAvailable, match="not identified"):
        fit.loglin("~ sex*region")
