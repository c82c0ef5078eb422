"""Means, quantiles, overviews, counts and margins: which branch prints what, of stand-ins."""

import math
from types import SimpleNamespace as Fit

import numpy as np
import pandas as pd
import pytest
from folded import each

from dpmodels.reports import counts, groups, header
from dpmodels.results.call import TableCall
from dpmodels.results.groups import MeanResult, TotalResult

ROWS = Fit(counts_persons=False, person=None, design_effect=1, places=1)
LOST = header.LOST


def of_class(result, **fields):
    """A stand-in for a result, which is taken for one of its class."""
    stub = type("Stub", (Fit,), {"__class__": property(lambda _: result)})
    return stub(**fields)


def released(rows=100, **fields):
    facts = {"adjacency": ROWS, "weights": None, "held": None, "subset": None}
    return Fit(**{"rows": rows, **facts, **fields})


# Means


@each("sampled, head", [(None, "Rows"), (Fit(), "Weight")])
def test_means_are_of_rows_or_of_weight(sampled, head):
    fit = Fit(_facts=Fit(sampled=sampled), release=released())
    assert groups._counted_head(fit) == head
    complete = groups._complete(fit, fit._facts, 40.2, 10.0)
    assert complete.startswith("40 rows" if sampled is None else "40 units of weight")
    table = pd.DataFrame({"count": [120.0, 3.0]})
    fit.tidy = lambda: table
    assert [line["count"] for line in groups._lines(fit)] == [100.0 if not sampled else 120.0, 3.0]


def means(kind=MeanResult, params=(1.0, 2.0), n_rows=(500, 500), **fields):
    return of_class(
        kind,
        params=pd.Series(params),
        counts=pd.Series(n_rows),
        sd=pd.Series([0.1, 0.1]),
        bse=pd.Series([1.0, 1.0]),
        bse_noise=pd.Series([0.0, 0.0]),
        release=released(info=Fit(name="gaussian"), **fields),
    )


TABLE = TableCall(("g",), (("a", "b"),), "x", 0.0, 10.0)


@each(
    "fit, date, starts",
    [
        (means(), False, []),
        (means(params=(1.0, math.nan)), False, [f"{LOST}: too few rows to distinguish from 0"]),
        (means(n_rows=(500, 99)), False, ["Groups of fewer than 100 rows: conf. intervals assume"]),
        # A group that is lost has no interval.
        (means(params=(1.0, math.nan), n_rows=(100, 9)), False, [f"{LOST}: too few rows"]),
        (means(), True, ["Means of dates are the nearest day"]),
        (means(TotalResult), True, []),
    ],
)
def test_what_is_said_of_means(fit, date, starts):
    facts = TableCall(TABLE.factors, TABLE.levels, "x", 0.0, 10.0, date=date)
    notes = [note for note in groups._notes(fit, facts, "KINDS") if note != "KINDS"]
    *others, last = notes
    assert last.startswith("Values outside ")
    assert len(others) == len(starts)
    assert all(note.startswith(start) for note, start in zip(others, starts, strict=True))


@each("heavy, clipped", [(True, "may cover less than 95 %."), (False, "add the tail cut off.")])
def test_a_heavy_tail_is_named_with_the_range(heavy, clipped):
    fit = means(held=None)
    fit.has_heavy_tail = heavy
    clipping = {"lower": 1.0, "upper": 5.0, "outside": 0.02, "outside_sd": 0.01}
    fit.release.held = Fit(**clipping, points=None)
    (note,) = groups._range_notes(fit, TABLE)
    assert note.endswith(clipped)


def welch(factors, params=0.5, held=None):
    facts = Fit(factors=factors, labels=["a", "b"], measured="x")
    ends = pd.DataFrame([[0.1, 0.9]])
    numbers = {"bse_noise": 0.1, "bse": 0.2, "tvalue": 2.5, "pvalue": 0.01, "mu": 0.25}
    return Fit(
        _facts=facts, params=params, conf_int=lambda: ends, release=Fit(held=held), **numbers
    )


def test_a_test_is_of_one_mean_or_of_two():
    two, one = (groups._test(welch(factors)) for factors in (("g",), ()))
    assert two.rows[0].label == "mean(a) - mean(b) = 0.25?"
    assert one.rows[0].label == "mean(x) = 0.25?"
    assert two.rows[0].cells == ("0.50", "0.10", "0.20", "2.50", "0.0100", "[0.10, 0.90]")
    assert groups._test(welch((), math.nan)).rows[0].cells == (LOST,) * 6


