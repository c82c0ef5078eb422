"""Results side by side: what stands in the cells is what the results say, or that they say none."""

import inspect
import math
import sys

import numpy as np
import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable

BOOK = dp.codebook(
    age=dp.Numeric(-1, 1, label="Dose <b>", unit="mg"),
    wage=(-2, 2),
    region=["p", "q", "r"],
    sex=dp.Categorical([0, 1], label="Healed"),
    height=(-1, 1),
)
RNG = np.random.default_rng(3)
N = 600
X, Z = RNG.uniform(-1, 1, N), RNG.uniform(-1, 1, N)
ROWS = {
    "age": X,
    "height": Z,
    "wage": np.clip(X + RNG.normal(0, 0.3, N), -2, 2),
    "region": RNG.choice(["p", "q", "r"], N),
    "sex": (RNG.uniform(size=N) < 1 / (1 + np.exp(-2 * X))).astype(int),
}
SURE = {"codebook": BOOK, "eps": 1e4, "delta": 1e-6}
WEAK = {"codebook": BOOK, "eps": 0.01, "delta": 1e-6}


@pytest.fixture(scope="module")
def fits():
    moments = dp.dp_moments("~ wage + age + region + height", ROWS, **SURE)
    fits = {
        "open": dp.dp_lm("wage ~ age", ROWS, **WEAK, mechanism="moments"),
        "short": moments.lm("wage ~ age"),
        "long": moments.lm("wage ~ region + age"),
    }
    for form in forms("column").values():
        fits[form.name or form.verb.short] = form.ask(ROWS, **{**SURE, **form.options})
    with dp.simulation(seed=1):
        fits["simulated"] = dp.dp_lm("wage ~ age", ROWS, **SURE, mechanism="moments")
    return fits


def notes(table):
    return "\n".join(table.summary().report.notes)


def cells(table):
    return {cell for row in table.summary().report.sections[0].rows for cell in row.cells}


@pytest.mark.product
def test_any_mixture_stands_side_by_side_in_every_format(fits):
    table = dp.etable(list(fits.values()))
    for printed in (table.as_text(), table.as_html(), table.as_latex(), table.as_markdown()):
        for head in ("(1)", "PC1", "not identified", "SIMULATION"):
            assert head in printed
    assert {"OLS", "logit", "SVM", "mean", "variance", "t-test", "quantile", "PCA"} <= cells(table)
    assert {"subspace", "correlation", "share", "logit of answers"} <= cells(table)
    assert repr(table) == table.as_text()
    assert max(map(len, table.as_text().splitlines())) <= 100


def test_numbers_are_those_of_the_fits(fits):
    names = ["lm", "glm", "mean", "survey"]
    tidy = dp.etable({name: fits[name] for name in names}).tidy()
    for name in names:
        part, fit = tidy[tidy["model"] == name], fits[name].tidy()
        for column in ("estimate", "std_error", "noise_sd", "conf_low", "noise_high"):
            np.testing.assert_array_equal(part[column], fit[column])


def test_loadings_are_those_above_the_noise(fits):
    pca = fits["pca"]
    tidy = dp.etable(pca).tidy()
    pivoted = tidy.pivot_table("estimate", "term", "component", sort=False)
    np.testing.assert_array_equal(pivoted, pca.loadings.to_numpy()[:, : pivoted.shape[1]])
    with dp.simulation(seed=1):  # the rule lets noise pass in 5 % of all draws
        weak = dp.etable(dp.dp_pca("~ age + wage + height", ROWS, **WEAK, mechanism="gauss"))
    assert not weak.tidy()["identified"].any()
    assert "lost in noise" in weak.as_text()


def test_what_noise_leaves_open_is_no_number(fits):
    table = dp.etable([fits["open"], fits["lm"]], statistic=["std_error", "conf_int"])
    tidy_table = table.tidy()
    assert not tidy_table["identified"][:2].any()
    assert tidy_table.loc[:1, ["estimate", "std_error", "conf_low"]].isna().all(axis=None)
    assert not any("inf" in cell.lower() or cell == "nan" for cell in cells(table))
    frame = table.frame()
    assert frame.iloc[0, 0] == "not identified"
    assert (frame.iloc[1:3, 0] == "").all()


