"""Whole printed tables of counts: every number of a report is one that its result returns."""

import math
from functools import cache
from types import SimpleNamespace as Fit

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.report import Section, count, interval, signif, signif_uncertain
from dpmodels.reports import counts, hist
from dpmodels.reports.header import LOST, pvalue

TOWNS = [f"t{number}" for number in range(45)]
BOOK = dp.codebook(
    sex=["F", "M"],
    g=["a", "b", "c"],
    town=TOWNS,
    week=dp.Integer(0, 99),
    weight=(0, 2),
    h=["u", "v"],
)
DESIGN = dp.design(weights="weight", strata="g", bounds=(0.1, 2), weights_are="design")
STAYING = dp.Pufferfish(1.0, dp.markov_chain(["F", "M"], stay=(0.6, 0.7)))


def rows(n=3_000):
    rng = np.random.default_rng(5)
    return {
        "sex": np.where(np.arange(n) < 60, "", rng.choice(["F", "M"], n)),
        "g": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]),
        "town": rng.choice(TOWNS, n),
        "h": rng.choice(["u", "v"], n),
        "weight": rng.uniform(0.2, 1.9, n),
        "id": np.repeat(np.arange(n // 100), 100),
        "week": np.tile(np.arange(100), n // 100),
    }


@cache
def fitted(verb, formula, **options):
    with dp.simulation(seed=7):
        return getattr(dp, verb)(formula, rows(), codebook=BOOK, **({"eps": 1.0} | options))


def cells(section):
    return {row.label: row.cells for row in section.rows}


def text(report):
    return " ".join(report.notes)


def listed_cells(fit):
    """The four cells of each line of a list of counts, by four methods of the result."""
    noise, shares = fit.noise_int().to_numpy(), fit.conf_int().to_numpy()
    lines = zip(
        fit.counts.to_numpy().ravel(),
        fit.proportions().to_numpy().ravel(),
        noise,
        shares,
        strict=True,
    )
    return [
        (
            count(number),
            f"[{count(low)}, {count(high)}]",
            # Half of half a 95 % interval is its standard error.
            signif_uncertain(100 * share, max(25 * (upper - lower), 0.01)),
            interval(100 * lower, 100 * upper),
        )
        for number, share, (low, high), (lower, upper) in lines
    ]


def crossed_cells(numbers):
    """Counts with a total of each line and, in the last line, of each column."""
    lines = [*numbers.tolist(), [sum(column) for column in numbers.T.tolist()]]
    return [tuple(map(count, (*line, sum(line)))) for line in lines]


def test_a_list_of_counts_has_the_numbers_of_its_result():
    fit = fitted("dp_table", "~ g")
    report = counts.table_report(fit)
    (section,) = report.sections
    assert (report.title, section.title) == ("Private counts", "g")
    assert section.columns == ("Rows", "95% noise int.", "%", "95% conf. int.")
    assert cells(section) == dict(zip("abc", listed_cells(fit), strict=True))
    facts = dict(report.facts)
    assert facts["Complete"] == f"3,000 rows (noise sd {signif(fit._counted.incomplete_sd, 2)})"
    upper = fit.noise_int()["upper"].to_numpy()
    half = upper[1] - fit.released.to_numpy()[1]
    assert facts["Cell noise"] == f"sd {signif(fit.noise_sd(), 2)}, 95% within {signif(half, 2)}"
    assert "may be noise alone" not in text(report)
    assert "more lines" not in text(report)


def test_two_factors_are_crossed_with_totals_and_a_test():
    fit = fitted("dp_table", "~ sex + g")
    report = counts.table_report(fit)
    table, test = report.sections
    assert (report.title, table.title) == ("Private table of counts", "sex by g")
    assert table.columns == ("a", "b", "c", "Total")
    assert list(cells(table)) == ["F", "M", "Total"]
    assert list(cells(table).values()) == crossed_cells(fit.counts.to_numpy())
    chi2 = fit.chi2_test()
    assert test.title == "Independence"
    (row,) = test.rows
    assert row.cells == (signif(chi2.statistic), str(chi2.df), pvalue(chi2.pvalue))
    assert f"{count(fit.ncomplete)} rows" in dict(report.facts)["Complete"]


@pytest.mark.parametrize(("formula", "n_hidden"), [("~ town", 5), ("~ town + sex", 5)])
def test_lines_that_are_left_out_are_counted(formula, n_hidden):
    fit = fitted("dp_table", formula)
    report = counts.table_report(fit)
    table = report.sections[0]
    is_crossed = "sex" in formula
    assert len(table.rows) == counts.SHOWN_ROWS + is_crossed
    assert f"{n_hidden} more lines: see counts and tidy()." in text(report)
    if is_crossed:
        assert table.rows[-1].cells == crossed_cells(fit.counts.to_numpy())[-1]
        assert table.rows[counts.SHOWN_ROWS - 1].label == TOWNS[counts.SHOWN_ROWS - 1]
    else:
        assert list(cells(table).values()) == listed_cells(fit)[: counts.SHOWN_ROWS]


def test_a_last_factor_of_many_levels_is_listed():
    fit = fitted("dp_table", "~ sex + town")
    report = counts.table_report(fit)
    assert report.title == "Private table of counts"
    assert report.sections[0].title == "sex / town"
    labels = [row.label for row in report.sections[0].rows]
    assert labels == [f"F / {town}" for town in TOWNS[: counts.SHOWN_ROWS]]
    assert f"{2 * len(TOWNS) - counts.SHOWN_ROWS} more lines" in text(report)


def test_small_counts_are_named_with_the_reach_of_their_noise():
    fit = fitted("dp_table", "~ town", eps=0.05)
    report = counts.table_report(fit)
    assert (fit.noise_int()["lower"] == 0).any()
    assert f"Counts up to {counts._half(fit):.0f} may be noise alone." in report.notes


@pytest.mark.parametrize("formula", ["~ g", "~ sex + g"])
def test_weighted_counts_are_of_weight_without_a_test(formula):
    fit = fitted("dp_table", formula, design=DESIGN)
    report = counts.table_report(fit)
    (section,) = report.sections
    if formula == "~ g":
        assert report.title == "Private weighted counts"
        assert [row.cells[0] for row in section.rows] == [*map(count, fit.counts.to_numpy())]
    else:
        assert report.title == "Private weighted table"
        assert list(cells(section).values()) == crossed_cells(fit.counts.to_numpy())
    assert "chi-square" not in str(report)
    sd = f"noise sd {signif(fit.noise_sd(fit.call.tables[0].cells), 2)}"
    assert sd in dict(report.facts)["Complete"]
    assert f"sd {signif(fit.noise_sd(), 2)}," in dict(report.facts)["Cell noise"]


def test_counts_of_states_have_their_class_and_scales():
    options = {"time": "week", "person": "id", "eps": None, "budget": STAYING}
    fit = fitted("dp_table", "~ sex", **options)
    report = counts.states_report(fit)
    table, scales = report.sections
    facts = dict(report.facts)
    assert facts["Observations"] == "30 persons, 100 times each"
    assert facts["Guarantee"] == "Pufferfish, eps = 1"
    assert facts["Secrets"] == "the state at each week"
    assert facts["Class"] == fit.chain.describe()
    assert facts["Formula"] == "~ sex"
    assert facts["Ledger"] == "none"
    assert facts["Cell noise"] == f"sd {signif(fit.noise_sd(), 2)}, Laplace"
    assert facts["Complete"].startswith(f"{count(fit.ncomplete)} times (noise sd ")
    assert f"sd {signif(fit._counted.incomplete_sd, 2)})" in facts["Complete"]
    assert table.columns == ("Times", "95% noise int.", "%", "95% conf. int.")
    numbers = [(row[0], row[1]) for row in cells(table).values()]
    assert numbers == [cell[:2] for cell in listed_cells(fit)]
    assert list(cells(table)) == ["F", "M"]
    assert list(cells(scales)) == list(fit.scales.index)
    for (scale, ratio), printed in zip(fit.scales.to_numpy(), cells(scales).values(), strict=True):
        assert printed == (signif(scale, 4), signif(ratio, 4))
    assert counts._quilt(fit) in report.notes
    assert f"Source: {fit.release.info.name}, {fit.release.info.source}" in text(report)


def test_margins_are_listed_and_printed_as_their_own_reports():
    fit = fitted("dp_margins", "~ sex*g + town")
    report = counts.margins_report(fit)
    overview, *tables = report.sections
    assert report.title == "Private margins"
    assert dict(report.facts)["Margins"] == "4, variables: 3"
    assert dict(report.facts)["Counts of"] == "rows"
    terms = {name: fit.table(*name.split(":")) for name in fit.terms}
    assert list(cells(overview)) == list(terms)
    for name, margin in terms.items():
        row = (count(margin.counts.size), signif(margin.noise_sd, 2), count(margin.nincomplete))
        test = (LOST,) * 3
        if ":" in name:
            chi2 = margin.chi2_test()
            test = (signif(chi2.statistic), str(chi2.df), pvalue(chi2.pvalue))
        assert cells(overview)[name] == row + test
    printed = [counts.margin_report(margin).sections[0] for margin in terms.values()]
    assert tables == printed[: len(tables)]
    assert len(tables) == len(terms)
    assert "more tables" not in text(report)


def test_margins_beyond_two_pages_are_counted():
    fit = fitted("dp_margins", "~ town*sex")
    report = counts.margins_report(fit)
    # Lists of 40 and of 2 lines; the table of 40 lines would be beyond 60.
    assert [section.title for section in report.sections] == ["Margins", "town", "sex"]
    assert "1 more of the tables: see table('a', 'b') and tidy()." in report.notes


@pytest.mark.parametrize("names", [("g",), ("sex", "g")])
def test_a_margin_has_the_numbers_of_its_result(names):
    margin = fitted("dp_margins", "~ sex*g + town").table(*names)
    report = counts.margin_report(margin)
    facts = dict(report.facts)
    assert report.title == f"Private margin of {':'.join(names)}"
    complete = f"{count(margin.ncomplete)} rows (noise sd {signif(margin.ncomplete_sd, 2)})"
    assert facts["Complete"] == complete
    upper = margin.noise_int()["upper"].to_numpy()[0]
    half = upper - margin.released.to_numpy().ravel()[0]
    assert facts["Cell noise"] == f"sd {signif(margin.noise_sd, 2)}, 95% within {signif(half, 2)}"
    if len(names) == 1:
        (table,) = report.sections
        assert list(cells(table).values()) == listed_cells(margin)
        return
    table, test = report.sections
    assert list(cells(table).values()) == crossed_cells(margin.counts.to_numpy())
    chi2 = margin.chi2_test()
    assert test.title == "Mutual independence"
    assert test.rows[0].cells == (signif(chi2.statistic), str(chi2.df), pvalue(chi2.pvalue))


def test_weighted_margins_are_listed_with_their_noise():
    fit = fitted("dp_margins", "~ sex*g + town", design=DESIGN)
    report = counts.weighted_margins_report(fit)
    overview, *tables = report.sections
    assert report.title == "Private weighted margins"
    assert dict(report.facts)["Margins"] == "4, variables: 3"
    assert list(cells(overview)) == list(fit.terms)
    for name, table in zip(fit.terms, fit._tables, strict=True):
        assert cells(overview)[name] == (count(table.counts.size), signif(table.noise_sd(), 2))
    for section, table in zip(tables, fit._tables, strict=False):
        printed = [row.cells[0] for row in section.rows]
        assert printed == [count(number) for number in table.counts.to_numpy().ravel()[:40]]
    # Lines of 2, 3, 6 and 40 in the order of the margins: all within 60.
    assert len(tables) == len(fit.terms)
    assert "more tables" not in text(report)
    beyond = counts.weighted_margins_report(fitted("dp_margins", "~ town*sex", design=DESIGN))
    assert [section.title for section in beyond.sections[1:]] == ["town", "sex"]
    assert "1 more of the tables: see table('a', 'b') and tidy()." in beyond.notes


@pytest.mark.parametrize("formula", ["~ sex + g", "~ sex*g"])
def test_a_log_linear_model_has_the_numbers_of_its_result(formula):
    fit = fitted("dp_margins", "~ sex*g + town").loglin(formula)
    report = counts.loglin_report(fit)
    facts, tidy = dict(report.facts), fit.tidy()
    assert facts["Model"] == formula
    assert facts["Table"] == "sex:g, 6 cells"
    assert facts["Deviance"] == f"{signif(fit.model.deviance)} (noise included)"
    assert facts["Df residuals"] == str(6 - len(tidy))
    table, *test = report.sections
    assert list(cells(table)) == list(tidy["term"])
    assert table.columns == ("coef", "std err", "of noise", "z", "P>|z|", "95% conf. int.")
    for line, printed in zip(tidy.to_dict("records"), cells(table).values(), strict=True):
        ratio = line["estimate"] / line["std_error"]
        half = 1.959964 * line["std_error"]
        assert printed == (
            signif_uncertain(line["estimate"], line["std_error"]),
            signif(line["std_error"], 2),
            signif(line["noise_sd"], 2),
            f"{ratio:.2f}",
            pvalue(math.erfc(abs(ratio) / math.sqrt(2))),
            interval(line["estimate"] - half, line["estimate"] + half),
        )
    assert len(test) == (formula == "~ sex + g")
    if test:
        model = fit.model
        row = (signif(model.statistic), str(model.df), pvalue(model.pvalue))
        assert test[0].rows[0].cells == row
    assert "For the rows that are complete in the table." in report.notes


def test_a_log_linear_model_of_several_margins_has_no_test():
    fit = fitted("dp_margins", "~ sex*g + g*h").loglin("~ sex:g + g:h")
    report = counts.loglin_report(fit)
    assert math.isnan(fit.model.deviance)
    assert "Deviance" not in dict(report.facts)
    assert "Fitted to the margins of its terms" in text(report)


@pytest.mark.parametrize(("breaks", "is_in_blocks"), [((4, 3), False), ((15, 8), True)])
def test_a_plane_has_the_numbers_of_its_result(breaks, is_in_blocks):
    options = {"breaks": breaks, "mechanism": "geometric", "adjacency": "add-remove"}
    fit = fitted("dp_hist", "~ week + weight", **options)
    report = hist.plane_report(fit)
    facts = dict(report.facts)
    assert report.title == "Private histogram of two numbers"
    # The noise of all cells, which is independent: the number of rows is private.
    sd = fit.release.noise_sd * math.sqrt(math.prod(breaks))
    assert facts["Complete"] == f"{count(fit.ncomplete)} rows (noise sd {signif(sd, 2)})"
    assert f"sd {signif(fit.release.noise_sd, 2)}, " in facts["Cell noise"]
    (table,) = report.sections
    assert table.title == "week by weight"
    assert ("Block noise" in facts) == is_in_blocks
    assert ("shown in blocks of up to 2 by 2" in text(report)) == is_in_blocks
    numbers = fit.counts.to_numpy()
    for axis in (0, 1) if is_in_blocks else ():
        numbers = np.add.reduceat(numbers, np.arange(0, numbers.shape[axis], 2), axis=axis)
    assert list(cells(table).values()) == crossed_cells(numbers)
    if is_in_blocks:
        assert f"sd {signif(2 * fit.release.noise_sd, 2)}, " in facts["Block noise"]


@pytest.mark.parametrize(("deviance", "notes"), [(3.5, counts.ONE), (math.nan, counts.SEVERAL)])
def test_a_log_linear_model_says_whether_a_released_table_tests_it(deviance, notes, monkeypatch):
    for name in ("opening", "closing"):
        monkeypatch.setattr(counts.header, name, lambda *_: ())
    for name in ("_fitted", "_deviance"):
        monkeypatch.setattr(counts, name, lambda *_: ())
    monkeypatch.setattr(counts, "_coefficients", lambda _: Section("Coefficients", ("x",), ()))
    release = Fit(call=None, release=None)
    fit = Fit(margin=Fit(fit=release, name="a x b"), shape=(2, 3), formula="~ a + b", stamp=None)
    fit.model = Fit(deviance=deviance)
    texts = counts.loglin_report(fit).notes[-len(notes) :]
    assert texts == tuple(notes)
