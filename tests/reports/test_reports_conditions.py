"""What reports of components, selections, surveys and bounds print, and under which condition."""

import math
from types import SimpleNamespace as Fit

import numpy as np
import pandas as pd
import pytest
from folded import each

from dpmodels.privacy import ZCDP, ApproxDP, BoundedRangeEvent, LaplaceEvent, PureDP
from dpmodels.reports import comparison, etable, header, pca, select, survey


def printed(notes, start):
    return sum(note.startswith(start) for note in notes)


# Principal components


def spectrum(distinct, alike=None, readable=None):
    distinct = np.array(distinct)
    size = len(distinct)
    of = np.eye(size, dtype=bool) if alike is None else np.array(alike)
    return Fit(
        distinct=distinct, alike=of, readable=distinct if readable is None else np.array(readable)
    )


def test_components_below_the_floor_and_those_too_close_are_named():
    fit = Fit(spectrum=spectrum([True, True, True]), noise_floor=0.09)
    assert pca._floor_notes(fit, 3) == ()
    fit.spectrum = spectrum([True, True, False])
    (note,) = pca._floor_notes(fit, 3)
    assert note == (
        "* below the noise floor (standard deviation 0.300): not distinguishable from noise."
    )
    assert pca._floor_notes(fit, 2) == ()
    fit.spectrum = spectrum([False, False, False])
    assert printed(pca._floor_notes(fit, 3), f"{pca.NONE} above it: use a larger eps") == 1
    alike = np.eye(4, dtype=bool)
    alike[0, 1] = alike[1, 0] = alike[2, 3] = alike[3, 2] = True
    fit.spectrum = spectrum([True, True, True, False], alike)
    notes = pca._floor_notes(fit, 3)
    # Of two that are alike both have to be above the floor.
    assert printed(notes, "Too close to separate: PC1, PC2. Interpret the space") == 1


@each(
    "value, sd, text",
    [
        (0.5, 0.04, "0.50"),
        (-0.5, 0.2, "-0.5"),
        (0.5, 0.26, ""),
        (0.5, 1e-9, "0.500"),
        (0.5, math.nan, ""),
        (0.5, 0.004, "0.500"),
    ],
)
def test_loadings_are_printed_to_their_noise_and_left_out_below_two_sds(value, sd, text):
    assert pca._loading(value, sd) == text


def test_small_loadings_are_left_out():
    small = pca.SMALL_LOADING
    assert pca._loading(small * 0.99, 1e-4) == ""
    assert pca._loading(small * 1.01, 1e-4) != ""


@each(
    "value, text",
    [(0.5, "0.50"), (0.95, "0.95"), (0.9951, "0.995"), (0.99951, "0.9995"), (1.0, "0.999999")],
)
def test_cosines_keep_their_nines(value, text):
    assert pca._cosines(np.array([value, math.nan])) == (text, "-")


def subspace(**fields):
    release = Fit(ordered=False, limit="", expected_loss=0.1, events=(LaplaceEvent(1.0),))
    of = {"release": release, "expected_loss": 0.1, "bought": False, "lost": False}
    return Fit(**{**of, **fields})


def test_notes_on_the_accuracy_of_a_subspace():
    notes = pca._accuracy_notes(subspace())
    assert printed(notes, "Expected loss: variance along the non-private components less that") == 1
    assert printed(notes, "Variances along the directions were not released;") == 1
    assert printed(notes, "The guarantee is") == 0
    notes = pca._accuracy_notes(subspace(bought=True))
    assert printed(notes, "Variances are along the released directions, with separate noise.") == 1
    assert printed(notes, "Variances along the directions were not") == 0
    unknown = subspace(expected_loss=math.nan)
    assert printed(pca._accuracy_notes(unknown), "The expected loss needs the number of rows") == 1
    unknown.release.expected_loss = math.nan
    assert printed(pca._accuracy_notes(unknown), "The expected loss is not known here") == 1
    unknown.release.events = ()
    assert pca._accuracy_notes(unknown) == []
    unknown.release.limit = "for rows that stay"
    assert printed(pca._accuracy_notes(unknown), "The guarantee is for rows that stay.") == 1