def test_a_glm_without_standard_errors_says_why_and_one_that_bought_none_keeps_its_coefficients():
    weak, free = dp.dp_glm("sex ~ age", ROWS, **WEAK), {**SURE, "inference": False}
    table = dp.etable([weak, dp.dp_glm("sex ~ age", ROWS, **free)])
    assert table.frame().iloc[0, 0] == "not identified"
    assert "(1): not identified at this budget" in notes(table)
    assert table.tidy()["identified"].tolist() == [False, False, True, True]
    assert "(2): as released, shrunk by a ridge, without standard errors" in notes(table)


def test_one_simulation_stamps_the_table_and_is_named(fits):
    table = dp.etable([fits["lm"], fits["simulated"]], privacy=False)
    assert table.stamp == "SIMULATION - NOT PRIVATE"
    assert table.summary().report.sections[0].columns == ("(1)", "(2) simulated")
    assert "(2) simulated: simulated, without a privacy guarantee" in notes(table)
    assert dp.etable(fits["lm"]).stamp is None


def test_parts_of_one_release_are_paid_once_and_others_are_not_added(fits, tmp_path):
    fits["short"].save(tmp_path / "short.nc")
    loaded = dp.load(tmp_path / "short.nc")
    table = dp.etable([loaded, fits["long"], fits["lm"]])
    assert "(1) and (2) share one release, whose budget was paid once." in table.accounts
    assert "not added up" in table.accounts[-1]
    assert table.frame().sort_index().loc[("Privacy", "Release")].to_numpy().ravel().tolist() == [
        "A",
        "A",
        "B",
    ]
    again = dp.dp_moments("~ wage + age + region + height", ROWS, **SURE).lm("wage ~ age")
    assert "one release" not in " ".join(dp.etable([again, fits["long"]]).accounts)


def test_a_ledger_tells_what_its_releases_come_to(fits):
    ledger = dp.Ledger(eps=2.0, delta=1e-6)
    options = {"codebook": BOOK, "ledger": ledger}
    mean = dp.dp_mean("wage ~ region", ROWS, **options, eps=0.5)
    moments = dp.dp_moments("~ wage + age", ROWS, **options, eps=1.0, delta=1e-7)
    accounts = dp.etable([moments.lm("wage ~ age"), mean, fits["lm"]], ledger=ledger).accounts
    assert ledger.describe() in accounts[0]
    assert "charges 1, 2" in accounts[2]
    assert accounts[1] == "(3): not charged to this ledger, and not in its total."


def test_different_tables_and_declarations_are_told(fits):
    half = {name: row[:300] for name, row in ROWS.items()}
    words = {**SURE, "codebook": BOOK | {"age": (-1, 2)}, "mechanism": "moments"}
    table = dp.etable([fits["lm"], fits["glm"], dp.dp_lm("wage ~ age", half, **words)])
    assert "by the public number of rows: (1) and (2) of 600; (3) of 300" in notes(table)
    assert "age: declared -1.0 to 1.0 in (1) and (2); declared -1.0 to 2.0 in (3)" in notes(table)
    assert "Different" not in notes(dp.etable([fits["lm"], fits["glm"]]))
    assert "declared" not in notes(dp.etable([fits["lm"], fits["glm"]]))


def test_ratios_have_errors_by_the_delta_method_and_others_stay(fits):
    plain, ratios = (
        dp.etable([fits["lm"], fits["glm"]], exponentiate=is_exponentiated)
        for is_exponentiated in (False, True)
    )
    before, after = (table.tidy().set_index("model") for table in (plain, ratios))
    assert after.loc["(1)"].equals(before.loc["(1)"])
    glm, odds = before.loc["(2)"], after.loc["(2)"]
    np.testing.assert_allclose(odds["estimate"], np.exp(glm["estimate"]))
    np.testing.assert_allclose(odds["std_error"], glm["std_error"] * odds["estimate"])
    np.testing.assert_allclose(odds["conf_high"], np.exp(glm["conf_high"]))
    np.testing.assert_array_equal(odds["p_value"], glm["p_value"])
    assert "logit, odds ratios" in cells(ratios)
    with pytest.raises(ArgumentError, match="no column is of a logistic"):
        dp.etable(fits["lm"], exponentiate=True)