@each(
    "factors, held, title, note",
    [
        ((), None, "Private one-sample t-test", "The test accounts for the privacy noise."),
        (("g",), None, "Private two-sample t-test", "noise; variances may be unequal."),
        (("g",), Fit(), "Private two-sample t-test", "It compares means of the clipped rows."),
    ],
)
def test_what_is_said_of_a_test(factors, held, title, note):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "mean_report", lambda _: groups.Report("", (), (), ("means",), None))
        fit = welch(factors, held=held)
        fit.means = None
        report = groups.ttest_report(fit)
    assert report.title == title
    assert report.notes[0].endswith(note)
    assert report.notes[1:] == ("means",)


@each(
    "rows, factors, title, head, complete",
    [
        (100, ("g",), "Private means", "g", "30 rows (noise sd 2.5)"),
        (100, (), "Private mean", "x", "30 rows (noise sd 2.5)"),
        # Where the number of rows is not public, the noise is that of all groups.
        (None, ("g",), "Private means", "g", "may be 0 rows (noise sd 14)"),
    ],
)
def test_a_table_of_means_has_the_noise_of_all_rows(rows, factors, title, head, complete):
    facts = TableCall(factors, (("a", "b"),) * len(factors), "x", 0.0, 10.0)
    fit = means(rows=rows)
    fit.counts = pd.Series([20.0, 10.0])
    fit._facts, fit._counted, fit.count_noise_sd = facts, Fit(incomplete_sd=2.5), 10.0
    fit.call, fit.stamp = None, None
    with pytest.MonkeyPatch.context() as patch:
        for name in ("opening", "shared_facts", "closing", "design_facts"):
            patch.setattr(header, name, lambda *_: ())
        patch.setattr(groups, "_notes", lambda *_: ())
        report = groups._report("Private means", fit, ("Rows",), [("20",), ("10",)], "")
    assert (report.title, report.sections[0].title) == (title, head)
    assert report.facts == (("Complete", complete), ("Variable", "x"))


# Quantiles


def quantiles(date=False, step=None, level=0.95, drawn=(0.25, 0.5), factors=("g",), width=0.4):
    params = pd.DataFrame([[12.0, 150.0], [3.0, math.nan]][: len(factors) + 1])
    facts = Fit(
        date=date, step=step, factors=factors, labels=["a", "b"][: len(params)], measured="x"
    )
    ends = np.stack([params - width / 2, params + width / 2], axis=2).reshape(-1, 2)
    ranks = pd.DataFrame([drawn] * len(params))
    return Fit(
        _facts=facts,
        params=params,
        drawn=ranks,
        probs=(0.25, 0.5),
        level=level,
        conf_int=lambda: pd.DataFrame(ends),
    )


def test_quantiles_are_printed_with_ranks_and_intervals_where_there_are_some():
    section = groups._section(quantiles())
    assert section.columns == ("Quantile", "95% conf. int.")
    assert [row.label for row in section.rows] == ["a, 25%", "a, 50%", "b, 25%", "b, 50%"]
    assert section.rows[0].cells == ("12.00", "[11.80, 12.20]")
    assert section.rows[3].cells == (LOST, LOST)
    section = groups._section(quantiles(level=None, drawn=(0.275, math.nan)))
    assert section.columns == ("Drawn at", "Quantile")
    assert [row.cells[0] for row in section.rows[:2]] == ["27.5%", LOST]
    one = groups._section(quantiles(factors=()))
    assert (one.title, [row.label for row in one.rows]) == ("x", ["25%", "50%"])


@each(
    "fit, value, text, interval",
    [
        (quantiles(), 12.3456, "12.346", "[12, 13]"),
        (quantiles(step=1.0), 12.0, "12", "[12, 13]"),
        (quantiles(date=True), 12.0, "1970-01-13", "[1970-01-13, 1970-01-14]"),
    ],
)
def test_quantiles_of_steps_and_dates_are_exact(fit, value, text, interval):
    assert groups._printed(fit, value, 0.2) == text
    assert groups._printed(fit, math.inf, 0.2) == LOST
    if fit._facts.date or fit._facts.step:
        assert groups._interval(fit, 12.0, 13.0) == interval


def test_the_ends_of_a_wide_interval_are_rounded_by_themselves():
    assert groups._interval(quantiles(), 0.01234, 56.789) == "[0.0123, 56.8]"
    assert groups._interval(quantiles(), 10.0, 12.0) == "[10.0, 12.0]"