@each("distinct, text", [(0, "above"), (1, "One component is above"), (3, "3 components are ab")])
def test_what_an_estimate_of_unknown_error_identifies(distinct, text):
    source = Fit(distinct=np.arange(4) < distinct)
    notes = pca._unread(Fit(source=source))
    start = f"{pca.NONE} above the noise of the underlying" if not distinct else text
    assert printed(notes, start) == 1
    (only,) = pca._unread(Fit(source=None))
    assert only.startswith("The error distribution of this mechanism is not known")


# Selections


def selection(**fields):
    info = Fit(name="noisy_counts")
    release = Fit(places=range(3), info=info, values=None, least=0.01, shared=None)
    of = {
        "release": release,
        "n_requested": 3,
        "ncandidates": 9,
        "threshold": None,
        "score": select.COUNT,
        "values": pd.Series([3.0, 2.0, 1.0]),
    }
    return Fit(**{**of, **fields})


def test_what_a_ranking_does_not_separate():
    start = "How far the 3rd is above the 4th is not known: the ranking has noise"
    assert printed(select._notes(selection()), start) == 1
    assert printed(select._notes(selection(ncandidates=3)), "How far") == 0
    assert printed(select._notes(selection(threshold=10.0)), "How far") == 0


def test_what_is_above_a_threshold():
    fit = selection(threshold=1234.5)
    assert (
        "candidates above 1,234.5 with the noise of the ranking, at most the 3 largest."
        in (select._notes(fit)[0])
    )
    fit.release.info.name = "sparse_vector"
    assert "at most the 3 first in the order of the formula." in select._notes(fit)[0]


def test_columns_are_ranked_by_correlation_or_gain():
    for score, gains, ranked in ((select.GAIN, 1, 0), ("z", 0, 1), (select.COUNT, 0, 0)):
        notes = select._notes(selection(score=score))
        assert printed(notes, "Gain is that of the released coefficient") == gains
        assert printed(notes, "Ranked by the absolute correlation with the residual") == gains
        assert printed(notes, "Ranked by the absolute correlation.") == ranked
        raised = [note for note in notes if "standard deviations below 0.010 of" in note]
        assert len(raised) == (score != select.COUNT)
        assert all("such columns rank lower." in note for note in raised)
    (note,) = (n for n in select._notes(selection(score="z", threshold=0.1)) if "below 0.01" in n)
    assert "such columns exceed the threshold less often." in note


def test_values_have_noise_of_their_own():
    fit = selection()
    assert printed(select._notes(fit), "Values have fresh noise") == 0
    fit.release.values = np.ones(3)
    assert printed(select._notes(fit), "Values have fresh noise: given the selection they are") == 1
    assert printed(select._notes(fit), f"{header.LOST}: the variance") == 0
    fit.values = pd.Series([3.0, math.nan, 1.0])
    assert printed(select._notes(fit), f"{header.LOST}: the variance of the column or of the") == 1


