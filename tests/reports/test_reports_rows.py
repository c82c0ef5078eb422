"""Numbers of rows and of levels in reports: never more rows than there are, and which are one."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.report import signif
from dpmodels.reports.header import complete_text, omitted, range_note

BOOK = dp.codebook(sex=["F", "M"], g=["a", "b", "c", "d"], x=(0, 1))


def flat(fit):
    return re.sub(r"\s+", " ", str(fit.summary()))


def test_what_is_left_out_is_counted_in_its_number():
    assert omitted(8, 9, "columns", "tidy()") == ("1 more of the columns: see tidy().",)
    assert omitted(8, 10, "columns", "tidy()") == ("2 more columns: see tidy().",)
    assert omitted(8, 8, "columns", "tidy()") == ()


def test_no_more_rows_are_complete_than_there_are():
    assert complete_text(9_828.0, 8.0, 9_822) == "9,822 rows (noise sd 8.0; released 9,828)"
    assert complete_text(9_812.0, 8.0, 9_822) == "9,812 rows (noise sd 8.0)"
    assert complete_text(9_828.0, 8.0) == "9,828 rows (noise sd 8.0)"


@pytest.mark.product
@pytest.mark.parametrize("form", forms("counted").values(), ids=lambda form: form.id)
def test_no_table_prints_more_rows_than_the_public_number(form):
    # Half of the releases have more complete rows than rows: false alarm of none 2 ** -20.
    rows, over, book = {"wage": np.linspace(0, 1, 400)}, 0, dp.codebook(wage=(0, 1))
    with dp.simulation(seed=2):
        for _ in range(20):
            fit = form.ask(rows, codebook=book)
            over += float(fit.counts.sum()) > 400.5
            text = flat(fit)
            complete = int(re.search(r"Complete: (\d+) rows", text)[1])
            assert complete <= 400
            assert ("released" in text) == (round(float(fit.counts.sum())) > 400)
            if form.formula == "wage ~ 1":
                assert int(re.search(r"\(all\) (\d+)", text)[1]) <= 400
    assert over >= 1


def test_pooled_levels_are_named():
    rng = np.random.default_rng(1)
    rows = {"sex": rng.choice(["F", "M"], 3_000), "g": rng.choice(["a", "b"], 3_000)}
    with dp.simulation(seed=3):
        fit = dp.dp_table("~ sex + g", rows, codebook=BOOK, eps=0.5)
    test = fit.chi2_test()
    assert test.pooled[0] == ()
    assert set(test.pooled[1]) > {2, 3}
    assert test.df == 1
    assert np.isfinite(test.pvalue)
    text = ", ".join("abcd"[i] for i in test.pooled[1])
    assert f"Test: levels {text} of g are pooled, as their counts are small." in flat(fit)


def test_an_overview_says_the_noise_of_means_and_names_each_range_once():
    rng = np.random.default_rng(1)
    rows = {"x": rng.uniform(0, 1, 2_000), "z": rng.uniform(0, 1, 2_000)}
    book = dp.codebook(x=(0, 1_000), z=(0, 500))
    with dp.simulation(seed=1):
        fit = dp.dp_summary("~ x + z", rows, codebook=book, eps=0.5)
    text = flat(fit)
    sd = fit["x"].bse_noise.item()
    assert re.search(rf"noise sd of mean {signif(sd, 2)} ", text)
    assert "Values outside 0 to 1000 (x), 0 to 500 (z) were clipped" in text


def test_a_standard_deviation_has_no_more_digits_than_its_noise_leaves():
    rows = {"x": np.linspace(0, 20, 2_000)}
    with dp.simulation(seed=1):
        words = {"codebook": dp.codebook(x=(0, 1_000)), "eps": 0.5, "mechanism": "geometric"}
        fit = dp.dp_var("~ x", rows, **words)
    noise = fit.bse_noise.item() / max(2 * fit.sd.item(), np.sqrt(fit.bse_noise.item()))
    assert noise > 10
    text = re.search(r"\(all\) \S+ \S+ (\S+)", flat(fit))[1]
    assert float(text) == int(float(text))


def test_a_histogram_says_where_values_beyond_the_bounds_are():
    rows = {"x": np.linspace(0, 2, 2_000)}
    with dp.simulation(seed=1):
        fit = dp.dp_hist("~ x", rows, codebook=BOOK, eps=5.0, breaks=2)
    assert fit.counts.to_numpy()[-1] > 1_400
    assert "Values beyond the declared bounds were clipped to them, into the end bins" in flat(fit)


def test_correlations_with_a_column_lost_in_noise_are_not_printed():
    rng = np.random.default_rng(1)
    rows = {"x": rng.uniform(0, 1, 2_000), "z": rng.uniform(0, 1, 2_000)}
    book = dp.codebook(x=(0, 1), z=(0, 10_000))
    with dp.simulation(seed=1):
        fit = dp.dp_cov("~ x + z", rows, codebook=book, eps=0.5, delta=1e-6)
    assert fit.weak_variables == "z"
    assert re.search(r"Correlations .* 2\. z \* - 1\.000", flat(fit))
    assert "Correlations with them are not reported" in flat(fit)


def test_means_of_few_skewed_rows_are_said_to_be_so():
    rng = np.random.default_rng(1)
    size = np.array([4_000, 400])
    large = rng.exponential(0.01, size[0])
    rare = np.where(rng.random(size[1]) < 0.02, 1.0, 0.0) * rng.uniform(0.2, 1, size[1])
    rows = {"x": np.concatenate([large, rare]), "sex": np.repeat(["F", "M"], size)}
    with dp.simulation(seed=1):
        fit = dp.dp_mean("x ~ sex", rows, codebook=BOOK, eps=20.0, mechanism="geometric")
        lost = dp.dp_mean("x ~ sex", rows, codebook=BOOK, eps=0.1, mechanism="geometric")
    assert (
        "Conf. intervals may cover less than 95 %, as the variable is skewed and rows are few: M."
        in flat(fit)
    )
    assert "the variable is skewed" not in flat(lost)


@pytest.mark.parametrize(
    ("verb", "formula"),
    [
        ("lm", "a ~ b"),
        ("pca", "~ a + b"),
        ("cov", "~ a + b"),
        ("mean", "~ a"),
        ("table", "~ g"),
        ("hist", "~ a"),
        ("survfit", "Surv(a, b) ~ 1"),
    ],
)
def test_complete_rows_are_printed_up_to_the_public_number(verb, formula):
    rng = np.random.default_rng(3)
    rows = {"a": rng.uniform(size=900), "b": rng.integers(0, 2, 900), "g": ["x", "y", "y"] * 300}
    book = dp.codebook(a=(0, 1), b=dp.Integer(0, 1), g=["x", "y"])
    for seed in range(12):
        with dp.simulation(seed=seed):
            fit = getattr(dp, f"dp_{verb}")(formula, rows, codebook=book, eps=0.5, delta=1e-6)
        text = " ".join(str(fit.summary()).split())
        match = re.search(r"Complete: ([\d,]+)", text)
        assert match is None or int(match[1].replace(",", "")) <= 900


def test_a_table_of_three_factors_names_both_levels_of_a_line():
    rows = {"sex": ["F", "M"] * 30, "g": ["a", "b", "b"] * 20, "s": ["i", "i", "ii", "ii"] * 15}
    book = dp.codebook(sex=["F", "M"], g=["a", "b"], s=["i", "ii"])
    with dp.simulation(seed=1):
        fit = dp.dp_table("~ sex + g + s", rows, codebook=book, eps=100.0)
    printed = str(fit.summary())
    lines = [line.split() for line in printed.splitlines()]
    start = next(at for at, line in enumerate(lines) if line[:4] == ["sex", "/", "g", "by"])
    assert lines[start][-3:] == ["i", "ii", "Total"]
    assert lines[start + 1 : start + 6] == [
        ["F", "/", "a", "5", "5", "10"],
        ["F", "/", "b", "10", "10", "20"],
        ["M", "/", "a", "5", "5", "10"],
        ["M", "/", "b", "10", "10", "20"],
        ["Total", "30", "30", "60"],
    ]


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (1990.0, 2020.0, "1990 to 2020 (x)"),
        (-9999.5, 0.0, "-9999.5 to 0 (x)"),
        (0.0, 10_000.0, "0 to 10,000 (x)"),
        (-1_234_567.0, 0.5, "-1,234,567 to 0.5 (x)"),
    ],
)
def test_a_year_has_no_comma_and_a_larger_bound_has(lower, upper, text):
    table = SimpleNamespace(lower=lower, upper=upper, measured="x", date=False)
    (note,) = range_note(table)
    assert note.startswith(f"Values outside {text} were clipped to the bounds")
