"""``dp_survey``, and tables whose rows answer for themselves."""

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError, FrameError, NotAvailable
from dpmodels.results.survey import SurveyResult

mpl.use("Agg")
RNG = np.random.default_rng(12)
SIZE = 4_000
SEX = RNG.choice(["F", "M"], SIZE)
AGE = RNG.uniform(18, 80, SIZE)
TRUTHS = np.where(RNG.uniform(size=SIZE) < 0.15 + 0.2 * (SEX == "M"), "yes", "no")
OFTEN = RNG.choice(["never", "once", "often"], SIZE, p=[0.5, 0.3, 0.2])
WARNER = dp.randomized_response(["no", "yes"], eps=2.0)
FORCED = dp.randomized_response(
    ["never", "once", "often"], forced=dict.fromkeys(["never", "once", "often"], "1/10")
)
BOOK = dp.codebook(sex=["F", "M"], age=(18, 80), w=(0, 5), region=["n", "s"])
with dp.simulation(seed=3):
    ANSWERS = pd.DataFrame(
        {
            "drug": WARNER.randomize(TRUTHS),
            "often": FORCED.randomize(OFTEN),
            "sex": SEX,
            "age": AGE,
            "w": RNG.uniform(0.5, 3, SIZE),
            "region": RNG.choice(["n", "s"], SIZE),
        }
    )
DEVICES = {"drug": WARNER, "often": FORCED}


def asked(formula, answers=ANSWERS, **words):
    return dp.dp_survey(formula, answers, codebook=BOOK, device=DEVICES, **words)


def test_estimates_are_those_of_the_inverse():
    fit = asked("~ drug")
    lie, share = WARNER.lie, (ANSWERS.drug == "yes").mean()
    assert fit.estimate.sel(drug="yes").item() == pytest.approx((share - lie) / (1 - 2 * lie))
    row = fit.tidy().iloc[1]
    assert row.answers == pytest.approx(share)
    assert row.noise_sd == pytest.approx(math.exp(1) / ((math.exp(2) - 1) * math.sqrt(SIZE)))
    assert row.conf_low < (TRUTHS == "yes").mean() < row.conf_high
    assert (fit.nobs, fit.ncomplete, fit.nincomplete) == (SIZE, SIZE, 0)


def test_exact_columns_stay_as_they_are():
    fit = asked("~ drug + sex")
    np.testing.assert_allclose(
        fit.estimate.sum("drug"), pd.Series(SEX).value_counts(normalize=True).loc[["F", "M"]]
    )
    alone = asked("~ drug", ANSWERS[ANSWERS.sex == "M"]).estimate
    within = fit.within("sex").set_index(["drug", "sex"])
    assert within.estimate["yes", "M"] == pytest.approx(alone.sel(drug="yes").item())
    ends = asked("~ drug", ANSWERS[ANSWERS.sex == "M"]).conf_int().loc["yes"]
    np.testing.assert_allclose(within.loc[("yes", "M"), ["conf_low", "conf_high"]], ends, rtol=1e-3)
    within_groups = asked("~ often + drug").within("drug")
    np.testing.assert_allclose(
        within_groups.conf_high,
        np.clip(within_groups.estimate + 1.959964 * within_groups.std_error, 0, 1),
        rtol=1e-5,
    )
    np.testing.assert_allclose(fit.margin("drug").estimate, asked("~ drug").estimate)
    assert fit.margin(["drug", "sex"]).equals(fit.margin(["sex", "drug"]))
    with pytest.raises(ArgumentError, match="factor 'age' is not in the table; it has 'drug', 's"):
        fit.within(["sex", "age"])
    assert fit.margin("sex").private_share.tolist() == pytest.approx([0.0, 0.0], abs=1e-9)


def test_eps_of_several_questions_adds_up():
    fit = asked("~ drug + often")
    assert fit.eps == pytest.approx(2.0 + FORCED.eps)
    assert fit.release.guarantee.eps == pytest.approx(fit.eps)
    assert f"eps = 2 + {FORCED.eps:.2f}" in str(fit.summary())
    assert asked("~ drug + sex").eps == 2.0