SMALL = [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th")]
LARGE = [(21, "21st"), (102, "102nd"), (111, "111th"), (1013, "1,013th"), (1023, "1,023rd")]


@each("number, text", [*SMALL, *LARGE])
def test_ordinals(number, text):
    assert select._ordinal(number) == text


@each("p, text", [(0.9995, "> 0.999"), (0.999, "0.999"), (0.5, "0.500"), (math.nan, header.LOST)])
def test_chances_to_be_above_the_next(p, text):
    assert select._chance(p) == text


@each("p, text", [(0.5, "0.5000"), (1e-3, "0.0010"), (9.9e-4, "9.9e-04"), (math.nan, header.LOST)])
def test_p_values_of_many_tests(p, text):
    assert select._small(p) == text


def discoveries(method="bh", valued="correlation", q=0.1, names=40, hypotheses=100, lost=0):
    params = pd.Series([math.nan] * lost + [1.0] * (names - lost))
    events = (BoundedRangeEvent(0.2), LaplaceEvent(2.0))
    return Fit(
        hypotheses=hypotheses,
        names=range(names),
        q=q,
        valued=valued,
        discoveries=Fit(method=method),
        params=params,
        least=1e-9,
        release=Fit(choice="peeling", events=events, guarantee=PureDP(1.0)),
    )


def test_the_rate_of_false_discoveries_and_what_it_rests_on():
    text = " ".join(select._fdr_notes(discoveries(), 40))
    assert "not among the 40 were not examined: 60 have a p-value of 1." in text
    # 1 + log(1/q) = 3.3
    assert "proved for independent columns up to a factor of 3.3," in text
    assert "none is below 1.0e-09." in text
    assert "The rate holds for any dependence" in " ".join(select._fdr_notes(discoveries("by"), 40))
    assert "columns of the opposite sign" in " ".join(select._fdr_notes(discoveries("adapt"), 40))
    every = select._fdr_notes(discoveries(hypotheses=40), 40)
    assert printed(every, "Hypotheses not among") == 0
    assert printed(every, "A dash, for") == 0
    assert printed(select._fdr_notes(discoveries(lost=2), 40), "A dash, for 2: the variance") == 1
    assert printed(select._fdr_notes(discoveries(), 30), "10 more columns") == 1


def test_the_published_test_has_margins():
    text = " ".join(select._fdr_notes(discoveries("bh", "log_p"), 40))
    # 1 + log(1/q) + 1/11, and log(q/(2 m))
    assert "up to a factor of 3.4; method='by' for any." in text
    assert f"cut off at {math.log(0.1 / 200):.1f}." in text
    text = " ".join(select._fdr_notes(discoveries("by", "log_p"), 40))
    assert "The rate is at most 1.1 q for any normal sums." in text


def test_the_costs_of_choice_and_values():
    assert select._spent(discoveries()) == (
        "Budget: choice eps = 0.200, values eps = 0.500, each alone."
    )
    fit = discoveries()
    fit.release.guarantee = ZCDP(1.0)
    # Bounded range costs eps²/8, Laplace noise eps²/2 at the most.
    choice, _, values = select._spent(fit).removeprefix("Budget: choice rho = ").partition(", ")
    assert float(choice) == pytest.approx(0.2**2 / 8)
    assert 0 < float(values.split()[3].strip(",")) <= 0.5**2 / 2
    fit.release.choice = ""
    assert select._spent(fit) == "Budget: all for values."
    fit = discoveries()
    fit.release.guarantee = ApproxDP(1.0, 1e-6)
    assert "choice eps = 0.200" in select._spent(fit)


# Surveys


def channel(truth=0.75, levels=2, how="a coin"):
    return Fit(truth=truth, law=[1 / levels] * levels, how=how, eps=math.log(7))


def test_the_device_of_a_question():
    """Who does not tell the truth draws any level, and so lies for all but one of them."""
    assert survey._device(channel()) == "a coin: lie 0.125, eps 1.95"
    assert survey._device(channel(0.7, 3)) == "a coin: lie 0.200, eps 1.95"
    assert survey._device(channel(how="")) == "as answered, not protected"


def closing(channels, weighted=None, stratified=None, rows=100, complete=100):
    release = Fit(
        events=(),
        channels=channels,
        weighted=weighted,
        stratified=stratified,
        rows=rows,
        info=Fit(name="randomized_response", source="Warner (1965)"),
    )
    return survey._closing(Fit(release=release, ncomplete=complete))


def test_the_answers_of_one_respondent_add_up():
    assert not any("add up" in note for note in closing([channel()]))
    notes = closing([channel(), channel()])
    assert any("The answers of one respondent add up: eps = 1.95 + 1.95." in n for n in notes)
    assert not any("are exact" in note for note in notes)


@pytest.mark.parametrize(
    "case",
    [
        {"channels": [channel(), channel(how="")]},
        {"channels": [channel()], "weighted": "w"},
        {"channels": [channel()], "stratified": "s"},
    ],
)
def test_what_was_not_randomised_is_not_covered(case):
    assert any("that were not randomised are exact" in note for note in closing(**case))


def test_respondents_without_valid_answers_are_counted():
    assert printed(closing([channel()]), "0 respondents") == 0
    assert (
        printed(closing([channel()], complete=97), "3 respondents without valid answers are") == 1
    )


def answers(values, unary=False, rowwise=False):
    return Fit(
        call=Fit(tables=[Fit(cells=2, factors=("a",))]),
        estimate=pd.Series(values),
        release=Fit(unary=unary),
        rowwise=rowwise,
    )


def test_estimates_outside_their_range_and_lost_ones():
    outside, lost = "Estimates are unbiased, and may lie outside", "Shares are not reported"
    assert printed(survey._notes(answers([0.0, 1.0])), outside) == 0
    for values in ([-0.1, 1.1], [0.2, 1.01], [-0.01, 0.5]):
        assert printed(survey._notes(answers(values)), outside) == 1
        assert printed(survey._notes(answers(values)), lost) == 0
    (note,) = (n for n in survey._notes(answers([-0.1])) if n.startswith(outside))
    assert "likeliest has the maximum likelihood shares" in note
    (note,) = (n for n in survey._notes(answers([-0.1], unary=True)) if n.startswith(outside))
    assert "likeliest has the nearest shares" in note
    notes = survey._notes(answers([math.nan, 1.2]))
    assert (printed(notes, lost), printed(notes, outside)) == (1, 0)
    for rowwise, text in ((False, "for these respondents; "), (True, "for these rows; ")):
        assert any(text in note for note in survey._notes(answers([0.5], rowwise=rowwise)))


# Bounds and levels


def narrowed(*flags):
    found_bounds = {str(n): Fit(is_narrowed=is_narrowed) for n, is_narrowed in enumerate(flags)}
    return Fit(found=found_bounds, names=list(found_bounds))


def test_bounds_that_stay_as_declared():
    start = "As declared: too few rows exceed the noise"
    assert printed(select._bounds_notes(narrowed(True, True)), start) == 0
    assert printed(select._bounds_notes(narrowed(True, False)), start) == 1


def levels(*counts):
    names = [f"v{n}" for n in range(len(counts))]
    lists = [[str(k) for k in range(count)] for count in counts]
    return Fit(
        release=Fit(levels=lists, most=30.0), levels=dict(zip(names, lists, strict=True)), unit=2
    )


def test_levels_that_are_left_out():
    assert select._threshold(levels(2)) == "15"
    assert printed(select._levels_notes(levels(2, 3)), "codebook omits") == 0
    notes = select._levels_notes(levels(1, 2, 0))
    assert printed(notes, "codebook omits v0, v2: fewer than two levels were released.") == 1
    n_shown = header.SHOWN_GROUPS
    assert printed(select._levels_notes(levels(n_shown, n_shown)), "1 more") == 0
    assert printed(select._levels_notes(levels(n_shown + 1, n_shown + 2)), "3 more levels") == 1


# Comparisons, and results side by side


def compared(ranked_by="energy", shapes=None, scale="range", note="", energy=0.5):
    table = pd.DataFrame(
        {"mechanism": ["gauss", "zero"], "note": ["", note], "energy": [0.9, energy]}
    )
    return Fit(
        request=Fit(ranked_by=ranked_by, scale=scale, repeats=4, row_norm=2.0, row_lengths=()),
        auto=Fit(mechanism="gauss", reason="it reads the rows once."),
        shapes=shapes,
        table=table,
        predicted=table[table["energy"].notna()],
        label=lambda name: name,
    )


def test_notes_of_compared_mechanisms():
    notes = comparison._notes(compared())
    assert notes[0].endswith("uses gauss if rows can be read repeatedly: it reads the rows once.")
    assert any(note.startswith("energy: share") and note.endswith("energy.") for note in notes)
    assert (
        printed(notes, "* baseline")
        == printed(notes, "typical")
        == printed(notes, "Not listed")
        == 0
    )
    assert printed(notes, "Measured on columns scaled by range") == 0
    notes = comparison._notes(compared("error", pd.DataFrame(), "sd", "baseline"))
    (order,) = (note for note in notes if note.startswith("error: Frobenius norm"))
    assert order.endswith("Sorted by the error, since all components are kept.")
    assert printed(notes, "* baseline: reads no rows.") == 1
    assert printed(notes, "typical: median over the shapes of rows; worst: worst shape.") == 1
    assert printed(notes, "Measured on columns scaled by range, before division by sds.") == 1
    notes = comparison._notes(compared(note="not for unit rows", energy=math.nan))
    assert notes[-1] == "Not listed: zero: not for unit rows."


def test_mechanisms_that_are_left_out_are_listed_by_reason():
    absent = pd.DataFrame({"mechanism": ["a", "b", "c"], "note": ["x", "y", "x"]})
    assert comparison.not_listed(absent) == ("Not listed: a, c: x.", "Not listed: b: y.")


def test_labels_mark_baselines_and_lengths_are_of_the_norm():
    assert comparison._label(compared(note="baseline"), "zero") == "zero *"
    assert comparison._label(compared(note="baseline"), "gauss") == "gauss"
    request = compared().request
    assert comparison._length(request) == "five shapes, up to 2.00"
    request.row_lengths = (0.25, 1.0)
    assert comparison._length(request) == "0.25, 1.0 of 2.00 (assumed)"
    assert comparison._measures(compared()) == (comparison.ENERGY, comparison.ERROR)
    assert comparison._measures(compared("error")) == (comparison.ERROR,)


def cell(**fields):
    of = {"open": "", "estimate": 2.0, "spread": 0.1, "p_value": 0.03, "std_error": 0.25}
    ends = {"noise_low": 1.0, "noise_high": 3.0, "conf_low": math.nan, "conf_high": 4.0}
    return {**of, **ends, "noise_sd": 0.2, "statistic": 8.0, **fields}


LOOK = Fit(digits=2, stars=(0.05, 0.01), statistic=["std_error"], level=0.9, notes=(), words=None)
COLUMN = Fit(form="", digits=3)


@each(
    "p, text",
    [(0.051, "2.00"), (0.05, "2.00"), (0.049, "2.00*"), (0.009, "2.00**"), (math.nan, "2.00")],
)
def test_stars_are_for_smaller_p_values(p, text):
    assert etable._estimate(COLUMN, cell(p_value=p), LOOK) == text


def test_estimates_that_are_open_or_not_identified():
    assert etable._estimate(COLUMN, None, LOOK) == ""
    assert etable._estimate(COLUMN, cell(open="lost"), LOOK) == "lost"
    assert etable._estimate(COLUMN, cell(estimate=math.inf), LOOK) == etable.NOT_IDENTIFIED
    assert etable._estimate(Fit(form="step", digits=3), cell(), LOOK) == "2"


@each(
    "name, text",
    [
        ("std_error", "(0.25)"),
        ("noise_sd", "[0.20]"),
        ("statistic", "z = 8.00"),
        ("p_value", "p = 0.0300"),
        ("noise_int", "[1.0, 3.0]"),
        ("conf_int", ""),
    ],
)
def test_what_stands_below_an_estimate(name, text):
    assert etable._below(name, cell(), LOOK) == text
    assert etable._below(name, cell(open="lost"), LOOK) == ""


def test_ends_and_p_values_beyond_what_is_printed():
    assert etable._below("conf_int", cell(conf_low=-math.inf), LOOK) == etable.NOT_IDENTIFIED
    assert etable._below("p_value", cell(p_value=1e-5), LOOK) == "p < 0.0001"
    assert etable._below("std_error", cell(std_error=math.inf), LOOK) == ""


def test_what_is_below_and_what_stars_mean_is_said():
    assert etable._below_note(LOOK) == [
        "Below each number: (standard error: sampling and privacy noise)."
    ]
    look = Fit(statistic=["conf_int", "noise_int"], level=0.9, stars=())
    assert (
        "90% confidence interval, for the population, 90% noise interval, for the"
        in (etable._below_note(look)[0])
    )
    assert etable._below_note(Fit(statistic=[])) == etable._stars_note(look) == []
    assert etable._stars_note(LOOK)[0].startswith("* p < 0.05, ** p < 0.01; p-values allow for")


@each(
    "name, value, sd, text",
    [
        ("nobs", math.nan, math.nan, "private"),
        ("r_squared", math.nan, 0.1, etable.LOST),
        ("llf", math.nan, math.nan, "-"),
        ("nobs", 1234.0, 5.0, "1,234"),
        ("r_squared", 0.4567, 0.1, "0.46"),
        ("r_squared", 0.4567, math.nan, "0.4567"),
        ("kind", "HC", math.nan, "HC"),
    ],
)
def test_fit_statistics_are_printed_to_their_noise(name, value, sd, text):
    assert etable._number(name, value, sd, LOOK) == text


def test_the_noise_of_a_fit_statistic_is_printed_where_it_is_asked_for():
    assert etable._noise(0.4, 0.1, LOOK) == ""
    look = Fit(digits=2, statistic=["noise_sd"])
    assert etable._noise(0.4, 0.1, look) == "[0.10]"
    for value, sd in ((math.nan, 0.1), (0.4, 0.0), (0.4, math.nan)):
        assert etable._noise(value, sd, look) == ""
