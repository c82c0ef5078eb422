"""dp_summary: one table of means, standard deviations and counts, by groups or not."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, ttest_ind
from statsmodels.stats.oneway import anova_oneway

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetWarning, FormulaError, LedgerError, NotAvailable
from dpmodels.models.mean import dp_summary
from dpmodels.privacy import ZCDP
from tests.mines import Mine

BOOK = dp.codebook(age=(0, 100), income=(0, 250_000), sex=["F", "M"], g=["u", "v", "w"])
HUGE = 1e9


def rows(count=4000, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(18, 90, count),
        "income": np.exp(rng.normal(10, 0.5, count)),
        "sex": rng.choice(["F", "M"], count),
        "g": rng.choice(["u", "v", "w", "?"], count),
    }


def test_a_huge_budget_gives_the_usual_table():
    data = rows()
    frame = pd.DataFrame(data)
    fit = dp_summary("age + income + g ~ sex", data, codebook=BOOK, eps=HUGE)
    assert fit.variables == ("age", "income", "g")
    for name in ("age", "income"):
        values = frame.groupby("sex")[name]
        assert fit[name].params.to_numpy() == pytest.approx(values.mean().to_numpy(), rel=1e-6)
        assert fit[name].sd.to_numpy() == pytest.approx(values.std().to_numpy(), rel=1e-4)
    known_rows = frame[frame["g"] != "?"]
    values = pd.crosstab(known_rows["sex"], known_rows["g"]).to_numpy()
    assert fit["g"].counts.to_numpy().tolist() == values.tolist()
    shares = fit["g"].proportions("sex").to_numpy()
    assert shares == pytest.approx(values / values.sum(axis=1, keepdims=True))


def test_noise_grows_with_the_number_of_variables_or_its_root():
    formulas = ("~ sex", "~ sex + g", "~ sex + g + age + income")
    for budget, power in (({"eps": 1.0}, 1.0), ({"budget": ZCDP(0.1)}, 0.5)):
        sds = [
            dp_summary(formula, rows(200), codebook=BOOK, **budget).release.noise_sd
            for formula in formulas
        ]
        assert sds[1] / sds[0] == pytest.approx(2**power, rel=0.02)
        assert sds[2] / sds[0] == pytest.approx(4**power, rel=0.02)


def test_the_ledger_is_charged_once_for_all_variables():
    ledger = dp.Ledger(1.0)
    dp_summary("~ .", rows(200), codebook=BOOK, eps=1.0, ledger=ledger)
    assert len(ledger.entries) == 1
    with pytest.raises(LedgerError):
        dp_summary("~ sex", {"sex": Mine()}, codebook=BOOK, eps=0.1, ledger=ledger)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("income ~ age", "cut it at public breaks"),
        ("sex + g ~ age", "write 'age ~ sex . g' or '~ age | sex . g'"),
        ("1 ~ sex", "names no variable"),
        ("sex + age ~ sex", "'sex' on both sides"),
        ("~ bs(age, knots=[30])", "several columns; describe the variable itself"),
        ("~ height", "height"),
    ],
)
def test_what_is_wrong_is_said_before_a_row_is_read(formula, message):
    with pytest.raises((FormulaError, dp.errors.CodebookError), match=message):
        dp_summary(formula, {name: Mine() for name in BOOK}, codebook=BOOK, eps=1.0)


ODD = (
    {"age": [], "income": [], "sex": [], "g": []},
    {"age": [50.0], "income": [1.0], "sex": ["F"], "g": ["u"]},
    {"age": [50.0, 50], "income": [1.0, 1], "sex": ["F"] * 2, "g": ["u"] * 2},
    {"age": [np.nan, 1e300], "income": [np.inf, -1.0], "sex": [None, "x"], "g": [1, 2]},
)


@pytest.mark.parametrize("data", ODD)
@pytest.mark.parametrize("eps", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_no_row_makes_a_warning_and_every_table_prints(data, eps, adjacency):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BudgetWarning)
        for formula in ("~ .", "age + g ~ sex", "age + income ~ sex + g"):
            fit = dp_summary(formula, data, codebook=BOOK, eps=eps, adjacency=adjacency)
            summary = fit.summary()
            for text in (str(summary), summary.as_html(), summary.as_latex()):
                assert "Private overview" in text
            assert len(fit.noise_int()) == len(fit.conf_int()) == len(fit.tidy())
            assert len(fit.glance()) == 1


def test_what_noise_hides_is_not_printed():
    fit = dp_summary("age + g ~ sex", rows(50), codebook=BOOK, eps=0.001)
    text = str(fit.summary())
    assert "-: lost in the noise at this budget." in text
    for line in text.splitlines():
        if line.startswith("  mean"):
            assert line.split()[-3:-1] == ["-", "-"]
    plenty = str(dp_summary("age + g ~ sex", rows(), codebook=BOOK, eps=10.0).summary())
    assert "lost in the noise" not in plenty
    lines = plenty.splitlines()
    assert lines[lines.index("age") + 1].startswith("  mean (sd)")
    assert lines[lines.index("g, rows (%)") + 3].startswith("  w ")


def test_the_spread_of_persons_is_named():
    """Where persons have several rows the sd is not that of rows."""
    data = pd.DataFrame({**rows(), "id": np.arange(len(rows()["age"])) // 2})
    for n_rows in (2, "mean"):
        options = {"codebook": BOOK, "eps": 5.0, "person": "id", "rows": n_rows}
        assert "  mean (sd between persons)" in str(dp_summary("~ age", data, **options))
    one = str(dp_summary("~ age", data.iloc[:1], codebook=BOOK, eps=5.0, person="id"))
    assert "1 person (public)" in one


def test_rows_of_the_long_form_carry_their_variable():
    fit = dp_summary("~ age + sex", rows(), codebook=BOOK, eps=1.0)
    table = fit.tidy()
    assert table["variable"].tolist() == ["age", "sex", "sex"]
    assert fit.noise_int().index.get_level_values(0).unique().tolist() == ["age", "sex"]
    with pytest.raises(ArgumentError, match="those are 'age', 'sex'"):
        fit["income"]


def test_results_are_saved_and_pickled(tmp_path):
    fit = dp_summary("age + g ~ sex", rows(), codebook=BOOK, eps=1.0)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())
    assert again.variables == fit.variables
    assert str(pickle.loads(pickle.dumps(fit)).summary()) == str(fit.summary())


@pytest.mark.product
def test_all_forms_of_a_formula_make_the_same_table():
    forms = ("age + income + g ~ sex", "~ age + income + g | sex", "~ . | sex", ". ~ sex")
    first, *rest = (dp_summary(form, rows(), codebook=BOOK, eps=HUGE).tidy() for form in forms)
    for again in rest:
        pd.testing.assert_frame_equal(again, first, rtol=1e-6)


def test_all_groups_together_are_their_rows():
    data = rows()
    frame = pd.DataFrame(data)
    fit = dp_summary("age + g ~ sex", data, codebook=BOOK, eps=HUGE)
    table = fit.overall()
    assert table["variable"].tolist() == ["age", "g", "g", "g"]
    assert table["estimate"].iloc[0] == pytest.approx(frame["age"].mean(), rel=1e-6)
    assert table["sd"].iloc[0] == pytest.approx(frame["age"].std(), rel=1e-4)
    expected = frame.loc[frame["g"] != "?", "g"].value_counts(normalize=True).sort_index()
    assert table["proportion"].iloc[1:].to_numpy() == pytest.approx(expected.to_numpy())
    line = next(line for line in str(fit.summary()).splitlines() if line.startswith("  rows"))
    assert line.split()[-1] == "4,000"


def test_the_noise_of_all_groups_is_that_of_their_sum():
    fit = dp_summary("age + sex ~ g", rows(), codebook=BOOK, eps=2.0, adjacency="add-remove")
    overall_row, count = fit.overall().iloc[0], fit.overall().iloc[1]
    sd = fit.release.noise_sd
    assert count["noise_sd"] == pytest.approx(sd * 3**0.5)
    # Three groups of three parts, of which the weights in a mean m are -m, 1/2 - m and 1 - m.
    mean = overall_row["estimate"] / 100
    squares = 3 * sum((weight - mean) ** 2 for weight in (0, 0.5, 1))
    assert overall_row["noise_sd"] == pytest.approx(
        100 * sd * squares**0.5 / overall_row["count"], rel=1e-6
    )


def test_p_values_are_those_of_the_usual_tests_at_a_huge_budget():
    data = rows()
    data["age"] = data["age"] + 2 * (data["sex"] == "F")
    fit = dp_summary("age + g ~ sex", data, codebook=BOOK, eps=HUGE, tests=True)
    tests = fit.tests().set_index("variable")
    frame = pd.DataFrame(data)
    ages = [part["age"] for _, part in frame.groupby("sex")]
    assert tests.loc["age", "test"] == "Welch t"
    assert tests.loc["age", "p_value"] == pytest.approx(
        ttest_ind(*ages, equal_var=False).pvalue, rel=1e-2
    )
    known_rows = frame[frame["g"] != "?"]
    expected = chi2_contingency(pd.crosstab(known_rows["sex"], known_rows["g"]), correction=False)
    assert tests.loc["g", "p_value"] == pytest.approx(expected.pvalue, rel=1e-3)
    text = str(fit.summary(notes="all"))
    assert "p-value" in text
    assert "they account for noise" in " ".join(text.split())
    assert "Tests use the released groups, at no further cost" in " ".join(text.split())
    three = dp_summary("age ~ g", data, codebook=BOOK, eps=HUGE, tests=True).tests()
    groups = [part["age"] for _, part in known_rows.groupby("g")]
    assert three["test"].item() == "Welch F"
    assert three["p_value"].item() == pytest.approx(
        anova_oneway(groups, use_var="unequal").pvalue, rel=1e-3
    )


def test_tests_are_asked_for_with_groups_and_cost_nothing(tmp_path):
    with pytest.raises(FormulaError, match="has no groups, and tests=True compares them"):
        dp_summary("~ age", {"age": Mine()}, codebook=BOOK, eps=1.0, tests=True)
    with pytest.raises(ArgumentError, match="tests=1: expected True or False"):
        dp_summary("age ~ sex", {"age": Mine()}, codebook=BOOK, eps=1.0, tests=1)
    with pytest.raises(NotAvailable, match=r"a \+ b ~ group"):
        dp_summary("~ age", rows(50), codebook=BOOK, eps=1.0).tests()
    plain, tested = (
        dp_summary("age + g ~ sex", rows(), codebook=BOOK, eps=1.0, tests=is_exact)
        for is_exact in (False, True)
    )
    assert plain.release.noise_sd == tested.release.noise_sd
    assert "p-value" not in str(plain.summary())
    tested.save(tmp_path / "fit.nc")
    assert str(dp.load(tmp_path / "fit.nc").summary()) == str(tested.summary())


def test_groups_lost_in_noise_have_no_test():
    fit = dp_summary("age ~ sex", rows(40), codebook=BOOK, eps=0.01, tests=True)
    row = fit.tests().iloc[0]
    assert np.isnan(row["p_value"])
    assert "fewer than two groups" in row["reason"]
    assert "p-value" in str(fit.summary())