def test_the_likeliest_shares_are_shares():
    few = {"drug": ["no"] * 30 + ["yes"], "sex": ["F"] * 31}
    fit = asked("~ drug", few)
    assert fit.estimate.min() < 0
    assert fit.likeliest.min() >= 0
    assert fit.likeliest.sum().item() == pytest.approx(1.0)
    assert fit.counts.values.tolist() == [31, 0]
    assert fit.conf_int().loc["yes", "lower"] == 0.0
    assert "outside 0 and 100%" in str(fit.summary())


def test_an_answer_that_is_none_makes_a_respondent_incomplete():
    odd = ANSWERS.astype(object)
    odd.loc[:9, "drug"] = ["maybe", None, 3, np.nan, "", "YES", "no ", True, -1, "nope"]
    fit = asked("~ drug + sex", odd)
    assert (fit.nobs, fit.ncomplete, fit.nincomplete) == (SIZE, SIZE - 10, 10)
    assert "10 respondents without valid answers are left out" in str(fit.summary())
    assert asked("drug ~ sex", odd).ncomplete == SIZE - 10


def test_weights_and_strata_are_told_and_change_errors():
    plain, weighed = asked("~ drug"), asked("~ drug", weights="w", strata="region")
    assert (weighed.tidy().std_error > plain.tidy().std_error).all()
    text = str(weighed.summary())
    assert "Weights:" in text
    assert "region" in text
    fit = asked("~ drug", strata={"region": {"n": 0.9, "s": 0.1}})
    estimates = [asked("~ drug", ANSWERS[ANSWERS.region == region]).estimate for region in "ns"]
    np.testing.assert_allclose(fit.estimate, 0.9 * estimates[0] + 0.1 * estimates[1])
    assert "weighted to the population" in " ".join(str(fit.summary()).split())


def test_independence_finds_what_is_there_and_says_what_it_cost():
    test, absent = asked("~ drug + sex").independence(), asked("~ often + region").independence()
    # By chance the second is below at a rate of 1e-6.
    assert test.pvalue < 1e-4
    assert absent.pvalue > 1e-6
    assert test.kept < WARNER.truth**2
    weighed = asked("~ drug + sex", weights="w").independence()
    assert weighed.df == 1
    assert weighed.pvalue < 1e-4
    row = asked("~ drug + sex").glance().iloc[0]
    assert row.p_value == test.pvalue
    with pytest.raises(NotAvailable, match="two questions"):
        asked("~ drug").independence()


def test_goodness_of_fit_is_against_public_shares():
    options = {"never": 0.5, "once": 0.3, "often": 0.2}
    # Of the true shares below at a rate of 1e-6.
    assert asked("~ often").goodness_of_fit(options).pvalue > 1e-6
    assert asked("~ often", weights="w").goodness_of_fit(options).pvalue > 1e-6
    assert asked("~ often").goodness_of_fit([0.2, 0.3, 0.5]).pvalue < 1e-6
    for shares in ([0.5, 0.5], [0.5, 0.6, 0.2], [1, 0, 0], {"never": 1.0}, 3):
        with pytest.raises(ArgumentError, match="sum 1"):
            asked("~ often").goodness_of_fit(shares)
    with pytest.raises(NotAvailable, match="one question"):
        asked("~ often + sex").goodness_of_fit(options)


def test_regression_goes_through_the_device():
    fit = asked("drug ~ sex + age")
    assert fit.params.index.tolist() == ["Intercept", "sex[T.M]", "age"]
    ends = fit.conf_int(1 - 1e-6)
    truth = math.log(0.35 / 0.65) - math.log(0.15 / 0.85)
    assert ends.loc["sex[T.M]", "lower"] < truth < ends.loc["sex[T.M]", "upper"]
    assert (fit.bse_noise < fit.bse).all()
    assert fit.llf > fit.llnull
    assert 0 < fit.pseudo_rsquared < 1
    new = fit.predict({"sex": ["F", "M", None], "age": [40, 40, 40]})
    assert new[0] < new[1]
    assert np.isnan(new[2])
    saturated = asked("drug ~ sex")
    within = asked("~ drug + sex").within("sex").set_index(["drug", "sex"]).estimate
    np.testing.assert_allclose(
        saturated.predict({"sex": ["F", "M"]}), within["yes"].loc[["F", "M"]], rtol=1e-4
    )
    for text in (str(fit.summary()), fit.tidy().to_string(), repr(fit)):
        assert "sex" in text
    assert {"llf", "local_eps"} <= set(fit.glance())