def test_words_for_names_and_hostile_ones_act_nowhere(fits):
    table = dp.etable([fits["long"], fits["glm"]], labels=True)
    assert ("Coefficients", "Dose <b>") not in table.frame().index
    assert "Dose <b>" in table.frame().index.get_level_values("row")
    assert "Dose &lt;b&gt;" in table.as_html()
    assert "<b>" not in table.as_html()
    assert r"Dose \<b\>" in table.as_markdown()
    assert r"Dose \textless{}b\textgreater{}" in table.as_latex()
    assert table.frame().columns[1][0] == "Healed"
    frame = dp.etable(fits["long"], labels={"region": "Group"}).frame()
    assert ("", "Group: q") in frame.index
    names = dp.etable({"<i>$a_b": fits["lm"]})
    assert "<i>" not in names.as_html()
    assert r"a\_b" in names.as_latex()


def test_mappings_and_lists_name_what_stands_above(fits):
    table = dp.etable({"Both": [fits["lm"], fits["glm"]], "Axes": fits["pca"]})
    (section,) = table.summary().report.sections
    assert section.columns[:3] == ("(1)", "(2)", "PC1")
    assert section.spanners[:3] == ("Both", "Both", "Axes")
    nested = dp.etable([[fits["lm"]], [fits["mean"], fits["var"]]]).summary().report.sections[0]
    assert nested.spans(range(3)) == (("wage", 3),)


def test_stars_are_off_unless_asked_for(fits):
    models = [fits["lm"], fits["mean"]]
    assert not any("*" in cell for cell in cells(dp.etable(models)))
    starred = dp.etable(models, stars=[0.5, 1e-3])
    assert (
        starred.frame()
        .sort_index()
        .loc[("Coefficients", "age")]
        .to_numpy()
        .ravel()[0]
        .endswith("**")
    )
    assert "* p < 0.5, ** p < 0.001" in notes(starred)


def test_below_an_estimate_stands_what_is_asked_for(fits):
    statistics = ["p_value", "statistic", "noise_int"]
    frame = dp.etable(fits["lm"], statistic=statistics, level=0.5, keep="age").frame()
    p, z, ends = frame.iloc[1:4, 0]
    assert (p, z[:4]) == ("p < 0.0001", "z = ")
    low, high = map(float, ends.strip("[]").split(", "))
    assert (low, high) == pytest.approx(tuple(fits["lm"].noise_int(0.5).loc["age"]), rel=1e-2)
    alone = dp.etable(fits["lm"], statistic=None, stats=[], privacy=False).frame()
    assert alone.index.get_level_values("row").tolist() == ["Intercept", "age", "Model"]


def test_digits_are_those_of_errors(fits):
    sd = fits["lm"].bse["age"]
    for digits in (1, 4):
        column = dp.etable(fits["lm"], keep="age", digits=digits).frame().iloc[:2, 0]
        assert column.iloc[1] == f"({sd:.{digits - 1 - math.floor(math.log10(sd))}f})"
        assert len(column.iloc[0].partition(".")[2]) == len(
            column.iloc[1].strip("()").partition(".")[2]
        )


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"models": []}, "has no results"),
        ({"models": 3}, "int is not a result"),
        ({"models": [ROWS]}, "float64 is not a result"),
        ({"statistic": "se"}, "statistic='se': expected"),
        ({"stats": "aic"}, "stats='aic': expected"),
        ({"stars": 0.05}, "levels like"),
        ({"stars": [2]}, "between 0 and 1"),
        ({"labels": "yes"}, "expected True, False"),
        ({"digits": 9}, "1 to 6"),
        ({"level": 95}, "between 0 and 1"),
        ({"ledger": "study.ledger"}, "expected a dp.Ledger"),
    ],
)
def test_words_that_make_no_sense_are_refused(fits, words, message):
    with pytest.raises(ArgumentError, match=message):
        dp.etable(**{"models": [fits["lm"]], **words})


