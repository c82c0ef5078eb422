"""Results side by side, comparisons, histograms and curves: which branch prints what."""

import math
from types import SimpleNamespace as Fit

import numpy as np
import pandas as pd
import pytest
from folded import each

from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, LaplaceEvent, PureDP
from dpmodels.report import Row
from dpmodels.reports import comparison, etable, header, hist
from dpmodels.results.etable import Line, Look
from dpmodels.results.etable_columns import COEFFICIENTS

# Results side by side


def look(**fields):
    of = {"title": "T", "statistic": (), "stars": (), "stats": (), "privacy": False, "digits": 2}
    return Look(**{**of, "level": 0.95, "words": None, "notes": (), **fields})


def release(guarantee=None, rows=100, subset=None, design=None, events=(), name="gauss"):
    guarantee = PureDP(1.0) if guarantee is None else guarantee
    return Fit(
        guarantee=guarantee,
        rows=rows,
        subset=subset,
        table=() if design is None else (("Design", design),),
        events=events,
        adjacency=Fit(name="replace", person=None, unit="one row", describe=lambda: "one row"),
        info=Fit(name=name, numerics="exact lattice"),
        simulated=False,
    )


def column(model="(1)", of=None, **fields):
    result = Fit(release=release() if of is None else of, simulated=False)
    words = {"part": COEFFICIENTS, "kind": "lm", "stats": {}, "note": "", "exponential": False}
    return Fit(**{**words, "result": result, "model": model, "form": "", "digits": 3, **fields})


def test_a_cell_is_that_of_any_spelling_of_its_part():
    line = Line(COEFFICIENTS, "a:b", ("a:b", "b:a"))
    assert etable._cell(line, column(), {"b:a": {"estimate": 1}}) == {"estimate": 1}
    assert etable._cell(line, column(), {"b": {}}) is None
    assert etable._cell(line, column(part="Means"), {"a:b": {}}) is None


def test_labels_are_names_unless_there_are_words():
    line = Line(COEFFICIENTS, "age", ("age",))
    assert etable._label(line, look()) == "age"
    assert etable._label(line, look(words={"age": "Age (years)"})) == "Age (years)"


def test_dates_are_printed_as_dates_and_numbers_without_error_to_their_digits():
    cell = {"open": "", "estimate": 2.34567, "spread": math.nan, "p_value": math.nan}
    assert etable._estimate(column(), cell, look()) == "2.35"
    assert etable._estimate(column(form="date"), cell, look()) == "1970-01-03"
    assert etable._estimate(column(), {**cell, "spread": 0.01}, look()) == "2.346"


def test_fixed_effects_and_statistics_have_rows_where_a_result_has_them():
    of_fixed = column(stats={"nobs": (100.0, math.nan), "r_squared": (0.5, 0.1)})
    of_fixed.result.model = Fit(fixed=("town",))
    asked = look(stats=("nobs", "r_squared"), statistic=("noise_sd",))
    rows = etable._fit_rows([of_fixed, column("(2)", kind="glm")], asked)
    assert [(row.label, row.cells) for row in rows[1:]] == [
        ("Model", ("lm", "glm")),
        ("Fixed effects: town", ("Yes", "No")),
        ("Observations", ("100", "")),
        ("R-squared", ("0.50", "")),
        ("", ("[0.10]", "")),
    ]
    rows = etable._fit_rows([of_fixed], look(stats=("nobs",), words={"nobs": "n"}))
    assert rows[-1].label == "n"


@each(
    "columns, cells, start",
    [
        ([column(exponential=True), column("(2)")], (), "(1): ratios, the exponentials"),
        ([column()], (etable.NOT_IDENTIFIED,), "not identified: the noise leaves its size unknown"),
        ([column()], (etable.LOST,), "lost in noise: too few rows or too little variance."),
        ([column(note="clipped"), column("(2)", note="clipped")], (), "(1) and (2): clipped."),
        ([column()], ("1.0",), None),
    ],
)
def test_notes_below_results_side_by_side(columns, cells, start):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(etable, "differences", lambda _: ())
        table = Fit(look=look(), columns=columns, accounts=())
        notes = etable._notes(table, [Row("a", cells)])
    assert len(notes) == (start is not None)
    assert all(note.startswith(start) for note in notes)