def test_regression_tells_after_the_fit_what_others_do():
    fit, new = asked("drug ~ sex + age"), {"sex": ["F", "M"], "age": [40, 40]}
    assert fit.wald_test("sex")["statistic"] == pytest.approx(fit.tvalues["sex[T.M]"] ** 2)
    assert fit.anova().tidy()["term"].tolist() == ["sex", "age"]
    ahead, means = fit.get_prediction(new), fit.emmeans("sex", at={"age": 40}).tidy()
    np.testing.assert_allclose(ahead["mean"], fit.predict(new))
    np.testing.assert_allclose(means["conf_low"], ahead["mean_ci_lower"])
    effect = fit.margins(new, "sex").tidy()["estimate"].item()
    assert effect == pytest.approx(ahead["mean"].diff()[1])
    ratio = fit.ratios().tidy().set_index("term").loc["sex[T.M]", "conf_low"]
    assert ratio == pytest.approx(np.exp(fit.conf_int().loc["sex[T.M]", "lower"]))


def test_one_level_of_several_is_compared_with_the_rest():
    fit = asked("(often == 'once') ~ 1")
    share = asked("~ often").estimate.sel(often="once").item()
    assert fit.params.item() == pytest.approx(math.log(share / (1 - share)), rel=1e-4)
    with pytest.raises(NotAvailable, match="has no terms"):
        fit.predict({"sex": ["F"]})


def test_what_the_answers_do_not_tell_is_said():
    fit = asked("drug ~ sex", ANSWERS[ANSWERS.sex == "F"])
    assert not fit.identified
    assert "Not identified" in str(fit.summary())
    assert np.isnan(fit.bse).all()


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("formula", "words", "kind", "message"),
    [
        ("~ sex", {}, FormulaError, "name one of device=, 'drug'"),
        ("~ sex", {}, FormulaError, "dp_table"),
        ("sex ~ age", {}, FormulaError, "dp_glm"),
        ("age ~ sex", {}, FormulaError, "dp_glm"),
        ("often ~ age", {}, FormulaError, "3 levels"),
        ("drug ~ often", {}, FormulaError, "towards 0"),
        ("I((often != 'never') * (drug == 'yes')) ~ age", {}, FormulaError, "by itself"),
        ("drug ~ age", {"strata": {"region": {"n": 1, "s": 1}}}, FormulaError, "strata='region'"),
        ("(I(1 * (drug == 'yes')) >= 0) ~ age", {}, FormulaError, "same for all"),
        ("I(1 * (drug == 'yes')) ~ age", {}, FormulaError, "two levels"),
        ("~ drug + income", {}, FormulaError, "income"),
    ],
)
def test_what_a_survey_does_not_answer_is_refused_before_an_answer_is_read(
    formula, words, kind, message
):
    with pytest.raises(kind, match=message):
        asked(formula, {}, **words)


def test_a_table_too_large_is_refused():
    book = dp.codebook(a=range(50), b=range(30))
    with pytest.raises(FormulaError, match="3,000"):
        dp.dp_survey("~ drug + a + b", {}, codebook=book, device={"drug": WARNER})


def test_answers_are_held_against_the_declarations():
    with pytest.raises(FrameError, match="'sex'"):
        asked("~ drug + sex", {"drug": ["no"]})


def test_no_answers_are_no_error():
    fit = asked("~ drug", {"drug": [], "sex": []})
    assert np.isnan(fit.estimate).all()
    assert "-" in str(fit.summary())
    assert not asked("drug ~ sex", {"drug": [], "sex": []}).identified


def test_a_report_says_what_the_guarantee_rests_on():
    text = " ".join(str(asked("~ drug + sex").summary()).split())
    assert "Guarantee: eps = 2 for each respondent, local" in text
    assert "none charged" in text
    assert "assumes that the devices were used before answering" in text
    assert "as answered, not protected" in text
    assert "does not cover them" in text
    assert "cover them" not in " ".join(str(asked("~ drug").summary()).split())
    weighed = " ".join(str(asked("~ drug", weights="w").summary()).split())
    assert "does not cover them" in weighed
    fit = " ".join(str(asked("drug ~ sex").summary()).split())
    assert "assumes that the devices were used" in fit
    assert "does not cover them" in fit