# Overviews


def test_the_last_cell_is_of_all_groups_however_many_there_are():
    cells = [str(number) for number in range(groups.SHOWN_COLUMNS + 2)]
    assert groups._displayed(cells) == [*cells[: groups.SHOWN_COLUMNS], cells[-1]]
    assert groups._displayed(cells[:3]) == cells[:3]
    assert groups._displayed(["1"]) == ["1"]


@each(
    "error, share, text", [(0.5, 0.1234, "9 (12.3)"), (0.6, 0.1234, "9 (12)"), (1, math.nan, None)]
)
def test_percentages_have_the_decimals_that_noise_leaves(error, share, text):
    printed = groups._counted(np.array([9]), np.array([share]), np.array([error]))
    assert printed == [text or f"9 ({LOST})"]


@each(
    "sampled, mean, cells",
    [
        (None, 0.5, ("5.00 (2)", "0.10", "100")),
        (Fit(), 0.5, ("5.00 (2)", "0.10", "120")),
        (None, math.nan, (LOST, LOST, "100")),
    ],
)
def test_the_rows_of_an_overview_are_at_most_the_public_number(sampled, mean, cells):
    facts = Fit(lower=0.0, width=10.0, sampled=sampled, date=False)
    result = Fit(_facts=facts, release=released())
    moments = Fit(means=np.array([mean]), mean_noise_sd=np.array([0.01]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "_spreads", lambda *_: ["2"])
        assert groups._overview_mean_cells(result, moments, [120.0]) == [cells]


def test_a_standard_deviation_that_may_be_noise_is_lost():
    limit = groups.DETECTION_SDS / 2 * 0.01
    variances = np.array([limit * 1.01, limit * 0.99])
    moments = Fit(variances=variances, variance_noise_sd=np.full(2, 0.01))
    first, second = groups._spreads(10.0, moments)
    assert float(first) == pytest.approx(10 * math.sqrt(limit * 1.01), rel=0.2)
    assert second == LOST


def overview(strata=False, tested=False, weights=None, dates=(False,), cells=2):
    tables = [TableCall((), (), "x", 0.0, 1.0, date=date) for date in dates]
    release = released(weights=weights)
    call = Fit(tables=tables)
    return Fit(release=release, strata=strata, tested=tested, call=call, groups=Fit(cells=cells))


@each(
    "fit, lost, start, n_notes",
    [
        (overview(), False, "Complete rows of each variable separately", 2),
        (overview(), True, f"{LOST}: lost in the noise at this budget.", 3),
        (overview(strata=True), False, "All: all groups, at no further cost", 3),
        (overview(tested=True), False, "p-values: Welch's t or anova for means, chi-square for", 4),
        (overview(tested=True, weights=Fit(mean_excess=0)), False, "p-values: Welch's t or ", 4),
        (overview(dates=(False, True)), False, "Means of dates are the nearest day; sd and", 3),
        (overview(cells=groups.SHOWN_COLUMNS + 2), False, "2 more groups: see tidy().", 3),
    ],
)
def test_what_is_said_of_an_overview(fit, lost, start, n_notes):
    notes = groups._overview_notes(fit, lost=lost)
    assert len(notes) == n_notes
    (note,) = (note for note in notes if note.startswith(start))
    if fit.release.weights is not None:
        assert "none for counts under a survey design" in note


@each("factors, n_columns", [((), 1), (("g",), 3)])
def test_an_overview_has_a_column_of_all_groups_where_there_are_some(factors, n_columns):
    result = Fit(
        _facts=Fit(factors=factors),
        _moments=Fit(together=None),
        counts=pd.Series([20.0, 10.0][: len(factors) + 1]),
        release=released(),
    )
    with pytest.MonkeyPatch.context() as patch:
        cell = "mean", "noise", "n"
        patch.setattr(groups, "_overview_mean_cells", lambda *words: [cell] * len(words[2]))
        lines = groups._mean_lines(result)
    assert lines == [
        ("mean (sd)", ["mean"] * n_columns),
        ("noise sd of mean", ["noise"] * n_columns),
        ("rows", ["n"] * n_columns),
    ]


def test_shares_of_levels_are_of_each_group_and_of_all():
    levels = np.array([[600, 400], [3, 0]])
    facts = Fit(factors=("g", "h"), levels=(("a", "b"), ("u", "v")))
    result = Fit(_facts=facts, by_level=levels, noise_sd=lambda cells=1: 2.0 * math.sqrt(cells))
    assert groups._level_lines(result) == [
        ("u", ["600 (60.0)", f"3 ({LOST})", "603 (60.1)"]),
        ("v", ["400 (40.0)", f"0 ({LOST})", "400 (39.9)"]),
    ]
    facts.factors, result.by_level = ("h",), levels[:1]
    assert groups._level_lines(result)[0] == ("u", ["600 (60.0)"])


# Counts


def table(rows=100, shape=(2, 3), sampled=None, lower=1.0, incomplete_sd=2.5):
    names = tuple(f"g{number}" for number in range(len(shape)))
    levels = tuple(tuple(f"l{level}" for level in range(size)) for size in shape)
    ends = pd.DataFrame({"lower": [lower, 9.0], "upper": [17.0, 29.0]})
    return Fit(
        call=Fit(tables=(Fit(factors=names, levels=levels, shape=shape, sampled=sampled),)),
        release=released(rows),
        released=pd.DataFrame([[10.0, 20.0]]),
        noise_int=lambda: ends,
        noise_sd=lambda cells=1: 3.0 * cells,
        _counted=Fit(incomplete_sd=incomplete_sd),
    )


@each("released_count, half", [(10.0, 7.0), (-4.0, 17.0)])
def test_half_an_interval_is_about_a_count_of_no_less_than_0(released_count, half):
    fit = table()
    fit.released = pd.DataFrame([[released_count, 20.0]])
    assert counts._half(fit) == half
    assert counts._lost_note(fit) == ()
    fit = table(lower=0.0)
    assert counts._lost_note(fit)[0] == "Counts up to 7 may be noise alone."


def test_the_counts_of_a_design_have_the_longest_half_interval(monkeypatch):
    monkeypatch.setattr(header, "counted_in", lambda _: header.WEIGHT)
    assert counts._half(table()) == 9.0
    monkeypatch.setattr(header, "weighted_notes", lambda _: ("weighted",))
    assert counts.reading(released()) == ("weighted",)


@each("rows, text", [(100, "nonnegative integers and, with the incomplete rows, add"), (None, "")])
def test_printed_counts_add_up_to_a_public_number(rows, text):
    note = counts.rounding_note(released(rows), "those")
    assert ("add up to n" in note) == (rows is not None)
    assert text in note
    assert note in counts.reading(released(rows))[1].replace("the unbiased ones", "those")


def test_shares_of_a_tidy_table_are_renamed():
    ranges = pd.DataFrame({"count": [1.0]})
    assert counts.with_shares(ranges) is ranges
    tidy = {"estimate": 5.0, "proportion_low": 0.1, "conf_low": 3.0, "conf_high": 8.0}
    named = counts.with_shares(pd.DataFrame([{**tidy, "proportion_high": 0.3}]))
    assert named.iloc[0].to_dict() == {"count": 5.0, "conf_low": 0.1, "conf_high": 0.3}


@each(
    "shape, sampled, title",
    [
        ((2,), None, None),
        ((2, 3), Fit(), None),
        ((2, 3), None, "Independence"),
        ((2, 3, 2), None, "Mutual independence"),
    ],
)
def test_a_table_of_factors_has_a_test_of_independence(shape, sampled, title):
    fit = table(shape=shape, sampled=sampled)
    fit.chi2_test = lambda: Fit(statistic=5.991, df=2, pvalue=0.05, reason="")
    sections = counts._test(fit)
    assert [section.title for section in sections] == [title] * (title is not None)
    if sections:
        assert sections[0].rows[0].cells == ("5.991", "2", "0.0500")
        fit.chi2_test = lambda: Fit(statistic=math.nan, df=2, pvalue=math.nan, reason="few")
        assert counts._test(fit)[0].rows[0].cells == ("-", LOST, "-")


def test_pooled_levels_are_listed_and_the_rest_counted():
    many = counts.SHOWN_COLUMNS + 3
    fit = table(shape=(2, many))
    first, second = counts._pooled(fit, ((0, 1), tuple(range(many))))
    assert first == "Test: levels l0, l1 of g0 are pooled, as their counts are small."
    assert "l11 and 3 more of g1 are pooled" in second
    assert counts._pooled(fit, ((), ())) == []
    (exact,) = counts._pooled(fit, ((), tuple(range(counts.SHOWN_COLUMNS))))
    assert "more" not in exact


@each("n_incomplete, text", [((2, 2), "sd 2.5"), ((None, 2), "sd 18")])
def test_the_noise_of_complete_rows_is_that_of_what_is_released(n_incomplete, text, monkeypatch):
    """Of a public number of rows the incomplete are counted, otherwise all cells are added."""
    rows, _ = n_incomplete
    fit = table(rows)
    fit.call.tables[0].cells = 6
    fit.ncomplete, fit.stamp = 90.0, None
    for name in ("opening", "shared_facts", "closing"):
        monkeypatch.setattr(header, name, lambda *_: ())
    monkeypatch.setattr(header, "design_facts", lambda *_: ())
    facts = dict(counts._counts_report(fit, "T", (), ()).facts)
    assert facts["Complete"] == f"90 rows (noise {text})"


# Margins


def margin(shape=(2, 3), statistic=5.991, name="a:b"):
    facts = Fit(shape=shape, cells=math.prod(shape))
    test = Fit(statistic=statistic, df=2, pvalue=0.05)
    return Fit(
        term=tuple(range(len(shape))),
        facts=facts,
        name=name,
        noise_sd=3.21,
        nincomplete=12.0,
        chi2_test=lambda: test,
    )


def test_margins_are_listed_with_tests_of_two_variables_or_more():
    section = counts._list([margin((4,), name="a"), margin(), margin(statistic=math.nan)])
    assert [row.cells for row in section.rows] == [
        ("4", "3.2", "12", LOST, LOST, LOST),
        ("6", "3.2", "12", "5.991", "2", "0.0500"),
        ("6", "3.2", "12", LOST, LOST, LOST),
    ]


@each(
    "shape, is_wide, n_lines",
    [
        ((4,), False, 4),
        ((2, 3), True, 2),
        ((2, 12), True, 2),
        ((2, 13), False, 26),
        ((90,), False, 40),
    ],
)
def test_the_last_variable_has_the_columns_where_they_fit(shape, is_wide, n_lines):
    assert counts._wide(margin(shape)) == is_wide
    assert counts._lines(margin(shape)) == n_lines


def test_as_many_tables_are_printed_as_fit_two_pages_and_one_at_least():
    tables = [margin((30,)), margin((30,)), margin((1,)), margin((1,))]
    assert counts._printed(tables) == tables[:2]
    assert counts._printed([margin((2, 3))]) != []
    assert len(counts._printed([margin((90,))] * 3)) == 1


@each("rows, total", [(None, "same"), (100, "public")])
def test_margins_add_up_to_one_number(rows, total):
    notes = counts._margins_notes(Fit(release=released(rows)))
    assert notes[0].endswith(f"every table adds up to the {total} number.")


@each("shares", [None, np.array([0.3, 0.7])])
def test_shares_of_states_are_offered_where_the_class_has_them(shares, monkeypatch):
    monkeypatch.setattr(counts, "_doubts", lambda _: ())
    release = Fit(info=Fit(name="quilt", source="S"))
    (note,) = (
        note
        for note in counts._notes(Fit(release=release, kept=shares))
        if note.startswith("Noise intervals are privacy noise only.")
    )
    assert ("For long-run shares" in note) == (shares is not None)


def test_a_class_without_shares_is_not_doubted():
    assert counts._doubts(Fit(kept=None)) == ()


def test_a_list_of_counts_says_what_is_counted(monkeypatch):
    lines = pd.DataFrame(
        [{"count": 9.0, "noise_low": 5.0, "noise_high": 13.0, "proportion": 0.5}]
    ).assign(conf_low=0.4, conf_high=0.6)
    section = counts.listed("g", ["a"], lines, released())
    assert section.columns[0] == "Rows"
    monkeypatch.setattr(header, "counted_in", lambda _: header.WEIGHT)
    assert counts.listed("g", ["a"], lines, released()).columns[0] == "Total"


def test_levels_are_joined_and_crossed_with_totals():
    assert counts.joined_levels(()) == [""]
    assert counts.joined_levels((("a", "b"), (1, 2))) == ["a / 1", "a / 2", "b / 1", "b / 2"]
    names, labels = ("g", "h"), (["a", "b"], ["u", "v"])
    section = counts.side_by_side(np.array([[1, 2], [3, 4]]), names, labels)
    assert [row.cells for row in section.rows] == [
        ("1", "2", "3"),
        ("3", "4", "7"),
        ("4", "6", "10"),
    ]