def test_simulated_results_are_named(monkeypatch):
    monkeypatch.setattr(etable, "differences", lambda _: ())
    simulated = column("(2)")
    simulated.result.simulated = True
    table = Fit(look=look(), columns=[column(), simulated], accounts=())
    assert etable._notes(table, []) == ("(2): simulated, without a privacy guarantee.",)


def test_facts_that_all_releases_share_stand_above():
    same = etable.common_facts([column(), column("(2)")])
    assert dict(same) == {"Neighbours": "one row", "Numerics": "exact lattice"}
    adults = release(subset="age > 17", design="weights w")
    facts = dict(etable.common_facts([column(of=adults), column("(2)", of=adults)]))
    assert (facts["Subset"], facts["Design"]) == ("age > 17", "weights w")
    assert "Subset" not in dict(etable.common_facts([column(of=adults), column("(2)")]))


def privacy_of(*releases):
    columns = [column(f"({at})", of=each_one) for at, each_one in enumerate(releases)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(etable, "_release_row", lambda _: [])
        rows = etable.privacy_rows(columns)
    return {row.label: row.cells for row in rows[1:]}


def test_budgets_have_a_row_for_each_unit_in_use():
    rows = privacy_of(release(PureDP(0.5)), release(PureDP(2.0)))
    assert rows == {"eps": ("0.5", "2"), "Mechanism": ("gauss",) * 2, "Noise": ("", "")}
    rows = privacy_of(release(ApproxDP(1.0, 1e-6)), release(ZCDP(0.25)), release(PureDP(1.0)))
    assert rows["eps"] == ("1", "", "1")
    assert rows["delta"] == ("1e-06", "", "0")
    assert rows["rho"] == ("", "0.25", "")
    rows = privacy_of(release(), release(subset="age > 17"))
    assert rows["Subset"] == ("all rows", "age > 17")


def test_kinds_of_noise_are_named_once():
    events = (GaussianEvent(2.0), GaussianEvent(3.0), LaplaceEvent(1.0), object())
    assert etable._law(release(events=events)) == "Gaussian, Laplace, of its own law"


@each("digests, letters", [((1, 2), None), ((1, 1), ("A", "A")), ((1, 2, 1), ("A", "B", "A"))])
def test_releases_have_letters_where_two_columns_share_one(digests, letters):
    columns = [column(f"({at})") for at in range(len(digests))]
    groups = {}
    for digest, shared in zip(digests, columns, strict=True):
        groups.setdefault(digest, []).append(shared.model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(etable, "together", lambda _: groups)
        rows = etable._release_row(columns)
    assert [row.cells for row in rows] == ([] if letters is None else [letters])
    assert [etable._letter(at) for at in (25, 26)] == ["Z", "A26"]


# Comparisons


def test_a_prediction_has_the_digits_of_its_simulation_error():
    assert comparison._uncertain(0.123456, math.nan) == "0.123"
    assert comparison._uncertain(0.123456, 0.01) == "0.123"
    assert comparison._uncertain(0.123456, 0.1) == "0.12"
    assert comparison._uncertain(0.123456, 0.0) == "0.12346"


def test_worst_shapes_stand_beside_the_typical_where_there_are_shapes():
    line = {"mechanism": "gauss", "numerics": "exact", "energy": 0.9, "energy_se": 0.1}
    line |= {"relative": 0.5, "relative_se": 0.1, "energy_worst": 0.4, "relative_worst": 0.7}
    compared = Fit(
        request=Fit(ranked_by="energy"),
        shapes=None,
        table=pd.DataFrame({"mechanism": ["gauss"], "note": [""]}),
        label=lambda name: name,
    )
    assert comparison._row(compared, line).cells == ("0.90", "0.50", "exact")
    compared.shapes = pd.DataFrame()
    assert comparison._row(compared, line).cells == ("0.90", "0.400", "0.50", "0.700", "exact")
    assert comparison._each(compared) == " on each shape"
    compared.shapes, compared.request.ranked_by = None, "error"
    assert comparison._row(compared, line).cells == ("0.50", "exact")
    assert comparison._each(compared) == ""


def fits(behind=(1.1, 1.3), spread=(), norm=None):
    table = pd.DataFrame(
        {"mechanism": ["moments", "none"], "note": ["", "no"], "fits": [True, False]}
    )
    request = Fit(
        repeats=4, row_norm=norm, row_lengths=spread, formula="y ~ x", family="normal", rows=1000
    )
    request.guarantee = request.adjacency = Fit(describe=lambda: "text")
    request.columns, request.spectrum = 3, "flat"
    auto = Fit(mechanism="moments", reason="it is best.")
    return Fit(request=request, auto=auto, behind=pd.Series(behind, dtype=float), table=table)


def test_a_choice_is_printed_with_what_it_loses_to_the_best():
    first, *_, last = comparison._fit_comparison_notes(fits())
    assert first.endswith("it is best. Its error is 1.20 times the best, 1.30 at worst.")
    assert last == "Not listed: none: no."
    first, *_ = comparison._fit_comparison_notes(fits(behind=(math.nan, math.nan)))
    assert first.endswith("it is best.")


def test_assumed_rows_are_described():
    facts = dict(comparison._fit_comparison_facts(fits()))
    assert facts["Terms"] == "3, row norm the codebook's longest"
    assert facts["Rows like"] == "five shapes"
    facts = dict(comparison._fit_comparison_facts(fits(spread=(0.5, 1.0), norm=2.0)))
    assert facts["Terms"] == "3, row norm 2.00"
    assert facts["Rows like"] == "numbers with sds of 0.50, 1.0 half ranges"
    assert comparison._number(math.nan) == "open"
    assert comparison._number(1.2345) == "1.23"


@each("se, cell", [(math.nan, "1.23"), (0.0, "1.23"), (0.01, "1.235"), (5.0, "1.2")])
def test_the_error_of_a_compared_regression_has_the_digits_of_its_simulation_error(se, cell):
    line = {"mechanism": "m", "numerics": "n", "identified": 0.5}
    for name in ("error", "excess"):
        line |= {name: 1.23456, f"{name}_se": se, f"{name}_worst": 2.0}
    cells = comparison._fit_comparison_row(Fit(label=str), line).cells
    assert cells == (cell, "2.00", cell, "2.00", "50%", "n")


# Histograms and curves


@each("heights, lengths", [([2.0, 4.0, -1.0], [0.5, 1.0, 0.0]), ([0.0, -3.0], [0.0, 0.0])])
def test_the_highest_bar_has_full_length_and_none_is_negative(heights, lengths):
    assert [bar.share for bar in hist._bars(np.array(heights))] == lengths


@each(
    "value, text",
    [
        (pd.Timestamp("2020-02-03"), "2020-02-03"),
        (np.datetime64("2020-02-03"), "2020-02-03"),
        (1234.5678, "1,234.57"),
        (math.nan, header.LOST),
    ],
)
def test_a_quantile_of_whole_numbers_or_days_is_exact(value, text):
    assert hist._value(value) == text
    row = {"estimate": value, "noise_low": value, "noise_high": 9.0, "conf_low": 1.0}
    estimate, noise, population = hist._exact({**row, "conf_high": 5.0})
    assert (estimate, population) == (text, "[1, 5]")
    assert noise == (header.LOST if text == header.LOST else f"[{text}, 9]")


def plane(starts, stops):
    return Fit(start=np.array(starts), stop=np.array(stops))


def test_blocks_of_a_plane_are_described_where_cells_are_joined():
    cells = plane([0, 1], [1, 2])
    assert hist._notes(Fit(shape=(2, 2)), (cells, cells)) == [*hist.CLIPPED]
    blocks = hist._notes(Fit(shape=(1200, 4)), (plane([0, 3], [3, 5]), plane([0, 2], [2, 4])))
    assert blocks[0].startswith("1,200 by 4 cells, shown in blocks of up to 3 by 2: see")
    one_way = hist._notes(Fit(shape=(2, 4)), (cells, plane([0, 2], [2, 4])))
    assert one_way[0].startswith("2 by 4 cells, shown in blocks of up to 1 by 2")


def test_series_are_printed_by_runs_of_periods_where_they_are_many():
    periods = list(range(hist.SHOWN_LINES))
    assert not any("Each line is" in note for note in hist._series_notes(Fit(periods=periods)))
    first, *_ = hist._series_notes(Fit(periods=[*periods, 0]))
    assert first == "Each line is 2 periods; for single ones use counts or tidy()."
    fit = Fit(_facts=Fit(levels=(("g",), ("a", "b", "c"))), by=None)
    assert hist._period(fit, 0, 1) == "a"
    assert hist._period(fit, 0, 3) == "a .. c"
    assert (hist._by(fit), hist._by(Fit(by="month"))) == ("", " by month")


def curve_line(**fields):
    of = {"records": 90.0, "events": 30.0, "median": 4.0, "conf_low": 3.0, "conf_high": 5.0}
    return {**of, "end": 9.0, "rmean": 3.5, "rmean_std_error": 0.25, **fields}


@each(
    "fields, place, text",
    [
        ({}, 3, "[3, 5]"),
        ({"conf_high": math.nan}, 3, "from 3"),
        ({"conf_high": math.inf}, 3, "from 3"),
        ({"end": math.nan}, 3, header.LOST),
        ({"median": math.nan}, 2, header.LOST),
        ({"rmean_std_error": math.nan}, 5, header.LOST),
        ({}, 5, "0.25"),
    ],
)
def test_a_time_that_is_not_reached_has_no_end(fields, place, text):
    assert hist._line(curve_line(**fields))[place] == text


@each("is_halved, end, starts", [(True, 20, "Actuarial: half of"), (False, 21, "Each interval ho")])
def test_how_a_curve_counts_those_who_leave(is_halved, end, starts):
    counted = Fit(
        curves=[Fit(end=3), Fit(end=end)],
        halved=np.array([False, is_halved]),
        spec=Fit(time=Fit(step=1, upper=9)),
    )
    notes = hist._survfit_notes(Fit(counted=counted))
    assert sum(note.startswith(("Actuarial", "Each interval")) for note in notes) == 1
    assert any(note.startswith(starts) for note in notes)
    assert notes[0].startswith("Events are those since the line before") == (end > 20)


def test_a_curve_is_printed_at_some_times_with_all_events_between(monkeypatch):
    monkeypatch.setattr(hist, "SHOWN_POINTS", 2)

    def columns(_, least=0.01):
        numbers = {"time": [1, 2, 3], "n_risk": [9, 7, 4], "n_event": [2, 3, 1]}
        ends = {f"{kind}_{end}": [0.5] * 3 for kind in ("noise", "conf") for end in ("low", "high")}
        return {**numbers, **ends, "estimate": [0.9, 0.8, 0.7], "std_error": [least] * 3}

    section = hist._curve("a", Fit(end=3, columns=columns))
    assert [(row.label, *row.cells[:3]) for row in section.rows] == [
        ("2", "7", "5", "0.800"),
        ("3", "4", "1", "0.700"),
    ]
    fine = hist._curve("a", Fit(end=3, columns=lambda level: columns(level, 9e-4)))
    assert fine.rows[0].cells[2:4] == ("0.8000", "[0.5000, 0.5000]")


@each("strata, title, mean", [(["a"], "Curve", "mean to 9"), ([], "Rows", "mean")])
def test_the_first_table_of_curves_is_that_of_a_survfit(strata, title, mean):
    lines = pd.DataFrame([curve_line(upto=9.0 if strata else math.nan)])
    adjacency = Fit(counts_persons=False, person=None)
    fit = Fit(strata=strata, table=lambda _: lines, release=Fit(adjacency=adjacency))
    section = hist._overview(fit)
    assert (section.title, section.columns[4]) == (title, mean)
    assert [row.label for row in section.rows] == (strata or ["(all)"])