def test_nothing_is_charged_and_a_table_of_rows_is():
    rows = {"drug": TRUTHS, "sex": SEX}
    book = BOOK | {"drug": dp.Categorical(("no", "yes"))}
    ledger = dp.Ledger(1.0)
    words = {"codebook": book, "eps": 1.0, "mechanism": "randomized_response"}
    fit = dp.dp_table("~ drug + sex", rows, ledger=ledger, **words)
    assert isinstance(fit, SurveyResult)
    assert fit.rowwise
    assert ledger.spent.amount == 1.0
    assert asked("~ drug").release.events == ()
    assert fit.counts.sum().item() + fit.nincomplete == SIZE
    assert fit.margin("sex").shape[0] == 2
    assert 0 < fit.independence().kept < 1
    assert "randomised row by row" in " ".join(str(fit.summary(notes="all")).split())


def test_both_tables_estimate_the_same_shares():
    # Each within 6 of its standard errors: 2e-9.
    rows = {"drug": TRUTHS, "sex": SEX}
    book = BOOK | {"drug": dp.Categorical(("no", "yes"))}
    with dp.simulation(seed=2):
        fit = dp.dp_table("~ drug", rows, codebook=book, eps=2.0, mechanism="randomized_response")
    assert fit.simulated
    row, truth = fit.tidy().iloc[1], (TRUTHS == "yes").mean()
    assert abs(row.estimate - truth) < 6 * row.noise_sd
    assert row.noise_low < truth < row.noise_high
    assert row.noise_sd > asked("~ drug").tidy().noise_sd[1]


def test_pictures_have_a_line_a_share_and_a_coefficient():
    for fit, labels in ((asked("~ often"), FORCED.levels), (asked("drug ~ sex"), ("sex[T.M]",))):
        axes = fit.plot()
        assert [yticklabel.get_text() for yticklabel in axes.get_yticklabels()] == list(labels)
        mpl.pyplot.close(axes.figure)
    with pytest.raises(ArgumentError, match="no terms"):
        asked("drug ~ 1").plot()


@pytest.mark.slow
@pytest.mark.parametrize("levels", [2, 5])
@pytest.mark.parametrize("eps", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_intervals_cover_the_population(levels, eps, share, reduced):
    """Of all surveys 95 %; 5.3 standard deviations less at a rate of 6e-8, in all of 1e-6."""
    device = dp.randomized_response(range(levels), eps=eps)
    matrix = device.matrix.to_numpy()
    shares = np.array([*[(1 - share) / (levels - 1)] * (levels - 1), share])
    rng, runs, n_covered = np.random.default_rng(7), 200 if reduced else 2_000, 0
    for counts in rng.multinomial(500, matrix @ shares, runs):
        answers = {"q": np.repeat(np.arange(levels), counts)}
        ends = dp.dp_survey("~ q", answers, device={"q": device}).conf_int()
        low, high = ends.iloc[-1]
        n_covered += low <= share <= high
    assert abs(n_covered / runs - 0.95) < 5.3 * math.sqrt(0.95 * 0.05 / runs)


def test_p_values_are_printed_as_in_all_reports():
    printed = str(asked("drug ~ age + sex").summary()).splitlines()
    (line,) = (line for line in printed if line.startswith("Intercept"))
    assert "< 0.0001" in line


def test_answers_of_a_file_of_lines(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text('drug,note\nno,"a\nyes,b\nno,c"\n')
    words = {"device": {"drug": dp.randomized_response(["no", "yes"], eps=1.0)}}
    assert dp.dp_survey("~ drug", path, **words).release.rows == 1
    fit = dp.dp_survey("~ drug", path, csv="lines", **words)
    assert fit.release.rows == 3
    assert "CSV lines" in str(fit.summary())


def test_a_survey_without_devices_names_what_to_write():
    with pytest.raises(ArgumentError, match="device=None: expected the device of each"):
        dp.dp_survey("~ drug", {"drug": ["no", "yes"] * 50})