def test_a_result_without_a_column_is_refused_with_what_has_one():
    with pytest.raises(ArgumentError, match=r"TableResult cannot be a column .* quantiles"):
        dp.etable(dp.dp_table("~ region", ROWS, codebook=BOOK, eps=1.0))


def test_the_summary_reads_what_each_guarantee_means(fits):
    summary = dp.etable([fits["lm"], fits["long"], fits["open"]]).summary(reading=True)
    (line,) = (note for note in summary.report.notes if "Reading: " in note)
    assert line.startswith("Reading: (1) and (2): ")
    assert " (3): " in line


@pytest.mark.product
def test_great_tables_are_made_where_they_are_installed(fits, monkeypatch):
    table = dp.etable([fits["long"], fits["simulated"]], labels=True)
    monkeypatch.setitem(sys.modules, "great_tables", None)
    with pytest.raises(NotAvailable, match=r"pip install 'dpmodels\[tables\]'"):
        table.as_gt()
    monkeypatch.undo()
    pytest.importorskip("great_tables")
    html = table.as_gt().as_raw_html()
    assert "Dose &lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("SIMULATION - NOT PRIVATE") == 2


def test_it_takes_no_rows_and_no_budget():
    parameters = set(inspect.signature(dp.etable).parameters)
    assert not parameters & {"data", "eps", "delta", "budget", "mechanism", "codebook"}


def test_what_releases_have_in_common_stands_above_and_what_not_in_rows(fits):
    private = dp.dp_lm(
        "wage ~ age", ROWS, codebook=BOOK, budget=dp.ZCDP(100.0), adjacency="add-remove"
    )
    table = dp.etable([fits["short"], private, fits["mean"]])
    privacy_row = table.frame().loc["Privacy"]
    assert privacy_row.loc["Neighbours"].tolist() == ["replace", "add-remove", "replace"]
    assert privacy_row.loc["Protected"].tolist() == ["one row"] * 3
    assert privacy_row.loc["eps"].tolist() == ["10000", "", "10000"]
    assert privacy_row.loc["delta"].tolist() == ["1e-06", "", "1e-06"]
    assert privacy_row.loc["rho"].tolist() == ["", "100", ""]
    alike = dp.etable([fits["short"], fits["mean"]])
    assert ("Neighbours", "replace one row, n public") in alike.summary().report.facts
    assert "Neighbours" not in alike.frame().loc["Privacy"].index


def test_results_one_after_the_other_are_a_list(fits):
    one_by_one = dp.etable(fits["lm"], fits["mean"], title="Both")
    assert one_by_one.as_text() == dp.etable([fits["lm"], fits["mean"]], title="Both").as_text()


def test_what_stands_over_columns_is_a_name_and_no_product_of_terms(fits):
    rows = {**ROWS, "sex": np.where(ROWS["sex"] == 1, "yes", "no")}
    book = BOOK | {"sex": dp.Categorical(["no", "yes"], label="Healed")}
    healed = dp.dp_glm("sex ~ age", rows, codebook=book, eps=1e4, delta=1e-6)
    assert above(dp.etable(healed)) == ("sex[yes]",)
    assert above(dp.etable(healed, labels=True)) == ("Healed: yes",)
    assert above(dp.etable({"Table 2: y": [fits["lm"]]}, labels={"wage": "Y"})) == ("Table 2: y",)


def above(table):
    return table.summary().report.sections[0].spanners


def test_levels_of_a_response_are_said_against_their_reference():
    fit = dp.dp_glm("region ~ age", ROWS, **SURE, family="multinomial")
    assert "(1): levels of region against p." in notes(dp.etable(fit))
